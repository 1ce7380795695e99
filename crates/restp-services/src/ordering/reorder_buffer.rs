//! The one store of out-of-order data (ResTP §3.5.7), for ordered, partially ordered and unordered delivery. Its memory is bounded
//! by the window edge its caller passes in: a number at or beyond the edge is never stored.

use super::{Arrived, Ordering};
use bytes::Bytes;
use restp_base::ranges::Ranges;
use restp_base::time::{Duration, Time};
use std::collections::VecDeque;

/// What an arrival meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// The number expected next, with nothing missing after it.
    InOrder,
    /// The number expected next: it filled a hole.
    FilledHole,
    /// Later than expected: something is missing before it.
    OutOfOrder,
    /// Here before.
    Duplicate,
    /// Skipped before it came: too late to be of use.
    Late,
    /// At or beyond the edge of the window.
    BeyondWindow,
}

/// What stands for a number above RCV.NXT.
#[derive(Debug)]
enum Slot {
    Missing,
    /// Arrived and held for the reader. The time is the first at which it or a later number arrived: since then a hole
    /// right before it has been known.
    Held(Bytes, Time),
    /// Arrived, with nothing (left) to hand up: a FIN, or delivered already.
    Empty(Time),
}

/// How far below RCV.NXT a late arrival is still told from a duplicate.
const REMEMBERED_SKIPS: u64 = 1024;

/// The receiver's pointer and everything that arrived beyond it.
#[derive(Debug)]
pub struct Reassembly {
    ordering: Ordering,
    next: u64,
    /// Slot 0 stands for `next`.
    slots: VecDeque<Slot>,
    arrived: Arrived,
    /// Given up below `next`, at most [`REMEMBERED_SKIPS`] back.
    skipped: Ranges,
    held_bytes: usize,
    /// Since when the first hole has been known.
    hole_since: Option<Time>,
    /// The sender has said that every number below this one has left it.
    sent_below: u64,
    /// From this number on another order holds.
    turn: Option<(u64, Ordering)>,
}

impl Reassembly {
    /// Expects `next` first.
    pub fn new(ordering: Ordering, next: u64) -> Self {
        Reassembly {
            ordering,
            next,
            slots: VecDeque::new(),
            arrived: Arrived::default(),
            skipped: Ranges::new(),
            held_bytes: 0,
            hole_since: None,
            sent_below: next,
            turn: None,
        }
    }

    /// From the number `at` on, of which nothing has arrived, `ordering` holds. What arrives of it waits until nothing below is
    /// needed any more, so that orders do not mix.
    pub fn turn_at(&mut self, at: u64, ordering: Ordering) {
        self.turn = Some((at, ordering));
        self.take_turn(&mut Vec::new()); // nothing is held that could be ready
    }

    /// Everything of the old order is done: the new one holds.
    fn take_turn(&mut self, ready: &mut impl Extend<Bytes>) {
        let Some((_, ordering)) = self.turn.take_if(|(at, _)| *at <= self.next) else {
            return;
        };
        self.ordering = ordering;
        if ordering == Ordering::Unordered {
            for slot in &mut self.slots {
                if let Slot::Held(payload, since) = slot {
                    self.held_bytes -= payload.len();
                    ready.extend([std::mem::take(payload)]);
                    *slot = Slot::Empty(*since);
                }
            }
        }
    }

    /// RCV.NXT: nothing below it is needed any more.
    pub fn next(&self) -> u64 {
        self.next
    }
    /// What has arrived above RCV.NXT.
    pub fn arrived(&self) -> &Arrived {
        &self.arrived
    }
    /// Payload bytes held back.
    pub fn held_bytes(&self) -> usize {
        self.held_bytes
    }
    /// True while something is missing below something that arrived.
    pub fn has_hole(&self) -> bool {
        !self.arrived.ranges().is_empty()
    }

    /// True while `number` is needed and has not arrived.
    pub fn is_missing(&self, number: u64) -> bool {
        number >= self.next && !self.arrived.ranges().contains(number)
    }

