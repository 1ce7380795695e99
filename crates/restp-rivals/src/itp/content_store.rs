//! Chunks by name (ITP §III.B): what a cache keeps. Names are globally unique, because they begin with the producer's address and port
//! (ITP §III.C). Beyond its size it forgets what was used least recently.

use bytes::Bytes;
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// A store holds no more chunks than if each had so many bytes: what is remembered of a chunk takes memory too, and an empty one is one.
const LEAST_BYTES: u64 = 64;

/// The name of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Name {
    /// Who published it.
    pub producer: SocketAddr,
    /// The object.
    pub object: u64,
    /// It is a manifest.
    pub is_manifest: bool,
    /// Its number.
    pub chunk: u32,
}

/// What a store counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreCounters {
    /// Questions it answered.
    pub hits: u64,
    /// Questions it could not answer.
    pub misses: u64,
    /// Chunks it has forgotten.
    pub evicted: u64,
}

/// A store of so many bytes.
#[derive(Debug)]
pub struct ContentStore {
    limit: u64,
    bytes: u64,
    /// Each with the moment it was used last.
    chunks: BTreeMap<Name, (u64, u8, Bytes)>,
    by_use: BTreeMap<u64, Name>,
    uses: u64,
    counters: StoreCounters,
}

impl ContentStore {
    /// An empty one that holds `limit` bytes of chunks at most.
    pub fn new(limit: u64) -> Self {
        ContentStore {
            limit,
            bytes: 0,
            chunks: BTreeMap::new(),
            by_use: BTreeMap::new(),
            uses: 0,
            counters: StoreCounters::default(),
        }
    }

    /// Keeps `payload`, which came with these flags, unless it alone is too large. What is there already stays: names are of
    /// immutable content.
    pub fn insert(&mut self, name: Name, flags: u8, payload: Bytes) {
        let bytes = payload.len() as u64;
        if bytes > self.limit || self.chunks.contains_key(&name) {
            return;
        }
        self.uses += 1;
        self.bytes += bytes;
        self.by_use.insert(self.uses, name);
        self.chunks.insert(name, (self.uses, flags, payload));
        let most = self.limit.div_ceil(LEAST_BYTES);
        while (self.bytes > self.limit || self.chunks.len() as u64 > most)
            && let Some((_, oldest)) = self.by_use.pop_first()
        {
            if let Some((_, _, forgotten)) = self.chunks.remove(&oldest) {
                self.bytes -= forgotten.len() as u64;
                self.counters.evicted += 1;
            }
        }
    }

    /// The chunk called `name` with the flags it came with, which is now the one used last.
    pub fn get(&mut self, name: &Name) -> Option<(u8, Bytes)> {
        let Some((used, flags, payload)) = self.chunks.get_mut(name) else {
            self.counters.misses += 1;
            return None;
        };
        self.counters.hits += 1;
        self.uses += 1;
        self.by_use.remove(used);
        self.by_use.insert(self.uses, *name);
        *used = self.uses;
        Some((*flags, payload.clone()))
    }

    /// The same, which is not counted as a use.
    pub fn peek(&self, name: &Name) -> Option<(u8, Bytes)> {
        let (_, flags, payload) = self.chunks.get(name)?;
        Some((*flags, payload.clone()))
    }

    /// Forgets the chunk called `name`.
    pub fn remove(&mut self, name: &Name) {
        if let Some((used, _, payload)) = self.chunks.remove(name) {
            self.by_use.remove(&used);
            self.bytes -= payload.len() as u64;
        }
    }

    /// Bytes of chunks it holds.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// What it counted.
    pub fn counters(&self) -> StoreCounters {
        self.counters
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn name(chunk: u32) -> Name {
        Name {
            producer: SocketAddr::from(([10, 0, 0, 1], 4000)),
            object: 1,
            is_manifest: false,
            chunk,
        }
    }

    #[test]
    fn beyond_its_size_it_forgets_what_was_used_least_recently() {
        let mut store = ContentStore::new(300);
        (0..3).for_each(|chunk| store.insert(name(chunk), 0, Bytes::from(vec![0; 100])));
        assert!(store.get(&name(0)).is_some());
        store.insert(name(3), 0, Bytes::from(vec![0; 100]));
        let held = [0, 1, 2, 3].map(|chunk| store.get(&name(chunk)).is_some());
        assert_eq!(held, [true, false, true, true]);
        let counted = StoreCounters {
            hits: 4,
            misses: 1,
            evicted: 1,
        };
        assert_eq!((store.counters(), store.bytes()), (counted, 300));
    }

    #[test]
    fn what_never_fits_evicts_nothing_and_names_are_of_one_content() {
        let mut store = ContentStore::new(100);
        store.insert(name(0), 7, Bytes::from_static(b"first"));
        store.insert(name(1), 0, Bytes::from(vec![0; 101]));
        store.insert(name(0), 0, Bytes::from_static(b"other"));
        assert_eq!(store.get(&name(0)), Some((7, Bytes::from_static(b"first"))));
        store.remove(&name(0));
        assert_eq!((store.get(&name(0)), store.bytes()), (None, 0));
    }

    #[test]
    fn empty_chunks_are_bounded_too() {
        let mut store = ContentStore::new(6400);
        (0..1000).for_each(|chunk| store.insert(name(chunk), 0, Bytes::new()));
        assert_eq!((store.chunks.len(), store.counters().evicted), (100, 900));
        assert!(store.get(&name(999)).is_some() && store.get(&name(899)).is_none());
    }

    proptest! {
        #[test]
        fn it_never_holds_more_than_its_size(steps in prop::collection::vec((0u32..30, 0usize..60, any::<bool>()), 0..200)) {
            let mut store = ContentStore::new(200);
            for (chunk, bytes, asks) in steps {
                if asks {
                    store.get(&name(chunk));
                } else {
                    store.insert(name(chunk), 0, Bytes::from(vec![0; bytes]));
                }
                let held: u64 = store.chunks.values().map(|(_, _, payload)| payload.len() as u64).sum();
                prop_assert!(store.bytes() == held && held <= 200);
                prop_assert_eq!(store.chunks.len(), store.by_use.len());
            }
        }
    }
}
