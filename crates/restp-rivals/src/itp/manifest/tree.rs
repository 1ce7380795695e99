//! The manifests of an object, made from its chunks as they come: what is kept is one unfinished manifest for each
//! level, however long the object.

use super::{Core, Digest, Hash, ManifestError, Shape, digest};
use bytes::Bytes;

/// The tree of one object, from the first chunk on.
#[derive(Debug)]
pub struct TreeBuilder {
    root: Core,
    shape: Shape,
    /// For each level, how many manifests are finished, and the entries of the next.
    levels: Vec<(u64, Vec<Digest>)>,
    finished: Option<Bytes>,
}

impl TreeBuilder {
    /// Of an object of `length` bytes called `name`, whose chunks are named by digests.
    ///
    /// # Errors
    /// When no manifest can describe it.
    pub fn new(length: u64, chunk_bytes: u32, name: Bytes) -> Result<Self, ManifestError> {
        let shape = Shape::new(super::Naming::Hash, length, chunk_bytes, name.len())?;
        let root = Core {
            naming: super::Naming::Hash,
            hash: Hash::fastest(chunk_bytes as usize),
            level: shape.root_level(),
            length,
            chunk_bytes,
            count: 0,
            name,
            digests: Vec::new(),
        };
        Ok(TreeBuilder {
            levels: vec![(0, Vec::new()); usize::from(root.level) + 1],
            root,
            shape,
            finished: None,
        })
    }

    /// How its manifests are arranged.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Takes the next chunk. Returns the manifests below the root that are finished with it, by their positions.
    pub fn push(&mut self, chunk: &[u8]) -> Vec<(u64, Bytes)> {
        let mut finished = Vec::new();
        let mut entry = self.root.hash.digest(chunk);
        for level in 0..=self.root.level {
            let (index, entries) = &mut self.levels[usize::from(level)];
            entries.push(entry);
            let all = self.shape.entries(level, *index);
            if (entries.len() as u64) < all.end - all.start {
                break;
            }
            let core: Bytes = self.close(level).into();
            if level == self.root.level {
                self.finished = Some(core);
                break;
            }
            entry = digest(&core);
            let index = self.levels[usize::from(level)].0 - 1;
            finished.push((self.shape.position(level, index), core));
        }
        finished
    }

    /// The core of the root, when every chunk has come.
    pub fn finish(mut self) -> Option<Bytes> {
        match self.shape.chunks {
            0 => Some(self.close(0).into()),
            _ => self.finished,
        }
    }

    fn close(&mut self, level: u8) -> Vec<u8> {
        let (index, entries) = &mut self.levels[usize::from(level)];
        let core = Core {
            level,
            length: covered(&self.root, &self.shape, level, *index),
            count: entries.len() as u32,
            digests: std::mem::take(entries),
            ..self.root.clone()
        };
        *index += 1;
        core.emit()
    }
}

/// Bytes of the object below manifest `index` of `level`.
pub(in crate::itp) fn covered(root: &Core, shape: &Shape, level: u8, index: u64) -> u64 {
    let chunks = shape.chunks_below(level, index);
    let chunk = u64::from(root.chunk_bytes);
    (chunks.end * chunk).min(root.length) - (chunks.start * chunk).min(root.length)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A consumer reads in the root how its chunks are named.
    #[test]
    fn long_chunks_are_named_by_blake3_and_the_root_says_so() {
        for (chunk_bytes, number, hash) in [(4096, 1, Hash::Sha256), (4097, 2, Hash::Blake3)] {
            let chunk = vec![7; chunk_bytes];
            let mut tree = TreeBuilder::new(chunk_bytes as u64, chunk_bytes as u32, Bytes::new()).unwrap();
            assert!(tree.push(&chunk).is_empty());
            let root = tree.finish().unwrap();
            assert_eq!(root[2], number, "{chunk_bytes}");
            assert_eq!(root[root.len() - 32..], hash.digest(&chunk), "{chunk_bytes}");
        }
    }
}
