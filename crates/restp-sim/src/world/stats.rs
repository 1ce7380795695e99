//! What a run counts.

use super::{HostId, World};
use crate::direction::Counters;
use crate::direction::DropReason;
use crate::medium::FrameSeen;
use crate::spec::Way;
use restp_base::observe::Transmitted;

/// What one direction of one link has done.
#[derive(Clone, Debug, PartialEq)]
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

/// A segment that did not arrive as it was sent, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LostSegment {
    /// Who sent it.
    pub from: HostId,
    /// Which one it was.
    pub segment: Transmitted,
    /// What became of it; [`DropReason::Error`] also where it arrived changed.
    pub reason: DropReason,
}

impl World {
    /// The segments that lines have dropped or changed since the last call, for whoever observes. The first call begins the
    /// record. Copies that lines make do not count.
    pub fn take_lost(&mut self) -> impl Iterator<Item = LostSegment> {
        self.lost.get_or_insert_default().drain(..)
    }

    /// The frames of each medium that were over since the last call, by its place in the list. The first call begins the record.
    pub fn take_frames(&mut self) -> impl Iterator<Item = (usize, Vec<FrameSeen>)> {
        let media = self.media.iter_mut().enumerate();
        media.map(|(index, medium)| (index, medium.take_frames()))
    }

    /// What waits before each direction now: its name, `"<link>/<forward|reverse>"`, packets, and bytes.
    pub fn queues(&mut self) -> impl Iterator<Item = (&str, u64, u64)> {
        let now = self.now;
        let media = &self.media;
        let wires = self.lines.iter_mut().map(move |line| line.direction.waiting(now));
        let air = self
            .air
            .iter()
            .map(|air| media[air.medium as usize].waiting(air.hop));
        let names = self.labels.iter().map(|label| label.line.as_str());
        let named = |(name, (packets, bytes))| (name, packets, bytes);
        names.zip(wires.chain(air)).map(named)
    }
}
