//! What is wrong with a scenario, where it is written, and what may stand there.

use std::fmt;
use std::path::PathBuf;
use thiserror::Error;

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
