//! How the manifests of an object are arranged. It follows from the length of the object, the size of a chunk and the length of the
//! name alone.

use super::{
    DIGEST_BYTES, FIXED_BYTES, HIGHEST_LEVEL, LARGEST_CHUNK, LONGEST_NAME, ManifestError, Naming, padded,
};

/// Bytes of header before a manifest's body.
const HEADER_BYTES: usize = 28;
/// Entries that a root leaves out, so that a trailer with a signature fits behind it: 104 bytes of 128.
const ROOM_FOR_TRAILER: u64 = 4;

/// How the manifests of an object are arranged: how many there are at each level, from the root down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Chunks.
    pub chunks: u64,
    /// Entries of a full manifest.
    pub(super) fan_out: u64,
    /// Manifests at each level from 0 on; the last is the root's, which is 1. Empty: a single one, without digests.
    levels: Vec<u64>,
}

impl Shape {
    /// That of an object of `length` bytes.
    ///
    /// # Errors
    /// When a chunk, the name or the number of chunks is out of bounds.
    pub fn new(
        naming: Naming,
        length: u64,
        chunk_bytes: u32,
        name_bytes: usize,
    ) -> Result<Shape, ManifestError> {
        let value = |field, value| Err(ManifestError::Value { field, value });
        if !(1..=LARGEST_CHUNK).contains(&chunk_bytes) {
            return value("the chunk size", u64::from(chunk_bytes));
        }
        if name_bytes > LONGEST_NAME {
            return value("the name length", name_bytes as u64);
        }
        let chunks = length.div_ceil(u64::from(chunk_bytes));
        if chunks > u64::from(u32::MAX) {
            return value("the object length", length);
        }
        let mut shape = Shape {
            chunks,
            fan_out: 0,
            levels: Vec::new(),
        };
        if naming == Naming::Sequence {
            return Ok(shape);
        }
        let room = chunk_bytes as usize;
        let fan_out = room.saturating_sub(HEADER_BYTES + FIXED_BYTES + padded(name_bytes)) / DIGEST_BYTES;
        if fan_out < 2 {
            return value("the chunk size for digests", u64::from(chunk_bytes));
        }
        shape.fan_out = fan_out as u64;
        // Small manifests are for tests: their trailers take a packet of more than a chunk.
        let of_root = match shape.fan_out.checked_sub(ROOM_FOR_TRAILER) {
            Some(most) if most >= ROOM_FOR_TRAILER => most,
            _ => shape.fan_out,
        };
        let mut entries = chunks;
        loop {
            let count = entries.div_ceil(shape.fan_out).max(1);
            shape.levels.push(count);
            if count == 1 && entries <= of_root {
                break;
            }
            entries = count;
        }
        if shape.levels.len() > usize::from(HIGHEST_LEVEL) + 1 {
            return value("the object length for such small chunks", length);
        }
        Ok(shape)
    }

    /// The level of the root.
    pub fn root_level(&self) -> u8 {
        self.levels.len().saturating_sub(1) as u8
    }

    /// Manifests below the root.
    pub fn inner(&self) -> u64 {
        let below = self.levels.len().saturating_sub(1);
        self.levels[..below].iter().sum()
    }

    /// Position of manifest `index` of `level` among those below the root, from the top down.
    pub fn position(&self, level: u8, index: u64) -> u64 {
        let root = usize::from(self.root_level());
        let above: u64 = self.levels[usize::from(level) + 1..root].iter().sum();
        above + index
    }

    /// Level and index of the manifest at `position`, which is below [`Shape::inner`].
    pub fn place(&self, position: u64) -> (u8, u64) {
        let mut index = position;
        for level in (0..self.root_level()).rev() {
            let count = self.levels[usize::from(level)];
            if index < count {
                return (level, index);
            }
            index -= count;
        }
        (0, index)
    }

    /// How many manifests `level` has.
    pub fn manifests(&self, level: u8) -> u64 {
        self.levels.get(usize::from(level)).copied().unwrap_or_default()
    }

