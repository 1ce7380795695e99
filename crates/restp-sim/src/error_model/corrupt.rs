//! Corruption: one bit of the packet flips. Two draws per packet: whether, and which bit.

use restp_base::random::Stream;

/// Flips one bit of a packet, uniform over its bits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Corrupt {
    /// Probability per packet.
    pub probability: f64,
}

#[derive(Clone, Debug)]
pub(super) struct Process {
    model: Corrupt,
    stream: Stream,
}

impl Process {
    pub(super) fn new(model: Corrupt, stream: Stream) -> Self {
        Process { model, stream }
    }

    /// The bit to flip, below `8 · bytes`.
    pub(super) fn flips(&mut self, bytes: u32) -> Option<u64> {
        let flips = self.stream.chance(self.model.probability);
        let bit = self.stream.below(u64::from(bytes.max(1)) * 8);
        flips.then_some(bit)
    }
}

#[cfg(test)]
mod tests {
    use super::super::statistics::assert_three_sigma;
    use super::*;

    #[test]
    fn bits_are_hit_evenly_with_the_probability_given() {
        let mut process = Process::new(Corrupt { probability: 0.1 }, Stream::named(1, "corrupt"));
        let bits: Vec<u64> = (0..100_000).filter_map(|_| process.flips(100)).collect();
        assert_three_sigma(bits.len() as u64, 100_000, 0.1);
        assert!(bits.iter().all(|&bit| bit < 800));
        let first_half = bits.iter().filter(|&&bit| bit < 400).count() as u64;
        assert_three_sigma(first_half, bits.len() as u64, 0.5);
    }
}
