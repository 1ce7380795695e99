//! A producer's object (ITP §III.A: manifest, pointer to the data, nexus timeout): the same for every consumer, and nothing in it
//! about any of them.

use super::manifest::{self, Core, Hash, ManifestError, Naming, Shape, Trailer, TreeBuilder};
use super::wire::{Pointer, Refusal, flags};
use bytes::{Bytes, BytesMut};
use restp_base::time::{Duration, Time};
use std::collections::BTreeSet;
use std::net::IpAddr;

/// An object under construction: what was written, cut into chunks as it comes.
#[derive(Debug)]
pub(super) struct Draft {
    chunk_bytes: usize,
    chunks: Vec<Bytes>,
    /// The beginning of the next chunk.
    rest: BytesMut,
    length: u64,
}

impl Draft {
    pub fn new(chunk_bytes: u32) -> Self {
        Draft {
            chunk_bytes: chunk_bytes as usize,
            chunks: Vec::new(),
            rest: BytesMut::new(),
            length: 0,
        }
    }

    pub fn length(&self) -> u64 {
        self.length
    }

    /// Adds `data`. Whole chunks in it are shared, not copied.
    pub fn push(&mut self, mut data: Bytes) {
        self.length += data.len() as u64;
        if !self.rest.is_empty() {
            let missing = (self.chunk_bytes - self.rest.len()).min(data.len());
            self.rest.extend_from_slice(&data.split_to(missing));
            if self.rest.len() < self.chunk_bytes {
                return;
            }
            let full = std::mem::take(&mut self.rest);
            self.chunks.push(full.freeze());
        }
        while data.len() >= self.chunk_bytes {
            self.chunks.push(data.split_to(self.chunk_bytes));
        }
        self.rest.extend_from_slice(&data);
    }

    fn finish(mut self) -> (Vec<Bytes>, u64) {
        if !self.rest.is_empty() {
            self.chunks.push(self.rest.freeze());
        }
        (self.chunks, self.length)
    }
}

/// A manifest control block.
#[derive(Debug)]
pub(super) struct Publication {
    object: u64,
    /// Core and trailer of the root.
    body: Bytes,
    naming: Naming,
    chunks: Vec<Bytes>,
    /// The manifests below the root, from the top down.
    manifests: Vec<Bytes>,
    /// Who may have it; nobody named: anyone.
    authorised: BTreeSet<IpAddr>,
    timeout: Duration,
    /// When the nexus ends, unless something is asked for.
    ends_at: Time,
    /// Data packets that left.
    pub answers: u64,
}

impl Publication {
    /// The object that `draft` has become, called `name`.
    ///
    /// # Errors
    /// When no manifest can describe it.
    pub fn new(
        now: Time,
        draft: Draft,
        naming: Naming,
        name: Bytes,
        trailer: &Trailer,
    ) -> Result<Self, ManifestError> {
        let chunk_bytes = draft.chunk_bytes as u32;
        let (chunks, length) = draft.finish();
        let (core, manifests) = match naming {
            Naming::Sequence => (sequence(length, chunk_bytes, name)?, Vec::new()),
            Naming::Hash => tree(TreeBuilder::new(length, chunk_bytes, name)?, &chunks),
        };
        let timeout = Duration::from_millis(trailer.timeout_ms.into());
        Ok(Publication {
            object: manifest::object_id(&core),
            body: [&core[..], &trailer.emit()].concat().into(),
            naming,
            chunks,
            manifests,
            authorised: BTreeSet::new(),
            timeout,
            ends_at: now + timeout,
            answers: 0,
        })
    }

    pub fn object(&self) -> u64 {
        self.object
    }
    /// The root manifest as a Manifest Message carries it.
    pub fn body(&self) -> Bytes {
        self.body.clone()
    }
    pub fn ends_at(&self) -> Time {
        self.ends_at
    }
    /// It is served until then at least.
    pub fn live_until(&mut self, at: Time) {
        self.ends_at = self.ends_at.max(at);
    }
    pub fn authorise(&mut self, consumer: IpAddr) {
        self.authorised.insert(consumer);
    }

    /// Bytes it keeps.
    pub fn memory(&self) -> u64 {
        let data = self
            .chunks
            .iter()
            .chain(&self.manifests)
            .map(Bytes::len)
            .sum::<usize>();
        (data + self.body.len()) as u64
    }

    /// What `consumer` gets that asks for this chunk: flags and payload.
    pub fn answer(
        &mut self,
        now: Time,
        consumer: IpAddr,
        asked: Pointer,
        asked_flags: u8,
    ) -> Result<(u8, Bytes), Refusal> {
        if !self.authorised.is_empty() && !self.authorised.contains(&consumer) {
            return Err(Refusal::NotAuthorised);
        }
        let is_manifest = asked_flags & flags::MANIFEST;
        let from = if is_manifest == 0 {
            &self.chunks
        } else {
            &self.manifests
        };
        let payload = from.get(asked.chunk as usize).ok_or(Refusal::NoSuchChunk)?;
        let named = if self.naming == Naming::Hash {
            flags::HASH
        } else {
            0
        };
        let is_last = is_manifest == 0 && asked.chunk as usize + 1 == self.chunks.len();
        let last = if is_last { flags::LAST } else { 0 };
        self.ends_at = now + self.timeout;
        self.answers += 1;
        Ok((is_manifest | named | last, payload.clone()))
    }
}

