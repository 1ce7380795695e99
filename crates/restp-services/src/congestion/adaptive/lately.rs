//! What is told as coarsely as timers are (1 ms, RFC 9002 §6.1.2). A runtime rounds up to it, and so does the system call that waits: a round trip of 20 ms
//! has a burst more or less, and each end and each acknowledgement adds its own.

use crate::congestion::bbr::filter::RecentMax;
use restp_base::time::Duration;
use restp_base::units::Rate;

/// Rounds in which round trips vary as they do: a cycle of this flow, whose own segments come and go meanwhile.
const MEMORY_ROUNDS: u64 = 4;
/// What waits for no longer may wait for timers. On a short path that is a share of the round trip.
const TIMER: Duration = Duration::from_millis(1);
const TIMER_DIVISOR: u64 = 16;

/// The last rounds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Lately {
    /// In bit/s.
    fastest: RecentMax,
    /// In nanoseconds.
    varied: RecentMax,
}

impl Lately {
    /// Round number `count` had this rate, and round trips varied by `noise` in it. The higher rate of two rounds counts, which no neighbour
    /// profits from for long, and the most that round trips varied by in one of the last four to eight.
    pub fn on_round(&mut self, count: u64, rate: Rate, noise: Duration) -> (Rate, Duration) {
        self.fastest.update(rate.as_bps());
        self.varied.update(noise.as_nanos().max(1));
        let rate = Rate::from_bps(self.fastest.get());
        let noise = Duration::from_nanos(self.varied.get());
        self.fastest.advance();
        if count.is_multiple_of(MEMORY_ROUNDS) {
            self.varied.advance();
        }
        (rate, noise)
    }
}

/// How long segments may seem to wait because of timers, where the shortest round trip is this.
pub(super) fn of_timers(shortest: Duration) -> Duration {
    TIMER.min(shortest / TIMER_DIVISOR)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_counts_for_two_rounds_and_noise_for_four_to_eight() {
        let mut lately = Lately::default();
        let mut round = |count, mbps: u64, us| {
            let (rate, noise) =
                lately.on_round(count, Rate::from_bps(mbps * 1_000_000), Duration::from_micros(us));
            (rate.as_bps() / 1_000_000, noise.as_nanos() / 1_000)
        };
        assert_eq!(round(1, 90, 100), (90, 100));
        assert_eq!(round(2, 80, 700), (90, 700));
        assert_eq!(round(3, 70, 0), (80, 700));
        let later: Vec<_> = (4..10).map(|count| round(count, 60, 0)).collect();
        assert_eq!(later[..2], [(70, 700), (60, 700)]);
        assert_eq!(later[4..], [(60, 700), (60, 0)], "until the eighth");
        assert_eq!(of_timers(Duration::from_millis(100)), TIMER);
        assert_eq!(of_timers(Duration::from_micros(160)), Duration::from_micros(10));
    }
}
