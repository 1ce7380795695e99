//! Standard output carries results only: JSON lines with `--json`, text otherwise. Everything else goes to
//! standard error.

use crate::failure::Failure;
use restp_base::time::Duration;
use serde::Serialize;
use std::io::{self, ErrorKind, Write};
use std::sync::atomic::{AtomicBool, Ordering};

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
            write(&shown(&text(result)))
        }
    }

    /// Text that JSON readers do without.
    ///
    /// # Errors
    /// When standard output is closed.
    pub fn text(self, text: &str) -> Result<(), Failure> {
        if self.json { Ok(()) } else { write(&shown(text)) }
    }
}

/// The user wants results and errors only.
static QUIET: AtomicBool = AtomicBool::new(false);

/// Says results and errors only, or everything.
pub fn set_quiet(quiet: bool) {
    QUIET.store(quiet, Ordering::Relaxed);
}

pub fn is_quiet() -> bool {
    QUIET.load(Ordering::Relaxed)
}

/// A line for people, on standard error, unless they want none.
pub fn note(text: impl std::fmt::Display) {
    if !is_quiet() {
        say(text);
    }
}

/// What the user has asked for by an option, on standard error, for people.
pub fn asked(text: impl std::fmt::Display) {
    say(text);
}

/// Why a command ends without success.
pub fn error(text: impl std::fmt::Display) {
    say(format_args!("error: {text}"));
}

fn say(text: impl std::fmt::Display) {
    // Nobody reads it: no reason to stop a transfer.
    let _ = writeln!(io::stderr(), "{}", shown(&text.to_string()));
}

/// `text` without what steers a terminal: a part of it may be the word of a peer, or the name of a file.
pub fn shown(text: &str) -> String {
    text.replace(|c: char| c.is_control() && !matches!(c, '\n' | '\t'), "\u{fffd}")
}

/// `1 byte`, `2 bytes`.
pub fn bytes(number: u64) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} byte{plural}")
}

/// Bits per second as links are named: `850 bit/s`, `64.0 kbit/s`, `18.5 Mbit/s`, `1.2 Gbit/s`.
pub fn rate(bits: f64) -> String {
    match bits {
        bits if bits >= 999.5e6 => format!("{:.1} Gbit/s", bits / 1e9),
        bits if bits >= 999.5e3 => format!("{:.1} Mbit/s", bits / 1e6),
        bits if bits >= 999.5 => format!("{:.1} kbit/s", bits / 1e3),
        bits => format!("{bits:.0} bit/s"),
    }
}

/// A span as people say it: seconds with one decimal where it matters, milliseconds below.
pub fn span(span: Duration) -> String {
    match span.as_secs_f64() {
        seconds if seconds >= 9.95 => format!("{seconds:.0} s"),
        seconds if seconds >= 0.9995 => format!("{} s", (seconds * 10.0).round() / 10.0),
        seconds => format!("{:.0} ms", seconds * 1e3),
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_is_shown_steers_the_terminal() {
        assert_eq!(
            shown("a\u{1b}[2Jb\u{9b}2J\r\u{7}\u{7f}\n\tc ü"),
            "a\u{fffd}[2Jb\u{fffd}2J\u{fffd}\u{fffd}\u{fffd}\n\tc ü"
        );
    }

    #[test]
    fn one_byte_is_no_plural() {
        assert_eq!([0, 1, 2].map(bytes), ["0 bytes", "1 byte", "2 bytes"]);
    }

    #[test]
    fn rates_read_as_links_are_named() {
        for (bits, text) in [
            (0.0, "0 bit/s"),
            (999.4, "999 bit/s"),
            (64_000.0, "64.0 kbit/s"),
            (18_460_000.0, "18.5 Mbit/s"),
            (1.2e9, "1.2 Gbit/s"),
        ] {
            assert_eq!(rate(bits), text);
        }
    }

    #[test]
    fn spans_read_as_people_say_them() {
        for (nanoseconds, text) in [
            (1_500_000, "2 ms"),
            (999_000_001, "999 ms"),
            (1_000_000_100, "1 s"),
            (2_512_345_678, "2.5 s"),
            (30_004_000_001, "30 s"),
        ] {
            assert_eq!(span(Duration::from_nanos(nanoseconds)), text);
        }
    }
}
