//! What happens on the air, for whoever looks on.

use super::radio::{Frame, Kind};
use crate::counters::DropReason;
use restp_base::time::Time;

/// A frame that was on the air.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameSeen {
    /// When it began, and when it was over at the station it is addressed to.
    pub from: Time,
    /// See `from`.
    pub until: Time,
    /// Who sent it, by its place among the stations of its medium.
    pub station: u32,
    /// Whom it is addressed to.
    pub to: u32,
    /// What it is for.
    pub kind: Kind,
    /// Why it led to nothing: it was not received, or not answered.
    pub failed: Option<DropReason>,
}

/// The frames of one medium since somebody looked last; nothing is noted before anybody does.
#[derive(Debug, Default)]
pub(super) struct FrameRecord(Option<Vec<FrameSeen>>);

impl FrameRecord {
    pub fn take(&mut self) -> Vec<FrameSeen> {
        std::mem::take(self.0.get_or_insert_default())
    }

    /// A frame from `station` to `to` is over.
    pub fn note(&mut self, [station, to]: [u32; 2], frame: &Frame, outcome: Result<(), DropReason>) {
        if let Some(frames) = &mut self.0 {
            frames.push(FrameSeen {
                from: frame.from,
                until: frame.over,
                station,
                to,
                kind: frame.kind,
                failed: outcome.err(),
            });
        }
    }
}
