//! The result of a transfer: the same fields at both ends.

use super::diagnosis;
use super::{Digest, LEAD_BYTES, Watch, hex};
use crate::output::{bytes, rate};
use restp::{Connection, PathStats};
use restp_base::observe::Changed;
use restp_base::time::{Duration, Time};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;

/// A verified transfer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Outcome {
    /// Of all files.
    pub bytes: u64,
    /// From the opening of the connection to the verdict.
    pub seconds: f64,
    /// Bits of the files that were sent per second.
    pub goodput_bps: f64,
    /// Digest both ends agree on.
    pub sha256: String,
    /// Files that are in their places.
    pub files: u64,
    /// Of these, so many were there already.
    pub skipped_files: u64,
    /// Files that did not come after all.
    #[serde(skip)]
    pub left_out: Vec<String>,
    /// Bytes of the files that were there already and have not been sent.
    pub resumed_bytes: u64,
    /// Service and choice, as negotiated.
    pub composition: BTreeMap<&'static str, String>,
    /// Until both sides knew of the connection.
    pub handshake_ms: Option<f64>,
    /// Datagrams with data that did not wait for that.
    pub early_packets: u64,
    /// At the receiver, the longest time without new data while the file came in.
    pub longest_stall_ms: Option<f64>,
    /// Every path used.
    pub paths: Vec<PathOutcome>,
    /// What was found on the paths in the whole transfer, in words.
    pub found: Vec<String>,
    /// How the services of this end changed, the latest 256.
    pub changes: Vec<ChangeOutcome>,
}

/// One service that is not what it was.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ChangeOutcome {
    /// Since when, on the clock of this connection's endpoint, in seconds.
    pub at_s: f64,
    /// Which: the key of a composition, or `mode` for what the adaptive controller takes a path for.
    pub key: &'static str,
    /// What it was.
    pub from: String,
    /// What it is.
    pub to: String,
    /// Who wanted it: `path`, `application`, `peer`, `refused`, `overtaken`.
    pub why: &'static str,
}

impl From<Changed> for ChangeOutcome {
    fn from(changed: Changed) -> Self {
        ChangeOutcome {
            at_s: changed.at.since(Time::ZERO).as_secs_f64(),
            key: changed.key,
            from: changed.from,
            to: changed.to,
            why: changed.why.name(),
        }
    }
}

/// What both ends count alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tally {
    /// They agree on it.
    pub digest: Digest,
    /// Files that came.
    pub files: u64,
    /// Of these, so many were there already.
    pub skipped_files: u64,
    /// Files that did not come after all: at the sender why, at the receiver which.
    pub left_out: Vec<String>,
}

/// What one path carried.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PathOutcome {
    /// Address here.
    pub local: SocketAddr,
    /// Address there.
    pub remote: SocketAddr,
    /// Transport bytes sent from here, headers and retransmissions included.
    pub bytes_sent: u64,
    /// Datagrams sent from here.
    pub packets_sent: u64,
    /// Of these, declared lost.
    pub packets_lost: u64,
    /// Smoothed round-trip time.
    pub srtt_ms: Option<f64>,
    /// Times the path was taken for dead; where there is one only, was silent for a second and two round trips while an
    /// answer was due.
    pub down_events: u64,
}

impl Outcome {
    /// Of a connection whose transfer of `watch.bytes()` took `seconds`. The connection must still be known to the engine: ask
    /// before it is released.
    pub fn new(connection: &Connection, watch: &Watch, seconds: f64, tally: Tally) -> Self {
        let stats = connection.stats();
        let composition = connection.composition().map(|composition| composition.services());
        let composition = composition.unwrap_or_default();
        let (bytes, resumed_bytes) = (watch.bytes(), watch.resumed_bytes());
        // Of a single path nobody but the watch says when it was silent.
        let single = stats.paths.len() == 1;
        let down = |path: &PathStats| {
            if single {
                watch.down_events()
            } else {
                path.down_events
            }
        };
        Outcome {
            bytes,
            seconds,
            goodput_bps: if seconds > 0.0 {
                (bytes - resumed_bytes) as f64 * 8.0 / seconds
            } else {
                0.0
            },
            sha256: hex(&tally.digest),
            files: tally.files,
            skipped_files: tally.skipped_files,
            left_out: tally.left_out,
            resumed_bytes,
            composition: composition
                .into_iter()
                .map(|(service, choice, _)| (service, choice))
                .collect(),
            handshake_ms: stats.handshake.map(milliseconds),
            early_packets: stats.early_segments,
            longest_stall_ms: watch.longest_stall().map(milliseconds),
            paths: stats
                .paths
                .iter()
                .map(|path| PathOutcome::new(path, down(path)))
                .collect(),
            found: diagnosis::since_the_beginning(&stats.paths),
            changes: watch
                .changes(connection)
                .into_iter()
                .map(ChangeOutcome::from)
                .collect(),
        }
    }
}

