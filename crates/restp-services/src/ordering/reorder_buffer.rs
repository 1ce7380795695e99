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
mod tests {
    use super::*;

    const EDGE: u64 = 1000;

    fn feed(buffer: &mut Reassembly, numbers: &[u64]) -> (Vec<Arrival>, Vec<u8>) {
        let mut ready = VecDeque::new();
        let arrivals = numbers
            .iter()
            .map(|n| {
                buffer.insert(
                    Time::ZERO,
                    *n,
                    Some(Bytes::from(vec![*n as u8])),
                    EDGE,
                    &mut ready,
                )
            })
            .collect();
        (arrivals, ready.iter().map(|payload| payload[0]).collect())
    }

    #[test]
    fn ordered_holds_until_predecessors_are_out() {
        use Arrival::*;
        let mut buffer = Reassembly::new(Ordering::Ordered, 10);
        let (arrivals, delivered) = feed(&mut buffer, &[10, 14, 15, 17, 14, 11, 12, 13, 9]);
        assert_eq!(
            arrivals,
            [
                InOrder, OutOfOrder, OutOfOrder, OutOfOrder, Duplicate, FilledHole, FilledHole, FilledHole,
                Duplicate
            ]
        );
        assert_eq!(delivered, [10, 11, 12, 13, 14, 15]);
        assert_eq!(
            (buffer.next(), buffer.held_bytes(), buffer.has_hole()),
            (16, 1, true)
        );
        assert_eq!(feed(&mut buffer, &[16]).1, [16, 17]);
        assert_eq!(
            (buffer.next(), buffer.held_bytes(), buffer.has_hole()),
            (18, 0, false)
        );
    }

    #[test]
    fn unordered_delivers_on_arrival_and_still_once() {
        let mut buffer = Reassembly::new(Ordering::Unordered, 0);
        assert_eq!(feed(&mut buffer, &[2, 0, 2, 1, 0, 3]).1, [2, 0, 1, 3]);
        assert_eq!(buffer.next(), 4);
    }

    #[test]
    fn another_order_holds_from_a_number_on_and_waits_for_what_is_below() {
        let mut buffer = Reassembly::new(Ordering::Unordered, 0);
        buffer.turn_at(4, Ordering::Ordered);
        assert_eq!(
            feed(&mut buffer, &[2, 5, 0, 4]).1,
            [2, 0],
            "4 and 5 wait for 1 and 3"
        );
        assert_eq!(feed(&mut buffer, &[3, 1]).1, [3, 1, 4, 5]);
        assert_eq!(feed(&mut buffer, &[7, 6]).1, [6, 7]);
        let mut buffer = Reassembly::new(Ordering::Ordered, 0);
        buffer.turn_at(3, Ordering::Unordered);
        assert_eq!(
            feed(&mut buffer, &[1, 4, 6, 0]).1,
            [0, 1],
            "not even 4, although nobody wants it in order"
        );
        assert_eq!(feed(&mut buffer, &[2]).1, [2, 4, 6]);
        assert_eq!(feed(&mut buffer, &[8, 3, 5]).1, [8, 3, 5]);
        assert_eq!((buffer.next(), buffer.held_bytes()), (7, 0));
        let mut buffer = Reassembly::new(Ordering::Ordered, 0);
        feed(&mut buffer, &[0]);
        buffer.turn_at(1, Ordering::Unordered);
        assert_eq!(
            feed(&mut buffer, &[2, 1]).1,
            [2, 1],
            "at once where nothing is below"
        );
    }

    #[test]
    fn a_hole_is_not_skipped_beyond_the_number_where_skipping_ends() {
        let mut buffer = Reassembly::new(Ordering::Partial, 0);
        buffer.turn_at(2, Ordering::Ordered);
        feed(&mut buffer, &[5]);
        assert_eq!(buffer.skip_hole(Time::ZERO, u64::MAX, &mut VecDeque::new()), 2);
        assert_eq!(
            (buffer.next(), buffer.is_missing(2), buffer.held_bytes()),
            (2, true, 1)
        );
        assert_eq!(feed(&mut buffer, &[2, 4, 3]).1, [2, 3, 4, 5]);
    }

    #[test]
    fn nothing_at_or_beyond_the_edge_is_stored() {
        let mut buffer = Reassembly::new(Ordering::Ordered, 0);
        assert_eq!(feed(&mut buffer, &[EDGE, EDGE + 5]).0, [Arrival::BeyondWindow; 2]);
        assert!(!buffer.has_hole());
        let mut ready = VecDeque::new();
        let probe = Some(Bytes::from_static(b"x"));
        assert_eq!(
            buffer.insert(Time::ZERO, 0, probe, 0, &mut ready),
            Arrival::BeyondWindow,
            "a shut window"
        );
        assert_eq!((ready.len(), buffer.next()), (0, 0));
    }

