//! The rate that a path keeps up. What a shaper has saved while nothing was sent (the burst of RFC 2697 §3) leaves at the rate of the
//! link behind it: the path does not hold as much, and its queue does not empty as fast.

use crate::recovery::RateSample;
use restp_base::time::{Duration, Time};
use restp_base::units::Rate;

/// Shorter rounds are put together until they take so long: what a shaper saves leaves in less, and so in one such span, or in parts in
/// two. In a longer round it is a small part.
const LEAST: Duration = Duration::from_millis(50);

/// Spans of one round or more.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sustained {
    /// When the one that runs began, and what had been delivered by then.
    since: Option<(Time, u64)>,
    /// The rate of the one before.
    before: Option<Rate>,
}

impl Sustained {
    /// A round has ended. The rate of a long one; of short ones at the end of a span the one that this span and the one before had at
    /// least.
    pub fn on_round(&mut self, now: Time, sample: &RateSample) -> Option<Rate> {
        if sample.interval >= LEAST {
            self.begin_anew();
            return Some(Rate::of(sample.delivered_bytes, sample.interval));
        }
        let total = sample.delivered_total;
        // A count that has begun anew says nothing of the one before.
        self.since = self.since.filter(|(_, delivered)| *delivered <= total);
        let (since, delivered) = *self.since.get_or_insert((now, total));
        let span = now.since(since);
        if span < LEAST {
            return None;
        }
        self.since = Some((now, total));
        let rate = Rate::of(total - delivered, span);
        self.before.replace(rate).map(|before| before.min(rate))
    }

    /// The application did not fill this round.
    pub fn begin_anew(&mut self) {
        *self = Sustained::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(ms: u64, interval: u64, bytes: u64, total: u64) -> (Time, RateSample) {
        let sample = RateSample {
            delivered_bytes: bytes,
            interval: Duration::from_millis(interval),
            delivered_before: total - bytes,
            delivered_total: total,
            lost_bytes: 0,
            sent_in_flight_bytes: bytes,
            application_limited: false,
        };
        (Time::ZERO + Duration::from_millis(ms), sample)
    }

    fn rates(rounds: &[(Time, RateSample)]) -> Vec<Option<u64>> {
        let mut sustained = Sustained::default();
        let rate = |(now, sample): &(Time, RateSample)| sustained.on_round(*now, sample);
        rounds
            .iter()
            .map(rate)
            .map(|rate| rate.map(Rate::as_bps))
            .collect()
    }

    #[test]
    fn a_long_round_says_its_own_rate() {
        let rounds = [round(50, 50, 125_000, 125_000), round(100, 50, 100_000, 225_000)];
        assert_eq!(rates(&rounds), [Some(20_000_000), Some(16_000_000)]);
    }

    #[test]
    fn short_rounds_say_one_together() {
        let total = |ms| ms * 5_000 + if ms < 10 { 0 } else { 250_000 }; // 40 Mbit/s, and once 250 kB
        let rounds: Vec<_> = (1..=151).map(|ms| round(ms, 1, 5_000, total(ms))).collect();
        let said: Vec<_> = rates(&rounds).into_iter().flatten().collect();
        assert_eq!(said, [40_000_000, 40_000_000]);
    }

    #[test]
    fn a_count_that_begins_anew_begins_a_span() {
        let rounds = [(1, 9_000), (60, 1_000), (120, 61_000), (180, 121_000)];
        let rounds = rounds.map(|(ms, total)| round(ms, 1, 1_000, total));
        assert_eq!(rates(&rounds), [None, None, None, Some(8_000_000)]);
    }

    #[test]
    fn what_the_application_did_not_fill_is_left_out() {
        let mut sustained = Sustained::default();
        let mut on_round = |ms, anew| {
            let (now, sample) = round(ms, 1, 1_000, ms * 1_000);
            if anew {
                sustained.begin_anew();
            }
            sustained.on_round(now, &sample).is_some()
        };
        let rounds = [
            (1, false),
            (60, false),
            (120, false),
            (180, true),
            (240, false),
            (300, false),
        ];
        let said = rounds.map(|(ms, anew)| on_round(ms, anew));
        assert_eq!(said, [false, false, true, false, false, true]);
    }
}
