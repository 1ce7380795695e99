//! What a ticket gives: who shows it may send. It follows from the receiver's key, so that a ticket serves as long as that key.

use restp::{Secret, SecretKey};
use sha2::{Digest as _, Sha256};
use std::fmt;

/// Shown to a receiver with the offer of a file.
#[derive(Clone)]
pub struct Capability(Secret<{ Capability::BYTES }>);

impl Capability {
    /// Its place in messages.
    pub const BYTES: usize = 16;

    /// So many of them count: whoever guesses one has to ask the receiver each time. The others are zeros, but in what
    /// tickets of version 1 hold.
    const GUESSED: usize = 8;

    /// Shown where there is none.
    pub fn none() -> Self {
        Capability(Secret::blank())
    }

    /// As a ticket has it.
    pub fn of_ticket(bytes: [u8; Self::GUESSED]) -> Self {
        let mut capability = Self::none();
        capability.0[..Self::GUESSED].copy_from_slice(&bytes);
        capability
    }

    /// For a ticket.
    pub fn in_ticket(&self) -> &[u8] {
        &self.0[..Self::GUESSED]
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
        let pairs = self.in_ticket().iter().zip(other.in_ticket());
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
            assert_eq!(changed == of(1), byte >= 8);
        }
        assert_eq!(format!("{:?}", of(1)), "Capability");
    }
}