    /// The entries of manifest `index` of `level`: chunks, or manifests one level below.
    pub fn entries(&self, level: u8, index: u64) -> std::ops::Range<u64> {
        let all = match level.checked_sub(1) {
            None => self.chunks,
            Some(below) => self.manifests(below),
        };
        let first = index * self.fan_out;
        first.min(all)..(first + self.fan_out).min(all)
    }

    /// The chunks below manifest `index` of `level`.
    pub fn chunks_below(&self, level: u8, index: u64) -> std::ops::Range<u64> {
        let each = self.fan_out.saturating_pow(u32::from(level) + 1);
        let first = index.saturating_mul(each);
        first.min(self.chunks)..first.saturating_add(each).min(self.chunks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// ITP 2.2: 2465 chunks, a limit of 1500 bytes, a name of 32.
    #[test]
    fn the_tree_of_the_specification() {
        let shape = Shape::new(Naming::Hash, 3_697_500, 1500, 32).expect("possible");
        assert_eq!((shape.fan_out, shape.levels.as_slice()), (44, &[57, 2, 1][..]));
        assert_eq!((shape.root_level(), shape.inner()), (2, 59));
        assert_eq!(shape.entries(2, 0), 0..2);
        assert_eq!(shape.entries(1, 1), 44..57);
        assert_eq!(shape.entries(0, 56), 2464..2465);
        assert_eq!(shape.chunks_below(1, 1), 1936..2465);
        let places: Vec<_> = [0, 1, 2, 58].map(|position| shape.place(position)).to_vec();
        assert_eq!(places, [(1, 0), (1, 1), (0, 0), (0, 56)]);
        for position in 0..59 {
            let (level, index) = shape.place(position);
            assert_eq!(shape.position(level, index), position);
        }
    }

    #[test]
    fn a_root_leaves_room_for_a_signature() {
        let name = 12;
        for chunks in [39u64, 40, 41, 43, 44, 45, 44 * 40, 44 * 40 + 1, 44 * 44] {
            let shape = Shape::new(Naming::Hash, chunks * 1460, 1460, name).expect("possible");
            let root = shape.root_level();
            let entries = shape.entries(root, 0);
            let message =
                HEADER_BYTES + FIXED_BYTES + name + 32 * (entries.end - entries.start) as usize + 104;
            assert!(message <= 1460, "{chunks}: {message}");
        }
    }

    #[test]
    fn the_largest_object_has_as_many_chunks_as_there_are_numbers() {
        let most = u64::from(u32::MAX);
        let shape = Shape::new(Naming::Hash, most * 1452, 1452, 32).expect("possible");
        assert_eq!((shape.chunks, shape.root_level()), (most, 5));
        assert!(shape.inner() < most);
        assert!(Shape::new(Naming::Hash, most * 1452 + 1, 1452, 32).is_err());
        let small = Shape::new(Naming::Hash, most * 256, 256, 32);
        assert!(small.is_err(), "more than nine levels");
    }

    proptest! {
        #[test]
        fn every_tree_covers_its_chunks_once(chunks in 1u64..5000, fan_out in 2u64..50) {
            let chunk_bytes = (HEADER_BYTES + FIXED_BYTES) as u32 + 32 * fan_out as u32;
            let length = chunks * u64::from(chunk_bytes);
            let Ok(shape) = Shape::new(Naming::Hash, length, chunk_bytes, 0) else {
                prop_assert!(fan_out < 4, "only trees of small manifests are too high");
                return Ok(());
            };
            prop_assert_eq!(shape.manifests(shape.root_level()), 1);
            for level in 0..=shape.root_level() {
                let below = if level == 0 { shape.chunks } else { shape.manifests(level - 1) };
                let mut next = 0;
                for index in 0..shape.manifests(level) {
                    let entries = shape.entries(level, index);
                    prop_assert!(entries.start == next && entries.end > next);
                    next = entries.end;
                }
                prop_assert_eq!(next, below);
            }
        }
    }
}
