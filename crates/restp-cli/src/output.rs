//! Standard output carries results only: JSON lines with `--json`, text otherwise. Everything else goes to
//! standard error.

use crate::failure::Failure;
use serde::Serialize;
use std::io::{self, ErrorKind, Write};

/// Where results go, and in which form.
#[derive(Clone, Copy, Debug)]
pub struct Output {
    /// One JSON object per line.
    pub json: bool,
}

impl Output {
    /// One result: as a JSON line, or as the text that `text` makes of it.
    ///
    /// # Errors
    /// When standard output is closed.
    pub fn result<T: Serialize>(self, result: &T, text: impl FnOnce(&T) -> String) -> Result<(), Failure> {
        if self.json {
            let line = serde_json::to_string(result).map_err(Failure::operation)?;
            write(&line)
        } else {
            write(&text(result))
        }
    }

    /// Text that JSON readers do without.
    ///
    /// # Errors
    /// When standard output is closed.
    pub fn text(self, text: &str) -> Result<(), Failure> {
        if self.json { Ok(()) } else { write(text) }
    }
}

/// A line for people, on standard error.
pub fn note(text: impl std::fmt::Display) {
    // Nobody reads it: no reason to stop a transfer.
    let _ = writeln!(io::stderr(), "{text}");
}

/// A reader that leaves early, such as `head`, ends the program without a complaint.
fn write(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    let text = text.strip_suffix('\n').unwrap_or(text);
    match writeln!(out, "{text}").and_then(|()| out.flush()) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Err(Failure::silent()),
        Err(error) => Err(Failure::operation(format!(
            "standard output: {error}; the result could not be printed"
        ))),
    }
}
