//! Burst errors (transfer control §4.1): per packet an error event starts with a probability and flags a number of
//! packets, this one the first. An event drawn inside a burst replaces it. Two draws per packet.

use crate::spec_error::{SpecError, probability};
use restp_base::random::Stream;
use std::ops::RangeInclusive;

/// Runs of lost packets. The fraction lost is about `probability · mean size` while that is small.
#[derive(Clone, Debug, PartialEq)]
pub struct BurstLoss {
    /// Probability per packet that an error event starts.
    pub probability: f64,
    /// Packets flagged per event, uniform over this range; the published runs use 1..=4.
    pub sizes: RangeInclusive<u64>,
}

impl BurstLoss {
    pub(super) fn check(&self) -> Result<(), SpecError> {
        let (&least, &most) = (self.sizes.start(), self.sizes.end());
        if least == 0 || most < least {
            return Err(SpecError::BurstSize { least, most });
        }
        probability("a burst", self.probability)
    }
}

#[derive(Clone, Debug)]
pub(super) struct Process {
    model: BurstLoss,
    stream: Stream,
    /// Packets still to lose of the running burst.
    left: u64,
}

impl Process {
    pub(super) fn new(model: &BurstLoss, stream: Stream) -> Self {
        Process {
            model: model.clone(),
            stream,
            left: 0,
        }
    }

    pub(super) fn loses(&mut self) -> bool {
        let starts = self.stream.chance(self.model.probability);
        let (least, most) = (*self.model.sizes.start(), *self.model.sizes.end());
        let size = least + self.stream.below((most - least).saturating_add(1));
        if starts {
            self.left = size;
        }
        let lost = self.left > 0;
        self.left = self.left.saturating_sub(1);
        lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lost(probability: f64, sizes: RangeInclusive<u64>, packets: u64) -> Vec<bool> {
        let mut process = Process::new(&BurstLoss { probability, sizes }, Stream::named(1, "burst"));
        (0..packets).map(|_| process.loses()).collect()
    }

    /// Transfer control §5: exactly 0.02475 at a burst rate of 10⁻² and sizes 1..=4.
    #[test]
    fn the_published_setting_loses_the_published_fraction() {
        let packets = 1_000_000;
        let hits = lost(0.01, 1..=4, packets).iter().filter(|&&lost| lost).count() as f64;
        // Bursts are nearly independent: variance of the count is events times the mean squared size, 7.5.
        let sigma = (packets as f64 * 0.01 * 7.5).sqrt();
        let expected = packets as f64 * 0.02475;
        assert!(
            (hits - expected).abs() <= 3.0 * sigma,
            "{hits}, expected {expected} ± {sigma}"
        );
    }

    #[test]
    fn rare_bursts_have_the_size_given() {
        let pattern = lost(1e-4, 3..=3, 1_000_000);
        let runs: Vec<usize> = pattern
            .split(|&lost| !lost)
            .map(<[bool]>::len)
            .filter(|&n| n > 0)
            .collect();
        assert!(runs.len() > 50);
        let threes = runs.iter().filter(|&&n| n == 3).count();
        assert!(
            threes * 100 >= runs.len() * 97,
            "only where bursts meet are runs longer: {runs:?}"
        );
    }

    /// A packet passes only when none of the last three drew an event: (1 - r)³ of them. Were events inside a burst
    /// ignored, it would be a quarter here.
    #[test]
    fn an_event_inside_a_burst_replaces_it() {
        let passed = lost(0.5, 3..=3, 100_000).iter().filter(|&&lost| !lost).count() as f64;
        // Passes come in runs, which at most triples the variance of independent ones.
        let sigma = (100_000.0 * 0.125 * 0.875 * 3.0f64).sqrt();
        assert!((passed - 12_500.0).abs() <= 3.0 * sigma, "{passed} ± {sigma}");
    }

    #[test]
    fn certain_bursts_lose_everything() {
        assert!(lost(1.0, 1..=4, 100).iter().all(|&lost| lost));
    }
}
