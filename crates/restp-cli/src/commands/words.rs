//! The words of `restp send`: what to send comes first, who receives it last.

use crate::failure::Failure;
use crate::transfer::{Ticket, TicketError};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The words told apart.
#[derive(Debug, PartialEq, Eq)]
pub struct Words {
    /// What to send, at least one.
    pub paths: Vec<PathBuf>,
    /// Tickets and addresses, at least one.
    pub to: Vec<String>,
}

impl Words {
    /// The first word is a path and the last one a receiver; before the last one are receivers as long as words look like one
    /// and nothing on the disk has their name.
    ///
    /// # Errors
    /// When there are not two, or the last one is not text.
    pub fn of(words: &[OsString]) -> Result<Self, Failure> {
        let Some(last) = words.len().checked_sub(1).filter(|last| *last > 0) else {
            return Err(Failure::input(
                "name what to send, and then who receives it: restp send PATH TICKET",
            ));
        };
        let first = words[..last].iter().rposition(|word| !names_receiver(word));
        let (paths, to) = words.split_at(first.map_or(0, |first| first + 1).clamp(1, last));
        let text = |word: &OsString| {
            let text = word.clone().into_string();
            text.map_err(|word| Failure::input(TicketError::Neither(word.to_string_lossy().into_owned())))
        };
        Ok(Words {
            paths: paths.iter().map(PathBuf::from).collect(),
            to: to.iter().map(text).collect::<Result<_, _>>()?,
        })
    }
}

fn names_receiver(word: &OsString) -> bool {
    let looks = word
        .to_str()
        .is_some_and(|word| !matches!(word.parse::<Ticket>(), Err(TicketError::Neither(_))));
    looks && !Path::new(word).exists()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_come_first_and_receivers_last() {
        let split = |words: &[&str]| {
            let words: Vec<_> = words.iter().map(OsString::from).collect();
            let words = Words::of(&words).expect("text");
            (words.paths.len(), words.to.len())
        };
        assert_eq!(split(&["a", "b"]), (1, 1));
        assert_eq!(split(&["a", "b", "c"]), (2, 1));
        assert_eq!(split(&["a", "127.0.0.1:1", "127.0.0.1:2"]), (1, 2));
        assert_eq!(split(&["a", "127.0.0.1:1", "b", "127.0.0.1:2"]), (3, 1));
        assert_eq!(split(&["127.0.0.1:1", "127.0.0.1:2"]), (1, 1));
        assert!(Words::of(&["a".into()]).is_err() && Words::of(&[]).is_err());
    }
}
