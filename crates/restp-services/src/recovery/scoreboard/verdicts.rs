//! What recovery has concluded of the segments on the board (RFC 6675 §4): arrived, lost, or gone we do not know which.

use super::{Entry, Fate, Lane, LaneId, LostSegment, Scoreboard};
use restp_base::observe::Transmitted;
use restp_base::time::Time;
use std::ops::Range;

impl Scoreboard {
    /// Reports on their neighbours leave no other conclusion than that the numbers of `range` whose fate is open have
    /// arrived.
    pub(in crate::recovery) fn presume(&mut self, range: Range<u64>) {
        while let Some(number) = self.first_open(&range) {
            let once = self.entry(number).filter(|entry| !entry.retransmitted()).copied();
            if let Some(entry) = once {
                self.lane_mut(entry.lane).note_delivered(entry.order);
            }
            self.set_fate(number, Fate::Presumed);
            self.departed = self.departed.min(self.open_segments());
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
        let Some((lane, loss)) = self.take_for_lost(number) else {
            return false;
        };
        self.lane_mut(lane).add_loss(loss);
        true
    }

    pub(super) fn take_for_lost(&mut self, number: u64) -> Option<(LaneId, Option<LostSegment>)> {
        let entry = *self.entry(number).filter(|entry| entry.fate == Fate::InFlight)?;
        self.set_fate(number, Fate::Lost);
        if let Some(observed) = &mut self.observed {
            observed.on_lost(entry.lane, number, entry.sent_at);
        }
        self.departed = self.departed.min(self.open_segments());
        Some((entry.lane, self.lane_mut(entry.lane).lose(entry)))
    }

    /// `number`, if its fate is open, is late by its lane: it leaves again as what is lost does, and is no loss. True when that
    /// is news.
    pub(in crate::recovery) fn mark_late(&mut self, number: u64) -> bool {
        let is_open = self.order_in_flight(number).is_some();
        if is_open {
            self.set_fate(number, Fate::Lost);
            self.late.insert(number..number + 1);
        }
        is_open
    }

    /// Takes everything for late that left by the lane in hand and is not known to have arrived; returns how many segments that are.
    pub fn mark_all_late(&mut self) -> u64 {
        self.doubt(&(self.first..self.next()));
        let before = self.lane(self.in_hand).in_flight();
        for number in self.head()..self.next() {
            if self.lane_of(number) == Some(self.in_hand) {
                self.mark_late(number);
            }
        }
        before
    }

    /// What is late by the lane in hand and has not left again is on its way after all.
    pub fn restore_late(&mut self) {
        let late: Vec<u64> = self.late.iter().cloned().flatten().collect();
        for number in late {
            if self.carried_in_hand(number).is_some() {
                self.set_fate(number, Fate::InFlight);
            }
        }
    }

    /// `number`, if it left last by the path of the lane in hand.
    fn carried_in_hand(&self, number: u64) -> Option<Entry> {
        let lane = self.lane(self.in_hand);
        let here = |entry: &&Entry| entry.lane == self.in_hand && lane.has_carried(entry);
        self.entry(number).filter(here).copied()
    }

    /// `number` waits to leave again because it is late.
    pub fn is_late(&self, number: u64) -> bool {
        self.late.covering(number).is_some()
    }

    /// What was declared lost since the last call, by whichever rule, for whoever observes; and again, with `true`, what proved to be
    /// late. The first call begins the record.
    pub fn take_observed(&mut self) -> impl Iterator<Item = (LaneId, Transmitted, bool)> {
        self.observed.get_or_insert_default().take()
    }

    /// Declares everything lost that left by the lane in hand and is not known to have arrived; returns how many segments
    /// that are.
    pub fn mark_all_lost(&mut self) -> u64 {
        self.mark_lost_if(|_| true)
    }

    /// The same of what left before `limit`; of everything, where nothing did.
    pub fn mark_lost_before(&mut self, limit: Time) -> u64 {
        match self.mark_lost_if(|entry| entry.sent_at < limit) {
            0 => self.mark_all_lost(),
            lost => lost,
        }
    }

    fn mark_lost_if(&mut self, is_lost: impl Fn(&Entry) -> bool) -> u64 {
        self.departed = 0;
        self.doubt(&(self.first..self.next()));
        let before = self.lane(self.in_hand).in_flight();
        for number in self.first..self.next() {
            let here = |entry: &&Entry| entry.lane == self.in_hand && is_lost(entry);
            if self.entry(number).filter(here).is_some() {
                self.take_for_lost(number);
            }
        }
        before - self.lane(self.in_hand).in_flight()
    }

    /// What was declared lost on the lane in hand and awaits retransmission is on its way after all. Returns order and number of
    /// the retransmissions among it.
    pub(in crate::recovery) fn restore_lost(&mut self) -> Vec<(u64, u64)> {
        let lost: Vec<_> = self.lost.iter().cloned().flatten().collect();
        let mut retransmissions = Vec::new();
        for number in lost {
            if let Some(entry) = self.carried_in_hand(number) {
                self.set_fate(number, Fate::InFlight);
                if entry.retransmitted() {
                    retransmissions.push((entry.order, number));
                }
            }
        }
        retransmissions
    }

    /// `number` is not worth sending again: it is in flight no more, and no more lost. True when that is news.
    pub fn give_up(&mut self, number: u64) -> bool {
        let open = |entry: &&Entry| matches!(entry.fate, Fate::InFlight | Fate::Lost | Fate::Presumed);
        if self.entry(number).filter(open).is_none() {
            return false;
        }
        self.set_fate(number, Fate::GivenUp);
        self.departed = self.departed.min(self.open_segments());
        true
    }

    /// The receiver has discarded what it had reported of `range` (RFC 2018 §8, RFC 9260 §6.2.1): that is in flight
    /// again, as far as anybody knows. When it arrives, nothing tells how long it took. Returns how many segments that
    /// are.
    pub fn renege(&mut self, range: &Range<u64>) -> u64 {
        let before = self.delivered.total();
        while let Some(discarded) = self.delivered.first_within(range) {
            for number in discarded {
                self.set_fate(number, Fate::InFlight);
                self.mark_retransmitted(number);
            }
        }
        before - self.delivered.total()
    }

    /// Takes everything outstanding out of the record: nobody will send it again, so its fate does not matter.
    pub fn forget(&mut self) {
        self.first = self.next();
        self.entries.clear();
        self.release();
        self.lanes.iter_mut().for_each(Lane::forget);
        (self.outstanding_bytes, self.departed) = (0, 0);
    }

    /// One more segment has left the network, we do not know which (a duplicate without blocks).
    pub fn depart_one(&mut self) {
        self.departed = (self.departed + 1).min(self.open_segments());
    }
    /// In all `count` segments have left the network of which we do not know which they are.
    pub fn set_departed(&mut self, count: u64) {
        self.departed = count.min(self.open_segments());
    }
    /// The pointer explained `known` of the departures.
    pub fn departures_explained(&mut self, known: u64) {
        self.departed = self.departed.saturating_sub(known);
    }
}
