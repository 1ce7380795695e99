//! What a run counts.

use super::World;
use crate::direction::Counters;
use crate::spec::Way;

/// What one direction of one link has done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkStats {
    /// The link.
    pub name: String,
    /// Its direction.
    pub direction: Way,
    /// What it has done.
    pub counters: Counters,
}

/// Packets of the whole network. Always `sent + copied = delivered + dropped + in_flight`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Sent by hosts.
    pub sent: u64,
    /// Second copies made by links.
    pub copied: u64,
    /// Handed to hosts.
    pub delivered: u64,
    /// Dropped by links.
    pub dropped: u64,
    /// On their way.
    pub in_flight: u64,
}

impl World {
    /// What waits before each direction now: its name, `"<link>/<forward|reverse>"`, packets, and bytes.
    pub fn queues(&mut self) -> impl Iterator<Item = (&str, u64, u64)> {
        let now = self.now;
        self.labels.iter().zip(&mut self.lines).map(move |(label, line)| {
            let (packets, bytes) = line.direction.waiting(now);
            (label.line.as_str(), packets, bytes)
        })
    }
}
