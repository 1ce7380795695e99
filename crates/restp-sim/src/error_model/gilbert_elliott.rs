//! Gilbert-Elliott: a good and a bad state, each with its own loss; starts good. Per packet: lost by the state it
//! meets, then perhaps a change of state. Two draws per packet.

use crate::spec_error::{SpecError, probability};
use restp_base::random::Stream;

/// Loss with memory. In the long run `(p · loss_bad + r · loss_good) / (p + r)` of the packets are lost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GilbertElliott {
    /// Probability per packet to go from good to bad.
    pub p: f64,
    /// Probability per packet to go from bad to good.
    pub r: f64,
    /// Loss in the good state.
    pub loss_good: f64,
    /// Loss in the bad state.
    pub loss_bad: f64,
}

impl GilbertElliott {
    pub(super) fn check(&self) -> Result<(), SpecError> {
        probability("turning bad", self.p)?;
        probability("turning good", self.r)?;
        probability("loss in the good state", self.loss_good)?;
        probability("loss in the bad state", self.loss_bad)
    }
}

#[derive(Clone, Debug)]
pub(super) struct Process {
    model: GilbertElliott,
    stream: Stream,
    bad: bool,
}

impl Process {
    pub(super) fn new(model: &GilbertElliott, stream: Stream) -> Self {
        Process {
            model: *model,
            stream,
            bad: false,
        }
    }

    pub(super) fn loses(&mut self) -> bool {
        let (loss, change) = if self.bad {
            (self.model.loss_bad, self.model.r)
        } else {
            (self.model.loss_good, self.model.p)
        };
        let lost = self.stream.chance(loss);
        self.bad ^= self.stream.chance(change);
        lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lost(p: f64, r: f64, packets: u64) -> Vec<bool> {
        let model = GilbertElliott {
            p,
            r,
            loss_good: 0.0,
            loss_bad: 1.0,
        };
        let mut process = Process::new(&model, Stream::named(1, "gilbert"));
        (0..packets).map(|_| process.loses()).collect()
    }

    #[test]
    fn the_share_of_bad_time_is_p_over_p_plus_r() {
        let (p, r, packets) = (0.01, 0.2, 1_000_000u64);
        let hits = lost(p, r, packets).iter().filter(|&&lost| lost).count() as f64;
        let share = p / (p + r);
        // A two-state chain's count varies by the factor (2 - p - r) / (p + r) more than independent trials.
        let sigma = (packets as f64 * share * (1.0 - share) * (2.0 - p - r) / (p + r)).sqrt();
        let expected = packets as f64 * share;
        assert!(
            (hits - expected).abs() <= 3.0 * sigma,
            "{hits}, expected {expected} ± {sigma}"
        );
    }

    #[test]
    fn the_mean_stay_in_the_bad_state_is_one_over_r() {
        let pattern = lost(0.01, 0.2, 1_000_000);
        let runs: Vec<usize> = pattern
            .split(|&lost| !lost)
            .map(<[bool]>::len)
            .filter(|&n| n > 0)
            .collect();
        let mean = runs.iter().sum::<usize>() as f64 / runs.len() as f64;
        // Geometric with mean 1/r: standard deviation sqrt(1-r)/r.
        let sigma = (1.0f64 - 0.2).sqrt() / 0.2 / (runs.len() as f64).sqrt();
        assert!((mean - 5.0).abs() <= 3.0 * sigma, "{mean} ± {sigma}");
    }

    #[test]
    fn a_state_without_exit_is_kept() {
        assert!(lost(0.0, 1.0, 1000).iter().all(|&lost| !lost));
        assert!(lost(1.0, 0.0, 1000)[1..].iter().all(|&lost| lost));
    }
}
