//! What a ticket gives: who shows it may send. It follows from the receiver's key, so that a ticket serves as long as that key.

use restp::{Secret, SecretKey};
use sha2::{Digest as _, Sha256};
use std::fmt;

/// Shown to a receiver with the offer of a file.
#[derive(Clone)]
pub struct Capability(Secret<{ Capability::BYTES }>);

impl Capability {
    /// Its length: nobody guesses it.
    pub const BYTES: usize = 16;

    /// Shown where there is none.
    pub fn none() -> Self {
        Capability(Secret::blank())
    }

    /// What is shown.
    pub fn bytes(&self) -> &[u8; Self::BYTES] {
        &self.0
    }

    /// That of the tickets of the receiver with this key.
    pub fn of(secret: &SecretKey) -> Self {
        let digest = Sha256::new()
            .chain_update("restp ticket ")
            .chain_update(secret.to_text().as_bytes());
        let mut capability = Self::none();
        capability.0.copy_from_slice(&digest.finalize()[..Self::BYTES]);
        capability
    }
}

impl From<[u8; Capability::BYTES]> for Capability {
    fn from(bytes: [u8; Capability::BYTES]) -> Self {
        Capability(bytes.into())
    }
}

impl PartialEq for Capability {
    /// In a time that tells nothing of where they differ.
    fn eq(&self, other: &Self) -> bool {
        let pairs = self.0.iter().zip(other.0.iter());
        pairs.fold(0, |different, (own, other)| different | (own ^ other)) == 0
    }
}

impl Eq for Capability {}

impl fmt::Debug for Capability {
    /// Not in a log.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Capability")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_of_one_key_and_not_told_to_a_log() {
        let of = |key: u8| Capability::of(&SecretKey::from_chance([key; 32]));
        assert_eq!(of(1), of(1));
        assert_ne!(of(1), of(2));
        assert_ne!(of(1), Capability::none());
        for byte in 0..Capability::BYTES {
            let mut changed = of(1);
            changed.0[byte] ^= 0x80;
            assert_ne!(changed, of(1));
        }
        assert_eq!(format!("{:?}", of(1)), "Capability");
    }
}
