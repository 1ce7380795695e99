//! What a ticket gives: who shows it may send. It follows from the receiver's key, so that a ticket serves as long as that key.

use restp::SecretKey;
use sha2::{Digest as _, Sha256};
use std::fmt;

/// Shown to a receiver with the offer of a file.
#[derive(Clone, Copy)]
pub struct Capability(pub [u8; Capability::BYTES]);

impl Capability {
    /// Its length: nobody guesses it.
    pub const BYTES: usize = 16;

    /// Shown where there is none.
    pub const NONE: Capability = Capability([0; Self::BYTES]);

    /// That of the tickets of the receiver with this key.
    pub fn of(secret: &SecretKey) -> Self {
        let digest = Sha256::new()
            .chain_update("restp ticket ")
            .chain_update(secret.to_text());
        let mut bytes = [0; Self::BYTES];
        bytes.copy_from_slice(&digest.finalize()[..Self::BYTES]);
        Capability(bytes)
    }
}

impl PartialEq for Capability {
    /// In a time that tells nothing of where they differ.
    fn eq(&self, other: &Self) -> bool {
        let pairs = self.0.iter().zip(other.0);
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
        assert_ne!(of(1), Capability::NONE);
        for byte in 0..Capability::BYTES {
            let mut changed = of(1);
            changed.0[byte] ^= 0x80;
            assert_ne!(changed, of(1));
        }
        assert_eq!(format!("{:?}", of(1)), "Capability");
    }
}
