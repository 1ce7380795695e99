//! One retrieval (ITP §IV; the Interest control block): what is held, what is asked for next, what an answer means. Rules (a) and
//! (b), window and timers are the sender's; here numbers are turned into chunks, and what was lost is asked for again under a new one.
//!
//! With digests the manifests below the root are asked for first, from the top down, and each is checked against the digest and the
//! shape that its place demands before anything of it is used.

use super::manifest::{self, Core, Digest, ManifestError, Naming, Shape};
use super::parameters::ItpParameters;
use super::publication::covered;
use super::wire::{Header, Kind, Pointer, Snapshot, flags};
use bytes::Bytes;
use restp_base::flow::FlowStats;
use restp_base::machine::Wakeup;
use restp_base::ranges::Ranges;
use restp_base::time::{Duration, Time};
use restp_services::sender::{Answer, Sender, TimeoutOutcome, Transmission};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Answers in a row that contain something else than they should before another producer is asked.
const MOST_BAD: u32 = 8;

/// What an Interest is for: a manifest below the root, or a chunk; in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Item {
    /// By its position.
    Manifest(u64),
    /// By its number.
    Chunk(u64),
}

/// What a data packet was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrival {
    /// Something new for the reader.
    Readable,
    /// Something new, or nothing.
    Taken,
    /// It breaks a rule.
    Rejected,
    /// It does not contain what it should, and the producer has done that too often.
    Untrusted,
}

/// A retrieval.
#[derive(Debug)]
pub(super) struct Consumer {
    parameters: ItpParameters,
    object: u64,
    core: Core,
    shape: Shape,
    sender: Sender,
    /// What an Interest weighs in the window: a chunk.
    weight: Bytes,
    /// What each number of the sender's record asks for.
    asked: VecDeque<Item>,
    /// The number of the first of them.
    first_asked: u64,
    /// Lost, and not asked for again yet.
    repeats: BTreeSet<Item>,
    /// Asked for more than once, and not held.
    repeated: BTreeSet<Item>,
    /// Never asked for before, the lowest.
    fresh: Item,
    /// Of items not held whose digests are known.
    digests: BTreeMap<Item, Digest>,
    manifests: Ranges,
    chunks: Ranges,
    /// The consumer buffer: held and not read.
    buffer: BTreeMap<u64, Bytes>,
    /// Chunks that were read.
    read: u64,
    bad_in_a_row: u32,
    stats: FlowStats,
}

impl Consumer {
    /// Of the object `object`, whose root manifest is `core`.
    ///
    /// # Errors
    /// When `core` is no root.
    pub fn new(
        now: Time,
        parameters: &ItpParameters,
        object: u64,
        core: Core,
    ) -> Result<Self, ManifestError> {
        let shape = core.shape()?;
        let mut consumer = Consumer {
            sender: parameters.sender(now, 0, core.chunk_bytes),
            parameters: parameters.clone(),
            object,
            weight: vec![0; core.chunk_bytes as usize].into(),
            asked: VecDeque::new(),
            first_asked: 0,
            repeats: BTreeSet::new(),
            repeated: BTreeSet::new(),
            fresh: if shape.inner() > 0 {
                Item::Manifest(0)
            } else {
                Item::Chunk(0)
            },
            digests: BTreeMap::new(),
            manifests: Ranges::new(),
            chunks: Ranges::new(),
            buffer: BTreeMap::new(),
            read: 0,
            bad_in_a_row: 0,
            stats: FlowStats::default(),
            core: Core {
                digests: Vec::new(),
                ..core.clone()
            },
            shape,
        };
        consumer.learn(core.level, 0, &core.digests);
        Ok(consumer)
    }

    /// Everything is held.
    pub fn is_complete(&self) -> bool {
        self.chunks.total() == self.shape.chunks
    }
    /// Everything was read.
    pub fn is_read(&self) -> bool {
        self.read == self.shape.chunks
    }
    pub fn deadline(&self) -> Option<(Time, Wakeup)> {
        self.sender.deadline().filter(|_| !self.is_complete())
    }

