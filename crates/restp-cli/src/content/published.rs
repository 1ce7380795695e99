//! What is published, read where it lies: nothing is copied, and what is kept in memory does not grow with it.

use super::layout;
use super::slots::Slots;
use crate::transfer::SourceError;
use crate::transfer::manifest::Kind;
use crate::transfer::walk::{self, Place};
use bytes::Bytes;
use restp_rivals::itp::manifest::{self, ManifestError, TreeBuilder};
use restp_rivals::itp::node::{Published, Source};
use restp_rivals::itp::trust::Publisher;
use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use thiserror::Error;

/// Chunks that are read together, and how many of such blocks are kept: those that consumers are at, 64 × 180 kB.
const BLOCK_CHUNKS: u64 = 128;
const BLOCKS: usize = 64;

/// Why something cannot be published.
#[derive(Debug, Error)]
pub enum PublishError {
    /// It cannot be read, or is nothing that can be sent.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// No manifest can describe it.
    #[error("it cannot be described: {0}; write another --chunk")]
    Manifest(#[from] ManifestError),
    /// Where manifests are kept.
    #[error("the manifests cannot be kept in a temporary file: {0}; name a folder with room in TMPDIR")]
    Temporary(io::Error),
}

/// Bytes of a file, in the object.
#[derive(Debug)]
struct Extent {
    start: u64,
    bytes: u64,
    place: Place,
}

/// An object on disk.
#[derive(Debug)]
struct OnDisk {
    /// In the order of the object, without empty ones.
    extents: Vec<Extent>,
    tail_start: u64,
    tail: Bytes,
    length: u64,
    chunk_bytes: u64,
    manifests: Slots,
    open: Option<(usize, File)>,
    blocks: VecDeque<(u64, Bytes)>,
    /// Something was changed since.
    has_changed: Arc<AtomicBool>,
}

/// The object that `paths` are, in chunks of `chunk_bytes`, vouched for by `publisher`; and what says that it was changed and can be
/// served no more. `progress` hears how many bytes were read.
///
/// # Errors
/// When something cannot be read, or breaks a rule.
pub fn publish(
    paths: &[PathBuf],
    chunk_bytes: u32,
    publisher: &Publisher,
    mut progress: impl FnMut(u64),
) -> Result<(Published, Arc<AtomicBool>), PublishError> {
    let found = walk::walk(paths, "")?;
    let list = &found.manifest;
    let sizes: Vec<Option<u64>> = (list.entries().iter())
        .map(|entry| match entry.kind {
            Kind::File(bytes) => bytes,
            Kind::Folder | Kind::Link(_) => None,
        })
        .collect();
    let tail = Bytes::from(layout::tail(list).map_err(SourceError::from)?);
    let mut start = 0;
    let mut extents = Vec::new();
    for (place, bytes) in found.places.into_iter().zip(sizes) {
        let Some(bytes) = bytes.filter(|bytes| *bytes > 0) else {
            continue;
        };
        extents.push(Extent { start, bytes, place });
        start += bytes;
    }
    let length = start + tail.len() as u64;
    let name = list
        .named()
        .first()
        .map_or_else(String::new, |name| (*name).to_owned());
    let mut tree = TreeBuilder::new(length, chunk_bytes, name.into())?;
    let file = tempfile::tempfile().map_err(PublishError::Temporary)?;
    let has_changed = Arc::new(AtomicBool::new(false));
    let mut object = OnDisk {
        extents,
        tail_start: start,
        tail,
        length,
        chunk_bytes: chunk_bytes.into(),
        manifests: Slots::new(file, chunk_bytes),
        open: None,
        blocks: VecDeque::new(),
        has_changed: has_changed.clone(),
    };
    for block in 0..length.div_ceil(object.block_bytes()) {
        let bytes = object.read_block(block)?;
        for chunk in bytes.chunks(chunk_bytes as usize) {
            for (position, manifest) in tree.push(manifest::digest(chunk)) {
                object
                    .manifests
                    .put(position, &manifest)
                    .map_err(PublishError::Temporary)?;
            }
        }
        progress(bytes.len() as u64);
    }
    let core = tree.finish().unwrap_or_default();
    let signature = publisher.sign(&manifest::digest(&core));
    Ok((Published::new(&core, signature, Box::new(object))?, has_changed))
}

impl OnDisk {
    fn block_bytes(&self) -> u64 {
        BLOCK_CHUNKS * self.chunk_bytes
    }

