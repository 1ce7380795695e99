//! What becomes of numbered data (ResTP §3.5.7, RFC 9293 §3.10.7.4): delivered, held, refused; and what that makes due.

use super::{MAX_PIECES, Receiver, Store};
use crate::ack::Place;
use crate::ordering::{Arrival, Reassembly, Stretch};
use bytes::Bytes;
use restp_base::time::{Duration, Time};

/// It says of the end what cannot be, given what arrived before: nothing follows a FIN, nothing replaces it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Contradiction;

impl Receiver {
    /// Takes the segment `number`; without payload it is the FIN. One above [`next`](Receiver::next) may be held for long, with
    /// the memory that its payload is a part of. `rtt` is the smoothed round trip of the path it came by, once there is one.
    /// `lost_for_good`: its sender retransmits nothing.
    ///
    /// # Errors
    /// When it contradicts the end of the stream; nothing is changed then.
    pub fn on_segment(
        &mut self,
        now: Time,
        number: u64,
        payload: Option<Bytes>,
        rtt: Option<Duration>,
        lost_for_good: bool,
    ) -> Result<Arrival, Contradiction> {
        let is_fin = payload.is_none();
        if self
            .fin
            .is_some_and(|fin| number > fin || (number == fin) != is_fin)
        {
            return Err(Contradiction);
        }
        let edge = if self.holds_too_much(number, payload.as_ref().map_or(0, Bytes::len)) {
            number
        } else {
            self.edge()
        };
        let is_repaired = self.repairs.is_some() || self.turn.is_some();
        let kept = is_repaired.then(|| payload.clone().unwrap_or_default());
        let Store::Segments(reassembly) = &mut self.store else {
            return Ok(Arrival::BeyondWindow);
        };
        let since = self.hold.map_or(now, |hold| hold.counts_from(now, rtt));
        let arrival = reassembly.insert(since, number, payload, edge, &mut self.inbox);
        if arrival == Arrival::BeyondWindow && lost_for_good {
            // A probe: its sender has nothing else out, and retransmits neither it nor what we miss.
            reassembly.expect_below(since, number + 1);
        }
        match arrival {
            Arrival::InOrder => self.ack.on_in_order(now, rtt),
            Arrival::FilledHole => self.ack.on_out_of_order(now, rtt, Place::Hole),
            Arrival::OutOfOrder => self.ack.on_out_of_order(now, rtt, place(reassembly, number)),
            Arrival::Duplicate | Arrival::Late | Arrival::BeyondWindow => self.ack.on_unwanted(now, rtt),
        }
        let is_news = !matches!(
            arrival,
            Arrival::Duplicate | Arrival::Late | Arrival::BeyondWindow
        );
        if is_fin && is_news {
            self.fin = Some(number);
        }
        if is_news {
            self.pace.on_arrival(now, number);
        }
        if let (Some(repairs), Some(payload)) = (self.repairs_of(number), kept)
            && (is_news || arrival == Arrival::Late)
        {
            repairs.on_received(number, &payload);
        }
        self.take_turn();
        Ok(arrival)
    }

    /// Takes a stretch of bytes that does not contradict earlier ones.
    pub fn on_bytes(&mut self, now: Time, stretch: Stretch, rtt: Option<Duration>) -> Arrival {
        let Store::Bytes { stream, edge, .. } = &mut self.store else {
            return Arrival::BeyondWindow;
        };
        let fin = stretch.fin;
        let arrival = if self.inbox.len() >= MAX_PIECES {
            Arrival::BeyondWindow
        } else {
            stream.insert(stretch, *edge, &mut self.inbox)
        };
        if arrival == Arrival::InOrder {
            self.ack.on_in_order(now, rtt);
        }
        if arrival != Arrival::InOrder || fin {
            self.ack.on_urgent();
        }
        arrival
    }

    /// Takes a datagram without a number. False: the reader is too slow.
    pub fn on_datagram(&mut self, payload: Bytes) -> bool {
        let waits = self.inbox.len() as u64 >= self.window.capacity();
        let fits = !waits && self.inbox.bytes() + payload.len() <= self.most_bytes();
        if fits {
            self.inbox.extend([payload]);
        }
        fits
    }

