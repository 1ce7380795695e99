//! A rate that stays what it is for a while and then is another. A packet that is being sent when it changes is sent on
//! at the new one.

use super::walk::{self, Walk};
use crate::spec_error::SpecError;
use restp_base::random::Stream;
use restp_base::time::{Duration, Time};
use restp_base::units::Rate;
use std::collections::VecDeque;

pub(super) fn check(steps: &[(Time, Rate)]) -> Result<(), SpecError> {
    let first = steps.first().map(|(at, _)| *at);
    let misplaced = steps.windows(2).find(|pair| pair[0].0 >= pair[1].0);
    let misplaced = misplaced
        .map(|pair| pair[1].0)
        .or(first.filter(|at| *at != Time::ZERO));
    if let Some(at) = misplaced {
        let at = at.since(Time::ZERO);
        return Err(SpecError::RateStep { at });
    }
    match steps.last() {
        Some((_, rate)) if rate.as_bps() > 0 => Ok(()),
        _ => Err(SpecError::RateEndsAtZero),
    }
}

/// The mean over the first `span`.
pub(super) fn mean(steps: &[(Time, Rate)], span: Duration) -> Rate {
    let end = Time::ZERO + span;
    let ends = steps.iter().skip(1).map(|(at, _)| *at).chain([end]);
    let bits = |((from, rate), to): (&(Time, Rate), Time)| {
        u128::from(to.min(end).since(*from).as_nanos()) * u128::from(rate.as_bps())
    };
    let total: u128 = steps.iter().zip(ends).map(bits).sum();
    Rate::from_bps((total / u128::from(span.as_nanos().max(1))) as u64)
}

/// The level of the moment, and those to come.
#[derive(Clone, Debug)]
pub(crate) struct Levels {
    bps: u64,
    until: Time,
    to_come: ToCome,
}

#[derive(Clone, Debug)]
enum ToCome {
    Steps(VecDeque<(Time, Rate)>),
    Walk(walk::Process),
}

impl Levels {
    pub(super) fn steps(steps: &[(Time, Rate)]) -> Self {
        Levels::from(ToCome::Steps(steps.iter().copied().collect()))
    }

    pub(super) fn walk(walk: &Walk, stream: Stream) -> Self {
        Levels::from(ToCome::Walk(walk::Process::new(walk, stream)))
    }

    fn from(to_come: ToCome) -> Self {
        let mut levels = Levels {
            bps: 0,
            until: Time::ZERO,
            to_come,
        };
        levels.turn();
        levels
    }

    /// The next level.
    fn turn(&mut self) {
        (self.bps, self.until) = match &mut self.to_come {
            ToCome::Steps(steps) => {
                let rate = steps.pop_front().map_or(self.bps, |(_, rate)| rate.as_bps());
                (rate, steps.front().map_or(Time::MAX, |(at, _)| *at))
            }
            ToCome::Walk(walk) => (walk.step(), self.until + walk.every()),
        };
    }

    /// When `work` billionths of a bit from `at` on are sent, and how many more are by then, rounded to a nanosecond.
    pub(super) fn send(&mut self, mut at: Time, mut work: u128) -> (Time, u64) {
        loop {
            while self.until <= at && self.until != Time::MAX {
                self.turn();
            }
            let bps = u128::from(self.bps);
            let room = bps * u128::from(self.until.since(at).as_nanos());
            if room >= work || self.until == Time::MAX {
                let nanos = work.div_ceil(bps.max(1));
                let ahead = (nanos * bps).saturating_sub(work) as u64;
                let nanos = u64::try_from(nanos).unwrap_or(u64::MAX);
                return (at + Duration::from_nanos(nanos), ahead);
            }
            work -= room;
            at = self.until;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(n: u64) -> Time {
        Time::ZERO + Duration::from_millis(n)
    }

    /// 1 Mbit/s for 10 ms, nothing for 10 ms, then 4 Mbit/s.
    fn steps() -> Vec<(Time, Rate)> {
        [(0, 1), (10, 0), (20, 4)]
            .map(|(at, mbit)| (ms(at), Rate::from_bps(mbit * 1_000_000)))
            .to_vec()
    }

    fn bits(count: u128) -> u128 {
        count * 1_000_000_000
    }

    #[test]
    fn a_packet_is_sent_on_at_the_new_rate() {
        let mut levels = Levels::steps(&steps());
        assert_eq!(levels.send(ms(0), bits(4000)), (ms(4), 0));
        // 6000 bits until 10 ms, a pause, and 4000 more within a millisecond.
        assert_eq!(levels.send(ms(4), bits(10_000)), (ms(21), 0));
        assert_eq!(levels.send(ms(100), bits(4000)), (ms(101), 0));
    }

    #[test]
    fn the_mean_is_that_of_the_span_asked_for() {
        let mean = |span| mean(&steps(), Duration::from_millis(span)).as_bps();
        assert_eq!(
            [5, 10, 20, 40].map(mean),
            [1_000_000, 1_000_000, 500_000, 2_250_000]
        );
        let long = super::mean(&steps(), Duration::MAX).as_bps();
        assert!((3_999_990..=4_000_000).contains(&long), "{long}");
    }

    #[test]
    fn steps_begin_at_zero_go_on_in_order_and_end_above_zero() {
        let change = |change: fn(&mut Vec<(Time, Rate)>)| {
            let mut steps = steps();
            change(&mut steps);
            check(&steps).expect_err("impossible").to_string()
        };
        assert_eq!(check(&steps()), Ok(()));
        assert!(change(|steps| steps[0].0 = ms(1)).contains("at 1 ms"));
        assert!(change(|steps| steps.swap(1, 2)).contains("at 10 ms"));
        assert!(change(|steps| steps.truncate(2)).contains("above zero"));
        assert!(change(Vec::clear).contains("above zero"));
    }
}
