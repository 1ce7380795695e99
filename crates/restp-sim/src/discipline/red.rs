//! Random early detection (Floyd, Jacobson 1993): the longer the average queue, the likelier an arrival is dropped or
//! marked. With the gentle variant (Floyd 2000) the probability rises on to 1 above the upper threshold.

use super::{Admission, Arrival, Backlog, QueueLimit};
use crate::mark::MarkThreshold;
use crate::spec_error::{SpecError, probability};
use restp_base::machine::Ecn;
use restp_base::random::Stream;

/// Thresholds in bytes make a packet likelier to go the larger it is, by its share of this.
const MEAN_PACKET_BYTES: u32 = 1500;

/// Parameters of RED.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Red {
    /// The most that may wait, whatever the average is. One bandwidth-delay product.
    pub limit: QueueLimit,
    /// Average queue below which nothing is dropped. 5 packets (Floyd, Jacobson 1993 §11).
    pub min: MarkThreshold,
    /// Average queue at which the probability reaches `max_p`. 15 packets: three times `min` (Floyd 1997).
    pub max: MarkThreshold,
    /// 0.1 (Floyd 1997; the paper of 1993 used 0.02).
    pub max_p: f64,
    /// Weight of a new sample in the average. 0.002 (Floyd, Jacobson 1993 §6).
    pub weight: f64,
    /// Above `max` the probability rises from `max_p` to 1 at twice `max`; without, it is 1 from `max` on. On.
    pub gentle: bool,
    /// Mark packets that can be marked while the probability is below 1 (RFC 3168 §7). On.
    pub ecn: bool,
}

impl Default for Red {
    fn default() -> Self {
        Red {
            limit: QueueLimit::Bdp,
            min: MarkThreshold::Packets(5),
            max: MarkThreshold::Packets(15),
            max_p: 0.1,
            weight: 0.002,
            gentle: true,
            ecn: true,
        }
    }
}

impl Red {
    pub(super) fn check(&self) -> Result<(), SpecError> {
        probability("red, max_p", self.max_p)?;
        probability("red, weight", self.weight)?;
        match (self.min, self.max) {
            (MarkThreshold::Packets(min), MarkThreshold::Packets(max))
            | (MarkThreshold::Bytes(min), MarkThreshold::Bytes(max))
                if min < max =>
            {
                Ok(())
            }
            (min, max) => Err(SpecError::RedThresholds { min, max }),
        }
    }
}

/// The running form of a [`Red`].
#[derive(Clone, Debug)]
pub(crate) struct Process {
    parameters: Red,
    /// The thresholds as numbers, and whether they count bytes.
    min: f64,
    max: f64,
    bytes: bool,
    /// How many packets the line sends in a nanosecond.
    packets_per_nano: f64,
    average: f64,
    /// Arrivals since the last one dropped or marked; `None` while the average is below `min`.
    count: Option<u64>,
    stream: Stream,
}

impl Process {
    pub(super) fn new(parameters: &Red, rate_bps: u64, stream: Stream) -> Self {
        let number = |threshold| match threshold {
            MarkThreshold::Packets(n) | MarkThreshold::Bytes(n) => n as f64,
        };
        Process {
            parameters: *parameters,
            min: number(parameters.min),
            max: number(parameters.max),
            bytes: matches!(parameters.min, MarkThreshold::Bytes(_)),
            packets_per_nano: rate_bps as f64 / (f64::from(MEAN_PACKET_BYTES) * 8e9),
            average: 0.0,
            count: None,
            stream,
        }
    }

    pub(super) fn draw(&mut self) -> f64 {
        self.stream.unit()
    }

    pub(super) fn admit(&mut self, arrival: Arrival, waiting: &Backlog) -> Admission {
        self.observe(arrival, waiting);
        let early = self.early(arrival);
        let room = arrival.idle.is_some()
            || self
                .parameters
                .limit
                .admits(waiting.packets(), waiting.bytes(), arrival.bytes);
        if !room {
            self.count = Some(0);
            return Admission::Drop;
        }
        early
    }

    /// Moves the average: by the queue found, or, after an idle time, by as many samples of an empty queue as packets
    /// could have been sent meanwhile.
    fn observe(&mut self, arrival: Arrival, waiting: &Backlog) {
        let weight = self.parameters.weight;
        match arrival.idle {
            Some(idle) => {
                let samples = (idle.as_nanos() as f64 * self.packets_per_nano) as u64;
                self.average *= power(1.0 - weight, samples + 1);
            }
            None => {
                let queue = if self.bytes {
                    waiting.bytes()
                } else {
                    waiting.packets()
                };
                self.average += weight * (queue as f64 - self.average);
            }
        }
    }

    /// What the average says about this arrival.
    fn early(&mut self, arrival: Arrival) -> Admission {
        let Some(base) = self.base_probability(arrival.bytes) else {
            self.count = None;
            return Admission::Pass;
        };
        let count = self.count.map_or(0, |count| count + 1);
        // Spreads the drops evenly instead of geometrically (§7, method 2).
        let left = 1.0 - count as f64 * base;
        let hit = base >= 1.0 || left <= 0.0 || arrival.luck < base / left;
        self.count = Some(if hit { 0 } else { count });
        match hit {
            false => Admission::Pass,
            true if base < 1.0 && self.parameters.ecn && arrival.ecn != Ecn::NotEct => Admission::Mark,
            true => Admission::Drop,
        }
    }