    /// The next bytes of the object, in order.
    pub fn read(&mut self) -> Option<Bytes> {
        let chunk = self.buffer.remove(&self.read)?;
        self.read += 1;
        self.stats.delivered_bytes += chunk.len() as u64;
        self.stats.delivered_messages += 1;
        Some(chunk)
    }

    /// Time has passed. How long this producer has not answered, when it is given up.
    pub fn on_deadline(&mut self, now: Time) -> Option<Duration> {
        if self.is_complete() {
            return None;
        }
        let outcome = self.sender.on_deadline(now);
        self.collect_lost();
        match outcome {
            TimeoutOutcome::GivesUp(silence) => Some(silence),
            TimeoutOutcome::Lost | TimeoutOutcome::Nothing => None,
        }
    }

    /// Another producer is asked from now on, of whose path nothing is known. What was asked of the one before is asked again.
    pub fn turn(&mut self, now: Time) {
        self.stats = self.stats(); // with the counters of the sender that ends here
        let first = self.sender.next_number();
        self.sender = self.parameters.sender(now, first, self.core.chunk_bytes);
        let open = std::mem::take(&mut self.asked);
        let open = open.into_iter().filter(|item| !self.holds(*item));
        self.repeats.extend(open.collect::<Vec<_>>());
        (self.first_asked, self.bad_in_a_row) = (first, 0);
    }

    /// The next Interest, if one may leave: a header and its payload.
    pub fn poll(&mut self, now: Time) -> Option<(Header, Bytes)> {
        if self.is_complete() {
            return None;
        }
        let item = self.next_item()?;
        if !self.sender.may_leave(now, self.weight.len() as u64)
            || !self.sender.write(now, self.weight.clone())
        {
            return None;
        }
        let Some(Transmission::Segment(segment)) = self.sender.next(now, false) else {
            return None;
        };
        let number = segment.number?;
        let again = self.repeats.remove(&item);
        if again {
            self.repeated.insert(item);
            self.stats.retransmitted_packets += 1;
            self.stats.repeated_payload_bytes += self.weight.len() as u64;
        } else {
            self.fresh = self.after(item);
        }
        self.asked.push_back(item);
        self.stats.sent_packets += 1;
        Some(self.interest(item, number, again))
    }

    fn interest(&self, item: Item, number: u64, again: bool) -> (Header, Bytes) {
        let (chunk, kind) = match item {
            Item::Manifest(position) => (position, flags::MANIFEST),
            Item::Chunk(number) => (number, 0),
        };
        let named = if self.core.naming == Naming::Hash {
            flags::HASH
        } else {
            0
        };
        let again = if again { flags::REPEATED } else { 0 };
        let base = self.chunks.covering(0).map_or(0, |range| range.end);
        let snapshot = (!self.parameters.is_ndn).then(|| Snapshot::of(base, &self.chunks));
        let header = Header {
            kind: Kind::Interest(snapshot),
            flags: kind | named | again,
            pointer: Pointer {
                object: self.object,
                chunk: chunk as u32,
                sequence: number as u32,
            },
        };
        let digest = self.digests.get(&item);
        let payload = digest.map_or(Bytes::new(), |digest| Bytes::copy_from_slice(digest));
        (header, payload)
    }

    /// What is asked for next: what was lost first, then what was never asked for.
    fn next_item(&self) -> Option<Item> {
        if let Some(lost) = self.repeats.first() {
            return Some(*lost);
        }
        let exists = match self.fresh {
            Item::Manifest(_) => true,
            Item::Chunk(chunk) => chunk < self.shape.chunks,
        };
        // Flow control: what is open and what waits for its reader have room (ITP §V, the limit of the consumer buffer).
        let has_room = self.sender.in_flight() + (self.buffer.len() as u64) < self.parameters.buffer_chunks;
        let is_named = self.core.naming == Naming::Sequence || self.digests.contains_key(&self.fresh);
        (exists && has_room && is_named).then_some(self.fresh)
    }

