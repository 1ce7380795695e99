//! What is wrong with a scenario, where it is written, and what may stand there.

use std::fmt;
use std::ops::Range;
use std::path::PathBuf;
use thiserror::Error;
use toml::Spanned;

/// A scenario was refused. The sentence names the place, the key, the value and what is allowed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub struct ScenarioError {
    /// The file, when the scenario was read from one.
    pub file: Option<PathBuf>,
    /// Where the offending text is written.
    pub place: Place,
    /// The key as one would write it in `[sweep]`, for example `link.bottleneck.loss.rate`.
    pub key: String,
    /// The value, the rule and the way out.
    pub message: String,
}

/// Where a part of a scenario is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// The scenario file as a whole could not be read.
    File,
    /// A line of the scenario file, from 1.
    Line(usize),
    /// A setting from outside the file, `KEY=VALUE`.
    Setting(String),
}

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(file) = &self.file {
            write!(f, "{}: ", file.display())?;
        }
        match &self.place {
            Place::File => {}
            Place::Line(line) => write!(f, "line {line}: ")?,
            Place::Setting(setting) => write!(f, "setting {setting}: ")?,
        }
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        f.write_str(&self.message)
    }
}

/// A complaint with the bytes it is about, before they are turned into a line and a key.
#[derive(Clone, Debug)]
pub(crate) struct Fault {
    pub span: Range<usize>,
    pub message: String,
}

impl Fault {
    pub fn at<T>(written: &Spanned<T>, message: impl fmt::Display) -> Self {
        Fault {
            span: written.span(),
            message: message.to_string(),
        }
    }

    /// `word` is none of `allowed`: lists them, and points at the nearest.
    pub fn unknown<'a, T>(
        written: &Spanned<T>,
        what: &str,
        word: &str,
        allowed: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        Fault::at(written, unknown(what, word, allowed))
    }
}

impl From<toml::de::Error> for Fault {
    /// The parser names an unknown key and those it expected in back-quotes; a near miss gets a hint.
    fn from(error: toml::de::Error) -> Self {
        let message = error.message();
        let mut quoted = message.split('`').skip(1).step_by(2);
        let hint = match (message.starts_with("unknown "), quoted.next()) {
            (true, Some(word)) => nearest(word, quoted).map(did_you_mean).unwrap_or_default(),
            _ => String::new(),
        };
        Fault {
            span: error.span().unwrap_or(0..0),
            message: message.replace('`', "\"") + &hint,
        }
    }
}

/// The sentence for a word that is none of `allowed`.
pub(crate) fn unknown<'a>(what: &str, word: &str, allowed: impl IntoIterator<Item = &'a str>) -> String {
    let allowed: Vec<&str> = allowed.into_iter().collect();
    let hint = nearest(word, allowed.iter().copied())
        .map(did_you_mean)
        .unwrap_or_default();
    format!(
        "there is no {what} \"{word}\"; write one of: {}{hint}",
        allowed.join(", ")
    )
}

fn did_you_mean(word: &str) -> String {
    format!("; did you mean \"{word}\"?")
}

/// The candidate with the fewest edits, when a third of the word or less has to change.
fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let limit = (word.chars().count() / 3).max(1);
    candidates
        .into_iter()
        .map(|one| (edits(word, one), one))
        .filter(|&(n, _)| n <= limit)
        .min()
        .map(|(_, one)| one)
}

/// Levenshtein distance with exchanged neighbours counted as one edit.
fn edits(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let (mut before, mut last): (Vec<usize>, Vec<usize>) = (Vec::new(), (0..=b.len()).collect());
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let change = usize::from(a[i - 1] != b[j - 1]);
            let mut best = (last[j - 1] + change).min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(before[j - 2] + 1);
            }
            row.push(best);
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_misses_are_found_and_far_words_are_not() {
        let names = ["delay", "rate", "queue", "outage"];
        assert_eq!(nearest("dealy", names), Some("delay"));
        assert_eq!(nearest("outtage", names), Some("outage"));
        assert_eq!(nearest("bandwidth", names), None);
    }

    #[test]
    fn edits_count_exchanged_neighbours_once() {
        assert_eq!(edits("", "abc"), 3);
        assert_eq!(edits("delay", "dealy"), 1);
        assert_eq!(edits("kitten", "sitting"), 3);
    }
}