    /// The probability before it is spread; `None` below `min`.
    fn base_probability(&self, bytes: u32) -> Option<f64> {
        let Process {
            min, max, average, ..
        } = *self;
        let Red { max_p, gentle, .. } = self.parameters;
        if average < min {
            return None;
        }
        let base = if average < max {
            max_p * (average - min) / (max - min)
        } else if gentle && average < 2.0 * max {
            max_p + (1.0 - max_p) * (average - max) / max
        } else {
            return Some(1.0);
        };
        let size = if self.bytes {
            f64::from(bytes) / f64::from(MEAN_PACKET_BYTES)
        } else {
            1.0
        };
        // Below 1 it is a matter of chance, and stays one for large packets.
        Some((base * size).min(1.0 - f64::EPSILON))
    }
}

/// `base` to the power of `exponent` by squaring: the same bits on every machine.
fn power(mut base: f64, mut exponent: u64) -> f64 {
    let mut result = 1.0;
    while exponent > 0 && result > 0.0 {
        if exponent % 2 == 1 {
            result *= base;
        }
        base *= base;
        exponent /= 2;
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use restp_base::time::{Duration, Time};

    fn process(parameters: Red) -> Process {
        Process::new(&parameters, 12_000_000, Stream::named(1, "link/a/forward/queue"))
    }

    fn queue(packets: u64) -> Backlog {
        let mut backlog = Backlog::default();
        (0..packets).for_each(|_| backlog.push(Time::MAX, 1500));
        backlog
    }

    fn arrival(luck: f64) -> Arrival {
        Arrival {
            idle: None,
            bytes: 1500,
            ecn: Ecn::NotEct,
            luck,
        }
    }

    const PLAIN: Red = Red {
        limit: QueueLimit::Packets(50),
        min: MarkThreshold::Packets(5),
        max: MarkThreshold::Packets(15),
        max_p: 0.1,
        weight: 0.5,
        gentle: false,
        ecn: true,
    };

    /// Samples 8, 8, 8 at weight 1/2: averages 4, 6, 7. An idle time of 3 packets (1 ms each at 12 Mbit/s) is 3 samples
    /// of nothing, and the arrival that ends it the fourth: 7/16.
    #[test]
    fn the_average_follows_the_queue_and_forgets_while_idle() {
        let mut red = process(PLAIN);
        let averages: Vec<f64> = (0..3)
            .map(|_| {
                red.admit(arrival(0.999), &queue(8));
                red.average
            })
            .collect();
        assert_eq!(averages, [4.0, 6.0, 7.0]);
        let idle = Some(Duration::from_micros(3_500));
        red.admit(
            Arrival {
                idle,
                ..arrival(0.999)
            },
            &queue(0),
        );
        assert_eq!(red.average, 0.4375);
    }

    /// At an average of 10 the base probability is 0.1 · 5/10 = 0.05: after 0, 1, 2 … arrivals without a drop it is
    /// 1/20, 1/19, 1/18 …, and the twentieth is dropped for certain.
    #[test]
    fn drops_are_spread_evenly() {
        let until_dropped = |luck: f64| {
            let mut red = process(PLAIN);
            red.average = 10.0;
            (1..).find(|_| red.admit(arrival(luck), &queue(10)) == Admission::Drop)
        };
        assert_eq!(until_dropped(0.0499), Some(1));
        assert_eq!(until_dropped(0.0501), Some(2), "1/19 is 0.0526");
        assert_eq!(until_dropped(0.0999), Some(11), "1/10 is reached after ten");
        assert_eq!(until_dropped(0.9999), Some(20));
    }

    #[test]
    fn beyond_the_upper_threshold_it_is_all_or_gentle() {
        let at = |gentle: bool, average: f64, luck: f64| {
            let mut red = process(Red { gentle, ..PLAIN });
            red.average = average;
            red.admit(arrival(luck), &queue(average as u64))
        };
        assert_eq!(at(false, 15.0, 0.99), Admission::Drop);
        // Half way from 15 to 30 it is 0.1 + 0.9 · 0.5 = 0.55.
        assert_eq!(at(true, 22.5, 0.56), Admission::Pass);
        assert_eq!(at(true, 22.0, 0.51), Admission::Drop, "0.1 + 0.9 · 7/15 = 0.52");
        assert_eq!(at(true, 30.0, 0.99), Admission::Drop);
        assert_eq!(at(true, 4.9, 0.0), Admission::Pass);
    }

    #[test]
    fn marks_take_the_place_of_drops_while_it_is_a_matter_of_chance() {
        let at = |average: f64, ecn| {
            let mut red = process(PLAIN);
            red.average = average;
            red.admit(Arrival { ecn, ..arrival(0.0) }, &queue(average as u64))
        };
        assert_eq!(at(10.0, Ecn::Ect0), Admission::Mark);
        assert_eq!(at(10.0, Ecn::NotEct), Admission::Drop);
        assert_eq!(
            at(20.0, Ecn::Ect0),
            Admission::Drop,
            "RFC 3168 §7: above the upper threshold"
        );
    }

    #[test]
    fn a_full_queue_drops_whatever_the_average_says() {
        let mut red = process(PLAIN);
        assert_eq!(red.admit(arrival(0.99), &queue(50)), Admission::Drop);
        assert_eq!(red.average, 25.0);
    }

    #[test]
    fn in_bytes_a_small_packet_is_spared() {
        let mut red = process(Red {
            min: MarkThreshold::Bytes(5_000),
            max: MarkThreshold::Bytes(15_000),
            ..PLAIN
        });
        red.average = 10_000.0;
        assert_eq!(red.base_probability(1500), Some(0.05));
        assert_eq!(red.base_probability(150), Some(0.1 * 0.5 * 0.1));
    }

    #[test]
    fn powers_are_exact_products() {
        assert_eq!(
            [power(0.5, 0), power(0.5, 1), power(0.5, 10)],
            [1.0, 0.5, 0.5f64 * 0.001953125]
        );
        assert_eq!(power(0.998, u64::MAX), 0.0);
    }
}
