//! The manifest (ITP §III.A; layout ITP 4.3, ours): the immutable name of an object, what it consists of, and how it is put
//! together again. The core is what the Object ID is a digest of; the trailer beside it says where to ask and for how long.
//!
//! Large objects whose chunks are named by digests have a tree of manifests, each of which fits a packet. Its shape follows from
//! the length of the object, the size of a chunk and the length of the name alone, so a manifest that claims another one is refused
//! before anything is allocated.

mod shape;
mod tree;

pub use super::hash::{DIGEST_BYTES, Digest, Hash, digest, is_named, names_of};
pub use shape::Shape;
pub use tree::TreeBuilder;
pub(super) use tree::covered;

use super::trust::{KEY_BYTES, PublisherKey, SIGNATURE_BYTES, Signature};

use bytes::Bytes;
use std::net::{IpAddr, SocketAddr};
use thiserror::Error;

/// Bytes of the core before the name.
const FIXED_BYTES: usize = 24;
/// Largest chunk: what UDP carries over IPv4, less its header and ours.
pub const LARGEST_CHUNK: u32 = 65_507 - 20;
/// Longest name, in bytes.
pub const LONGEST_NAME: usize = 255;
/// Most levels of manifests above the lowest.
pub const HIGHEST_LEVEL: u8 = 8;

/// How chunks are named (ITP §III.C).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Naming {
    /// By the object's name and their numbers.
    #[default]
    Sequence,
    /// By the digests of what they contain.
    Hash,
}

/// What an object consists of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Core {
    /// How its chunks are named.
    pub naming: Naming,
    /// Of the chunks, where they are named by digests.
    pub hash: Hash,
    /// 0: the entries are chunks. Else they are manifests one level below.
    pub level: u8,
    /// Bytes of what this manifest describes.
    pub length: u64,
    /// Bytes of a chunk; the last one may be shorter.
    pub chunk_bytes: u32,
    /// Chunks or manifests below.
    pub count: u32,
    /// Of the object.
    pub name: Bytes,
    /// Of the entries, where they are named so.
    pub digests: Vec<Digest>,
}

/// Where to ask, for how long, and who vouches for it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trailer {
    /// Producers.
    pub locators: Vec<SocketAddr>,
    /// The nexus ends when nothing was asked for so long.
    pub timeout_ms: u32,
    /// Of the publisher.
    pub signature: Option<Signature>,
}

/// What says that a signature follows the locators (RFC 8032).
const ED25519: u8 = 1;

/// Why a manifest was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ManifestError {
    /// Fewer bytes than it says.
    #[error("a manifest of {found} bytes is too short: it needs {needed}")]
    Short {
        /// Bytes there are.
        found: usize,
        /// Bytes there have to be.
        needed: usize,
    },
    /// A field has a value without a meaning.
    #[error("{field} of a manifest cannot be {value}")]
    Value {
        /// The field.
        field: &'static str,
        /// As written.
        value: u64,
    },
    /// The fields contradict each other.
    #[error(
        "a manifest of {length} bytes in chunks of {chunk_bytes} has {needed} entries at level {level}, this one says {count}"
    )]
    Shape {
        /// The object's length.
        length: u64,
        /// A chunk's.
        chunk_bytes: u32,
        /// As it has to be.
        needed: u64,
        /// The level.
        level: u8,
        /// As written.
        count: u32,
    },
}

impl Core {
    /// Its bytes.
    pub fn emit(&self) -> Vec<u8> {
        let naming = match self.naming {
            Naming::Sequence => 0,
            Naming::Hash => 1,
        };
        let hash = match self.hash {
            Hash::Sha256 => 1,
            Hash::Blake3 => 2,
        };
        let mut bytes = vec![1, naming, hash, self.level];
        bytes.extend(self.length.to_be_bytes());
        bytes.extend(self.chunk_bytes.to_be_bytes());
        bytes.extend(self.count.to_be_bytes());
        bytes.extend([0, 0]);
        bytes.extend((self.name.len() as u16).to_be_bytes());
        bytes.extend(&self.name);
        bytes.resize(FIXED_BYTES + padded(self.name.len()), 0);
        for digest in &self.digests {
            bytes.extend(digest);
        }
        bytes
    }