    /// A stretch of bytes that says something about the end that cannot be.
    pub fn contradicts(&self, stretch: &Stretch) -> bool {
        match &self.store {
            Store::Bytes { stream, .. } => stream.contradicts(stretch),
            Store::Unknown | Store::Segments(_) => false,
        }
    }

    /// Number of the peer's FIN, once everything up to it has arrived.
    pub fn end(&self) -> Option<u64> {
        match &self.store {
            Store::Unknown => None,
            Store::Segments(reassembly) => self.fin.filter(|fin| reassembly.next() > *fin),
            Store::Bytes { stream, .. } => stream.is_finished().then(|| stream.next() - 1),
        }
    }

    /// When what is missing comes too late, where it may be given up. `rtt` is the smoothed round trip of the slowest path.
    pub fn hold_deadline(&self, rtt: Option<Duration>) -> Option<Time> {
        match (&self.store, self.hold) {
            (Store::Segments(reassembly), Some(hold)) => {
                let missing = reassembly.first_hole().unwrap_or(1);
                reassembly.hold_deadline(hold.time_of_first(missing, self.pace.interval(), rtt))
            }
            _ => None,
        }
    }

    /// Gives up what comes too late by now; what came after it is delivered. Returns how many numbers were skipped.
    pub fn skip_holes(&mut self, now: Time, rtt: Option<Duration>) -> u64 {
        let mut skipped = 0;
        loop {
            self.take_turn();
            let (Store::Segments(reassembly), Some(hold)) = (&mut self.store, self.hold) else {
                return skipped;
            };
            let (missing, most) = match reassembly.first_hole() {
                Some(missing) if hold.ends_one_by_one() => (missing, 1),
                _ => (1, u64::MAX),
            };
            let time = hold.time_of_first(missing, self.pace.interval(), rtt);
            if reassembly.hold_deadline(time).is_none_or(|at| at > now) {
                return skipped;
            }
            let first = reassembly.next();
            let hole = reassembly.skip_hole(now, most, &mut self.inbox);
            self.uncarried.insert_all(first..first + hole);
            skipped += hole;
        }
    }

    /// The peer's segments may be larger than ours. What can be handed up at once has only unread data before it.
    fn holds_too_much(&self, number: u64, size: usize) -> bool {
        let before = if Some(number) == self.next() {
            self.inbox.bytes()
        } else {
            self.held_bytes()
        };
        let at_once = Some(number) == self.next() && before == 0;
        !at_once && before + size > self.most_bytes()
    }

    /// Bytes a window holds when its segments are as large as ours.
    pub(super) fn most_bytes(&self) -> usize {
        let whole = self.window.capacity() as usize * self.segment_bytes as usize;
        self.buffer_bytes.unwrap_or(whole)
    }

    /// Makes room for the segment `number` of so many bytes by discarding what is above it, the highest first; a hole comes
    /// before what lies beyond it (RFC 9260 §6.2). Returns how many numbers were discarded.
    pub fn make_room(&mut self, number: u64, bytes: usize) -> u64 {
        let mut discarded = 0;
        while self.holds_too_much(number, bytes)
            && let Store::Segments(reassembly) = &mut self.store
            && reassembly.is_missing(number)
            && reassembly
                .arrived()
                .ranges()
                .last()
                .is_some_and(|range| range.end > number + 1)
        {
            discarded += u64::from(reassembly.discard_last().is_some());
        }
        discarded
    }
}

/// Where `number`, which has arrived and is not next, stands among what has arrived.
fn place(reassembly: &Reassembly, number: u64) -> Place {
    let highest = reassembly
        .arrived()
        .ranges()
        .last()
        .map_or(0, |range| range.end - 1);
    if number < highest {
        Place::Hole
    } else if reassembly.is_missing(number - 1) {
        Place::BeyondNewHole
    } else {
        Place::Next
    }
}
