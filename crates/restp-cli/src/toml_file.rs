//! TOML files of users: what is wrong with one is said with its name and line.

use crate::failure::Failure;
use restp::files;
use serde::de::{self, Deserialize, DeserializeOwned, Deserializer, Visitor};
use std::fmt::{self, Display};
use std::io::ErrorKind;
use std::ops::Range;
use std::path::Path;

/// Longest file that is read.
const MAX_BYTES: u64 = 1 << 16;

/// What a command line takes as it stands and a file needs quotes for: `30` is `"30"`, a port or seconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word(pub String);

impl<'de> Deserialize<'de> for Word {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Words;

        impl Visitor<'_> for Words {
            type Value = Word;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string or a number")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Word, E> {
                Ok(Word(text.to_owned()))
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Word, E> {
                Ok(Word(number.to_string()))
            }

            fn visit_f64<E: de::Error>(self, number: f64) -> Result<Word, E> {
                Ok(Word(format!("{number:?}")))
            }
        }

        deserializer.deserialize_any(Words)
    }
}

/// A file as it was read.
pub struct TomlFile {
    name: String,
    text: String,
}

impl TomlFile {
    /// The one at `path`; none: it is not there.
    ///
    /// # Errors
    /// When it cannot be read, or is no text.
    pub fn read(path: &Path) -> Result<Option<Self>, Failure> {
        let name = path.display().to_string();
        let wrong = |why: &dyn Display| Failure::input(format!("{name}: {why}"));
        let bytes = match files::read(path, MAX_BYTES) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            read => read.map_err(|error| wrong(&error))?,
        };
        let text = str::from_utf8(&bytes).map_err(|_| wrong(&"it is no text"))?;
        let text = text.to_owned();
        Ok(Some(TomlFile { name, text }))
    }

    /// What it says. `rule` says what it may.
    ///
    /// # Errors
    /// With the line, and the key where one is unknown.
    pub fn parse<T: DeserializeOwned>(&self, rule: &str) -> Result<T, Failure> {
        toml::from_str(&self.text).map_err(|error: toml::de::Error| {
            let at = error.span().unwrap_or_default();
            self.wrong(&at, format!("{}; {rule}", error.message()))
        })
    }

    /// What stands `at` that place is wrong.
    pub fn wrong(&self, at: &Range<usize>, why: impl Display) -> Failure {
        let before = self.text.get(..at.start).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        Failure::input(format!("{}: line {line}: {why}", self.name))
    }
}
