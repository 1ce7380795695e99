//! How a command fails: what to say, and the exit code that tells scripts whose turn it is.

use std::fmt;

/// A sentence for the user and an exit code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    code: u8,
    message: String,
}

impl Failure {
    /// The command did not reach its end: peer lost, verification failed, interrupted. Exit code 1.
    pub fn operation(message: impl fmt::Display) -> Self {
        Failure {
            code: 1,
            message: message.to_string(),
        }
    }

    /// Arguments or an input file are wrong; nothing was done. Exit code 2.
    pub fn input(message: impl fmt::Display) -> Self {
        Failure {
            code: 2,
            message: message.to_string(),
        }
    }

    /// Everything has been said already. Exit code 1.
    pub fn silent() -> Self {
        Failure::operation("")
    }

    /// The exit code.
    pub fn code(&self) -> u8 {
        self.code
    }

    /// What to say; empty when everything has been said.
    pub fn message(&self) -> &str {
        &self.message
    }
}
