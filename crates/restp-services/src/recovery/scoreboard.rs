//! The one record of what is outstanding: for each number sent and not yet below the receiver's pointer, when
//! it was sent, how often, and what we believe became of it (RFC 6675 §4 calls it so). Facts here; what
//! recovery concludes from them is written down in `verdicts`.

mod verdicts;

use super::delivery_rate::{DeliveryRate, LostSegment, Transmission};
use super::encodings::Encodings;
use super::{FalseReport, Feedback};
use crate::ack::AckReport;
use restp_base::time::Time;
use std::collections::VecDeque;

/// What we believe became of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    InFlight,
    Lost,
    Delivered,
    /// Delivered as far as reports on its neighbours allow a conclusion; a report on itself overrules that.
    Presumed,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    sent_at: Time,
    /// Position among all transmissions: which of two left later.
    order: u64,
    bytes: u32,
    repeated: bool,
    fate: Fate,
}

impl Entry {
    fn transmission(&self) -> Transmission {
        Transmission {
            order: self.order,
            sent_at: self.sent_at,
            bytes: u64::from(self.bytes),
        }
    }
}

/// Record of the outstanding segments of one direction.
#[derive(Debug)]
pub struct Scoreboard {
    first: u64,
    entries: VecDeque<Entry>,
    transmissions: u64,
    in_flight: u64,
    in_flight_bytes: u64,
    outstanding_bytes: u64,
    lost: u64,
    /// Delivered beyond the pointer.
    delivered: u64,
    /// Presumed to be.
    presumed: u64,
    /// Segments that duplicates say have left the network, we do not know which.
    departed: u64,
    /// Nothing below this number awaits retransmission.
    lost_from: u64,
    /// Nothing from this number on is reported delivered.
    unanswered_from: u64,
    /// Highest `order`s reported delivered, the highest first.
    latest_delivered: [u64; super::DUPLICATE_THRESHOLD as usize],
    rate: DeliveryRate,
    /// Found lost since the last acknowledgement.
    losses: Vec<LostSegment>,
    encodings: Option<Encodings>,
}

impl Scoreboard {
    /// Nothing sent; the first number will be `first`.
    pub fn new(first: u64) -> Self {
        Scoreboard {
            first,
            entries: VecDeque::new(),
            transmissions: 0,
            in_flight: 0,
            in_flight_bytes: 0,
            outstanding_bytes: 0,
            lost: 0,
            delivered: 0,
            presumed: 0,
            departed: 0,
            lost_from: first,
            unanswered_from: first,
            latest_delivered: [0; super::DUPLICATE_THRESHOLD as usize],
            rate: DeliveryRate::new(),
            losses: Vec::new(),
            encodings: None,
        }
    }

    /// The same for segments that encoded packets may repair (HARQ): see [`Encodings`].
    pub fn coded(first: u64) -> Self {
        Scoreboard {
            encodings: Some(Encodings::new(first)),
            ..Scoreboard::new(first)
        }
    }