    /// Reads the core at the start of `bytes`, and checks that its fields fit each other. Returns it with its length.
    ///
    /// # Errors
    /// When it is none. What is allocated is no larger than `bytes`.
    pub fn parse(bytes: &[u8]) -> Result<(Core, usize), ManifestError> {
        let short = |needed| ManifestError::Short {
            found: bytes.len(),
            needed,
        };
        let fixed = bytes.first_chunk::<FIXED_BYTES>().ok_or(short(FIXED_BYTES))?;
        let value = |field, value: u64| Err(ManifestError::Value { field, value });
        let short_at = |at: usize| u16::from_be_bytes([fixed[at], fixed[at + 1]]);
        let word_at =
            |at: usize| u32::from_be_bytes([fixed[at], fixed[at + 1], fixed[at + 2], fixed[at + 3]]);
        let (version, level) = (fixed[0], fixed[3]);
        if version != 1 {
            return value("the version", version.into());
        }
        let naming = match fixed[1] {
            0 => Naming::Sequence,
            1 => Naming::Hash,
            other => return value("the naming", other.into()),
        };
        let hash = match fixed[2] {
            1 => Hash::Sha256,
            2 => Hash::Blake3,
            other => return value("the hash", other.into()),
        };
        if short_at(20) != 0 {
            return value("the decode procedure", short_at(20).into());
        }
        let name_bytes = usize::from(short_at(22));
        let core = Core {
            naming,
            hash,
            level,
            length: u64::from(word_at(4)) << 32 | u64::from(word_at(8)),
            chunk_bytes: word_at(12),
            count: word_at(16),
            name: Bytes::new(),
            digests: Vec::new(),
        };
        core.check(name_bytes)?;
        let names_end = FIXED_BYTES + padded(name_bytes);
        let digests = if naming == Naming::Hash {
            core.count as usize
        } else {
            0
        };
        let end = names_end + digests * DIGEST_BYTES;
        if bytes.len() < end {
            return Err(short(end));
        }
        let (digests, _) = bytes[names_end..end].as_chunks::<DIGEST_BYTES>();
        let core = Core {
            name: Bytes::copy_from_slice(&bytes[FIXED_BYTES..FIXED_BYTES + name_bytes]),
            digests: digests.to_vec(),
            ..core
        };
        Ok((core, end))
    }

    /// Do the fields fit each other? What is below the root is a root of what it describes but for its level, which its place
    /// in the tree decides.
    fn check(&self, name_bytes: usize) -> Result<(), ManifestError> {
        let shape = Shape::new(self.naming, self.length, self.chunk_bytes, name_bytes)?;
        if self.level > HIGHEST_LEVEL || (self.naming == Naming::Sequence && self.level != 0) {
            return Err(ManifestError::Value {
                field: "the level",
                value: self.level.into(),
            });
        }
        let needed = match self.naming {
            Naming::Sequence => shape.chunks,
            Naming::Hash => {
                let below = shape.fan_out.saturating_pow(u32::from(self.level));
                shape.chunks.div_ceil(below)
            }
        };
        let fits = self.naming == Naming::Sequence || needed <= shape.fan_out;
        if u64::from(self.count) != needed || !fits {
            return Err(ManifestError::Shape {
                length: self.length,
                chunk_bytes: self.chunk_bytes,
                needed: needed.min(shape.fan_out.max(shape.chunks)),
                level: self.level,
                count: self.count,
            });
        }
        Ok(())
    }

    /// The arrangement of all manifests of the object, where this is the root.
    ///
    /// # Errors
    /// When it is no root: an object of this length has another level.
    pub fn shape(&self) -> Result<Shape, ManifestError> {
        let shape = Shape::new(self.naming, self.length, self.chunk_bytes, self.name.len())?;
        if shape.root_level() != self.level {
            return Err(ManifestError::Value {
                field: "the level of a root",
                value: self.level.into(),
            });
        }
        Ok(shape)
    }
}