/// The core of an object whose chunks are named by numbers.
fn sequence(length: u64, chunk_bytes: u32, name: Bytes) -> Result<Bytes, ManifestError> {
    let shape = Shape::new(Naming::Sequence, length, chunk_bytes, name.len())?;
    let core = Core {
        naming: Naming::Sequence,
        hash: Hash::default(),
        level: 0,
        length,
        chunk_bytes,
        count: shape.chunks as u32,
        name,
        digests: Vec::new(),
    };
    Ok(core.emit().into())
}

/// The core of the root and the manifests below it, from the top down.
fn tree(mut tree: TreeBuilder, chunks: &[Bytes]) -> (Bytes, Vec<Bytes>) {
    let mut manifests = vec![Bytes::new(); tree.shape().inner() as usize];
    for chunk in chunks {
        for (position, manifest) in tree.push(chunk) {
            manifests[position as usize] = manifest;
        }
    }
    (tree.finish().unwrap_or_default(), manifests)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn published(naming: Naming, bytes: usize, cut: usize) -> Publication {
        let data: Vec<u8> = (0..bytes).map(|at| (at / 7) as u8).collect();
        let mut draft = Draft::new(200);
        data.chunks(cut)
            .for_each(|part| draft.push(Bytes::copy_from_slice(part)));
        assert_eq!(draft.length(), bytes as u64);
        let trailer = Trailer {
            locators: Vec::new(),
            timeout_ms: 1000,
            signature: None,
        };
        Publication::new(Time::ZERO, draft, naming, Bytes::from_static(b"d"), &trailer).expect("possible")
    }

    fn asked(chunk: u32) -> Pointer {
        Pointer {
            chunk,
            ..Pointer::default()
        }
    }

    #[test]
    fn chunks_do_not_depend_on_how_the_application_writes() {
        for naming in [Naming::Sequence, Naming::Hash] {
            let whole = published(naming, 2010, 2010);
            for cut in [1, 7, 199, 200, 201, 450] {
                let other = published(naming, 2010, cut);
                assert_eq!(
                    (other.object, &other.chunks),
                    (whole.object, &whole.chunks),
                    "{cut}"
                );
            }
            assert_eq!((whole.chunks.len(), whole.chunks[10].len()), (11, 10));
        }
    }

    #[test]
    fn every_digest_of_the_tree_is_that_of_what_is_served() {
        let mut object = published(Naming::Hash, 9000, 9000);
        let (root, _) = Core::parse(&object.body()).expect("a manifest");
        let shape = root.shape().expect("a root");
        assert_eq!(shape.inner(), object.manifests.len() as u64);
        assert!(root.level >= 2, "a tree");
        let host = IpAddr::from([10, 0, 0, 1]);
        let mut manifests = vec![root];
        while let Some(core) = manifests.pop() {
            for digest in &core.digests {
                let wanted = if core.level == 0 {
                    &object.chunks
                } else {
                    &object.manifests
                };
                let at = wanted
                    .iter()
                    .position(|entry| manifest::digest(entry) == *digest)
                    .expect("served");
                let kind = if core.level == 0 { 0 } else { flags::MANIFEST };
                let (_, payload) = object
                    .answer(Time::ZERO, host, asked(at as u32), kind)
                    .expect("it is there");
                if core.level > 0 {
                    let (below, length) = Core::parse(&payload).expect("a manifest");
                    assert_eq!((length, below.level), (payload.len(), core.level - 1));
                    manifests.push(below);
                }
            }
        }
    }

    #[test]
    fn answers_keep_the_nexus_alive_and_refusals_do_not() {
        let mut object = published(Naming::Sequence, 450, 450);
        let host = IpAddr::from([10, 0, 0, 1]);
        let later = Time::ZERO + Duration::from_millis(700);
        assert_eq!(object.answer(later, host, asked(3), 0), Err(Refusal::NoSuchChunk));
        assert_eq!(
            object.answer(later, host, asked(0), flags::MANIFEST),
            Err(Refusal::NoSuchChunk)
        );
        assert_eq!(object.ends_at(), Time::ZERO + Duration::from_secs(1));
        let (flags, payload) = object.answer(later, host, asked(2), 0).expect("it is there");
        assert_eq!((flags, payload.len()), (flags::LAST, 50));
        assert_eq!(object.ends_at(), later + Duration::from_secs(1));
        object.authorise(IpAddr::from([10, 0, 0, 2]));
        assert_eq!(
            object.answer(later, host, asked(2), 0),
            Err(Refusal::NotAuthorised)
        );
    }
}