    #[test]
    fn a_skipped_hole_lets_what_came_after_it_out() {
        let mut buffer = Reassembly::new(Ordering::Ordered, 0);
        feed(&mut buffer, &[2, 3]);
        let later = Time::from_nanos(3);
        let mut ready = VecDeque::new();
        buffer.insert(later, 6, Some(Bytes::from_static(b"6")), EDGE, &mut ready);
        let hold = Duration::from_millis(110);
        assert_eq!(buffer.hold_deadline(hold), Some(Time::ZERO + hold));
        assert_eq!(buffer.skip_hole(Time::from_nanos(5), u64::MAX, &mut ready), 2);
        assert_eq!((ready.len(), buffer.next()), (2, 4));
        assert_eq!(
            buffer.hold_deadline(hold),
            Some(later + hold),
            "the next hole has waited since 6 came, not since the first was skipped"
        );
        assert_eq!(buffer.skip_hole(Time::ZERO, u64::MAX, &mut ready), 2);
        assert_eq!(
            (buffer.next(), buffer.skip_hole(Time::ZERO, u64::MAX, &mut ready)),
            (7, 0)
        );
    }

    #[test]
    fn a_hole_waits_from_the_first_later_arrival_in_whatever_order_they_come() {
        let mut buffer = Reassembly::new(Ordering::Partial, 0);
        let mut ready = VecDeque::new();
        for (at, number) in [(1, 9), (2, 1), (3, 4), (4, 5), (6, 0)] {
            let payload = Some(Bytes::from_static(b"x"));
            buffer.insert(Time::from_nanos(at), number, payload, EDGE, &mut ready);
            assert_eq!(
                buffer.hold_deadline(Duration::ZERO),
                Some(Time::from_nanos(1)),
                "9 was first, and every hole so far lies before it"
            );
        }
        assert_eq!(buffer.next(), 2);
        buffer.insert(Time::from_nanos(7), 20, None, EDGE, &mut ready);
        buffer.skip_hole(Time::from_nanos(8), u64::MAX, &mut ready);
        buffer.skip_hole(Time::from_nanos(8), u64::MAX, &mut ready);
        assert_eq!(
            (buffer.next(), buffer.hold_deadline(Duration::ZERO)),
            (10, Some(Time::from_nanos(7))),
            "before 20"
        );
    }

    #[test]
    fn what_comes_after_it_was_skipped_is_late_and_no_duplicate() {
        let mut buffer = Reassembly::new(Ordering::Partial, 0);
        feed(&mut buffer, &[0, 3]);
        assert_eq!(buffer.skip_hole(Time::ZERO, u64::MAX, &mut VecDeque::new()), 2);
        let (arrivals, delivered) = feed(&mut buffer, &[1, 2, 3, 0]);
        assert_eq!(
            arrivals,
            [
                Arrival::Late,
                Arrival::Late,
                Arrival::Duplicate,
                Arrival::Duplicate
            ]
        );
        assert_eq!((delivered.len(), buffer.next()), (0, 4));
    }

    #[test]
    fn the_memory_of_skipped_numbers_is_bounded() {
        let mut buffer = Reassembly::new(Ordering::Partial, 0);
        let mut ready = VecDeque::new();
        for number in 0..100_000 {
            buffer.insert(Time::ZERO, 2 * number + 1, None, u64::MAX, &mut ready);
            assert_eq!(buffer.skip_hole(Time::ZERO, u64::MAX, &mut ready), 1);
        }
        assert!(buffer.skipped.len() as u64 <= REMEMBERED_SKIPS);
        assert_eq!(feed(&mut buffer, &[0]).0, [Arrival::Duplicate], "long forgotten");
    }

    #[test]
    fn what_was_sent_and_never_came_is_a_hole_although_nothing_follows_it() {
        let mut buffer = Reassembly::new(Ordering::Ordered, 0);
        buffer.expect_below(Time::ZERO, 3);
        feed(&mut buffer, &[0]);
        let mut ready = VecDeque::new();
        assert!(buffer.hold_deadline(Duration::ZERO).is_some());
        assert_eq!(buffer.skip_hole(Time::ZERO, u64::MAX, &mut ready), 2);
        assert_eq!((buffer.next(), buffer.hold_deadline(Duration::ZERO)), (3, None));
        buffer.expect_below(Time::ZERO, 4);
        feed(&mut buffer, &[3]);
        assert_eq!(buffer.skip_hole(Time::ZERO, u64::MAX, &mut ready), 0);
        assert_eq!(buffer.hold_deadline(Duration::ZERO), None);
    }

    #[test]
    fn a_number_without_payload_counts_and_delivers_nothing() {
        let mut buffer = Reassembly::new(Ordering::Ordered, 0);
        let mut ready = VecDeque::new();
        buffer.insert(Time::ZERO, 1, None, EDGE, &mut ready);
        buffer.insert(Time::ZERO, 0, Some(Bytes::from_static(b"x")), EDGE, &mut ready);
        assert_eq!((ready.len(), buffer.next()), (1, 2));
    }
}