    fn after(&self, item: Item) -> Item {
        match item {
            Item::Manifest(position) if position + 1 < self.shape.inner() => Item::Manifest(position + 1),
            Item::Manifest(_) => Item::Chunk(0),
            Item::Chunk(number) => Item::Chunk(number + 1),
        }
    }

    /// Data has come.
    pub fn on_data(&mut self, now: Time, header: &Header, payload: Bytes) -> Arrival {
        let number = u64::from(header.pointer.chunk);
        let item = if header.flags & flags::MANIFEST != 0 {
            Item::Manifest(number)
        } else {
            Item::Chunk(number)
        };
        let Some(interest) = self.answered(item, header.pointer.sequence) else {
            return Arrival::Rejected;
        };
        self.stats.received_packets += 1;
        let is_good = self.fits(item, &payload);
        let is_sample = !self.parameters.is_ndn || !self.repeated.contains(&item);
        let answer = interest.map_or(Answer::Unknown, |number| {
            self.sender.on_answer(now, number, is_sample)
        });
        let arrival = if is_good {
            self.take(item, payload)
        } else {
            self.refuse(item, answer)
        };
        self.collect_lost();
        self.forget_answered();
        arrival
    }

    /// The number of the Interest that data for `item` answers, while it is remembered: what is too old for that is still good for
    /// its chunk. NDN's data does not say which: it is taken to be the last. None when no such Interest ever left.
    fn answered(&self, item: Item, sequence: u32) -> Option<Option<u64>> {
        let was_asked = item < self.fresh;
        if self.parameters.is_ndn {
            let index = self.asked.iter().rposition(|asked| *asked == item);
            return was_asked.then_some(index.map(|index| self.first_asked + index as u64));
        }
        let next = self.sender.next_number();
        let behind = u64::from((next as u32).wrapping_sub(sequence));
        let number = next.checked_sub(behind).filter(|number| *number < next)?;
        match number.checked_sub(self.first_asked) {
            Some(index) => (self.asked.get(index as usize) == Some(&item)).then_some(Some(number)),
            None => was_asked.then_some(None),
        }
    }

    fn holds(&self, item: Item) -> bool {
        match item {
            Item::Manifest(position) => self.manifests.contains(position),
            Item::Chunk(number) => self.chunks.contains(number),
        }
    }

    /// Is `payload` what `item` should be, as far as that can be told?
    fn fits(&self, item: Item, payload: &Bytes) -> bool {
        if self.holds(item) {
            return true; // a duplicate, whatever it contains
        }
        let right_length = match item {
            Item::Manifest(_) => true,
            Item::Chunk(number) => payload.len() as u64 == self.bytes_of(number),
        };
        let is_named = |digest: &Digest| manifest::digest(payload) == *digest;
        right_length
            && match self.core.naming {
                Naming::Sequence => true,
                Naming::Hash => self.digests.get(&item).is_some_and(is_named),
            }
    }

    fn bytes_of(&self, chunk: u64) -> u64 {
        let each = u64::from(self.core.chunk_bytes);
        each.min(self.core.length.saturating_sub(chunk * each))
    }

    /// Takes what `item` is known to be.
    fn take(&mut self, item: Item, payload: Bytes) -> Arrival {
        self.repeats.remove(&item);
        self.bad_in_a_row = 0;
        if self.holds(item) {
            self.stats.duplicate_packets += 1;
            return Arrival::Taken;
        }
        self.repeated.remove(&item);
        self.digests.remove(&item);
        match item {
            Item::Chunk(number) => {
                self.stats.received_bytes += payload.len() as u64;
                self.chunks.insert(number..number + 1);
                self.buffer.insert(number, payload);
                if number == self.read {
                    Arrival::Readable
                } else {
                    Arrival::Taken
                }
            }
            Item::Manifest(position) => {
                self.manifests.insert(position..position + 1);
                match self.below(position, &payload) {
                    Some((level, index, core)) => {
                        self.learn(level, index, &core.digests);
                        Arrival::Taken
                    }
                    // Its digest is right, so the manifest above is wrong, and nobody has another.
                    None => Arrival::Untrusted,
                }
            }
        }
    }

