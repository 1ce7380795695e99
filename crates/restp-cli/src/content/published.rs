//! What is published, read where it lies: nothing is copied, and what is kept in memory does not grow with it.

use super::disk::{BackgroundDisk, Disk, read_at_once};
use super::layout;
use super::slots::Slots;
use crate::transfer::SourceError;
use crate::transfer::manifest::Kind;
use crate::transfer::walk::{self, Place, Unsendable};
use bytes::Bytes;
use restp_rivals::itp::manifest::{self, ManifestError, TreeBuilder};
use restp_rivals::itp::node::{Item, Published, Source, Wanted};
use restp_rivals::itp::trust::{Publisher, Signature};
use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::task::{Poll, ready};
use thiserror::Error;

/// Chunks that are read together, and their bytes: fewer long ones, so that no question costs more than another. And how many of such
/// blocks are kept: those that consumers are at.
const BLOCK_CHUNKS: u64 = 128;
const BLOCK_BYTES: u64 = BLOCK_CHUNKS * super::CHUNK_BYTES as u64;
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
    has_changed: bool,
}

/// An object that was read, and can be served.
#[derive(Debug)]
pub struct Readable {
    core: Bytes,
    signature: Signature,
    object: OnDisk,
}

impl Readable {
    /// What a ticket says of it.
    pub fn wanted(&self) -> Wanted {
        Wanted {
            root: manifest::digest(&self.core),
            publisher: self.signature.key,
        }
    }

    /// As a node serves it, which `wake` makes look at the disk again.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn published(self, wake: impl Fn() + Send + 'static) -> io::Result<Published> {
        let disk = BackgroundDisk::new(self.object, wake)?;
        Published::new(&self.core, self.signature, Box::new(disk)).map_err(io::Error::other)
    }
}

