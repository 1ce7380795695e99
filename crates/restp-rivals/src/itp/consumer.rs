//! One retrieval (ITP §IV; the Interest control block): what an answer means, and who is asked for what. Each producer is a lane of
//! its own, with its own window, round trip and timers; all of them serve one list of what is missing (ITP §III.A: several sources).

use super::holding::{Delivery, Holding, Item, Taken};
use super::lane::Lane;
use super::manifest::{Core, Digest, ManifestError, Naming};
use super::parameters::ItpParameters;
use super::wire::{Header, Kind, Pointer, flags};
use bytes::Bytes;
use restp_base::flow::FlowStats;
use restp_base::machine::{Earliest, Wakeup};
use restp_base::time::{Duration, Time};
use restp_services::sender::Answer;
use std::ops::Range;

/// What a data packet was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrival {
    /// Something new for the reader.
    Readable,
    /// Something new.
    Taken,
    /// Nothing new.
    Duplicate,
    /// It breaks a rule.
    Rejected,
    /// It does not contain what it should.
    Refused,
    /// Nor did much else of this producer.
    Untrusted,
}

/// A retrieval.
#[derive(Debug)]
pub(super) struct Consumer {
    parameters: ItpParameters,
    object: u64,
    holding: Holding,
    /// What an Interest weighs in the window: a chunk.
    weight: Bytes,
    /// The producers that are asked.
    lanes: Vec<Lane<Item>>,
    /// The lane that has the next turn.
    turn: usize,
    /// Where a new lane's numbers begin: beyond those of lanes that have ended, so that what answers them is not taken for its own.
    first: u64,
    /// With the counters of lanes that have ended.
    stats: FlowStats,
}

impl Consumer {
    /// Of the object `object`, whose root manifest is `core`, from nobody yet.
    ///
    /// # Errors
    /// When `core` is no root.
    pub fn new(
        parameters: &ItpParameters,
        object: u64,
        core: &Core,
        delivery: Delivery,
    ) -> Result<Self, ManifestError> {
        Ok(Consumer {
            holding: Holding::new(core, parameters.buffer_chunks, delivery)?,
            parameters: parameters.clone(),
            object,
            weight: vec![0; core.chunk_bytes as usize].into(),
            lanes: Vec::new(),
            turn: 0,
            first: 0,
            stats: FlowStats::default(),
        })
    }

    /// Everything is held.
    pub fn is_complete(&self) -> bool {
        self.holding.is_complete()
    }
    pub fn chunk_bytes(&self) -> u64 {
        self.weight.len() as u64
    }
    /// Everything was read.
    pub fn is_read(&self) -> bool {
        self.holding.is_read()
    }
    pub fn lanes(&self) -> usize {
        self.lanes.len()
    }

    pub fn deadline(&self) -> Option<(Time, Wakeup)> {
        let mut earliest = Earliest::NONE;
        for (at, why) in self.lanes.iter().filter_map(Lane::deadline) {
            earliest = earliest.or(Some(at), why);
        }
        earliest.deadline().filter(|_| !self.is_complete())
    }

    /// The next bytes of the object, in order.
    pub fn read(&mut self) -> Option<Bytes> {
        let chunk = self.holding.read()?;
        self.stats.delivered_bytes += chunk.len() as u64;
        self.stats.delivered_messages += 1;
        Some(chunk)
    }

    /// The next that has come and was not recalled, where the order does not matter.
    pub fn take_arrived(&mut self) -> Option<(Item, Bytes)> {
        let (item, payload) = self.holding.take_arrived()?;
        if let Item::Chunk(_) = item {
            self.stats.delivered_bytes += payload.len() as u64;
            self.stats.delivered_messages += 1;
        }
        Some((item, payload))
    }

    /// Bytes of the chunks that are held.
    pub fn held_bytes(&self) -> u64 {
        self.holding.held_bytes()
    }

    /// Something has come and was not taken.
    pub fn has_arrived(&self) -> bool {
        self.holding.buffered() > 0
    }

    /// What its reader has from before need not be asked for: `of` says what it has of an item that should have this digest. Looks at
    /// `most` of what would be asked for next.
    ///
    /// # Errors
    /// The item where it stopped, because the reader does not have it (`missing`: so much is known) or there is none.
    pub fn recall(
        &mut self,
        most: u64,
        missing: Option<Item>,
        mut of: impl FnMut(Item, &Digest) -> Option<Bytes>,
    ) -> Result<(), Option<Item>> {
        for _ in 0..most {
            let item = self.holding.next_fresh().ok_or(None)?;
            let known = self.holding.digest(item).filter(|_| missing != Some(item));
            let kept = known.and_then(|digest| of(item, digest));
            let kept = kept.filter(|kept| self.holding.fits(item, kept));
            let kept = kept.ok_or(Some(item))?;
            self.holding.on_interest_sent(item);
            let taken = self.holding.take(item, kept, false);
            if taken == Taken::Impossible {
                return Err(Some(item));
            }
        }
        Ok(())
    }

