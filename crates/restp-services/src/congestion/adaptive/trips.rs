//! Round trips of the recent past (Copa, NSDI 2018): what the path takes without a queue, and what the queue adds.

use crate::recent::Recent;
use restp_base::time::{Duration, Time};
use std::cmp::Reverse;

/// How long the shortest round trip is remembered, at least. Queues empty more often where nobody fills them, and routes last
/// longer.
const SHORTEST_LIFE: Duration = Duration::from_secs(60);

/// The shortest round trip, and the standing one: the shortest of the last half of a round trip, which tells the queue from
/// what ends and timers add to single samples (Copa, NSDI 2018, §2.1).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Trips {
    shortest: Recent<Reverse<Duration>>,
    standing: Recent<Reverse<Duration>>,
}

impl Trips {
    pub fn on_sample(&mut self, now: Time, rtt: Duration, smoothed: Option<Duration>) {
        self.shortest.on_sample(now, Reverse(rtt), SHORTEST_LIFE);
        self.standing
            .on_sample(now, Reverse(rtt), smoothed.unwrap_or(rtt) / 4);
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