    /// The manifest at `position`, if it is what its place demands.
    fn below(&self, position: u64, payload: &[u8]) -> Option<(u8, u64, Core)> {
        let (level, index) = self.shape.place(position);
        let (core, length) = Core::parse(payload).ok()?;
        let entries = self.shape.entries(level, index);
        let fits = length == payload.len()
            && core.naming == Naming::Hash
            && (core.level, &core.name, core.chunk_bytes) == (level, &self.core.name, self.core.chunk_bytes)
            && u64::from(core.count) == entries.end - entries.start
            && core.length == covered(&self.core, &self.shape, level, index);
        fits.then_some((level, index, core))
    }

    /// The entries of manifest `index` of `level` are named so.
    fn learn(&mut self, level: u8, index: u64, digests: &[Digest]) {
        let entries = self.shape.entries(level, index);
        for (entry, digest) in entries.zip(digests) {
            let item = match level.checked_sub(1) {
                None => Item::Chunk(entry),
                Some(below) => Item::Manifest(self.shape.position(below, entry)),
            };
            self.digests.insert(item, *digest);
        }
    }

    /// What came for `item` is not what it should be: it is asked for again.
    fn refuse(&mut self, item: Item, answer: Answer) -> Arrival {
        self.stats.corrupted_packets += 1;
        if answer == Answer::Awaited {
            self.repeats.insert(item);
        }
        self.bad_in_a_row += 1;
        if self.bad_in_a_row >= MOST_BAD {
            Arrival::Untrusted
        } else {
            Arrival::Taken
        }
    }

    /// What the sender has taken for lost is asked for again.
    fn collect_lost(&mut self) {
        while let Some(number) = self.sender.take_lost() {
            let index = number.saturating_sub(self.first_asked) as usize;
            if let Some(item) = self.asked.get(index).copied().filter(|item| !self.holds(*item)) {
                self.repeats.insert(item);
            }
        }
    }

    fn forget_answered(&mut self) {
        while self.first_asked < self.sender.first() && self.asked.pop_front().is_some() {
            self.first_asked += 1;
        }
    }

    /// A refusal came for an Interest that is open.
    pub fn is_refusal_for(&self, pointer: &Pointer, is_manifest: bool) -> bool {
        let number = u64::from(pointer.chunk);
        let item = if is_manifest {
            Item::Manifest(number)
        } else {
            Item::Chunk(number)
        };
        self.answered(item, pointer.sequence).is_some() && !self.holds(item)
    }

    /// Counters and estimates. The window is that of the data asked for.
    pub fn stats(&self) -> FlowStats {
        let counters = self.sender.counters();
        FlowStats {
            lost_packets: self.stats.lost_packets + counters.lost_packets,
            timed_out_packets: self.stats.timed_out_packets + counters.timed_out_packets,
            timeouts: self.stats.timeouts + counters.timeouts,
            srtt: self.sender.smoothed_rtt(),
            rto: Some(self.sender.timeout()),
            congestion_window_bytes: self.sender.window_bytes(),
            in_flight_segments: self.sender.in_flight(),
            memory_bytes: self.memory(),
            ..self.stats.clone()
        }
    }

    fn memory(&self) -> u64 {
        let buffered: usize = self.buffer.values().map(Bytes::len).sum();
        let digests = self.digests.len() * (size_of::<Item>() + size_of::<Digest>());
        let asked = self.asked.capacity() * size_of::<Item>();
        let sets = (self.repeats.len() + self.repeated.len()) * size_of::<Item>();
        let held = self.chunks.memory() + self.manifests.memory();
        (buffered + digests + asked + sets + held + self.sender.memory()) as u64
    }
}
