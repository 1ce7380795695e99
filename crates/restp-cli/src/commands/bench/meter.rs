//! What one end prints: first where it listens, last what passed. `bench/run.py` reads the same lines.

use crate::failure::Failure;
use crate::output::Output;
use restp::clock::Clock;
use restp_base::time::Time;
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;

/// First line of a server.
#[derive(Debug, Serialize, Deserialize)]
pub struct Announcement {
    /// Where the client finds it.
    pub listening: SocketAddr,
    /// Further arguments of the client.
    pub client_args: Vec<String>,
}

/// Last line of both ends.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Tally {
    pub name: String,
    pub role: String,
    /// Application bytes.
    pub bytes: u64,
    /// From the first of them to the last.
    pub seconds: f64,
    pub goodput_bps: f64,
    /// Datagrams: received for a server, sent for a client.
    pub packets: u64,
    /// Of a client with feedback: datagrams declared lost.
    pub lost: Option<u64>,
}

/// Lines of an end are JSON whatever the user asked for: programs read them.
const LINES: Output = Output { json: true };

/// Prints where a server listens.
///
/// # Errors
/// When standard output is closed.
pub fn announce(listening: SocketAddr) -> Result<(), Failure> {
    let announcement = Announcement {
        listening,
        client_args: Vec::new(),
    };
    LINES.result(&announcement, |_| String::new())
}

/// Counts application bytes from the first to the last one.
#[derive(Debug)]
pub struct Meter {
    clock: Clock,
    bytes: u64,
    span: Option<(Time, Time)>,
}

impl Meter {
    pub fn start() -> Self {
        Meter {
            clock: Clock::start(),
            bytes: 0,
            span: None,
        }
    }

    /// `bytes` passed just now.
    pub fn add(&mut self, bytes: usize) {
        let now = self.clock.now();
        self.bytes += bytes as u64;
        self.span = Some((self.span.map_or(now, |(first, _)| first), now));
    }

    /// Prints the tally.
    ///
    /// # Errors
    /// When nothing passed, so that there is no rate, or standard output is closed.
    pub fn report(&self, name: &str, role: &str, packets: u64, lost: Option<u64>) -> Result<(), Failure> {
        let seconds = self
            .span
            .map_or(0.0, |(first, last)| last.since(first).as_secs_f64());
        if seconds == 0.0 {
            return Err(Failure::operation(format!("{name} {role}: no data passed")));
        }
        let tally = Tally {
            name: name.into(),
            role: role.into(),
            bytes: self.bytes,
            seconds,
            goodput_bps: self.bytes as f64 * 8.0 / seconds,
            packets,
            lost,
        };
        LINES.result(&tally, |_| String::new())
    }
}
