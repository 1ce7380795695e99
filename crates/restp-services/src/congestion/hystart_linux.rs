//! HyStart as Linux has it (Ha and Rhee, "Taming the elephants", 2011; `tcp_cubic.c`): the first slow start ends at once
//! when the round trips of one round are longer than the shortest, or when a train of acknowledgements lasts for half of
//! the shortest. RFC 9406 ([`super::hystart`]) goes on with caution instead, and looks at no trains.

use restp_base::time::{Duration, Time};

/// Round trips of a round that are looked at (HYSTART_MIN_SAMPLES).
const SAMPLES: u32 = 8;
/// Bounds of the delay that counts as an increase (HYSTART_DELAY_MIN, HYSTART_DELAY_MAX), and its share of a round trip.
const LEAST_INCREASE: Duration = Duration::from_millis(4);
const MOST_INCREASE: Duration = Duration::from_millis(16);
const INCREASE_DIVISOR: u64 = 8;
/// Acknowledgements that follow each other within this time are a train (hystart_ack_delta_us).
const TRAIN_GAP: Duration = Duration::from_millis(2);
/// Smaller windows, in segments, are not judged (hystart_low_window).
const LEAST_WINDOW: u64 = 16;

/// State of a slow start. A round ends when what was in flight at its beginning has been acknowledged.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LinuxHyStart {
    round_left: u64,
    round_began: Time,
    /// The last acknowledgement of the train.
    train_at: Time,
    samples: u32,
    round_minimum: Option<Duration>,
    shortest: Option<Duration>,
}

impl LinuxHyStart {
    /// `bytes` were acknowledged with a round-trip sample, or none; `in_flight` bytes are out now and the window holds
    /// `window` segments. True when slow start is over.
    pub fn is_over(
        &mut self,
        now: Time,
        bytes: u64,
        rtt: Option<Duration>,
        in_flight: u64,
        window: u64,
    ) -> bool {
        if self.round_left == 0 {
            self.begin_round(now, in_flight.saturating_add(bytes));
        }
        self.round_left = self.round_left.saturating_sub(bytes);
        let Some(rtt) = rtt else { return false };
        let shortest = self.shortest.map_or(rtt, |shortest| shortest.min(rtt));
        self.shortest = Some(shortest);
        if window < LEAST_WINDOW {
            return false;
        }
        self.is_long_train(now, shortest) || self.is_delayed(rtt, shortest)
    }

    /// What is acknowledged next begins a round.
    pub fn rest(&mut self) {
        self.round_left = 0;
    }

    fn begin_round(&mut self, now: Time, bytes: u64) {
        self.round_left = bytes;
        (self.round_began, self.train_at) = (now, now);
        (self.samples, self.round_minimum) = (0, None);
    }

    /// Without pacing, acknowledgements for half of a round trip mean that the path is half full, and the window fills it
    /// when doubled.
    fn is_long_train(&mut self, now: Time, shortest: Duration) -> bool {
        if now.since(self.train_at) > TRAIN_GAP {
            return false;
        }
        self.train_at = now;
        now.since(self.round_began) > shortest / 2
    }

    fn is_delayed(&mut self, rtt: Duration, shortest: Duration) -> bool {
        let minimum = self.round_minimum.map_or(rtt, |minimum| minimum.min(rtt));
        self.round_minimum = Some(minimum);
        if self.samples < SAMPLES {
            self.samples += 1;
            return false;
        }
        let increase = (shortest / INCREASE_DIVISOR)
            .max(LEAST_INCREASE)
            .min(MOST_INCREASE);
        minimum > shortest + increase
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEGMENT: u64 = 1000;

    fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    /// Rounds of 20 segments, 100 ms apart, with acknowledgements `gap` apart and these round trips. The round in which
    /// slow start ended.
    fn ends_in(trips: &[u64], gap: Duration, window: u64) -> Option<usize> {
        let mut start = LinuxHyStart::default();
        trips.iter().enumerate().position(|(round, trip)| {
            let began = Time::ZERO + ms(100 * round as u64);
            (0..20).any(|n| {
                let now = began + gap.scaled(n, 1);
                start.is_over(now, SEGMENT, Some(ms(*trip)), 19 * SEGMENT, window)
            })
        })
    }

    #[test]
    fn a_round_of_longer_round_trips_ends_it_at_once() {
        let gap = ms(3); // no train
        assert_eq!(ends_in(&[80, 80, 90, 90], gap, 20), None, "not above an eighth");
        assert_eq!(ends_in(&[80, 80, 91, 91], gap, 20), Some(2));
        assert_eq!(ends_in(&[8, 8, 12, 12], gap, 20), None, "4 ms at least");
        assert_eq!(ends_in(&[8, 8, 13], gap, 20), Some(2));
        assert_eq!(ends_in(&[400, 400, 417], gap, 20), Some(2), "16 ms at most");
    }

    /// The ninth sample of a round is the first that counts.
    #[test]
    fn eight_samples_come_first() {
        let mut start = LinuxHyStart::default();
        let ends = (0..40).position(|n| {
            let trip = if n < 20 { 80 } else { 100 };
            start.is_over(Time::ZERO + ms(3 * n), SEGMENT, Some(ms(trip)), 19 * SEGMENT, 20)
        });
        assert_eq!(ends, Some(28));
    }

    #[test]
    fn one_short_round_trip_clears_a_round() {
        let mut start = LinuxHyStart::default();
        let mut hear = |n: u64, trip| {
            let now = Time::ZERO + ms(3 * n);
            start.is_over(now, SEGMENT, Some(ms(trip)), 19 * SEGMENT, 20)
        };
        assert!(!hear(0, 80));
        assert!((1..8).all(|n| !hear(n, 80)));
        assert!((20..40).all(|n| !hear(n, if n == 22 { 80 } else { 100 })));
    }

    #[test]
    fn a_train_of_half_a_round_trip_ends_it() {
        // 20 acknowledgements 1 ms apart last for 19 ms.
        assert_eq!(ends_in(&[37, 37], ms(1), 20), Some(0));
        assert_eq!(ends_in(&[39, 39], ms(1), 20), None);
        assert_eq!(
            ends_in(&[37, 37], Duration::from_micros(2001), 20),
            None,
            "a gap ends the train"
        );
    }

    #[test]
    fn small_windows_are_not_judged() {
        assert_eq!(ends_in(&[37, 80, 80], ms(1), 15), None);
    }

    /// Rounds of another slow start are none of this one's: what had been seen of the last one would end it at once.
    #[test]
    fn after_a_rest_a_round_begins() {
        let ends = |rests: bool| {
            let mut start = LinuxHyStart::default();
            let mut hear =
                |at, trip| start.is_over(Time::ZERO + ms(at), SEGMENT, Some(ms(trip)), 99 * SEGMENT, 100);
            assert!((0..50).all(|n| !hear(3 * n, 80)));
            if rests {
                start.rest();
            }
            start.is_over(Time::ZERO + ms(10_000), SEGMENT, Some(ms(80)), 99 * SEGMENT, 100);
            start.round_began
        };
        assert_eq!((ends(false), ends(true)), (Time::ZERO, Time::ZERO + ms(10_000)));
    }
}