    /// Takes the segment `number`, which shows since `now` that what is before it and has not come is missing; `None` is a number
    /// without payload (FIN). What may be handed up now is
    /// appended to `ready`. `edge` is the first number outside the window. A payload above [`next`](Reassembly::next) is
    /// held as it is: whoever received it in a larger buffer copies it out before.
    pub fn insert(
        &mut self,
        now: Time,
        number: u64,
        payload: Option<Bytes>,
        edge: u64,
        ready: &mut impl Extend<Bytes>,
    ) -> Arrival {
        if number == self.next && self.arrived.ranges().is_empty() && number < edge {
            self.next += 1;
            ready.extend(payload);
            self.take_turn(ready);
            return Arrival::InOrder;
        }
        if self.skipped.contains(number) {
            return Arrival::Late;
        }
        if number < self.next {
            return Arrival::Duplicate;
        }
        if self.arrived.ranges().contains(number) {
            self.arrived.insert(number..number + 1); // for the order of blocks
            return Arrival::Duplicate;
        }
        if number >= edge {
            return Arrival::BeyondWindow;
        }
        let since = self.known_since(number).map_or(now, |known| known.min(now));
        self.arrived.insert(number..number + 1);
        let waits = self.ordering != Ordering::Unordered || self.turn.is_some_and(|(at, _)| number >= at);
        let slot = match payload {
            Some(payload) if !waits => {
                ready.extend([payload]);
                Slot::Empty(since)
            }
            Some(payload) => {
                self.held_bytes += payload.len();
                Slot::Held(payload, since)
            }
            None => Slot::Empty(since),
        };
        let index = (number - self.next) as usize;
        if let Some(free) = self.slots.get_mut(index) {
            *free = slot;
        } else {
            while self.slots.len() < index {
                self.slots.push_back(Slot::Missing);
            }
            self.slots.push_back(slot);
        }
        if number == self.next {
            self.hole_since = None;
            self.advance(ready);
            self.watch_hole(now);
            return Arrival::FilledHole;
        }
        if self.hole_since.is_none()
            || self
                .arrived
                .ranges()
                .first()
                .is_some_and(|first| first.start == number)
        {
            self.watch_hole(now); // what comes behind others tells nothing new of it
        }
        Arrival::OutOfOrder
    }

    /// When the first hole has waited for `hold` since the first later arrival (OP-48).
    pub fn hold_deadline(&self, hold: Duration) -> Option<Time> {
        self.hole_since.map(|since| since + hold)
    }

    /// Every number below `number` has left the sender: what is missing of them is a hole too, although nothing
    /// after it has arrived.
    pub fn expect_below(&mut self, now: Time, number: u64) {
        self.sent_below = self.sent_below.max(number);
        self.watch_hole(now);
    }

    /// Numbers of the first hole, where something after it has arrived.
    pub fn first_hole(&self) -> Option<u64> {
        Some(self.arrived.ranges().first()?.start - self.next)
    }

    /// Gives up to `most` numbers of the first hole up: RCV.NXT moves on to the first number that arrived after it, or to the end
    /// of what was sent, and on as far as numbers are there. Returns how many numbers were skipped.
    pub fn skip_hole(&mut self, now: Time, most: u64, ready: &mut impl Extend<Bytes>) -> u64 {
        let end = self
            .arrived
            .ranges()
            .first()
            .map_or(self.sent_below, |range| range.start);
        let turn = self.turn.map_or(u64::MAX, |(at, _)| at);
        let first = end.min(self.next.saturating_add(most)).min(turn);
        let skipped = first.saturating_sub(self.next);
        self.hole_since = None;
        if skipped == 0 {
            return 0;
        }
        self.slots.drain(..self.slots.len().min(skipped as usize));
        self.skipped.insert(self.next..first);
        self.skipped.remove_below(first.saturating_sub(REMEMBERED_SKIPS));
        self.next = first;
        self.advance(ready);
        self.watch_hole(now);
        skipped
    }

    /// Discards the highest number that has arrived (RFC 9260 §6.2): the sender has to be told that it is missing again.
    pub fn discard_last(&mut self) -> Option<u64> {
        let last = self.arrived.ranges().last()?.end - 1;
        self.arrived.remove(&(last..last + 1));
        if let Some(Slot::Held(payload, _)) = self.slots.pop_back() {
            self.held_bytes -= payload.len();
        }
        while matches!(self.slots.back(), Some(Slot::Missing)) {
            self.slots.pop_back();
        }
        if self.arrived.ranges().is_empty() {
            self.hole_since = None;
        }
        Some(last)
    }

    /// Moves RCV.NXT over the numbers that are there.
    fn advance(&mut self, ready: &mut impl Extend<Bytes>) {
        while let Some(slot) = self.slots.front_mut() {
            match std::mem::replace(slot, Slot::Missing) {
                Slot::Missing => break,
                Slot::Held(payload, _) => {
                    self.held_bytes -= payload.len();
                    ready.extend([payload]);
                }
                Slot::Empty(_) => {}
            }
            self.slots.pop_front();
            self.next += 1;
        }
        self.arrived.remove_below(self.next);
        self.take_turn(ready);
        if self.arrived.ranges().is_empty() {
            self.slots = VecDeque::new();
        }
    }

    fn watch_hole(&mut self, now: Time) {
        if self.arrived.ranges().is_empty() && self.sent_below <= self.next {
            self.hole_since = None;
        } else {
            let since = self.known_since(self.next).unwrap_or(now);
            self.hole_since = Some(self.hole_since.map_or(since, |known| known.min(since)));
        }
    }

    /// Since when something above `number` has been here.
    fn known_since(&self, number: u64) -> Option<Time> {
        let above = self.arrived.ranges().above(number)?.start;
        match self.slots[(above - self.next) as usize] {
            Slot::Held(_, since) | Slot::Empty(since) => Some(since),
            Slot::Missing => None,
        }
    }
}

#[cfg(test)]
mod tests;
