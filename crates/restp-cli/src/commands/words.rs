//! The words of `restp send`: what to send comes first, who receives it last.

use crate::address;
use crate::content::ContentTicket;
use crate::failure::Failure;
use crate::transfer::Ticket;
use restp::Connection;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The words told apart.
#[derive(Debug, PartialEq, Eq)]
pub struct Words {
    /// What to send, at least one.
    pub paths: Vec<PathBuf>,
    /// Who receives it, at least one.
    pub to: Vec<Receiver>,
}

/// Tickets and addresses.
#[derive(Debug, PartialEq, Eq)]
pub struct Receiver {
    /// What is known of it: of an address, no more than that.
    pub ticket: Ticket,
    /// It was a ticket that was typed.
    pub has_ticket: bool,
}

impl Receiver {
    /// As typed. Names are looked up.
    ///
    /// # Errors
    /// When it is no ticket and no address.
    pub fn of(word: &str) -> Result<Self, Failure> {
        if ContentTicket::is_one(word) {
            return Err(Failure::input(
                "this is the ticket of something published, for `restp fetch`; write the word after \"ticket:\" that `restp recv` or \
                 `restp serve` printed",
            ));
        }
        let has_ticket = Ticket::is_one(word);
        let ticket = if has_ticket {
            word.parse().map_err(Failure::input)?
        } else {
            Ticket::new(address::to_send_to(word).map_err(|why| {
                why.or("or the word after \"ticket:\" that `restp recv` or `restp serve` printed")
                    .of("")
            })?)
        };
        Ok(Receiver { ticket, has_ticket })
    }
}

impl Words {
    /// The first word is a path and the last one a receiver; before the last one are receivers as long as words look like one
    /// and nothing on the disk has their name.
    ///
    /// # Errors
    /// When there are not two, or the last one is no receiver.
    pub fn of(words: &[OsString]) -> Result<Self, Failure> {
        let Some(last) = words.len().checked_sub(1).filter(|last| *last > 0) else {
            return Err(Failure::input(
                "name what to send, and then who receives it: restp send PATH TICKET",
            ));
        };
        let is_ticket = |word: &OsString| word.to_str().is_some_and(Ticket::is_one);
        if names_receiver(&words[0]) && is_ticket(&words[0]) && !is_ticket(&words[last]) {
            return Err(Failure::input(
                "the ticket comes last, behind what to send: restp send PATH TICKET",
            ));
        }
        let first = words[..last].iter().rposition(|word| !names_receiver(word));
        let (paths, to) = words.split_at(first.map_or(0, |first| first + 1).clamp(1, last));
        Ok(Words {
            paths: paths.iter().map(PathBuf::from).collect(),
            to: to
                .iter()
                .map(|word| Receiver::of(&word.to_string_lossy()))
                .collect::<Result<_, _>>()?,
        })
    }
}

fn names_receiver(word: &OsString) -> bool {
    let has_port = |word: &str| {
        word.rsplit_once(':')
            .is_some_and(|(_, port)| port.parse::<u16>().is_ok())
    };
    let looks = |word: &str| Ticket::is_one(word) || has_port(word);
    word.to_str().is_some_and(looks) && !Path::new(word).exists()
}

/// Who is at the other end, for people: his address.
pub fn peer(connection: &Connection) -> String {
    let path = connection.path();
    path.map_or_else(|| "somebody".into(), |path| path.remote.to_string())
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
        assert_eq!(split(&["a", "192.0.2.1"]), (1, 1));
        assert_eq!(split(&["a", "b", "4000"]), (2, 1));
        assert_eq!(split(&["a", "127.0.0.1:1", "127.0.0.1:2"]), (1, 2));
        assert_eq!(split(&["a", "127.0.0.1:1", "b", "127.0.0.1:2"]), (3, 1));
        assert_eq!(split(&["127.0.0.1:1", "127.0.0.1:2"]), (1, 1));
        assert_eq!(split(&["a", "localhost:1", "127.0.0.1:2"]), (1, 2));
        for (words, way_out) in [
            (["restp2-aeaq", "a"], "the ticket comes last"),
            (["a", "restpc2-aeaq"], "for `restp fetch`"),
        ] {
            let why = Words::of(&words.map(OsString::from)).expect_err("refused");
            assert!(why.message().contains(way_out), "{why:?}");
        }
        assert!(Words::of(&["a".into()]).is_err() && Words::of(&[]).is_err());
    }
}
