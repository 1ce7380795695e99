//! Partial ordering (ResTP §3.5.7): how long a hole may hold up what came after it before the receiver skips it
//! (OP-48). Data in order is handed up at once, so only data behind a hole waits. Ordered delivery without repeats
//! uses the same rule, because nobody will fill its holes (ResTP §14).

use restp_base::time::Duration;

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
    /// How long the first number of a hole of `missing` is held, from the first later arrival on: with a deadline the less, the
    /// longer before that arrival it left, where segments come every `interval`. The others of the hole left later, and are held
    /// longer.
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

    /// How long a hole of one is held, from the first later arrival on. `rtt` is the receiver's own estimate. It takes half of
    /// it for the way here. A deadline that cannot be kept leaves no time for repeats.
    pub fn time(&self, rtt: Option<Duration>) -> Duration {
        let rtt = rtt.unwrap_or(UNKNOWN_RTT);
        match (self.hold, self.deadline) {
            (Some(hold), _) => hold,
            (None, Some(deadline)) => deadline.saturating_sub(rtt / 2 + self.frame_interval),
            (None, None) => rtt.scaled(3, 2) + self.frame_interval * 2,
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
        assert_eq!(voice.time(Some(ms(60))), ms(110), "the example of OP-48");
        assert_eq!(voice.time(None), ms(110), "and its path while none is known");
        assert_eq!(voice.time(Some(ms(400))), Duration::ZERO);
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
            [110, 90, 50, 0].map(ms)
        );
        assert_eq!(of(4, Some(ms(3))), ms(101), "segments come faster than was said");
        assert_eq!(of(4, None), ms(110));
        let rule = HoldParameters::default();
        assert_eq!(rule.time_of_first(4, Some(ms(20)), Some(ms(64))), ms(136));
    }

    #[test]
    fn without_a_deadline_a_repeat_and_a_half_are_waited_for() {
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
        assert_eq!(fixed.time(Some(ms(64))), ms(5));
    }
}
