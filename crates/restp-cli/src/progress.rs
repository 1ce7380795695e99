//! Progress on a terminal; nothing where standard error is no terminal.

use crate::output;
use crate::transfer::Look;
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;

/// The lines below the cursor, one per transfer.
#[derive(Clone)]
pub struct Progress {
    lines: MultiProgress,
    terminal: bool,
}

/// One line; it goes away with the value.
pub struct Line(ProgressBar);

const TEMPLATE: &str =
    "{prefix:.bold} {wide_bar} {percent:>3} % of {total_bytes}, {bytes_per_sec}, {eta} left {msg}";

impl Progress {
    /// On standard error.
    pub fn new() -> Self {
        let terminal = std::io::stderr().is_terminal();
        let target = if terminal {
            ProgressDrawTarget::stderr()
        } else {
            ProgressDrawTarget::hidden()
        };
        Progress {
            lines: MultiProgress::with_draw_target(target),
            terminal,
        }
    }

    /// A line for `what`, which has `total` bytes.
    pub fn line(&self, what: &str, total: u64) -> Line {
        let bar = self.lines.add(ProgressBar::new(total));
        if let Ok(style) = ProgressStyle::with_template(TEMPLATE) {
            bar.set_style(style);
        }
        bar.set_prefix(what.to_owned());
        Line(bar)
    }

    /// A line for `what` that counts steps.
    pub fn steps(&self, what: &str, total: u64) -> Line {
        let line = self.line(what, total);
        if let Ok(style) = ProgressStyle::with_template("{prefix:.bold} {wide_bar} {pos}/{len}, {eta} left") {
            line.0.set_style(style);
        }
        line
    }

    /// A sentence for people, above the lines.
    pub fn note(&self, text: impl std::fmt::Display) {
        self.aside(|| output::note(text));
    }

    /// Does something that may print, with the lines out of the way.
    pub fn aside<T>(&self, act: impl FnOnce() -> T) -> T {
        if self.terminal {
            self.lines.suspend(act)
        } else {
            act()
        }
    }
}

impl Line {
    /// Shows what was seen.
    pub fn show(&self, look: Look) {
        self.0.set_position(look.bytes);
        self.0.set_message(match look.down_for {
            Some(span) => format!("(no answer for {:.0} s)", span.as_secs_f64()),
            None if Some(look.bytes) == self.0.length() => "(waiting for the other side)".into(),
            None => String::new(),
        });
    }

    /// One step done.
    pub fn step(&self) {
        self.0.inc(1);
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
