//! The one record of what is outstanding: for each number sent and not yet below the receiver's pointer, when
//! it was sent, how often, and what we believe became of it (RFC 6675 §4 calls it so). Transmissions here; what the peer
//! reports is applied in `acknowledge`, and what recovery concludes is written down in `verdicts`.

mod acknowledge;
mod verdicts;

use super::delivery_rate::{DeliveryRate, LostSegment, Transmission};
use super::encodings::Encodings;
use restp_base::ranges::Ranges;
use restp_base::time::Time;
use std::collections::VecDeque;
use std::ops::Range;

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
    /// The numbers of each other fate: a report is compared with what is known, not with every entry it names.
    lost: Ranges,
    delivered: Ranges,
    presumed: Ranges,
    /// Segments that duplicates say have left the network, we do not know which.
    departed: u64,
    /// Highest `order`s reported delivered, the highest first.
    latest_delivered: [u64; super::DUPLICATE_THRESHOLD as usize],
    rate: DeliveryRate,
    /// Found lost since the last acknowledgement.
    losses: Vec<LostSegment>,
    encodings: Option<Encodings>,
    /// Entries looked at so far: the cost of the record, which tests bound.
    #[cfg(test)]
    pub(super) looks: std::cell::Cell<u64>,
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
            lost: Ranges::new(),
            delivered: Ranges::new(),
            presumed: Ranges::new(),
            departed: 0,
            latest_delivered: [0; super::DUPLICATE_THRESHOLD as usize],
            rate: DeliveryRate::new(),
            losses: Vec::new(),
            encodings: None,
            #[cfg(test)]
            looks: Default::default(),
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
        self.lost.total()
    }
    /// Segments beyond the pointer that are known or presumed to have arrived.
    pub fn arrived(&self) -> u64 {
        self.delivered.total() + self.presumed.total()
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
        let sets = [&self.lost, &self.delivered, &self.presumed].map(Ranges::memory);
        self.entries.capacity() * size_of::<Entry>()
            + sets.iter().sum::<usize>()
            + self.rate.memory()
            + encodings
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
        self.enter(self.next() - 1, bytes, Fate::InFlight);
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
            ..*entry
        };
        self.set_fate(number, Fate::InFlight);
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
    pub fn next_lost(&self) -> Option<u64> {
        self.lost.first().map(|range| range.start)
    }

    /// Nothing is outstanding: gives memory back that only a large window needs.
    fn release(&mut self) {
        if self.entries.capacity() > 64 {
            self.entries = VecDeque::new();
        }
        self.lost.clear();
        self.delivered.clear();
        self.presumed.clear();
    }

    /// Changes what we believe became of `number`, and the counts with it.
    fn set_fate(&mut self, number: u64, fate: Fate) {
        let entry = &mut self.entries[(number - self.first) as usize];
        let before = std::mem::replace(entry, Entry { fate, ..*entry });
        self.leave(number, before);
        self.enter(number, before.bytes, fate);
    }

    /// `number` is no longer counted as what `entry` says.
    fn leave(&mut self, number: u64, entry: Entry) {
        let alone = number..number + 1;
        match entry.fate {
            Fate::InFlight => {
                self.in_flight -= 1;
                self.in_flight_bytes -= u64::from(entry.bytes);
            }
            Fate::Lost => self.lost.remove(&alone),
            Fate::Presumed => self.presumed.remove(&alone),
            Fate::Delivered => self.delivered.remove(&alone),
        }
    }

    /// `number` of `bytes` counts as `fate`.
    fn enter(&mut self, number: u64, bytes: u32, fate: Fate) {
        let set = match fate {
            Fate::InFlight => {
                self.in_flight += 1;
                self.in_flight_bytes += u64::from(bytes);
                return;
            }
            Fate::Lost => &mut self.lost,
            Fate::Presumed => &mut self.presumed,
            Fate::Delivered => &mut self.delivered,
        };
        set.insert(number..number + 1);
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

    /// The highest order of a segment sent once that is reported delivered.
    pub fn latest_delivered(&self) -> u64 {
        self.latest_delivered[0]
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
        let behind = self.delivered.last().map_or(self.first, |range| range.end);
        let mut due = [behind, self.first].into_iter();
        let due = due.find_map(|number| self.in_flight_since(number));
        due.map(|(sent_at, _)| sent_at)
    }

    /// The lowest number of `range` that is outstanding and neither known nor presumed to have arrived.
    pub(super) fn first_open(&self, range: &Range<u64>) -> Option<u64> {
        let mut rest = range.start.max(self.first)..range.end.min(self.next());
        loop {
            let open = self.delivered.first_missing(&rest)?;
            match self.presumed.first_missing(&open) {
                Some(open) => return Some(open.start),
                None => rest.start = open.end,
            }
        }
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
        #[cfg(test)]
        self.looks.set(self.looks.get() + 1);
        self.entries.get(number.checked_sub(self.first)? as usize)
    }
}

#[cfg(test)]
mod tests;
