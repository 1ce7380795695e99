//! TOML files of users: what is wrong with one is said with its name and line.

use crate::failure::Failure;
use restp::files;
use serde::de::DeserializeOwned;
use std::fmt::Display;
use std::io::ErrorKind;
use std::ops::Range;
use std::path::Path;

/// Longest file that is read.
const MAX_BYTES: u64 = 1 << 16;

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