    /// SND.UNA: the lowest number not acknowledged.
    pub fn first(&self) -> u64 {
        self.first
    }
    /// SND.NXT: the next new number.
    pub fn next(&self) -> u64 {
        self.first + self.entries.len() as u64
    }
    /// True when everything sent is acknowledged.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
    /// Segments believed to be in the network: the pipe of RFC 6675.
    pub fn in_flight(&self) -> u64 {
        self.in_flight.saturating_sub(self.departed)
    }
    /// Their bytes.
    pub fn in_flight_bytes(&self) -> u64 {
        if self.departed == 0 {
            return self.in_flight_bytes;
        }
        self.in_flight_bytes
            - self.in_flight_bytes * self.departed.min(self.in_flight) / self.in_flight.max(1)
    }
    /// Bytes the receiver's pointer has not passed: FlightSize of RFC 5681 §2.
    pub fn outstanding_bytes(&self) -> u64 {
        self.outstanding_bytes
    }
    /// Segments declared lost and not sent again yet.
    pub fn lost(&self) -> u64 {
        self.lost
    }
    /// Segments beyond the pointer that are known or presumed to have arrived.
    pub fn arrived(&self) -> u64 {
        self.delivered + self.presumed
    }
    /// Is the highest number sent known to have arrived?
    pub fn has_last_arrived(&self) -> bool {
        self.entries
            .back()
            .is_none_or(|entry| entry.fate == Fate::Delivered)
    }
    /// Bytes of memory the record takes.
    pub fn memory(&self) -> usize {
        let encodings = self.encodings.as_ref().map_or(0, Encodings::memory);
        self.entries.capacity() * size_of::<Entry>() + self.rate.memory() + encodings
    }
    /// Segments that feedback found lost since the last [`Scoreboard::acknowledge`].
    pub fn losses(&self) -> &[LostSegment] {
        &self.losses
    }
    /// More could be in flight, but the application has nothing to send or the peer takes no more.
    pub fn application_limits(&mut self) {
        self.rate.on_application_limited(self.in_flight_bytes);
    }

    /// A new segment leaves; returns its number.
    pub fn on_sent(&mut self, now: Time, bytes: u32) -> u64 {
        self.transmissions += 1;
        let order = self.transmissions;
        self.rate.on_sent(now, order, self.in_flight_bytes);
        self.entries.push_back(Entry {
            sent_at: now,
            order,
            bytes,
            repeated: false,
            fate: Fate::InFlight,
        });
        self.in_flight += 1;
        self.in_flight_bytes += u64::from(bytes);
        self.outstanding_bytes += u64::from(bytes);
        self.next() - 1
    }

    /// The lost segment `number` leaves again. Returns the position of this transmission among all.
    pub fn on_repeated(&mut self, now: Time, number: u64) -> Option<u64> {
        let index = number.checked_sub(self.first)? as usize;
        let entry = self
            .entries
            .get_mut(index)
            .filter(|entry| entry.fate == Fate::Lost)?;
        self.transmissions += 1;
        self.rate.on_sent(now, self.transmissions, self.in_flight_bytes);
        *entry = Entry {
            sent_at: now,
            order: self.transmissions,
            repeated: true,
            fate: Fate::InFlight,
            ..*entry
        };
        self.lost -= 1;
        self.in_flight += 1;
        self.in_flight_bytes += u64::from(entry.bytes);
        self.lost_from = number + 1;
        Some(self.transmissions)
    }

    /// `number` leaves again as a probe, whatever we believe became of it: its answer gives no round trip (OP-51).
    pub fn on_probed(&mut self, number: u64) {
        let index = number.checked_sub(self.first);
        if let Some(entry) = index.and_then(|index| self.entries.get_mut(index as usize)) {
            entry.repeated = true;
        }
    }

    /// An encoded packet left: everything sent so far is encoded now.
    pub fn on_encoded(&mut self) {
        let (next, order) = (self.next(), self.transmissions);
        if let Some(encodings) = &mut self.encodings {
            encodings.on_encoded(next, order);
        }
    }

    /// The lowest lost number that awaits retransmission.
    pub fn next_lost(&mut self) -> Option<u64> {
        if self.lost == 0 {
            return None;
        }
        self.lost_from = self.lost_from.max(self.first);
        loop {
            let entry = self.entries.get((self.lost_from - self.first) as usize)?;
            if entry.fate == Fate::Lost {
                return Some(self.lost_from);
            }
            self.lost_from += 1;
        }
    }

