//! What a check says: where, what, and how bad.

use std::fmt;

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// Told, changes nothing.
    Note,
    /// The check fails.
    Error,
}

/// One sentence of a check about one place.
#[derive(Debug, PartialEq, Eq)]
pub struct Finding {
    pub severity: Severity,
    /// Path from the root of the repository.
    pub path: String,
    /// Line, counted from 1; `None` where the whole file is meant.
    pub line: Option<usize>,
    pub message: String,
}

impl Finding {
    pub fn error(path: &str, line: impl Into<Option<usize>>, message: impl Into<String>) -> Finding {
        Finding {
            severity: Severity::Error,
            path: path.into(),
            line: line.into(),
            message: message.into(),
        }
    }

    pub fn note(path: &str, message: impl Into<String>) -> Finding {
        Finding {
            severity: Severity::Note,
            path: path.into(),
            line: None,
            message: message.into(),
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = match self.severity {
            Severity::Note => "note",
            Severity::Error => "error",
        };
        match self.line {
            Some(line) => write!(f, "{word}: {}:{line}: {}", self.path, self.message),
            None => write!(f, "{word}: {}: {}", self.path, self.message),
        }
    }
}
