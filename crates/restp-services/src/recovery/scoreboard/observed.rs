//! What an observer is told of transmissions: those declared lost, and those of them that arrived after all (causes as in
//! ResTP §3.6).

use super::lane_id::LaneId;
use restp_base::observe::Transmitted;
use restp_base::time::Time;
use std::collections::BTreeMap;

/// The record since the observer last looked.
#[derive(Debug, Default)]
pub(super) struct Observed {
    told: Vec<(LaneId, Transmitted, bool)>,
    /// When the transmission left that was declared lost last, of numbers that are outstanding.
    declared: BTreeMap<u64, Time>,
}

impl Observed {
    /// The transmission of `number` that left at `at` is declared lost.
    pub fn on_lost(&mut self, lane: LaneId, number: u64, at: Time) {
        self.declared.insert(number, at);
        self.told.push((lane, Transmitted { number, at }, false));
    }

    /// What was declared lost of `number` has arrived.
    pub fn on_late(&mut self, lane: LaneId, number: u64) {
        if let Some(at) = self.declared.remove(&number) {
            self.told.push((lane, Transmitted { number, at }, true));
        }
    }

    /// What is numbered below has arrived.
    pub fn release_below(&mut self, number: u64) {
        while let Some(first) = self.declared.first_entry().filter(|first| *first.key() < number) {
            first.remove();
        }
    }

    /// What is new, in the order in which it was found.
    pub fn take(&mut self) -> impl Iterator<Item = (LaneId, Transmitted, bool)> {
        self.told.drain(..)
    }
}
