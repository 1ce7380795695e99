//! What recovery has concluded of the segments on the board (RFC 6675 §4): arrived, lost, or gone we do not know which.

use super::{Fate, Scoreboard, Transmission};
use std::collections::VecDeque;

impl Scoreboard {
    /// Reports on its neighbours leave no other conclusion than that `number` has arrived, if its fate is open.
    pub fn presume(&mut self, number: u64) {
        let Some(entry) = self.entry(number) else { return };
        let (entry, bytes) = (*entry, u64::from(entry.bytes));
        match entry.fate {
            Fate::InFlight => {
                self.in_flight -= 1;
                self.in_flight_bytes -= bytes;
            }
            Fate::Lost => self.lost -= 1,
            Fate::Delivered | Fate::Presumed => return,
        }
        if !entry.repeated {
            self.note_delivered(entry.order);
        }
        self.set_fate(number, Fate::Presumed);
        self.presumed += 1;
        self.departed = self.departed.min(self.in_flight);
    }

    /// Takes a presumption about `number` back.
    pub fn doubt(&mut self, number: u64) {
        let Some(entry) = self.entry(number).filter(|entry| entry.fate == Fate::Presumed) else {
            return;
        };
        let bytes = u64::from(entry.bytes);
        self.set_fate(number, Fate::InFlight);
        self.presumed -= 1;
        self.in_flight += 1;
        self.in_flight_bytes += bytes;
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
        self.in_flight -= 1;
        self.in_flight_bytes -= lost.bytes;
        self.lost += 1;
        self.departed = self.departed.min(self.in_flight);
        self.lost_from = self.lost_from.min(number);
        Some(lost)
    }

    /// Declares everything lost that is not known to have arrived; returns how many segments that are.
    pub fn mark_all_lost(&mut self) -> u64 {
        self.departed = 0;
        let mut count = 0;
        for number in self.first..self.next() {
            self.doubt(number);
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
        self.entries = VecDeque::new();
        (self.in_flight, self.in_flight_bytes, self.lost) = (0, 0, 0);
        (
            self.outstanding_bytes,
            self.delivered,
            self.presumed,
            self.departed,
        ) = (0, 0, 0, 0);
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
