//! Chance from one seed, which the driver takes from the operating system and a simulation from its own: HMAC-SHA256 in
//! counter mode (as NIST SP 800-90A, 2015, §10.1.2). The key moves on after each draw, so that a memory that is read
//! later does not tell what was drawn before.

use crate::secret::Secret;
use aws_lc_rs::hmac::{HMAC_SHA256, Key, sign_to_buffer};
use zeroize::Zeroizing;

/// A stream of bytes nobody can foresee who lacks the seed.
pub(crate) struct Entropy(Key);

impl Entropy {
    pub(crate) fn new(seed: &[u8; 32]) -> Self {
        Entropy(Key::new(HMAC_SHA256, seed))
    }

    pub(crate) fn fill(&mut self, bytes: &mut [u8]) {
        for (number, block) in (1_u64..).zip(bytes.chunks_mut(32)) {
            block.copy_from_slice(&self.block(number)[..block.len()]);
        }
        self.0 = Key::new(HMAC_SHA256, &*self.block(0));
    }

    fn block(&self, number: u64) -> Zeroizing<[u8; 32]> {
        let mut block = Zeroizing::new([0; 32]);
        // Of the length that the function gives, the only thing that can fail.
        let _ = sign_to_buffer(&self.0, &number.to_be_bytes(), &mut *block);
        block
    }

    /// For what is kept to oneself.
    pub(crate) fn secret<const N: usize>(&mut self) -> Secret<N> {
        let mut secret = Secret::blank();
        self.fill(&mut *secret);
        secret
    }

    /// For what others may see.
    pub(crate) fn array<const N: usize>(&mut self) -> [u8; N] {
        let mut bytes = [0; N];
        self.fill(&mut bytes);
        bytes
    }
}

impl snow::types::Random for Entropy {
    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), snow::Error> {
        self.fill(bytes);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_seed_gives_one_stream_and_no_draw_comes_again() {
        let (mut a, mut b) = (Entropy::new(&[1; 32]), Entropy::new(&[1; 32]));
        let first: [u8; 70] = a.array();
        assert_eq!(first, b.array());
        assert_ne!(first, a.array());
        assert_ne!(first[..32], first[32..64]);
        assert_ne!(Entropy::new(&[2; 32]).array::<8>(), first[..8]);
    }
}
