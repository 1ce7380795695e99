//! What a consumer holds of an object, and what is asked for next (ITP §IV: the status of the consumer buffer). It knows nothing of
//! producers: whoever answers, a chunk is held or missing.
//!
//! With digests a manifest is asked for before the chunks below it, from the top down, and no further ahead of them than a window
//! reaches: what is kept does not grow with the object. Each is checked against the digest and the shape that its place demands before
//! anything of it is used.

use super::manifest::{Core, Digest, Hash, ManifestError, Naming, Shape, covered};
use super::wire::Snapshot;
use bytes::Bytes;
use restp_base::ranges::Ranges;
use restp_base::slices::{Held, Slices};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// What an Interest is for: a manifest below the root, or a chunk; in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Item {
    /// By its position.
    Manifest(u64),
    /// By its number.
    Chunk(u64),
}

/// How what is held is handed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Delivery {
    /// Chunks, in their order.
    InOrder,
    /// Chunks and manifests as they come, each with its place.
    AsHeld,
}

/// What has become of a payload that fits its item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    /// It is held from now on.
    New,
    /// It is the next that its reader waits for.
    Readable,
    /// It was held before.
    Duplicate,
    /// A manifest that its digest names and its place does not allow: the one above is wrong, and nobody has another.
    Impossible,
}

/// So many receive buffers are kept by what waits for its reader, of so many bytes: as much as one receive can bring.
const MOST_BUFFERS: usize = 512;
const BUFFER_BYTES: usize = 1 << 16;

/// What is held of an object.
#[derive(Debug)]
pub(super) struct Holding {
    core: Core,
    shape: Shape,
    /// Lost, and not asked for again yet.
    retransmissions: BTreeSet<Item>,
    /// Asked for more than once, and not held.
    retransmitted: BTreeSet<Item>,
    /// Never asked for before: the lowest chunk, and the lowest manifest of each level below the root.
    fresh_chunk: u64,
    fresh_manifests: Vec<u64>,
    /// Manifests are asked for while the first chunk below them is less than this beyond `fresh_chunk`.
    ahead: u64,
    delivery: Delivery,
    /// Of items not held whose digests are known.
    digests: BTreeMap<Item, Digest>,
    manifests: Ranges,
    chunks: Ranges,
    /// The consumer buffer: held and not read.
    buffer: BTreeMap<u64, Bytes>,
    /// The same where the order does not matter.
    arrived: VecDeque<(Item, Held)>,
    slices: Slices<MOST_BUFFERS, BUFFER_BYTES>,
    /// Chunks that were read.
    read: u64,
}

impl Holding {
    /// Nothing, of the object whose root manifest is `core`. Up to `window` chunks are asked for at a time.
    ///
    /// # Errors
    /// When `core` is no root.
    pub fn new(core: &Core, window: u64, delivery: Delivery) -> Result<Self, ManifestError> {
        let shape = core.shape()?;
        let mut holding = Holding {
            retransmissions: BTreeSet::new(),
            retransmitted: BTreeSet::new(),
            fresh_chunk: 0,
            fresh_manifests: vec![0; usize::from(shape.root_level())],
            // A manifest is there when the window gets to what is below it.
            ahead: window.saturating_mul(2),
            delivery,
            arrived: VecDeque::new(),
            slices: Slices::default(),
            digests: BTreeMap::new(),
            manifests: Ranges::new(),
            chunks: Ranges::new(),
            buffer: BTreeMap::new(),
            read: 0,
            core: Core {
                digests: Vec::new(),
                ..core.clone()
            },
            shape,
        };
        holding.learn(core.level, 0, &core.digests);
        Ok(holding)
    }

    /// Everything is held.
    pub fn is_complete(&self) -> bool {
        self.chunks.total() == self.shape.chunks
    }
    /// Bytes of the chunks that are held.
    pub fn held_bytes(&self) -> u64 {
        (self.chunks.total() * u64::from(self.core.chunk_bytes)).min(self.core.length)
    }
    /// Everything was read.
    pub fn is_read(&self) -> bool {
        self.read == self.shape.chunks
    }
    pub fn chunk_bytes(&self) -> u32 {
        self.core.chunk_bytes
    }
    pub fn naming(&self) -> Naming {
        self.core.naming
    }
    pub fn digest(&self, item: Item) -> Option<&Digest> {
        self.digests.get(&item)
    }
    /// Chunks that are held and not read.
    pub fn buffered(&self) -> u64 {
        (self.buffer.len() + self.arrived.len()) as u64
    }

    /// The next that has come, where the order does not matter.
    pub fn take_arrived(&mut self) -> Option<(Item, Bytes)> {
        let (item, held) = self.arrived.pop_front()?;
        Some((item, self.slices.release(held)))
    }

    /// The next bytes of the object, in order.
    pub fn read(&mut self) -> Option<Bytes> {
        let chunk = self.buffer.remove(&self.read)?;
        self.read += 1;
        Some(chunk)
    }

    /// For an Interest: the acknowledgement vector.
    pub fn snapshot(&self) -> Snapshot {
        let base = self.chunks.covering(0).map_or(0, |range| range.end);
        Snapshot::of(base, &self.chunks)
    }

    /// What is asked for next: what was lost first, then what was never asked for, if its reader has room.
    pub fn next(&self, has_room: bool) -> Option<Item> {
        if let Some(lost) = self.retransmissions.first() {
            return Some(*lost);
        }
        self.next_fresh().filter(|_| has_room)
    }

