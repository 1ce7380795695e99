//! Independent losses: per packet (transfer control §4.2), or per bit with `1 - (1-p)^bits` per packet.
//! One draw per packet.

use crate::spec_error::{SpecError, probability};
use restp_base::random::Stream;

/// Every packet (or bit) is hit independently.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateLoss {
    /// Probability per unit.
    pub probability: f64,
    /// What the probability is per.
    pub unit: LossUnit,
}

/// What a loss probability is per.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LossUnit {
    /// Per packet: published tables state packet error rates.
    #[default]
    Packet,
    /// Per bit: longer packets are lost more often.
    Bit,
}

impl RateLoss {
    pub(super) fn check(&self) -> Result<(), SpecError> {
        probability("loss", self.probability)
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Process {
    model: RateLoss,
    stream: Stream,
    /// The probability for packets of the size seen last: most packets of a direction have one size.
    known: (u32, f64),
}

impl Process {
    pub(crate) fn new(model: &RateLoss, stream: Stream) -> Self {
        Process {
            model: *model,
            stream,
            known: (0, 0.0),
        }
    }

    pub(crate) fn loses(&mut self, bytes: u32) -> bool {
        let probability = match self.model.unit {
            LossUnit::Packet => self.model.probability,
            LossUnit::Bit => {
                if self.known.0 != bytes {
                    self.known = (bytes, at_least_one(self.model.probability, u64::from(bytes) * 8));
                }
                self.known.1
            }
        };
        self.stream.chance(probability)
    }
}

/// `1 - (1-p)^n` by repeated doubling of "either happens", `a + b - ab`: exact to rounding for the smallest `p`, and
/// made of operations that give the same bits on every processor, which a library's power function does not.
fn at_least_one(p: f64, mut n: u64) -> f64 {
    let either = |a: f64, b: f64| a + b - a * b;
    let (mut total, mut power) = (0.0, p);
    while n > 0 {
        if n & 1 == 1 {
            total = either(total, power);
        }
        power = either(power, power);
        n >>= 1;
    }
    total
}

#[cfg(test)]
mod tests {
    use super::super::statistics::assert_three_sigma;
    use super::*;

    fn hits(model: RateLoss, bytes: u32, trials: u64) -> u64 {
        let mut process = Process::new(&model, Stream::named(1, "rate"));
        (0..trials).filter(|_| process.loses(bytes)).count() as u64
    }

    #[test]
    fn one_percent_of_packets_is_one_percent() {
        let model = RateLoss {
            probability: 0.01,
            unit: LossUnit::Packet,
        };
        assert_three_sigma(hits(model, 1500, 200_000), 200_000, 0.01);
        assert_eq!(
            hits(
                RateLoss {
                    probability: 0.0,
                    ..model
                },
                1500,
                1000
            ),
            0
        );
        assert_eq!(
            hits(
                RateLoss {
                    probability: 1.0,
                    ..model
                },
                1500,
                1000
            ),
            1000
        );
    }

    #[test]
    fn bit_errors_hit_long_packets_more() {
        let model = RateLoss {
            probability: 1e-5,
            unit: LossUnit::Bit,
        };
        for bytes in [40, 1500] {
            let expected = 1.0 - (1.0 - 1e-5f64).powf(f64::from(bytes) * 8.0);
            assert_three_sigma(hits(model, bytes, 200_000), 200_000, expected);
        }
    }

    #[test]
    fn tiny_bit_error_rates_keep_their_precision() {
        let loss = at_least_one(1e-15, 12_000);
        assert!((loss / 1.2e-11 - 1.0).abs() < 1e-9, "{loss}");
        assert_eq!(at_least_one(0.5, 2), 0.75);
        assert_eq!(at_least_one(1.0, 3), 1.0);
    }
}
