//! The one record of what is outstanding: for each number sent and not yet below the receiver's pointer, when
//! it was sent, how often, and what we believe became of it (RFC 6675 §4 calls it so). Transmissions here; what the peer
//! reports is applied in `acknowledge`, and what recovery concludes is written down in `verdicts`.

mod acknowledge;
mod entry;
mod lane;
mod lane_id;
mod observed;
mod verdicts;

use entry::{Entry, Fate, Kind};
pub use lane::{Lane, LaneNews};
pub use lane_id::LaneId;
use observed::Observed;

use super::delivery_rate::LostSegment;
use super::encodings::Encodings;
use restp_base::ranges::Ranges;
use restp_base::time::Time;
use smallvec::{SmallVec, smallvec};
use std::collections::VecDeque;
use std::ops::Range;

/// Record of the outstanding segments of one direction.
#[derive(Debug)]
pub struct Scoreboard {
    first: u64,

    entries: VecDeque<Entry>,
    transmissions: u64,
    lanes: SmallVec<[Lane; 1]>,
    /// The lane that questions are about and segments leave by.
    in_hand: LaneId,
    outstanding_bytes: u64,
    /// The numbers of each other fate: a report is compared with what is known, not with every entry it names.
    lost: Ranges,
    delivered: Ranges,
    presumed: Ranges,
    given_up: Ranges,
    /// What leaves again though it is only late: some of `lost`.
    late: Ranges,
    /// What was lost and left again, and has not proved late, where the peer names what arrives twice.
    retransmitted: Option<Box<Ranges>>,
    /// Segments that duplicates say have left the network, we do not know which.
    departed: u64,
    encodings: Option<Encodings>,
    /// Reports have room for every block, so what waited behind a hole was named when it came.
    names_all: bool,
    /// What was declared lost and not yet told, if anybody asks.
    observed: Option<Box<Observed>>,
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
            lanes: smallvec![Lane::new(super::DUPLICATE_THRESHOLD)],
            in_hand: LaneId::FIRST,
            outstanding_bytes: 0,
            lost: Ranges::new(),
            delivered: Ranges::new(),
            presumed: Ranges::new(),
            given_up: Ranges::new(),
            late: Ranges::new(),
            retransmitted: None,
            departed: 0,
            encodings: None,
            names_all: false,
            observed: None,
            #[cfg(test)]
            looks: Default::default(),
        }
    }

    /// From now on reports have room for every block.
    pub fn trust_blocks(&mut self) {
        self.names_all = true;
    }

    /// From now on the peer names what arrives twice (RFC 2883).
    pub fn expect_duplicates(&mut self) {
        self.retransmitted.get_or_insert_default();
    }

    /// The same for segments that encoded packets may repair (HARQ): see [`Encodings`].
    pub fn coded(first: u64) -> Self {
        Scoreboard {
            encodings: Some(Encodings::new(first)),
            ..Scoreboard::new(first)
        }
    }

    /// The same with a duplicate threshold other than [`super::DUPLICATE_THRESHOLD`].
    pub fn with_duplicate_threshold(self, threshold: u64) -> Self {
        Scoreboard {
            lanes: smallvec![Lane::new(threshold)],
            ..self
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
    /// Segments believed to be in the network, by the lane in hand: the pipe of RFC 6675.
    pub fn in_flight(&self) -> u64 {
        self.open_segments().saturating_sub(self.departed)
    }
    /// Their bytes.
    pub fn in_flight_bytes(&self) -> u64 {
        let bytes = self.open_bytes();
        if self.departed == 0 {
            return bytes;
        }
        let segments = self.open_segments();
        bytes - bytes * self.departed.min(segments) / segments.max(1)
    }
    /// Segments whose last transmission has no known fate, and their bytes.
    fn open_segments(&self) -> u64 {
        self.lane(self.in_hand).in_flight()
    }
    fn open_bytes(&self) -> u64 {
        self.lane(self.in_hand).in_flight_bytes()
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
    /// Is the highest number that left by the lane in hand known to have arrived?
    pub fn has_last_arrived(&self) -> bool {
        let last = self.entries.iter().rfind(|entry| entry.lane == self.in_hand);
        last.is_none_or(|entry| entry.fate == Fate::Delivered)
    }
    /// Bytes of memory the record takes.
    pub fn memory(&self) -> usize {
        let encodings = self.encodings.as_ref().map_or(0, Encodings::memory);
        let sets = [
            &self.lost,
            &self.delivered,
            &self.presumed,
            &self.given_up,
            &self.late,
        ];
        let retransmitted = self.retransmitted.as_deref().map_or(0, Ranges::memory);
        let sets = sets.map(Ranges::memory);
        self.entries.capacity() * size_of::<Entry>()
            + sets.iter().sum::<usize>()
            + retransmitted
            + self.lanes.iter().map(Lane::memory).sum::<usize>()
            + encodings
    }
    /// Segments of the lane in hand that feedback found lost since the last [`Scoreboard::acknowledge`].
    pub fn losses(&self) -> &[LostSegment] {
        self.lane(self.in_hand).losses()
    }
    /// More could be in flight, but the application has nothing to send or the peer takes no more.
    pub fn application_limits(&mut self) {
        self.lane_mut(self.in_hand).limit_by_application();
    }

    /// A new segment leaves; returns its number.
    pub fn on_sent(&mut self, now: Time, bytes: u32) -> u64 {
        self.transmissions += 1;
        let entry = Entry {
            sent_at: now,
            order: self.transmissions,
            bytes,
            lane: self.in_hand,
            blamed: LaneId::NONE,
            kind: Kind::Once,
            fate: Fate::InFlight,
        };
        self.entries.push_back(entry);
        let lane = self.lane_mut(self.in_hand);
        lane.on_sent(entry);
        lane.enter(entry);
        self.outstanding_bytes += u64::from(bytes);
        self.next() - 1
    }

    /// The lost segment `number` leaves again. Returns the position of this transmission among all.
    pub fn on_retransmitted(&mut self, now: Time, number: u64) -> Option<u64> {
        let before = *self.entry(number).filter(|entry| entry.fate == Fate::Lost)?;
        let is_lost = !self.is_late(number);
        let is_blamed = is_lost && self.lane(before.lane).has_carried(&before);
        let is_own = before.lane == self.in_hand && before.kind != Kind::TakenOver;
        self.transmissions += 1;
        let entry = Entry {
            sent_at: now,
            order: self.transmissions,
            lane: self.in_hand,
            blamed: if is_blamed { before.lane } else { LaneId::NONE },
            kind: if is_own { Kind::Again } else { Kind::TakenOver },
            fate: Fate::InFlight,
            ..before
        };
        self.lane_mut(self.in_hand).on_sent(entry);
        self.replace(number, entry);
        self.lane_mut(self.in_hand).on_retransmitted(number, entry);
        // Where nothing is heard for hours no report does it.
        self.lanes[self.in_hand.index()].prune(&self.entries);
        if let Some(retransmitted) = self.retransmitted.as_mut().filter(|_| is_lost) {
            retransmitted.insert(number..number + 1);
        }
        Some(self.transmissions)
    }

    /// `number` leaves again as a probe, whatever we believe became of it: its answer gives no round trip (OP-51).
    pub fn on_probed(&mut self, number: u64) {
        self.mark_retransmitted(number);
    }

    /// When `number` is acknowledged, nobody knows for which transmission (Karn's rule).
    fn mark_retransmitted(&mut self, number: u64) {
        if let Some(entry) = self.entry(number).copied() {
            let kind = match entry.kind {
                Kind::Once => Kind::Again,
                other => other,
            };
            let retransmitted = Entry { kind, ..entry };
            self.replace(number, retransmitted);
            self.lane_mut(entry.lane).on_retransmitted(number, retransmitted);
        }
    }

    /// An encoded packet left: everything sent so far is encoded now.
    pub fn on_encoded(&mut self) {
        let (next, order) = (self.next(), self.transmissions);
        if let Some(encodings) = &mut self.encodings {
            encodings.on_encoded(next, order);
        }
    }

    /// From here on segments are encoded once (HARQ), or not any more.
    pub fn code_onwards(&mut self, coded: bool) {
        let (next, order) = (self.next(), self.transmissions);
        match &mut self.encodings {
            Some(encodings) => encodings.switch(coded, next, order),
            None if coded => {
                let mut encodings = Encodings::new(self.first);
                encodings.on_encoded(next, 0); // what is out already is judged as it was
                self.encodings = Some(encodings);
            }
            None => {}
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
        self.given_up.clear();
        self.late.clear();
    }

    /// Changes what we believe became of outstanding `number`.
    fn set_fate(&mut self, number: u64, fate: Fate) {
        if let Some(entry) = self.entry(number).copied() {
            self.replace(number, Entry { fate, ..entry });
        }
    }

    /// Outstanding `number` has this entry from now on.
    fn replace(&mut self, number: u64, entry: Entry) {
        let before = std::mem::replace(&mut self.entries[(number - self.first) as usize], entry);
        self.leave(number, before);
        self.lane_mut(entry.lane).enter(entry);
        if let Some(set) = self.set_of(entry.fate) {
            set.insert(number..number + 1);
        }
        if entry.fate == Fate::GivenUp {
            self.outstanding_bytes -= u64::from(entry.bytes);
        }
    }

    /// `number` does not count as what `entry` says any more.
    fn leave(&mut self, number: u64, entry: Entry) {
        self.lane_mut(entry.lane).leave(entry);
        if let Some(set) = self.set_of(entry.fate) {
            set.remove(&(number..number + 1));
        }
        match entry.fate {
            Fate::Lost => self.late.remove(&(number..number + 1)),
            Fate::GivenUp => self.outstanding_bytes += u64::from(entry.bytes),
            Fate::InFlight | Fate::Delivered | Fate::Presumed => {}
        }
    }

    fn set_of(&mut self, fate: Fate) -> Option<&mut Ranges> {
        match fate {
            Fate::InFlight => None,
            Fate::Lost => Some(&mut self.lost),
            Fate::Delivered => Some(&mut self.delivered),
            Fate::Presumed => Some(&mut self.presumed),
            Fate::GivenUp => Some(&mut self.given_up),
        }
    }

    /// Later transmissions reported delivered before one counts as lost.
    pub fn duplicate_threshold(&self) -> u64 {
        self.lane(self.in_hand).duplicate_threshold()
    }

    /// A transmission on the lane in hand of which as many later ones as the duplicate threshold are reported delivered
    /// has a lower order than this.
    pub fn overtaken_below(&self) -> u64 {
        self.lane(self.in_hand).overtaken_below()
    }

    /// The order of the latest transmission on the lane in hand that has arrived.
    pub fn latest_arrival(&self) -> u64 {
        self.lane(self.in_hand).latest_arrival()
    }

    /// The order of the last transmission of `number`, while its fate is open.
    pub fn order_in_flight(&self, number: u64) -> Option<u64> {
        self.entry(number)
            .filter(|entry| entry.fate == Fate::InFlight)
            .map(|entry| entry.order)
    }

    /// The order of the last transmission of `number`, encoded ones included, and whether it was sent once only, by the lane
    /// in hand.
    pub fn order_and_once(&self, number: u64) -> Option<(u64, bool)> {
        let entry = self.entry(number)?;
        let once = !entry.retransmitted() && entry.lane == self.in_hand;
        Some((self.judged_after(number, entry), once))
    }

    /// How many transmissions after that of `number` say nothing about its fate, because an encoded packet that
    /// left, or will leave, after them may repair it. Always 0 without forward error correction.
    pub fn spared(&self, number: u64) -> u64 {
        self.entry(number)
            .map_or(0, |entry| self.judged_after(number, entry) - entry.order)
    }

    /// True when an encoded packet that covers `number`, or its last retransmission, leaves after position `order`.
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
            Some(encodings) if !entry.retransmitted() => encodings.order_of(number).max(entry.order),
            _ => entry.order,
        }
    }

    /// The lowest number of which it is not known that it arrived or is not waited for, once `answered` has arrived too.
    pub(crate) fn first_open_but(&self, answered: u64) -> u64 {
        let all = self.first..self.next();
        let open = self.first_open(&all).filter(|open| *open != answered);
        let open = open.or_else(|| self.first_open(&(answered + 1..all.end)));
        open.unwrap_or(all.end)
    }

    /// When `number` left last, and whether it was sent once only, while its fate is open.
    pub fn in_flight_since(&self, number: u64) -> Option<(Time, bool)> {
        self.entry(number)
            .filter(|entry| entry.fate == Fate::InFlight)
            .map(|entry| (entry.sent_at, !entry.retransmitted()))
    }

    /// Something above `number` is known to have arrived.
    pub fn is_overtaken(&self, number: u64) -> bool {
        self.delivered.last().is_some_and(|range| range.end > number + 1)
    }

    /// When `number`, which is outstanding, left last.
    pub fn sent_at(&self, number: u64) -> Option<Time> {
        self.entry(number).map(|entry| entry.sent_at)
    }

    /// When the segment left by the lane in hand to which an answer is due first: the lowest after all that are known to
    /// have arrived, or else the retransmission that goes first. None while there is none, or it waits to be retransmitted.
    pub fn unanswered_since(&self) -> Option<Time> {
        if self.lanes.len() > 1 {
            return self.in_flight_since(self.head()).map(|(sent_at, _)| sent_at);
        }
        let behind = self.delivered.last().map_or(self.first, |range| range.end);
        let mut due = [behind, self.first].into_iter();
        let due = due.find_map(|number| self.in_flight_since(number));
        due.map(|(sent_at, _)| sent_at)
    }

    /// The lowest number of `range` that is outstanding and neither known nor presumed to have arrived.
    pub(super) fn first_open(&self, range: &Range<u64>) -> Option<u64> {
        let mut rest = range.start.max(self.first)..range.end.min(self.next());
        let settled = [&self.delivered, &self.presumed, &self.given_up];
        while rest.start < rest.end {
            match settled.iter().find_map(|set| set.covering(rest.start)) {
                Some(held) => rest.start = held.end,
                None => return Some(rest.start),
            }
        }
        None
    }

    /// True when `number` is known or presumed to have arrived.
    pub fn is_arrived(&self, number: u64) -> bool {
        let arrived = |entry: &Entry| matches!(entry.fate, Fate::Delivered | Fate::Presumed);
        number < self.first || self.entry(number).is_some_and(arrived)
    }

    /// `number` is taken for arrived, and nobody has said so.
    pub fn is_presumed(&self, number: u64) -> bool {
        self.presumed.covering(number).is_some()
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