    /// Applies what the peer reported.
    ///
    /// # Errors
    /// When it reports on what was never sent, or contradicts itself; nothing is changed then.
    pub fn acknowledge(&mut self, now: Time, report: &AckReport) -> Result<Feedback, FalseReport> {
        let next = self.next();
        let highest = report
            .received
            .iter()
            .chain(&report.missing)
            .chain([&report.lost])
            .map(|range| range.end)
            .fold(report.cumulative, u64::max);
        if highest > next {
            return Err(FalseReport::Unsent {
                reported: highest - 1,
                next,
            });
        }
        let mut feedback = Feedback::default();
        self.losses.clear();
        if report.cumulative < self.first {
            return Ok(feedback); // late: everything it says is known
        }
        if report
            .received
            .iter()
            .any(|range| range.contains(&report.cumulative))
        {
            return Err(FalseReport::Contradiction {
                pointer: report.cumulative,
            });
        }
        feedback.duplicate = report.cumulative == self.first && !self.entries.is_empty();
        feedback.advanced = report.cumulative - self.first;
        if feedback.advanced > 0 {
            feedback.filled_by = self.entries.front().map_or(0, |entry| entry.order);
        }
        let mut waited = false;
        for _ in 0..feedback.advanced {
            let Some(entry) = self.entries.pop_front() else {
                break;
            };
            waited |= entry.repeated || entry.fate == Fate::Delivered;
            feedback.advanced_repeats += u64::from(entry.repeated);
            self.first += 1;
            self.outstanding_bytes -= u64::from(entry.bytes);
            if entry.fate == Fate::Delivered {
                self.delivered -= 1;
            } else {
                self.settle(now, entry, &mut feedback);
            }
        }
        if waited {
            // A hole was filled or skipped: the age of what waited behind it, or never came, is no round trip.
            feedback.rtt = None;
        }
        for range in &report.received {
            for number in range.start.max(self.first)..range.end {
                let index = (number - self.first) as usize;
                let entry = self.entries[index];
                if entry.fate != Fate::Delivered {
                    self.settle(now, entry, &mut feedback);
                    self.entries[index].fate = Fate::Delivered;
                    self.delivered += 1;
                }
            }
        }
        let answered = report.received.iter().map(|range| range.end);
        self.unanswered_from = answered.fold(self.unanswered_from.max(report.cumulative), u64::max);
        for number in report.lost.start.max(self.first)..report.lost.end {
            let once = self.order_and_once(number).is_some_and(|(_, once)| once);
            feedback.reported += u64::from(once && self.mark_lost(number));
        }
        if let Some(encodings) = &mut self.encodings {
            encodings.release_below(self.first);
        }
        // What the report answers is an encoded packet; no segment has left the network for it.
        feedback.duplicate &= feedback.reported == 0;
        if self.entries.is_empty() && self.entries.capacity() > 64 {
            self.entries = VecDeque::new();
        }
        feedback.rate = self.rate.sample(now, self.oldest_order());
        if self.rate.is_crowded(self.entries.len()) {
            let open = |entry: &&Entry| matches!(entry.fate, Fate::InFlight | Fate::Presumed);
            self.rate
                .keep_only(self.entries.iter().filter(open).map(|entry| entry.order));
        }
        Ok(feedback)
    }

    /// No transmission outstanding has a lower order than this; none when nothing is outstanding. Behind a repeat at
    /// the front older ones may be.
    fn oldest_order(&self) -> Option<u64> {
        let front = self.entries.front()?;
        Some(if front.repeated { 0 } else { front.order })
    }

    /// `entry` is delivered: takes it out of the counts and into the feedback.
    fn settle(&mut self, now: Time, entry: Entry, feedback: &mut Feedback) {
        match entry.fate {
            Fate::InFlight => {
                self.in_flight -= 1;
                self.in_flight_bytes -= u64::from(entry.bytes);
            }
            Fate::Lost => self.lost -= 1,
            Fate::Presumed => self.presumed -= 1,
            Fate::Delivered => {}
        }
        feedback.delivered += 1;
        feedback.delivered_bytes += u64::from(entry.bytes);
        let open = entry.fate == Fate::InFlight; // or an earlier transmission than the last one arrived
        self.rate
            .on_delivered(u64::from(entry.bytes), open.then(|| entry.transmission()));
        if entry.repeated || entry.fate == Fate::Presumed {
            return; // which of its transmissions arrived, or when, is unknown
        }
        feedback.rtt = Some(now.since(entry.sent_at));
        self.note_delivered(entry.order);
    }

