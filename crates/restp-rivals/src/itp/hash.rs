//! What names chunks and manifests by what they contain.

use sha2::{Digest as _, Sha256};

/// Bytes of a digest, of either hash.
pub const DIGEST_BYTES: usize = 32;
/// A digest.
pub type Digest = [u8; DIGEST_BYTES];

/// BLAKE3 hashes pieces of 1 kB beside each other. From here on that is faster than SHA-256, also where the processor has
/// instructions for SHA-256, with the vectors of AVX2.
const BLAKE3_FROM: usize = 4097;

/// What the digests of an object's chunks are computed with. Manifests are always named by SHA-256.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Hash {
    /// FIPS 180-4.
    #[default]
    Sha256,
    /// With 32 bytes of output.
    Blake3,
}

impl Hash {
    /// The faster one for chunks of `chunk_bytes`.
    pub fn fastest(chunk_bytes: usize) -> Self {
        if chunk_bytes < BLAKE3_FROM {
            Hash::Sha256
        } else {
            Hash::Blake3
        }
    }

    /// The digest of `bytes`.
    pub fn digest(self, bytes: &[u8]) -> Digest {
        match self {
            Hash::Sha256 => digest(bytes),
            Hash::Blake3 => blake3::hash(bytes).into(),
        }
    }
}

/// The SHA-256 of `bytes`, which names manifests.
pub fn digest(bytes: &[u8]) -> Digest {
    Sha256::digest(bytes).into()
}

/// Does `digest` name these bytes? For a cache, which does not know the manifest: either hash does, and the likelier one is
/// tried first.
pub fn is_named(bytes: &[u8], digest: &Digest) -> bool {
    names_of(bytes).any(|name| name == *digest)
}

/// The digests that may name these bytes, the likelier one first.
pub fn names_of(bytes: &[u8]) -> impl Iterator<Item = Digest> {
    let likely = Hash::fastest(bytes.len());
    let other = match likely {
        Hash::Sha256 => Hash::Blake3,
        Hash::Blake3 => Hash::Sha256,
    };
    [likely, other].into_iter().map(|hash| hash.digest(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(digest: Digest) -> String {
        digest.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// FIPS 180-4's and BLAKE3's own vectors for nothing at all.
    #[test]
    fn digests_are_those_of_the_published_vectors() {
        assert_eq!(
            hex(Hash::Sha256.digest(b"")),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
        );
        assert_eq!(
            hex(Hash::Blake3.digest(b"")),
            "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262"
        );
    }

    #[test]
    fn a_cache_knows_a_chunk_by_either_hash_and_nothing_else() {
        for bytes in [0, 1384, 4096, 4097, 32_000] {
            let chunk = vec![7; bytes];
            for hash in [Hash::Sha256, Hash::Blake3] {
                let mut name = hash.digest(&chunk);
                assert!(is_named(&chunk, &name), "{hash:?} of {bytes} bytes");
                name[31] ^= 1;
                assert!(!is_named(&chunk, &name), "{hash:?} of {bytes} bytes");
            }
        }
        assert_eq!(
            [1384, 4096, 4097, 65_000].map(Hash::fastest),
            [Hash::Sha256, Hash::Sha256, Hash::Blake3, Hash::Blake3]
        );
    }
}
