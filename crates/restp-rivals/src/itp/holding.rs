//! What a consumer holds of an object, and what is asked for next (ITP §IV: the status of the consumer buffer). It knows nothing of
//! producers: whoever answers, a chunk is held or missing.
//!
//! With digests the manifests below the root are asked for first, from the top down, and each is checked against the digest and the
//! shape that its place demands before anything of it is used.

use super::manifest::{self, Core, Digest, ManifestError, Naming, Shape};
use super::publication::covered;
use super::wire::Snapshot;
use bytes::Bytes;
use restp_base::ranges::Ranges;
use std::collections::{BTreeMap, BTreeSet};

/// What an Interest is for: a manifest below the root, or a chunk; in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Item {
    /// By its position.
    Manifest(u64),
    /// By its number.
    Chunk(u64),
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

/// What is held of an object.
#[derive(Debug)]
pub(super) struct Holding {
    core: Core,
    shape: Shape,
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
}

impl Holding {
    /// Nothing, of the object whose root manifest is `core`.
    ///
    /// # Errors
    /// When `core` is no root.
    pub fn new(core: &Core) -> Result<Self, ManifestError> {
        let shape = core.shape()?;
        let mut holding = Holding {
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
        self.buffer.len() as u64
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
        if let Some(lost) = self.repeats.first() {
            return Some(*lost);
        }
        let exists = match self.fresh {
            Item::Manifest(_) => true,
            Item::Chunk(chunk) => chunk < self.shape.chunks,
        };
        let is_named = self.core.naming == Naming::Sequence || self.digests.contains_key(&self.fresh);
        (exists && has_room && is_named).then_some(self.fresh)
    }

    /// `item`, which was the next, is asked for. Was it before?
    pub fn on_interest_sent(&mut self, item: Item) -> bool {
        let again = self.repeats.remove(&item);
        if again {
            self.repeated.insert(item);
        } else {
            self.fresh = self.after(item);
        }
        again
    }

    /// It has to be asked for again, unless it has come.
    pub fn on_lost(&mut self, item: Item) {
        if !self.holds(item) {
            self.repeats.insert(item);
        }
    }

    pub fn was_asked(&self, item: Item) -> bool {
        item < self.fresh
    }
    /// It was asked for more than once, so that data alone does not tell which Interest it answers.
    pub fn was_repeated(&self, item: Item) -> bool {
        self.repeated.contains(&item)
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
        let is_named = |digest: &Digest| manifest::digest(payload) == *digest;
        right_length
            && match self.core.naming {
                Naming::Sequence => true,
                Naming::Hash => self.digests.get(&item).is_some_and(is_named),
            }
    }

    /// Takes what `item` is known to be.
    pub fn take(&mut self, item: Item, payload: Bytes) -> Taken {
        self.repeats.remove(&item);
        if self.holds(item) {
            return Taken::Duplicate;
        }
        self.repeated.remove(&item);
        self.digests.remove(&item);
        match item {
            Item::Chunk(number) => {
                self.chunks.insert(number..number + 1);
                self.buffer.insert(number, payload);
                if number == self.read {
                    Taken::Readable
                } else {
                    Taken::New
                }
            }
            Item::Manifest(position) => {
                self.manifests.insert(position..position + 1);
                let Some((level, index, core)) = self.below(position, &payload) else {
                    return Taken::Impossible;
                };
                self.learn(level, index, &core.digests);
                Taken::New
            }
        }
    }

    fn after(&self, item: Item) -> Item {
        match item {
            Item::Manifest(position) if position + 1 < self.shape.inner() => Item::Manifest(position + 1),
            Item::Manifest(_) => Item::Chunk(0),
            Item::Chunk(number) => Item::Chunk(number + 1),
        }
    }

    fn bytes_of(&self, chunk: u64) -> u64 {
        let each = u64::from(self.core.chunk_bytes);
        each.min(self.core.length.saturating_sub(chunk * each))
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

    pub fn memory(&self) -> u64 {
        let buffered: usize = self.buffer.values().map(Bytes::len).sum();
        let digests = self.digests.len() * (size_of::<Item>() + size_of::<Digest>());
        let sets = (self.repeats.len() + self.repeated.len()) * size_of::<Item>();
        (buffered + digests + sets + self.chunks.memory() + self.manifests.memory()) as u64
    }
}