impl Trailer {
    /// Its bytes.
    pub fn emit(&self) -> Vec<u8> {
        let signed = self.signature.map_or(0, |_| ED25519);
        let mut bytes = vec![self.locators.len() as u8, signed, 0, 0];
        bytes.extend(self.timeout_ms.to_be_bytes());
        for locator in &self.locators {
            let (family, port) = if locator.is_ipv4() {
                (4, locator.port())
            } else {
                (6, locator.port())
            };
            bytes.extend([family, 0]);
            bytes.extend(port.to_be_bytes());
            match locator.ip() {
                IpAddr::V4(address) => bytes.extend(address.octets()),
                IpAddr::V6(address) => bytes.extend(address.octets()),
            }
        }
        if let Some(signature) = &self.signature {
            bytes.extend(signature.key.0);
            bytes.extend(signature.bytes);
        }
        bytes
    }

    /// Reads all of `bytes`.
    ///
    /// # Errors
    /// When they are none.
    pub fn parse(bytes: &[u8]) -> Result<Trailer, ManifestError> {
        let found = bytes.len();
        let short = |needed| ManifestError::Short { found, needed };
        let (fixed, mut rest) = bytes.split_first_chunk::<8>().ok_or(short(8))?;
        let mut locators = Vec::new();
        for _ in 0..fixed[0] {
            let (head, after) = rest.split_first_chunk::<4>().ok_or(short(found + 4))?;
            let port = u16::from_be_bytes([head[2], head[3]]);
            let (address, after): (IpAddr, &[u8]) = match head[0] {
                4 => {
                    let (octets, after) = after.split_first_chunk::<4>().ok_or(short(found + 4))?;
                    (IpAddr::from(*octets), after)
                }
                6 => {
                    let (octets, after) = after.split_first_chunk::<16>().ok_or(short(found + 16))?;
                    (IpAddr::from(*octets), after)
                }
                family => {
                    return Err(ManifestError::Value {
                        field: "the family of a locator",
                        value: family.into(),
                    });
                }
            };
            locators.push(SocketAddr::new(address, port));
            rest = after;
        }
        let timeout_ms = u32::from_be_bytes([fixed[4], fixed[5], fixed[6], fixed[7]]);
        let signature = match fixed[1] {
            0 => None,
            ED25519 => {
                Some(parse_signature(rest).ok_or(short(found - rest.len() + KEY_BYTES + SIGNATURE_BYTES))?)
            }
            other => {
                return Err(ManifestError::Value {
                    field: "the kind of a signature",
                    value: other.into(),
                });
            }
        };
        Ok(Trailer {
            locators,
            timeout_ms,
            signature,
        })
    }
}

fn parse_signature(bytes: &[u8]) -> Option<Signature> {
    let (key, rest) = bytes.split_first_chunk::<KEY_BYTES>()?;
    Some(Signature {
        key: PublisherKey(*key),
        bytes: *rest.first_chunk()?,
    })
}

/// The Object ID of a manifest with this core.
pub fn object_id(core: &[u8]) -> u64 {
    let digest = digest(core);
    digest.first_chunk().map_or(0, |first| u64::from_be_bytes(*first))
}