    /// The next that was never asked for.
    pub fn next_fresh(&self) -> Option<Item> {
        let chunk = Item::Chunk(self.fresh_chunk);
        let exists = self.fresh_chunk < self.shape.chunks;
        let is_named = self.core.naming == Naming::Sequence || self.digests.contains_key(&chunk);
        self.next_manifest()
            .or_else(|| (exists && is_named).then_some(chunk))
    }

    /// From the top down, those that are named and whose chunks are asked for soon.
    fn next_manifest(&self) -> Option<Item> {
        let reach = self.fresh_chunk.saturating_add(self.ahead);
        for (level, &index) in self.fresh_manifests.iter().enumerate().rev() {
            let level = level as u8;
            if index < self.shape.manifests(level) && self.shape.chunks_below(level, index).start < reach {
                let item = Item::Manifest(self.shape.position(level, index));
                if self.digests.contains_key(&item) {
                    return Some(item);
                }
            }
        }
        None
    }

    /// `item`, which was the next, is asked for. Was it before?
    pub fn on_interest_sent(&mut self, item: Item) -> bool {
        let again = self.retransmissions.remove(&item);
        if again {
            self.retransmitted.insert(item);
            return again;
        }
        match item {
            Item::Chunk(number) => self.fresh_chunk = number + 1,
            Item::Manifest(position) => {
                let (level, index) = self.shape.place(position);
                if let Some(fresh) = self.fresh_manifests.get_mut(usize::from(level)) {
                    *fresh = index + 1;
                }
            }
        }
        again
    }

    /// It has to be asked for again, unless it has come.
    pub fn on_lost(&mut self, item: Item) {
        if !self.holds(item) {
            self.retransmissions.insert(item);
        }
    }

    pub fn was_asked(&self, item: Item) -> bool {
        match item {
            Item::Chunk(number) => number < self.fresh_chunk,
            Item::Manifest(position) if position < self.shape.inner() => {
                let (level, index) = self.shape.place(position);
                (self.fresh_manifests.get(usize::from(level))).is_some_and(|fresh| index < *fresh)
            }
            Item::Manifest(_) => false,
        }
    }
    /// It was asked for more than once, so that data alone does not tell which Interest it answers.
    pub fn was_retransmitted(&self, item: Item) -> bool {
        self.retransmitted.contains(&item)
    }

    pub fn holds(&self, item: Item) -> bool {
        match item {
            Item::Manifest(position) => self.manifests.contains(position),
            Item::Chunk(number) => self.chunks.contains(number),
        }
    }

    /// Is `payload` what `item` should be, as far as that can be told?
    pub fn fits(&self, item: Item, payload: &Bytes) -> bool {
        if self.holds(item) {
            return true; // a duplicate, whatever it contains
        }
        let right_length = match item {
            Item::Manifest(_) => true,
            Item::Chunk(number) => payload.len() as u64 == self.bytes_of(number),
        };
        let hash = match item {
            Item::Manifest(_) => Hash::Sha256,
            Item::Chunk(_) => self.core.hash,
        };
        let is_named = |digest: &Digest| hash.digest(payload) == *digest;
        right_length
            && match self.core.naming {
                Naming::Sequence => true,
                Naming::Hash => self.digests.get(&item).is_some_and(is_named),
            }
    }

    /// Takes what `item` is known to be. `is_new`: it is handed on, because its reader does not have it.
    pub fn take(&mut self, item: Item, payload: Bytes, is_new: bool) -> Taken {
        self.retransmissions.remove(&item);
        if self.holds(item) {
            return Taken::Duplicate;
        }
        self.retransmitted.remove(&item);
        self.digests.remove(&item);
        let taken = match item {
            Item::Chunk(number) => {
                self.chunks.insert(number..number + 1);
                Taken::New
            }
            Item::Manifest(position) => {
                self.manifests.insert(position..position + 1);
                let Some((level, index, core)) = self.below(position, &payload) else {
                    return Taken::Impossible;
                };
                self.learn(level, index, &core.digests);
                Taken::New
            }
        };
        match (self.delivery, item) {
            (Delivery::AsHeld, _) if is_new => {
                self.arrived.push_back((item, self.slices.hold(payload)));
            }
            (Delivery::InOrder, Item::Chunk(number)) => {
                self.buffer.insert(number, payload);
                if number == self.read {
                    return Taken::Readable;
                }
            }
            _ => {}
        }
        taken
    }

    fn bytes_of(&self, chunk: u64) -> u64 {
        let each = u64::from(self.core.chunk_bytes);
        each.min(self.core.length.saturating_sub(chunk * each))
    }

    /// The manifest at `position`, if it is what its place demands.
    fn below(&self, position: u64, payload: &[u8]) -> Option<(u8, u64, Core)> {
        let (level, index) = self.shape.place(position);
        let (core, length) = Core::parse(payload).ok()?;
        // How many entries it has follows from these (`Core::parse`).
        let fits = length == payload.len()
            && (core.naming, core.hash) == (Naming::Hash, self.core.hash)
            && (core.level, &core.name, core.chunk_bytes) == (level, &self.core.name, self.core.chunk_bytes)
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

    pub fn memory(&self) -> u64 {
        let arrived = self.arrived.iter().map(|(_, payload)| payload.size());
        let buffered: usize = self.buffer.values().map(Bytes::len).chain(arrived).sum();
        let digests = self.digests.len() * (size_of::<Item>() + size_of::<Digest>());
        let sets = (self.retransmissions.len() + self.retransmitted.len()) * size_of::<Item>();
        (buffered + digests + sets + self.chunks.memory() + self.manifests.memory()) as u64
    }
}