    /// One more producer is asked from now on, of whose path nothing is known. It has the last lane.
    pub fn add_lane(&mut self, now: Time) {
        self.add_numbered_lane(now, 0..self.first);
    }

    /// The same. Its Interests had the numbers `known` and have those that follow.
    pub fn add_numbered_lane(&mut self, now: Time, known: Range<u64>) {
        let chunk_bytes = self.holding.chunk_bytes();
        let lane = Lane::new(now, &self.parameters, known, chunk_bytes);
        self.lanes.push(lane);
    }

    /// A producer is asked no more. What was asked of it is asked of the others. The number that its next Interest would have had.
    pub fn remove_lane(&mut self, lane: usize) -> u64 {
        let lane = self.lanes.remove(lane);
        lane.end(|item| self.holding.on_lost(item));
        self.first = self.first.max(lane.sender().next_number());
        add_counters(&mut self.stats, &lane);
        lane.sender().next_number()
    }

    /// Time has passed. How long the producer of `lane` has not answered, when it is given up.
    pub fn on_deadline(&mut self, now: Time, lane: usize) -> Option<Duration> {
        if self.is_complete() {
            return None;
        }
        let lane = &mut self.lanes[lane];
        let silence = lane.on_deadline(now);
        lane.settle(|item| self.holding.on_lost(item));
        silence
    }

    /// The next Interest, if one may leave: on which lane, a header and its payload.
    pub fn poll(&mut self, now: Time) -> Option<(usize, Header, Bytes)> {
        if self.is_complete() {
            return None;
        }
        // Flow control: what is open and what waits for its reader have room (ITP §V, the limit of the consumer buffer).
        let open: u64 = self.lanes.iter().map(|lane| lane.sender().in_flight()).sum();
        let has_room = open + self.holding.buffered() < self.parameters.buffer_chunks;
        let Some(item) = self.holding.next(has_room) else {
            self.lanes.iter_mut().for_each(|lane| lane.rest(now));
            return None;
        };
        let count = self.lanes.len();
        let all_have_bad = self.lanes.iter().all(|lane| lane.has_bad(item));
        for lane in (0..count).map(|step| (self.turn + step) % count) {
            if self.lanes[lane].has_bad(item) && !all_have_bad {
                self.lanes[lane].rest(now);
                continue;
            }
            if let Some(number) = self.lanes[lane].ask(now, item, &self.weight) {
                self.turn = (lane + 1) % count;
                let again = self.on_interest_sent(lane, item);
                let (header, payload) = self.interest(item, number, again);
                return Some((lane, header, payload));
            }
        }
        None
    }

    /// `item` is asked for on `lane`. Was it before?
    fn on_interest_sent(&mut self, lane: usize, item: Item) -> bool {
        let again = self.holding.on_interest_sent(item);
        self.stats.sent_packets += 1;
        if again {
            self.stats.retransmitted_packets += 1;
            self.stats.retransmitted_payload_bytes += self.weight.len() as u64;
        }
        // Whoever does not answer is probed, and must not keep what others have.
        if self.lanes[lane].is_silent() && self.lanes.iter().any(|lane| !lane.is_silent()) {
            self.holding.on_lost(item);
        }
        again
    }

    fn interest(&self, item: Item, number: u64, again: bool) -> (Header, Bytes) {
        let (chunk, kind) = match item {
            Item::Manifest(position) => (position, flags::MANIFEST),
            Item::Chunk(number) => (number, 0),
        };
        let named = if self.holding.naming() == Naming::Hash {
            flags::HASH
        } else {
            0
        };
        let again = if again { flags::REPEATED } else { 0 };
        let snapshot = (!self.parameters.is_ndn).then(|| self.holding.snapshot());
        let header = Header {
            kind: Kind::Interest(snapshot),
            flags: kind | named | again,
            pointer: Pointer {
                object: self.object,
                chunk: chunk as u32,
                sequence: number as u32,
            },
        };
        let digest = self.holding.digest(item);
        let payload = digest.map_or(Bytes::new(), |digest| Bytes::copy_from_slice(digest));
        (header, payload)
    }

