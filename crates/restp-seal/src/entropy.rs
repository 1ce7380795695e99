//! Chance from one seed, which the driver takes from the operating system and a simulation from its own: HMAC-SHA256 in
//! counter mode (as NIST SP 800-90A, 2015, §10.1.2). The key moves on after each draw, so that a memory that is read
//! later does not tell what was drawn before.

use aws_lc_rs::hmac::{HMAC_SHA256, Key, sign};

/// A stream of bytes nobody can foresee who lacks the seed.
pub(crate) struct Entropy(Key);

impl Entropy {
    pub(crate) fn new(seed: [u8; 32]) -> Self {
        Entropy(Key::new(HMAC_SHA256, &seed))
    }

    pub(crate) fn fill(&mut self, bytes: &mut [u8]) {
        for (number, block) in (1_u64..).zip(bytes.chunks_mut(32)) {
            let drawn = sign(&self.0, &number.to_be_bytes());
            block.copy_from_slice(&drawn.as_ref()[..block.len()]);
        }
        let next = sign(&self.0, &0_u64.to_be_bytes());
        self.0 = Key::new(HMAC_SHA256, next.as_ref());
    }

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
        let (mut a, mut b) = (Entropy::new([1; 32]), Entropy::new([1; 32]));
        let first: [u8; 70] = a.array();
        assert_eq!(first, b.array());
        assert_ne!(first, a.array());
        assert_ne!(first[..32], first[32..64]);
        assert_ne!(Entropy::new([2; 32]).array::<8>(), first[..8]);
    }
}
