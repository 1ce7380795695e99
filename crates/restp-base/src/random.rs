//! One seed, many named streams: two parts of a run never share a generator, so adding one part leaves
//! the numbers of all others as they were.

use rand_core::Rng;
use rand_pcg::Pcg64;

/// A reproducible stream of random numbers (PCG XSL-RR 128/64), the same on every machine.
#[derive(Clone, Debug)]
pub struct Stream(Pcg64);

impl Stream {
    /// The stream `name` of the run `seed`, for example `Stream::named(1, "link/access/forward/loss")`.
    pub fn named(seed: u64, name: &str) -> Self {
        Stream(Pcg64::new(u128::from(seed), stable_hash(name)))
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Uniform in `0.0 ..< 1.0`, from 53 bits.
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Uniform in `0 ..< bound` (`bound` > 0), by multiplication of 64 bits.
    pub fn below(&mut self, bound: u64) -> u64 {
        debug_assert!(bound > 0, "an empty range has no element");
        ((u128::from(self.bits()) * u128::from(bound)) >> 64) as u64
    }

    /// True with `probability`. Draws one number whatever the probability is.
    pub fn chance(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }
}

/// FNV-1a with 128 bits: the hash of a name is part of our results and must never change.
fn stable_hash(name: &str) -> u128 {
    name.bytes()
        .fold(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d, |hash, byte| {
            (hash ^ u128::from(byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_a_stream_of_its_own() {
        let draw = |seed, name| Stream::named(seed, name).bits();
        assert_eq!(draw(1, "a"), draw(1, "a"));
        assert_ne!(draw(1, "a"), draw(1, "b"));
        assert_ne!(draw(1, "a"), draw(2, "a"));
    }

    #[test]
    fn the_numbers_of_a_seed_never_change() {
        let mut stream = Stream::named(1, "link/access/forward/loss");
        let first: Vec<u64> = (0..3).map(|_| stream.bits()).collect();
        assert_eq!(first, FIRST_THREE);
    }
    const FIRST_THREE: [u64; 3] = [18107533857293414171, 273504116735767314, 18145478349621926482];

    #[test]
    fn a_rate_of_one_percent_is_one_percent() {
        let mut stream = Stream::named(7, "loss");
        let hits = (0..100_000).filter(|_| stream.chance(0.01)).count();
        assert!((900..1100).contains(&hits), "{hits}");
        assert!((0..1000).all(|_| stream.below(3) < 3));
    }
}
