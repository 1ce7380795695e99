//! Round trips of the recent past (Copa, NSDI 2018): what the path takes without a queue, and what the queue adds.

use crate::recent::Recent;
use restp_base::time::{Duration, Time};
use std::cmp::Reverse;

/// How long the shortest round trip is remembered, at least. Queues empty more often where nobody fills them, and routes last
/// longer.
const SHORTEST_LIFE: Duration = Duration::from_secs(60);

/// Rounds in a row that wait as long although this flow sends less: by chance, with a neighbour who takes just what is left to him, one or two do.
const LONGER_ROUNDS: u32 = 3;
/// As long: within this share of what the segments take that it sends less, and of the round trip, which is the noise of ends and timers.
const LIKE_DIVISOR: u64 = 8;
const NOISE_DIVISOR: u64 = 512;

/// The shortest round trip, and the standing one: the shortest of the last half of a round trip, which tells the queue from
/// what ends and timers add to single samples (Copa, NSDI 2018, §2.1).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Trips {
    shortest: Recent<Reverse<Duration>>,
    standing: Recent<Reverse<Duration>>,
    level: Option<Level>,
}

/// Rounds in a row that ended with the same queue: so many, and the window in bytes in the first.
#[derive(Clone, Copy, Debug)]
struct Level {
    queue: Duration,
    window: u64,
    rounds: u32,
}

impl Trips {
    pub fn on_sample(&mut self, now: Time, rtt: Duration, smoothed: Option<Duration>) {
        self.shortest.on_sample(now, Reverse(rtt), SHORTEST_LIFE);
        self.standing
            .on_sample(now, Reverse(rtt), smoothed.unwrap_or(rtt) / 4);
    }

    /// A round with a `window` of so many bytes has ended with this `queue`. A queue is shorter by `freed` for each `step` of bytes that are
    /// not sent. True when this one is not, and so is none: the path has become longer, and what was known of it is forgotten.
    pub fn on_round(&mut self, window: u64, queue: Duration, step: u64, freed: Duration) -> bool {
        let shortest = self.shortest().unwrap_or_default();
        let like = (freed / LIKE_DIVISOR).max(shortest / NOISE_DIVISOR);
        let is_like = |level: &Level| queue <= level.queue + like && level.queue <= queue + like;
        self.level = match self.level.filter(is_like) {
            _ if queue <= freed => None,
            Some(level) => Some(Level {
                rounds: level.rounds + 1,
                ..level
            }),
            None => Some(Level {
                queue,
                window,
                rounds: 0,
            }),
        };
        let is_longer = self
            .level
            .is_some_and(|level| level.rounds >= LONGER_ROUNDS && window + step <= level.window);
        if is_longer {
            *self = Trips::default();
        }
        is_longer
    }

    /// What is sent changes for another reason: rounds before and after are not compared.
    pub fn begin_rounds(&mut self) {
        self.level = None;
    }

    pub fn shortest(&self) -> Option<Duration> {
        self.shortest.get().map(|Reverse(rtt)| rtt)
    }
    pub fn standing(&self) -> Option<Duration> {
        self.standing.get().map(|Reverse(rtt)| rtt)
    }
    /// Time in the queue, once anything is known.
    pub fn queue(&self) -> Option<Duration> {
        Some(self.standing()?.saturating_sub(self.shortest()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }
    fn at(millis: u64) -> Time {
        Time::ZERO + ms(millis)
    }

    #[test]
    fn the_queue_is_what_the_shortest_of_half_a_round_trip_adds() {
        let mut trips = Trips::default();
        assert_eq!(trips.queue(), None);
        for (now, rtt) in [(0, 50), (100, 70), (105, 65), (110, 90)] {
            trips.on_sample(at(now), ms(rtt), Some(ms(80)));
        }
        assert_eq!(
            (trips.shortest(), trips.standing(), trips.queue()),
            (Some(ms(50)), Some(ms(65)), Some(ms(15)))
        );
    }

    /// The shortest round trip is 50 ms, four segments of a hundred take 4 ms. In which of these rounds, of a window in segments and a queue in
    /// microseconds, does the path prove to be longer?
    fn longer(rounds: &[(u64, u64)]) -> Option<usize> {
        let mut trips = Trips::default();
        trips.on_sample(at(0), ms(50), Some(ms(50)));
        let found = rounds
            .iter()
            .position(|&(window, queue)| trips.on_round(window, Duration::from_micros(queue), 4, ms(4)));
        assert_eq!(found.is_some(), trips.shortest().is_none());
        found
    }

    #[test]
    fn a_queue_that_is_as_long_whatever_is_sent_is_none() {
        assert_eq!(
            longer(&[(100, 4_500), (98, 4_000), (97, 5_000), (96, 4_600)]),
            None,
            "hardly a queue"
        );
        assert_eq!(
            longer(&[(100, 4_500), (98, 4_500), (97, 5_000), (96, 4_001)]),
            Some(3)
        );
        assert_eq!(
            longer(&[(100, 9_000), (98, 5_000), (97, 5_000), (96, 5_000), (94, 5_000)]),
            Some(4)
        );
        assert_eq!(
            longer(&[(100, 5_000), (98, 5_000), (97, 5_000), (97, 5_000)]),
            None,
            "hardly less is sent"
        );
        assert_eq!(
            longer(&[(100, 5_000), (98, 5_000), (96, 5_000)]),
            None,
            "may be chance"
        );
    }

    #[test]
    fn a_queue_from_which_a_neighbour_takes_what_is_left_to_him_is_one() {
        let part_of_it = [
            (100, 20_000),
            (96, 18_000),
            (92, 16_000),
            (88, 14_000),
            (84, 12_000),
            (80, 10_000),
        ];
        assert_eq!(longer(&part_of_it), None);
        let more = part_of_it.map(|(window, queue)| (window, 40_000 - queue));
        assert_eq!(longer(&more), None);
    }

    #[test]
    fn a_shorter_route_counts_at_once_and_a_longer_one_after_two_periods() {
        let mut trips = Trips::default();
        let mut after = |now, rtt| {
            trips.on_sample(at(now), ms(rtt), Some(ms(50)));
            trips.shortest()
        };
        assert_eq!(after(0, 50), Some(ms(50)));
        assert_eq!(after(10, 40), Some(ms(40)));
        assert_eq!(after(60_000, 80), Some(ms(40)));
        assert_eq!(after(119_999, 80), Some(ms(40)));
        assert_eq!(after(120_000, 80), Some(ms(80)));
        assert_eq!(
            after(400_000, 90),
            Some(ms(90)),
            "after a long silence nothing else is known"
        );
    }
}