    /// Data has come from the producer of `lane`. `tells_path`: its round trip is one of the path that the others take.
    pub fn on_data(
        &mut self,
        now: Time,
        lane: usize,
        header: &Header,
        payload: Bytes,
        tells_path: bool,
    ) -> Arrival {
        let item = item_of(&header.pointer, header.flags & flags::MANIFEST != 0);
        let Some(interest) = self.answered(lane, item, header.pointer.sequence) else {
            return Arrival::Rejected;
        };
        let is_good = self.holding.fits(item, &payload);
        if interest.is_none() && !is_good {
            return Arrival::Rejected; // whoever forges it need not know a number that is open: it tells nothing of the producer
        }
        self.stats.received_packets += 1;
        let is_sample = tells_path && (!self.parameters.is_ndn || !self.holding.was_retransmitted(item));
        let answer = self.lanes[lane].on_answer(now, interest, is_sample);
        let is_trusted = self.lanes[lane].trusts(item, is_good);
        let arrival = if is_good {
            self.take(item, payload)
        } else {
            // It is asked for again.
            self.stats.corrupted_packets += 1;
            if answer == Answer::Awaited {
                self.holding.on_lost(item);
            }
            if is_trusted {
                Arrival::Refused
            } else {
                Arrival::Untrusted
            }
        };
        self.lanes[lane].settle(|item| self.holding.on_lost(item));
        arrival
    }

    fn take(&mut self, item: Item, payload: Bytes) -> Arrival {
        let bytes = payload.len() as u64;
        let taken = self.holding.take(item, payload, true);
        match taken {
            Taken::Duplicate => self.stats.duplicate_packets += 1,
            Taken::New | Taken::Readable if matches!(item, Item::Chunk(_)) => {
                self.stats.received_bytes += bytes;
            }
            _ => {}
        }
        match taken {
            Taken::Readable => Arrival::Readable,
            Taken::New => Arrival::Taken,
            Taken::Duplicate => Arrival::Duplicate,
            Taken::Impossible => Arrival::Untrusted,
        }
    }

    /// The number of the Interest on `lane` that data for `item` answers. None when no such Interest ever left.
    fn answered(&self, lane: usize, item: Item, sequence: u32) -> Option<Option<u64>> {
        let was_asked = self.holding.was_asked(item);
        if self.parameters.is_ndn {
            return was_asked.then(|| self.lanes[lane].last_for(item));
        }
        self.lanes[lane].answered(item, sequence, was_asked)
    }

    /// The producer of `lane` answers an Interest, but not with data: what it asked for is asked for again. False when it never left,
    /// or too long ago to be remembered.
    pub fn on_other_answer(&mut self, now: Time, lane: usize, pointer: &Pointer, is_manifest: bool) -> bool {
        let item = item_of(pointer, is_manifest);
        let Some(Some(number)) = self.answered(lane, item, pointer.sequence) else {
            return false;
        };
        if self.lanes[lane].on_answer(now, Some(number), true) == Answer::Awaited {
            self.holding.on_lost(item);
        }
        self.lanes[lane].settle(|item| self.holding.on_lost(item));
        true
    }

    /// Does this answer an Interest that left on `lane`?
    pub fn is_answer(&self, lane: usize, pointer: &Pointer, is_manifest: bool) -> bool {
        let item = item_of(pointer, is_manifest);
        self.answered(lane, item, pointer.sequence).is_some()
    }

    /// A refusal came for an Interest that is remembered on `lane`.
    pub fn is_refusal_for(&self, lane: usize, pointer: &Pointer, is_manifest: bool) -> bool {
        let item = item_of(pointer, is_manifest);
        let is_remembered = matches!(self.answered(lane, item, pointer.sequence), Some(Some(_)));
        is_remembered && !self.holding.holds(item)
    }

    /// What is known of the path to the producer of `lane`: its round trip, and its window in bytes.
    pub fn path(&self, lane: usize) -> (Option<Duration>, u64) {
        let sender = self.lanes[lane].sender();
        (sender.smoothed_rtt(), sender.window_bytes())
    }

    /// Counters, the sums of windows and of what is open, and the estimates of the first producer. A window is that of the data
    /// asked for.
    pub fn stats(&self) -> FlowStats {
        let mut stats = self.stats.clone();
        for lane in &self.lanes {
            add_counters(&mut stats, lane);
            stats.congestion_window_bytes += lane.sender().window_bytes();
            stats.in_flight_segments += lane.sender().in_flight();
        }
        let first = self.lanes.first().map(Lane::sender);
        stats.srtt = first.and_then(|sender| sender.smoothed_rtt());
        stats.rto = first.map(|sender| sender.timeout());
        let lanes: u64 = self.lanes.iter().map(Lane::memory).sum();
        stats.memory_bytes = self.holding.memory() + lanes;
        stats
    }
}

fn item_of(pointer: &Pointer, is_manifest: bool) -> Item {
    let number = u64::from(pointer.chunk);
    if is_manifest {
        Item::Manifest(number)
    } else {
        Item::Chunk(number)
    }
}

fn add_counters(stats: &mut FlowStats, lane: &Lane<Item>) {
    let counters = lane.sender().counters();
    stats.lost_packets += counters.lost_packets;
    stats.timed_out_packets += counters.timed_out_packets;
    stats.timeouts += counters.timeouts;
}