/// The object that `paths` are, in chunks of `chunk_bytes`, vouched for by `publisher`. `progress` hears how many bytes were read.
///
/// # Errors
/// When something cannot be read, or breaks a rule.
pub fn publish(
    paths: &[PathBuf],
    chunk_bytes: u32,
    publisher: &Publisher,
    mut progress: impl FnMut(u64),
) -> Result<Readable, PublishError> {
    let found = walk::walk(paths, "", &Unsendable::Refused.into())?;
    if let Some(path) = found.untold {
        return Err(SourceError::Special(path).into());
    }
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
    let mut object = OnDisk {
        extents,
        tail_start: start,
        tail,
        length,
        chunk_bytes: chunk_bytes.into(),
        manifests: Slots::new(file, chunk_bytes),
        open: None,
        blocks: VecDeque::new(),
        has_changed: false,
    };
    for block in 0..length.div_ceil(object.block_bytes()) {
        let Poll::Ready(bytes) = object.read_block(block, true)? else {
            continue; // it waits
        };
        for chunk in bytes.chunks(chunk_bytes as usize) {
            for (position, manifest) in tree.push(chunk) {
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
    Ok(Readable {
        core,
        signature,
        object,
    })
}

impl OnDisk {
    fn block_chunks(&self) -> u64 {
        (BLOCK_BYTES / self.chunk_bytes).clamp(1, BLOCK_CHUNKS)
    }

    fn block_bytes(&self) -> u64 {
        self.block_chunks() * self.chunk_bytes
    }

    /// The bytes of a block. `Pending`: the disk would have to be waited for, and it does not `wait`.
    fn read_block(&mut self, block: u64, wait: bool) -> Result<Poll<Bytes>, SourceError> {
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
                _ if !wait => return Ok(Poll::Pending),
                _ => &self.open.insert((index, extent.place.open()?)).1,
            };
            let into = &mut bytes[(from - start) as usize..(to - start) as usize];
            let at = from - extent.start;
            if wait {
                let read = file.read_exact_at(into, at);
                read.map_err(|source| SourceError::Read {
                    path: extent.place.path().to_owned(),
                    at,
                    source,
                })?;
            } else if !read_at_once(file, into, at) {
                return Ok(Poll::Pending);
            }
            // What was written meanwhile would be what nobody has a digest of.
            extent.place.check(file)?;
        }
        if end > self.tail_start {
            let from = start.max(self.tail_start);
            let tail = &self.tail[(from - self.tail_start) as usize..(end - self.tail_start) as usize];
            bytes[(from - start) as usize..].copy_from_slice(tail);
        }
        Ok(Poll::Ready(bytes.into()))
    }

    fn chunk(&mut self, number: u64, wait: bool) -> Poll<Option<Bytes>> {
        let block = number / self.block_chunks();
        let mut place = match self.blocks.iter().position(|(known, _)| *known == block) {
            Some(place) => place,
            None => {
                let bytes = match self.read_block(block, wait) {
                    Ok(bytes) => ready!(bytes),
                    Err(error) => {
                        if !std::mem::replace(&mut self.has_changed, true) {
                            crate::output::note(format!("{error}; it is served no more, publish it again"));
                        }
                        return Poll::Ready(None);
                    }
                };
                if self.blocks.len() == BLOCKS {
                    self.blocks.pop_front();
                }
                self.blocks.push_back((block, bytes));
                self.blocks.len() - 1
            }
        };
        // The blocks that are used stay.
        if place + BLOCKS / 4 < self.blocks.len()
            && let Some(used) = self.blocks.remove(place)
        {
            place = self.blocks.len();
            self.blocks.push_back(used);
        }
        Poll::Ready(self.cut(number, place))
    }

    /// Chunk `number` out of the block that is kept at `place`.
    fn cut(&self, number: u64, place: usize) -> Option<Bytes> {
        let (block, bytes) = self.blocks.get(place)?;
        let start = ((number - block * self.block_chunks()) * self.chunk_bytes) as usize;
        let end = (start + self.chunk_bytes as usize).min(bytes.len());
        (start < end).then(|| bytes.slice(start..end))
    }
}

impl Disk for OnDisk {
    type Key = Item;

    fn read(&mut self, item: &Item, wait: bool) -> Poll<Option<Bytes>> {
        match *item {
            Item::Chunk(number) => self.chunk(number, wait),
            Item::Manifest(position) if wait => Poll::Ready(self.manifests.get(position)),
            Item::Manifest(position) => match self.manifests.get_at_once(position) {
                None => Poll::Pending,
                found => Poll::Ready(found),
            },
        }
    }
}

impl<D: Disk<Key = Item>> Source for BackgroundDisk<D> {
    fn chunk(&mut self, number: u64) -> Poll<Option<Bytes>> {
        self.poll_read(&Item::Chunk(number))
    }

    fn manifest(&mut self, position: u64) -> Poll<Option<Bytes>> {
        self.poll_read(&Item::Manifest(position))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn chunk(object: &mut OnDisk, number: u64) -> Option<Bytes> {
        match object.chunk(number, true) {
            Poll::Ready(found) => found,
            Poll::Pending => panic!("it waits"),
        }
    }

    #[test]
    fn whatever_the_chunk_no_question_costs_more_than_a_block() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), vec![7; 300_000]).unwrap();
        let publisher = Publisher::from_seed(&[1; 32]).unwrap();
        for chunk_bytes in [1384, 65_487] {
            let paths = [file.path().to_owned()];
            let mut object = publish(&paths, chunk_bytes, &publisher, |_| ()).unwrap().object;
            assert_eq!(chunk(&mut object, 1).unwrap().len(), chunk_bytes as usize);
            let (_, block) = object.blocks.pop_front().unwrap();
            let most = BLOCK_BYTES as usize;
            assert!(block.len() <= most && block.len() > most / 2, "{}", block.len());
        }
    }

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
        let first = publish(&paths, 300, &publisher, |bytes| read += bytes).unwrap();
        let again = publish(&paths, 300, &publisher, |_| ()).unwrap();
        assert_eq!(
            first.wanted(),
            again.wanted(),
            "the same files are the same object"
        );
        assert!(read > 200_000 && read < 200_200);

        let found = walk::walk(&paths, "", &Unsendable::Refused.into()).unwrap();
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
            has_changed: false,
        };
        for number in [0, 233, 234, 665, 1, 400] {
            let at = number as usize * 300;
            assert_eq!(
                chunk(&mut object, number).unwrap(),
                data[at..at + 300],
                "{number}"
            );
        }
        let all: Vec<u8> = (0..object.length.div_ceil(300))
            .flat_map(|number| chunk(&mut object, number).unwrap())
            .collect();
        assert!(all[..200_000] == data && all.len() as u64 == object.length);
        object.blocks.clear();
        fs::write(&paths[2], b"shorter").unwrap();
        assert!(chunk(&mut object, 0).is_some() && chunk(&mut object, 400).is_none());
        assert!(object.has_changed);
    }
}
