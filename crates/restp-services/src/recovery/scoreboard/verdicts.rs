//! What recovery has concluded of the segments on the board (RFC 6675 §4): arrived, lost, or gone we do not know which.

use super::{Fate, Scoreboard, Transmission};
use std::ops::Range;

impl Scoreboard {
    /// Reports on their neighbours leave no other conclusion than that the numbers of `range` whose fate is open have
    /// arrived.
    pub(in crate::recovery) fn presume(&mut self, range: Range<u64>) {
        while let Some(number) = self.first_open(&range) {
            if let Some(entry) = self.entry(number).filter(|entry| !entry.repeated) {
                self.note_delivered(entry.order);
            }
            self.set_fate(number, Fate::Presumed);
            self.departed = self.departed.min(self.in_flight);
        }
    }

    /// Takes presumptions about `range` back. True when there were some.
    pub(in crate::recovery) fn doubt(&mut self, range: &Range<u64>) -> bool {
        let before = self.presumed.total();
        while let Some(presumed) = self.presumed.first_within(range) {
            presumed.for_each(|number| self.set_fate(number, Fate::InFlight));
        }
        self.presumed.total() < before
    }

    /// Declares `number` lost, if its fate is open. True when that is news.
    pub fn mark_lost(&mut self, number: u64) -> bool {
        let Some(lost) = self.take_for_lost(number) else {
            return false;
        };
        self.losses.extend(self.rate.on_lost(lost));
        true
    }

    fn take_for_lost(&mut self, number: u64) -> Option<Transmission> {
        let entry = self.entry(number).filter(|entry| entry.fate == Fate::InFlight)?;
        let lost = entry.transmission();
        self.set_fate(number, Fate::Lost);
        self.departed = self.departed.min(self.in_flight);
        Some(lost)
    }

    /// Declares everything lost that is not known to have arrived; returns how many segments that are.
    pub fn mark_all_lost(&mut self) -> u64 {
        self.departed = 0;
        self.doubt(&(self.first..self.next()));
        let mut count = 0;
        for number in self.first..self.next() {
            if let Some(lost) = self.take_for_lost(number) {
                self.rate.on_lost(lost);
                count += 1;
            }
        }
        count
    }

    /// Takes everything outstanding out of the record: nobody will send it again, so its fate does not matter.
    pub fn forget(&mut self) {
        self.first = self.next();
        self.entries.clear();
        self.release();
        (self.in_flight, self.in_flight_bytes, self.outstanding_bytes) = (0, 0, 0);
        self.departed = 0;
    }

    /// One more segment has left the network, we do not know which (a duplicate without blocks).
    pub fn depart_one(&mut self) {
        self.departed = (self.departed + 1).min(self.in_flight);
    }
    /// In all `count` segments have left the network of which we do not know which they are.
    pub fn set_departed(&mut self, count: u64) {
        self.departed = count.min(self.in_flight);
    }
    /// The pointer explained `known` of the departures.
    pub fn departures_explained(&mut self, known: u64) {
        self.departed = self.departed.saturating_sub(known);
    }
}