    /// Of a segment that was sent once.
    fn note_delivered(&mut self, order: u64) {
        let [a, b, c] = &mut self.latest_delivered;
        if order > *a {
            (*a, *b, *c) = (order, *a, *b);
        } else if order > *b {
            (*b, *c) = (order, *b);
        } else if order > *c {
            *c = order;
        }
    }

    /// A transmission of which three later ones are reported delivered has a lower order than this.
    pub fn overtaken_below(&self) -> u64 {
        self.latest_delivered[self.latest_delivered.len() - 1]
    }

    /// The order of the last transmission of `number`, while its fate is open.
    pub fn order_in_flight(&self, number: u64) -> Option<u64> {
        self.entry(number)
            .filter(|entry| entry.fate == Fate::InFlight)
            .map(|entry| entry.order)
    }

    /// The order of the last transmission of `number`, encoded ones included, and whether it was sent once only.
    pub fn order_and_once(&self, number: u64) -> Option<(u64, bool)> {
        let entry = self.entry(number)?;
        Some((self.judged_after(number, entry), !entry.repeated))
    }

    /// How many transmissions after that of `number` say nothing about its fate, because an encoded packet that
    /// left, or will leave, after them may repair it. Always 0 without forward error correction.
    pub fn spared(&self, number: u64) -> u64 {
        self.entry(number)
            .map_or(0, |entry| self.judged_after(number, entry) - entry.order)
    }

    /// True when an encoded packet that covers `number`, or its last repeat, leaves after position `order`.
    pub fn may_be_repaired_after(&self, order: u64, number: u64) -> bool {
        let last = self.order_and_once(number).map(|(last, _)| last);
        self.encodings.is_some() && last.is_some_and(|last| last > order)
    }

    /// Transmissions so far: the order of the latest.
    pub fn transmissions(&self) -> u64 {
        self.transmissions
    }

    fn judged_after(&self, number: u64, entry: &Entry) -> u64 {
        match &self.encodings {
            Some(encodings) if !entry.repeated => encodings.order_of(number),
            _ => entry.order,
        }
    }

    /// When `number` left last, and whether it was sent once only, while its fate is open.
    pub fn in_flight_since(&self, number: u64) -> Option<(Time, bool)> {
        self.entry(number)
            .filter(|entry| entry.fate == Fate::InFlight)
            .map(|entry| (entry.sent_at, !entry.repeated))
    }

    /// When the segment left to which an answer is due first: the lowest after all that are known to have arrived, or
    /// else the repeat that goes first. None while there is none, or it waits to be repeated.
    pub fn unanswered_since(&self) -> Option<Time> {
        let first = [self.unanswered_from.max(self.first), self.first];
        let due = first.into_iter().find_map(|number| self.in_flight_since(number));
        due.map(|(sent_at, _)| sent_at)
    }

    /// True when `number` is known or presumed to have arrived.
    pub fn is_arrived(&self, number: u64) -> bool {
        let arrived = |entry: &Entry| matches!(entry.fate, Fate::Delivered | Fate::Presumed);
        number < self.first || self.entry(number).is_some_and(arrived)
    }

    /// `number` is declared lost, and not sent again yet.
    pub fn is_lost(&self, number: u64) -> bool {
        self.entry(number).is_some_and(|entry| entry.fate == Fate::Lost)
    }

    fn entry(&self, number: u64) -> Option<&Entry> {
        self.entries.get(number.checked_sub(self.first)? as usize)
    }

    fn set_fate(&mut self, number: u64, fate: Fate) {
        self.entries[(number - self.first) as usize].fate = fate;
    }
}

#[cfg(test)]
mod tests;
