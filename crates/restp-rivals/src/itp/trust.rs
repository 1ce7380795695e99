//! Who vouches for an object. Its publisher signs the digest of the root manifest's core with Ed25519 (RFC 8032); every digest below it
//! follows from that one. A consumer knows the publisher's key beforehand, so that nobody on the way has to be trusted, nor anything
//! sealed hop by hop: what a cache keeps is as good as what the publisher sends.

use super::hash::Digest;
use aws_lc_rs::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};
use std::fmt;

/// Bytes of a publisher's key.
pub const KEY_BYTES: usize = 32;
/// Bytes of a signature.
pub const SIGNATURE_BYTES: usize = 64;

/// What a signature is of begins so, and is of nothing else than a root manifest.
const CONTEXT: &[u8; 20] = b"ITP root manifest 1\0";

/// By which a publisher is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PublisherKey(pub [u8; KEY_BYTES]);

/// Signs what it publishes.
pub struct Publisher(Ed25519KeyPair);

/// A signature of a root manifest, and whose it says it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signature {
    /// Of the publisher.
    pub key: PublisherKey,
    /// As RFC 8032 has them.
    pub bytes: [u8; SIGNATURE_BYTES],
}

impl Publisher {
    /// That of a secret seed (RFC 8032 §5.1.5). `None`: the library takes no such seed, which cannot be with 32 bytes.
    pub fn from_seed(seed: &[u8; KEY_BYTES]) -> Option<Self> {
        Ed25519KeyPair::from_seed_unchecked(seed).ok().map(Publisher)
    }

    /// By which others know it.
    pub fn key(&self) -> PublisherKey {
        let mut key = [0; KEY_BYTES];
        key.copy_from_slice(self.0.public_key().as_ref());
        PublisherKey(key)
    }

    /// Vouches for the object whose root manifest has this digest.
    pub fn sign(&self, root: &Digest) -> Signature {
        let mut bytes = [0; SIGNATURE_BYTES];
        bytes.copy_from_slice(self.0.sign(&message(root)).as_ref());
        Signature {
            key: self.key(),
            bytes,
        }
    }
}

impl fmt::Debug for Publisher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Publisher").field(&self.key()).finish()
    }
}

impl Signature {
    /// Is it that of `publisher`, for the object whose root manifest has this digest?
    pub fn vouches(&self, publisher: &PublisherKey, root: &Digest) -> bool {
        let key = UnparsedPublicKey::new(&ED25519, self.key.0);
        self.key == *publisher && key.verify(&message(root), &self.bytes).is_ok()
    }
}

fn message(root: &Digest) -> Vec<u8> {
    [&CONTEXT[..], root].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_of_one_publisher_and_one_object() {
        let publisher = Publisher::from_seed(&[7; 32]).expect("a seed");
        let other = Publisher::from_seed(&[8; 32]).expect("a seed");
        let signature = publisher.sign(&[1; 32]);
        assert!(signature.vouches(&publisher.key(), &[1; 32]));
        assert!(!signature.vouches(&publisher.key(), &[2; 32]), "another object");
        assert!(!signature.vouches(&other.key(), &[1; 32]), "another publisher");
        let claims = Signature {
            key: other.key(),
            ..signature
        };
        assert!(
            !claims.vouches(&other.key(), &[1; 32]),
            "whoever it says it is of"
        );
        for bit in 0..8 * SIGNATURE_BYTES {
            let mut changed = signature;
            changed.bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(!changed.vouches(&publisher.key(), &[1; 32]), "bit {bit}");
        }
    }

    /// RFC 8032 §7.1, test 1: the key that belongs to the seed.
    #[test]
    fn the_key_of_a_seed_is_that_of_the_rfc() {
        let seed = [
            0x9d, 0x61, 0xb1, 0x9d, 0xef, 0xfd, 0x5a, 0x60, 0xba, 0x84, 0x4a, 0xf4, 0x92, 0xec, 0x2c, 0xc4,
            0x44, 0x49, 0xc5, 0x69, 0x7b, 0x32, 0x69, 0x19, 0x70, 0x3b, 0xac, 0x03, 0x1c, 0xae, 0x7f, 0x60,
        ];
        let publisher = Publisher::from_seed(&seed).expect("a seed");
        assert_eq!(publisher.key().0[..4], [0xd7, 0x5a, 0x98, 0x01]);
    }
}
