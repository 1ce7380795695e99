//! What a host publishes: objects by their IDs, the same for every consumer. Where the bytes are is not its business: somebody above
//! reads them when they are asked for.

use super::message::Wanted;
use crate::itp::manifest::{self, Core, ManifestError, Shape, Trailer};
use crate::itp::trust::{PublisherKey, Signature};
use crate::itp::wire::{Pointer, Refusal, flags};
use bytes::Bytes;
use std::fmt;
use std::task::{Poll, ready};

/// Where the bytes of an object are. `Pending`: they are being read, and are asked for again at the next [`Node::on_disk`].
///
/// [`Node::on_disk`]: super::Node::on_disk
pub trait Source: fmt::Debug + Send {
    /// Chunk `number`. `None`: it cannot be read any more, or has changed.
    fn chunk(&mut self, number: u64) -> Poll<Option<Bytes>>;
    /// The manifest below the root at `position`.
    fn manifest(&mut self, position: u64) -> Poll<Option<Bytes>>;
}

/// An object that is published.
#[derive(Debug)]
pub struct Published {
    wanted: Wanted,
    body: Bytes,
    shape: Shape,
    source: Box<dyn Source>,
}

impl Published {
    /// The object whose root has this core, with its publisher's signature.
    ///
    /// # Errors
    /// When `core` is no root.
    pub fn new(core: &Bytes, signature: Signature, source: Box<dyn Source>) -> Result<Self, ManifestError> {
        let (parsed, _) = Core::parse(core)?;
        let trailer = Trailer {
            signature: Some(signature),
            ..Trailer::default()
        };
        Ok(Published {
            wanted: Wanted {
                root: manifest::digest(core),
                publisher: signature.key,
            },
            body: [&core[..], &trailer.emit()].concat().into(),
            shape: parsed.shape()?,
            source,
        })
    }

    /// What a ticket says of it.
    pub fn wanted(&self) -> Wanted {
        self.wanted
    }

    /// The root manifest as a Manifest Message carries it.
    pub(super) fn body(&self) -> Bytes {
        self.body.clone()
    }

    /// What answers an Interest: flags and payload.
    pub(super) fn answer(&mut self, asked: Pointer, asked_flags: u8) -> Poll<Result<(u8, Bytes), Refusal>> {
        let is_manifest = asked_flags & flags::MANIFEST;
        let number = u64::from(asked.chunk);
        let found = match is_manifest {
            0 if number < self.shape.chunks => ready!(self.source.chunk(number)),
            0 => return Poll::Ready(Err(Refusal::NoSuchChunk)),
            _ if number < self.shape.inner() => ready!(self.source.manifest(number)),
            _ => return Poll::Ready(Err(Refusal::NoSuchChunk)),
        };
        let is_last = is_manifest == 0 && number + 1 == self.shape.chunks;
        let last = if is_last { flags::LAST } else { 0 };
        let answer = |payload| (is_manifest | flags::HASH | last, payload);
        Poll::Ready(found.map(answer).ok_or(Refusal::NoNexus))
    }
}

/// A root manifest as a Manifest Message carries it, checked: that its digest and its publisher are those that are wanted.
///
/// # Errors
/// What is wrong with it.
pub(super) fn check_root(body: &[u8], wanted: &Wanted) -> Result<Core, RootError> {
    let (core, length) = Core::parse(body)?;
    if manifest::digest(&body[..length]) != wanted.root {
        return Err(RootError::Another);
    }
    core.shape()?;
    let signature = Trailer::parse(&body[length..])?.signature;
    let signature = signature.ok_or(RootError::Unsigned)?;
    match signature.vouches(&wanted.publisher, &wanted.root) {
        true => Ok(core),
        false if signature.key == wanted.publisher => Err(RootError::Forged),
        false => Err(RootError::Publisher(signature.key)),
    }
}

/// Why a root manifest is not the one that is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RootError {
    /// It is none.
    #[error("{0}")]
    Manifest(#[from] ManifestError),
    /// It is of something else.
    #[error("it is that of another object")]
    Another,
    /// Nobody vouches for it.
    #[error("it is not signed")]
    Unsigned,
    /// It is signed by somebody else.
    #[error("it is signed by somebody else than the publisher in the ticket")]
    Publisher(PublisherKey),
    /// Its signature is none.
    #[error("its signature is not that of the publisher")]
    Forged,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::itp::manifest::TreeBuilder;
    use crate::itp::trust::Publisher;

    /// It has whatever it is asked for.
    #[derive(Debug)]
    struct Everything;

    impl Source for Everything {
        fn chunk(&mut self, _: u64) -> Poll<Option<Bytes>> {
            Poll::Ready(Some(Bytes::from_static(b"chunk")))
        }
        fn manifest(&mut self, _: u64) -> Poll<Option<Bytes>> {
            Poll::Ready(Some(Bytes::from_static(b"manifest")))
        }
    }

    /// Its signature is known to who has another root of the publisher.
    #[test]
    fn a_root_with_the_signature_of_another_is_refused() {
        let root = |chunk: &[u8]| {
            let mut tree = TreeBuilder::new(10, 1000, Bytes::new()).unwrap();
            tree.push(chunk);
            tree.finish().unwrap()
        };
        let (core, other) = (root(b"this"), root(b"that"));
        let signature = Publisher::from_seed(&[1; 32])
            .unwrap()
            .sign(&manifest::digest(&core));
        let body = |core: &Bytes| {
            Published::new(core, signature, Box::new(Everything))
                .unwrap()
                .body()
        };
        let wanted = Published::new(&core, signature, Box::new(Everything))
            .unwrap()
            .wanted();
        assert!(check_root(&body(&core), &wanted).is_ok());
        assert_eq!(
            check_root(&body(&other), &wanted).unwrap_err(),
            RootError::Another
        );
    }

    /// A disk computes places out of numbers: it is not asked for what is beyond the end.
    #[test]
    fn the_last_chunk_says_so_and_beyond_the_end_there_is_nothing() {
        let mut tree = TreeBuilder::new(100_000, 1000, Bytes::new()).unwrap();
        (0..100).for_each(|_| _ = tree.push(b"chunk"));
        let core = tree.finish().unwrap();
        let signature = Publisher::from_seed(&[1; 32])
            .unwrap()
            .sign(&manifest::digest(&core));
        let mut object = Published::new(&core, signature, Box::new(Everything)).unwrap();
        let inner = object.shape.inner() as u32;
        let mut answer = |chunk, kind| {
            let asked = Pointer {
                object: 0,
                chunk,
                sequence: 0,
            };
            match object.answer(asked, kind) {
                Poll::Ready(answer) => answer.map(|(flags, _)| flags),
                Poll::Pending => panic!("it has everything"),
            }
        };
        assert_eq!(answer(0, 0), Ok(flags::HASH));
        assert_eq!(answer(98, 0), Ok(flags::HASH));
        assert_eq!(answer(99, 0), Ok(flags::HASH | flags::LAST));
        assert_eq!(
            answer(inner - 1, flags::MANIFEST),
            Ok(flags::HASH | flags::MANIFEST)
        );
        for (chunk, kind) in [(100, 0), (u32::MAX, 0), (inner, flags::MANIFEST)] {
            assert_eq!(answer(chunk, kind), Err(Refusal::NoSuchChunk));
        }
    }
}
