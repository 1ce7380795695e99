//! Progress on a terminal; nothing where standard error is no terminal.

use crate::output::{self, Output};
use crate::transfer::{Audience, Look, News};
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use restp::{PathAddress, PathStats};
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::net::SocketAddr;
use std::sync::{Mutex, Once, PoisonError};

/// The lines below the cursor, one per transfer.
#[derive(Clone)]
pub struct Progress {
    lines: MultiProgress,
    terminal: bool,
}

/// One line, and one for each of several paths below it; they go away with the value.
pub struct Line {
    bar: ProgressBar,
    lines: MultiProgress,
    paths: Mutex<BTreeMap<PathAddress, PathLine>>,
    /// It is among the lines.
    shown: Once,
}

/// The line of one path, and how many bytes it had carried at the last look.
struct PathLine {
    bar: ProgressBar,
    bytes: u64,
}

/// What is over sooner needs no line, in seconds.
const LONG_S: f64 = 2.0;

const TEMPLATE: &str =
    "{prefix:.bold} {wide_bar} {percent:>3} % of {total_bytes}, {bytes_per_sec}, {eta} left {msg}";
const UNKNOWN: &str = "{prefix:.bold} {bytes}, {bytes_per_sec}, {elapsed} {msg}";
const TRYING: &str = "{prefix} ({elapsed})";
const STEPS: &str = "{prefix:.bold} {wide_bar} {pos}/{len}, {eta} left";
const THOUSANDTHS: &str = "{prefix:.bold} {wide_bar} {percent:>3} %, {eta} left";

impl Progress {
    /// On standard error.
    pub fn new() -> Self {
        let terminal = std::io::stderr().is_terminal() && !output::is_quiet();
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

    /// A line for `what`, which has `total` bytes, if that is known.
    pub fn line(&self, what: &str, total: Option<u64>) -> Line {
        match total {
            Some(total) => self.made(self.lines.add(ProgressBar::new(total)), TEMPLATE, what),
            None => self.made(self.lines.add(ProgressBar::no_length()), UNKNOWN, what),
        }
    }

    /// Says what is being tried, and since when, until the value is dropped: on a terminal from the beginning, otherwise once.
    pub fn trying(&self, what: &str) -> Line {
        if !self.terminal {
            self.note(what);
        }
        let line = self.made(self.lines.add(ProgressBar::no_length()), TRYING, what);
        line.bar.enable_steady_tick(std::time::Duration::from_millis(250));
        line
    }

    /// A line for `what` that counts steps.
    pub fn steps(&self, what: &str, total: u64) -> Line {
        self.made(self.lines.add(ProgressBar::new(total)), STEPS, what)
    }

    /// A line for `what` that counts thousandths of so many runs, and shows itself where they take long.
    pub fn thousandths(&self, what: &str, runs: u64) -> Line {
        let bar = ProgressBar::with_draw_target(Some(1000 * runs), ProgressDrawTarget::hidden());
        self.made(bar, THOUSANDTHS, what)
    }

    fn made(&self, bar: ProgressBar, template: &str, what: &str) -> Line {
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.set_prefix(output::shown(what));
        Line {
            bar,
            lines: self.lines.clone(),
            paths: Mutex::default(),
            shown: Once::new(),
        }
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
        self.bar.set_position(look.bytes);
        self.bar.set_message(match look.down_for {
            Some(span) => format!("(no answer for {:.0} s)", span.as_secs_f64()),
            None if Some(look.bytes) == self.bar.length() => "(waiting for the other side)".into(),
            None if look.found.is_empty() => String::new(),
            None => format!("({})", look.found.join("; ")),
        });
        let mut paths = self.paths.lock().unwrap_or_else(PoisonError::into_inner);
        for path in &look.paths {
            let line = paths.entry(path.path).or_insert_with(|| self.path_line(path));
            line.show(path);
        }
    }

    fn path_line(&self, path: &PathStats) -> PathLine {
        let bar = self.lines.add(ProgressBar::no_length());
        if let Ok(style) = ProgressStyle::with_template("  {prefix} {msg}") {
            bar.set_style(style);
        }
        bar.set_prefix(format!("{} - {}", path.path.local, path.path.remote));
        PathLine { bar, bytes: 0 }
    }

    /// So many thousandths more are done, `seconds` after the beginning.
    pub fn advance(&self, thousandths: u64, seconds: f64) {
        self.bar.inc(thousandths);
        if seconds > LONG_S {
            self.shown.call_once(|| _ = self.lines.add(self.bar.clone()));
        }
    }

    /// One step done.
    pub fn step(&self) {
        self.bar.inc(1);
    }
}

impl PathLine {
    fn show(&mut self, path: &PathStats) {
        let bytes = path.sent_bytes + path.received_bytes;
        let moved = bytes - std::mem::replace(&mut self.bytes, bytes).min(bytes);
        let rtt = path.srtt.map_or_else(String::new, |srtt| {
            format!(", round trip {:.1} ms", srtt.as_secs_f64() * 1e3)
        });
        let down = match path.down_events {
            0 => String::new(),
            times => format!(", down {times} times"),
        };
        self.bar.set_message(format!(
            "{:.1} MB{}{rtt}{down}",
            bytes as f64 / 1e6,
            if moved == 0 { ", silent" } else { "" }
        ));
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        let paths = self.paths.get_mut().unwrap_or_else(PoisonError::into_inner);
        for line in paths.values() {
            line.bar.finish_and_clear();
        }
        self.bar.finish_and_clear();
    }
}

/// News of a path as a JSON line.
#[derive(Serialize)]
struct PathNews {
    event: &'static str,
    local: SocketAddr,
    remote: SocketAddr,
    state: &'static str,
    seconds: f64,
}

impl News {
    /// Tells programs on standard output and people on standard error.
    pub fn tell(&self, progress: &Progress, output: Output) {
        let PathAddress { local, remote } = self.event.path;
        let (state, seconds) = (self.state(), self.seconds);
        if output.json && self.audience != Audience::People {
            let news = PathNews {
                event: "path",
                local,
                remote,
                state,
                seconds,
            };
            // Nobody reads it: the result will say so.
            let _ = progress.aside(|| output.result(&news, |_| String::new()));
        } else if !output.json && self.audience != Audience::Programs {
            progress.note(format!("{seconds:.2} s: path {local} - {remote} is {state}"));
        } else {
            tracing::debug!(%local, %remote, state, "path");
        }
    }
}