impl PathOutcome {
    fn new(path: &PathStats, down_events: u64) -> Self {
        PathOutcome {
            local: path.path.local,
            remote: path.path.remote,
            bytes_sent: path.sent_bytes,
            packets_sent: path.sent_packets,
            packets_lost: path.lost_packets,
            srtt_ms: path.srtt.map(milliseconds),
            down_events,
        }
    }
}

/// What was found from the beginning to the end.
fn milliseconds(span: Duration) -> f64 {
    span.as_secs_f64() * 1e3
}

impl Outcome {
    /// What was sent and how fast, what was not, and what has not changed. The first bytes leave before it is known what is there: of a
    /// small file that was there all may have been sent.
    fn shares(&self) -> String {
        let sent = self.bytes.saturating_sub(self.resumed_bytes);
        let mut shares = vec![format!("sent: {}", bytes(sent))];
        // What leaves in the first round trip tells nothing of a rate.
        if sent > LEAD_BYTES {
            shares[0] += &format!(" at {}", rate(self.goodput_bps));
        }
        if self.resumed_bytes > 0 {
            shares.push(format!(
                "not sent: {} that were there already",
                bytes(self.resumed_bytes)
            ));
        }
        match self.skipped_files {
            0 => {}
            1 => shares.push("1 file was there already as a whole".into()),
            files => shares.push(format!("{files} files were there already as a whole")),
        }
        shares.join("; ")
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let files = match self.files {
            1 => String::new(),
            files => format!(" in {files} files"),
        };
        let (all, seconds, sha256) = (bytes(self.bytes), self.seconds, &self.sha256);
        write!(f, "{all}{files} in {seconds:.2} s, SHA-256 {sha256} confirmed")?;
        write!(f, "\n  {}", self.shares())?;
        if let Some(stall) = self.longest_stall_ms {
            write!(f, "\n  longest stall {stall:.0} ms")?;
        }
        for path in &self.paths {
            let (local, remote) = (path.local, path.remote);
            let lost = 100.0 * path.packets_lost as f64 / path.packets_sent.max(1) as f64;
            write!(
                f,
                "\n  {local} - {remote}: {} packets, {lost:.2} % lost",
                path.packets_sent
            )?;
            if let Some(srtt) = path.srtt_ms {
                write!(f, ", round trip {srtt:.2} ms")?;
            }
            match path.down_events {
                0 => {}
                1 => write!(f, ", down once")?,
                times => write!(f, ", down {times} times")?,
            }
        }
        for found in &self.found {
            write!(f, "\n  {found}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shares(bytes: u64, resumed_bytes: u64, skipped_files: u64) -> String {
        let outcome = Outcome {
            bytes,
            seconds: 1.0,
            goodput_bps: (bytes - resumed_bytes) as f64 * 8.0,
            sha256: String::new(),
            files: 3,
            skipped_files,
            left_out: Vec::new(),
            resumed_bytes,
            composition: BTreeMap::new(),
            handshake_ms: None,
            early_packets: 0,
            longest_stall_ms: None,
            paths: Vec::new(),
            found: Vec::new(),
            changes: Vec::new(),
        };
        outcome.shares()
    }

    #[test]
    fn what_was_sent_is_told_apart_from_what_was_there() {
        assert_eq!(shares(1_000_000, 0, 0), "sent: 1000000 bytes at 8.0 Mbit/s");
        assert_eq!(
            shares(1_000_000, 500_000, 0),
            "sent: 500000 bytes at 4.0 Mbit/s; not sent: 500000 bytes that were there already"
        );
    }

    #[test]
    fn next_to_nothing_has_no_rate() {
        assert_eq!(
            shares(500, 0, 1),
            "sent: 500 bytes; 1 file was there already as a whole"
        );
        assert_eq!(
            shares(1_000_000, 1_000_000, 3),
            "sent: 0 bytes; not sent: 1000000 bytes that were there already; 3 files were there already as a whole"
        );
    }
}