    fn read_block(&mut self, block: u64) -> Result<Bytes, SourceError> {
        let start = block * self.block_bytes();
        let end = (start + self.block_bytes()).min(self.length);
        let mut bytes = vec![0; (end - start) as usize];
        let first = self
            .extents
            .partition_point(|extent| extent.start + extent.bytes <= start);
        for index in first..self.extents.len() {
            let extent = &self.extents[index];
            if extent.start >= end {
                break;
            }
            let (from, to) = (extent.start.max(start), (extent.start + extent.bytes).min(end));
            let file = match &self.open {
                Some((open, file)) if *open == index => file,
                _ => &self.open.insert((index, extent.place.open()?)).1,
            };
            let into = &mut bytes[(from - start) as usize..(to - start) as usize];
            let read = file.read_exact_at(into, from - extent.start);
            read.map_err(|source| SourceError::Read {
                path: extent.place.path().to_owned(),
                at: from - extent.start,
                source,
            })?;
            // What was written meanwhile would be what nobody has a digest of.
            extent.place.check(file)?;
        }
        if end > self.tail_start {
            let from = start.max(self.tail_start);
            let tail = &self.tail[(from - self.tail_start) as usize..(end - self.tail_start) as usize];
            bytes[(from - start) as usize..].copy_from_slice(tail);
        }
        Ok(bytes.into())
    }
}

impl Source for OnDisk {
    fn chunk(&mut self, number: u64) -> Option<Bytes> {
        let block = number / BLOCK_CHUNKS;
        let place = match self.blocks.iter().position(|(known, _)| *known == block) {
            Some(place) => place,
            None => {
                let read = self.read_block(block);
                if let Err(error) = &read
                    && !self.has_changed.swap(true, Ordering::Relaxed)
                {
                    crate::output::note(format!("{error}; it is served no more, publish it again"));
                }
                if self.blocks.len() == BLOCKS {
                    self.blocks.pop_front();
                }
                self.blocks.push_back((block, read.ok()?));
                self.blocks.len() - 1
            }
        };
        // The blocks that are used stay.
        if place + BLOCKS / 4 < self.blocks.len() {
            let used = self.blocks.remove(place)?;
            self.blocks.push_back(used);
            return self.cut(number, self.blocks.len() - 1);
        }
        self.cut(number, place)
    }

    fn manifest(&mut self, position: u64) -> Option<Bytes> {
        self.manifests.get(position)
    }
}

impl OnDisk {
    /// Chunk `number` out of the block that is kept at `place`.
    fn cut(&self, number: u64, place: usize) -> Option<Bytes> {
        let (block, bytes) = self.blocks.get(place)?;
        let start = ((number - block * BLOCK_CHUNKS) * self.chunk_bytes) as usize;
        let end = (start + self.chunk_bytes as usize).min(bytes.len());
        (start < end).then(|| bytes.slice(start..end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn an_object_is_its_files_then_the_list_and_no_more_once_a_file_has_changed() {
        let folder = tempfile::tempdir().unwrap();
        let paths: Vec<PathBuf> = ["a", "b", "c"]
            .iter()
            .map(|name| folder.path().join(name))
            .collect();
        let data: Vec<u8> = (0..200_000u32).map(|at| (at * 7 / 3) as u8).collect();
        fs::write(&paths[0], &data[..70_001]).unwrap();
        fs::write(&paths[1], b"").unwrap();
        fs::write(&paths[2], &data[70_001..]).unwrap();
        let publisher = Publisher::from_seed(&[1; 32]).unwrap();
        let mut read = 0;
        let (first, _) = publish(&paths, 300, &publisher, |bytes| read += bytes).unwrap();
        let (again, _) = publish(&paths, 300, &publisher, |_| ()).unwrap();
        assert_eq!(
            first.wanted(),
            again.wanted(),
            "the same files are the same object"
        );
        assert!(read > 200_000 && read < 200_200);

        let found = walk::walk(&paths, "").unwrap();
        let tail = layout::tail(&found.manifest).unwrap();
        let extents = found
            .places
            .into_iter()
            .zip([(0, 70_001), (70_001, 0), (70_001, 129_999)]);
        let extents = extents.filter(|(_, (_, bytes))| *bytes > 0);
        let mut object = OnDisk {
            extents: extents
                .map(|(place, (start, bytes))| Extent { start, bytes, place })
                .collect(),
            tail_start: 200_000,
            length: 200_000 + tail.len() as u64,
            tail: tail.into(),
            chunk_bytes: 300,
            manifests: Slots::new(tempfile::tempfile().unwrap(), 300),
            open: None,
            blocks: VecDeque::new(),
            has_changed: Arc::default(),
        };
        for number in [0, 233, 234, 665, 1, 400] {
            let at = number as usize * 300;
            assert_eq!(object.chunk(number).unwrap(), data[at..at + 300], "{number}");
        }
        let all: Vec<u8> = (0..object.length.div_ceil(300))
            .flat_map(|number| object.chunk(number).unwrap())
            .collect();
        assert!(all[..200_000] == data && all.len() as u64 == object.length);
        object.blocks.clear();
        fs::write(&paths[2], b"shorter").unwrap();
        assert!(object.chunk(0).is_some() && object.chunk(400).is_none());
        assert!(object.has_changed.load(Ordering::Relaxed));
    }
}
