//! What one round does not tell, because timers are coarse (1 ms, RFC 9002 §6.1.2): a round of 20 ms has a burst of a millisecond more or less,
//! so its rate is known to a tenth, and round trips vary by what the timers of both ends add.

use super::sustained::Sustained;
use crate::congestion::bbr::filter::RecentMax;
use restp_base::time::Duration;
use restp_base::units::Rate;

/// Rounds in which round trips vary by what they do: this flow takes its segments out of the queue about once in so many.
const MEMORY_ROUNDS: u64 = 4;
/// What waits for no longer may wait for timers. On a short path that is a share of the round trip.
const TIMER: Duration = Duration::from_millis(1);
const TIMER_DIVISOR: u64 = 16;

/// What rounds have shown.
#[derive(Clone, Debug, Default)]
pub(super) struct Past {
    pub sustained: Sustained,
    pub lately: Lately,
}

/// The last rounds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Lately {
    /// In bit/s.
    fastest: RecentMax,
    /// In nanoseconds, and so many rounds.
    varied: RecentMax,
    rounds: u64,
}

impl Lately {
    /// A round delivered `bytes` in `interval`: its rate, or that of the last one, as far as what waited for a timer explains the
    /// difference. Where a path becomes slower its old rate would be a queue.
    pub fn fastest(&mut self, bytes: u64, interval: Duration) -> Rate {
        let rate = Rate::of(bytes, interval);
        self.fastest.update(rate.as_bps());
        let fastest = Rate::from_bps(self.fastest.get());
        self.fastest.advance();
        fastest.min(Rate::of(bytes.saturating_add(rate.bytes_in(TIMER)), interval))
    }

    /// Round trips varied by `noise` in a round: the most in one of the last four to eight.
    pub fn varied(&mut self, noise: Duration) -> Duration {
        self.varied.update(noise.as_nanos().max(1)); // zero is no value there
        let varied = Duration::from_nanos(self.varied.get());
        self.rounds += 1;
        if self.rounds.is_multiple_of(MEMORY_ROUNDS) {
            self.varied.advance();
        }
        varied
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
    fn a_rate_counts_for_two_rounds_as_far_as_timers_explain_it_and_noise_for_four_to_eight() {
        let mut lately = Lately::default();
        let mbps = |delivered: [u64; 4], ms: u64, lately: &mut Lately| {
            let round = |mbps: u64| lately.fastest(mbps * 125 * ms, Duration::from_millis(ms));
            delivered.map(round).map(|rate| rate.as_bps() / 1_000_000)
        };
        assert_eq!(mbps([100, 98, 80, 60], 20, &mut lately), [100, 100, 84, 63]);
        lately = Lately::default();
        assert_eq!(mbps([100, 80, 60, 100], 1, &mut lately), [100, 100, 80, 100]);
        let noise = [100, 700, 0, 0, 0, 0, 0, 0, 0].map(Duration::from_micros);
        let varied = noise.map(|noise| lately.varied(noise).as_nanos() / 1_000);
        assert_eq!(varied, [100, 700, 700, 700, 700, 700, 700, 700, 0]);
        assert_eq!(of_timers(Duration::from_millis(100)), TIMER);
        assert_eq!(of_timers(Duration::from_micros(160)), Duration::from_micros(10));
    }
}
