//! Partial ordering (ResTP §3.5.7): how long a hole may hold up what came after it before the receiver skips it
//! (OP-48). Data in order is handed up at once, so only data behind a hole waits. Ordered delivery without retransmissions
//! uses the same rule, because nobody will fill its holes (ResTP §14).

use restp_base::time::{Duration, Time};

/// What decides how long a hole is held, most specific first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HoldParameters {
    /// This long, whatever the path is like. Default: not set.
    pub hold: Option<Duration>,
    /// Data is of use to the application until this long after it was sent. Default: not known.
    pub deadline: Option<Duration>,
    /// Distance between two frames of the application: the first arrival behind a hole is younger by this much.
    /// Default 20 ms, the packet interval of G.711 (ResTP §4.5).
    pub frame_interval: Duration,
}

impl Default for HoldParameters {
    fn default() -> Self {
        HoldParameters {
            hold: None,
            deadline: None,
            frame_interval: Duration::from_millis(20),
        }
    }
}

/// Taken for the round trip before one is known: the path of OP-48's example.
const UNKNOWN_RTT: Duration = Duration::from_millis(60);

impl HoldParameters {
    /// From when on a hole counts that an arrival shows at `now`, by a path of this round trip: from then on, or with a deadline from
    /// when that arrival left, which is half a round trip ago, because what is missing left before. `rtt` is the receiver's own
    /// estimate of the path.
    pub fn counts_from(&self, now: Time, rtt: Option<Duration>) -> Time {
        let way = rtt.unwrap_or(UNKNOWN_RTT) / 2;
        if self.ends_one_by_one() {
            Time::ZERO + now.since(Time::ZERO).saturating_sub(way)
        } else {
            now
        }
    }

    /// How long the first number of a hole of `missing` is held, from [`counts_from`](Self::counts_from) of the first later arrival
    /// on: with a deadline the less, the longer before that arrival it left, where segments come every `interval`. The others of the
    /// hole left later, and are held longer.
    pub fn time_of_first(&self, missing: u64, interval: Option<Duration>, rtt: Option<Duration>) -> Duration {
        let older = match interval {
            Some(interval) if self.ends_one_by_one() => interval.min(self.frame_interval) * (missing - 1),
            _ => Duration::ZERO,
        };
        self.time(rtt).saturating_sub(older)
    }
    /// Each number of a hole has a time of its own, because a deadline says when it is of no use.
    pub fn ends_one_by_one(&self) -> bool {
        self.hold.is_none() && self.deadline.is_some()
    }

    /// The same of a hole of one. `rtt` is the receiver's own estimate of the slowest path. A deadline that cannot be kept leaves no
    /// time for retransmissions.
    pub fn time(&self, rtt: Option<Duration>) -> Duration {
        match (self.hold, self.deadline) {
            (Some(hold), _) => hold,
            (None, Some(deadline)) => deadline.saturating_sub(self.frame_interval),
            (None, None) => rtt.unwrap_or(UNKNOWN_RTT).scaled(3, 2) + self.frame_interval * 2,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    #[test]
    fn a_deadline_leaves_what_way_and_frame_do_not_take() {
        let voice = HoldParameters {
            deadline: Some(ms(160)),
            ..Default::default()
        };
        let now = Time::ZERO + ms(1000);
        let until = |rtt| voice.counts_from(now, rtt) + voice.time(rtt);
        assert_eq!(until(Some(ms(60))), now + ms(110), "the example of OP-48");
        assert_eq!(until(None), now + ms(110), "and its path while none is known");
        assert!(until(Some(ms(400))) < now);
        let at_first = voice.counts_from(Time::ZERO, Some(ms(400)));
        assert_eq!(at_first, Time::ZERO);
    }

    #[test]
    fn the_first_of_a_long_hole_is_of_no_use_sooner() {
        let voice = HoldParameters {
            deadline: Some(ms(160)),
            ..Default::default()
        };
        let of = |missing, interval| voice.time_of_first(missing, interval, Some(ms(60)));
        assert_eq!(
            [1, 2, 4, 99].map(|missing| of(missing, Some(ms(20)))),
            [140, 120, 80, 0].map(ms)
        );
        assert_eq!(of(4, Some(ms(3))), ms(131), "segments come faster than was said");
        assert_eq!(of(4, None), ms(140));
        let rule = HoldParameters::default();
        assert_eq!(rule.time_of_first(4, Some(ms(20)), Some(ms(64))), ms(136));
    }

    #[test]
    fn without_a_deadline_a_retransmission_and_a_half_are_waited_for() {
        let rule = HoldParameters::default();
        assert_eq!(rule.time(Some(ms(64))), ms(136));
        let video = HoldParameters {
            frame_interval: ms(40),
            ..rule
        };
        assert_eq!(video.time(Some(ms(64))), ms(176));
    }

    #[test]
    fn a_time_that_is_set_counts_before_everything_else() {
        let fixed = HoldParameters {
            hold: Some(ms(5)),
            deadline: Some(ms(160)),
            ..Default::default()
        };
        let now = Time::ZERO + ms(1000);
        assert_eq!(fixed.counts_from(now, Some(ms(64))), now);
        assert_eq!(fixed.time(Some(ms(64))), ms(5));
    }
}