fn padded(bytes: usize) -> usize {
    bytes.next_multiple_of(4)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn core() -> Core {
        Core {
            naming: Naming::Sequence,
            hash: Hash::Sha256,
            level: 0,
            length: 3_697_500,
            chunk_bytes: 1500,
            count: 2465,
            name: Bytes::from_static(b"10.0.0.1:4000/D"),
            digests: Vec::new(),
        }
    }

    fn words(bytes: &[u8]) -> Vec<u32> {
        let (words, rest) = bytes.as_chunks::<4>();
        assert!(rest.is_empty());
        words.iter().map(|word| u32::from_be_bytes(*word)).collect()
    }

    /// ITP 4.4.
    #[test]
    fn the_manifest_of_the_specification() {
        let bytes = core().emit();
        let expected = [
            0x0100_0100,
            0x0000_0000,
            0x0038_6B5C,
            0x0000_05DC,
            0x0000_09A1,
            0x0000_000F,
            0x3130_2E30,
            0x2E30_2E31,
            0x3A34_3030,
            0x302F_4400,
        ];
        assert_eq!(words(&bytes), expected);
        assert_eq!(object_id(&bytes), 0xCDD5_A23C_1EBC_5BAC);
        assert_eq!(Core::parse(&bytes), Ok((core(), bytes.len())));
        let trailer = Trailer {
            locators: vec![SocketAddr::from(([10, 0, 0, 1], 4000))],
            timeout_ms: 120_000,
            signature: None,
        };
        let bytes = trailer.emit();
        assert_eq!(
            words(&bytes),
            [0x0100_0000, 0x0001_D4C0, 0x0400_0FA0, 0x0A00_0001]
        );
        assert_eq!(Trailer::parse(&bytes), Ok(trailer));
    }

    #[test]
    fn a_signature_follows_the_locators() {
        let signature = Signature {
            key: PublisherKey([3; KEY_BYTES]),
            bytes: [4; SIGNATURE_BYTES],
        };
        let trailer = Trailer {
            locators: vec![SocketAddr::from(([10, 0, 0, 1], 4000))],
            timeout_ms: 120_000,
            signature: Some(signature),
        };
        let bytes = trailer.emit();
        assert_eq!(
            words(&bytes)[..5],
            [0x0101_0000, 0x0001_D4C0, 0x0400_0FA0, 0x0A00_0001, 0x0303_0303]
        );
        assert_eq!(Trailer::parse(&bytes), Ok(trailer));
        for cut in 16..bytes.len() {
            assert!(
                matches!(Trailer::parse(&bytes[..cut]), Err(ManifestError::Short { .. })),
                "{cut}"
            );
        }
    }

    #[test]
    fn claims_that_do_not_fit_each_other_are_refused() {
        let refused = |change: fn(&mut Core)| {
            let mut changed = core();
            change(&mut changed);
            Core::parse(&changed.emit()).expect_err("refused")
        };
        assert!(matches!(
            refused(|core| core.count = 2464),
            ManifestError::Shape { needed: 2465, .. }
        ));
        assert!(matches!(
            refused(|core| core.chunk_bytes = 0),
            ManifestError::Value { .. }
        ));
        assert!(matches!(
            refused(|core| core.level = 1),
            ManifestError::Value { .. }
        ));
        assert!(matches!(
            refused(|core| core.length = u64::MAX),
            ManifestError::Value { .. }
        ));
        assert!(matches!(
            refused(|core| core.name = Bytes::from_static(&[b'n'; 300])),
            ManifestError::Value { .. }
        ));
        let bomb = |core: &mut Core| {
            (core.naming, core.level, core.count) = (Naming::Hash, 8, u32::MAX);
            core.length = 1500 << 21;
        };
        assert!(matches!(refused(bomb), ManifestError::Shape { .. }));
        let endless = |core: &mut Core| {
            (core.naming, core.length) = (Naming::Hash, (u64::from(u32::MAX) + 1) * 1500);
        };
        assert!(matches!(refused(endless), ManifestError::Value { .. }));
    }

    #[test]
    fn digests_that_are_not_there_are_not_allocated() {
        let mut hash = core();
        (hash.naming, hash.count, hash.length) = (Naming::Hash, 40, 40 * 1500);
        hash.digests = vec![[7; 32]; 39];
        let bytes = hash.emit();
        let needed = bytes.len() + DIGEST_BYTES;
        assert_eq!(
            Core::parse(&bytes),
            Err(ManifestError::Short {
                found: bytes.len(),
                needed
            })
        );
    }

    proptest! {
        #[test]
        fn no_bytes_break_the_parsers(
            bytes in prop::collection::vec(any::<u8>(), 0..300), naming in 0u8..3, hash in 1u8..4
        ) {
            let _ = Trailer::parse(&bytes);
            let _ = Core::parse(&bytes);
            let mut likely = bytes;
            if likely.len() >= FIXED_BYTES {
                let level = likely[3] % 4;
                likely[..4].copy_from_slice(&[1, naming, hash, level]);
                likely[20..23].fill(0);
            }
            if let Ok((core, length)) = Core::parse(&likely) {
                prop_assert!(core.digests.len() * DIGEST_BYTES <= length);
                let again = core.emit();
                prop_assert_eq!(Core::parse(&again), Ok((core, again.len())));
            }
        }
    }
}
