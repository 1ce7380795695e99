//! A rate that goes up and down at random between two bounds, which throw it back. Its stream is its own, and it draws
//! once per step of time, whatever is sent.

use crate::spec_error::SpecError;
use restp_base::random::Stream;
use restp_base::time::Duration;
use restp_base::units::Rate;

/// A random walk. It begins in the middle, and in the long run every rate between the bounds is as likely as any other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Walk {
    /// Lower bound.
    pub min: Rate,
    /// Upper bound.
    pub max: Rate,
    /// The most by which one step changes the rate; the change is uniform between this much down and this much up.
    pub step: Rate,
    /// Time from one step to the next.
    pub every: Duration,
}

/// Steps of time shorter than this would cost more than the packets between them.
const LEAST_EVERY: Duration = Duration::from_millis(1);

impl Walk {
    pub(super) fn check(&self) -> Result<(), SpecError> {
        let Walk {
            min,
            max,
            step,
            every,
        } = *self;
        let span = max.as_bps().saturating_sub(min.as_bps());
        if min.as_bps() == 0 || !(1..=span).contains(&step.as_bps()) {
            return Err(SpecError::RateWalk { min, max, step });
        }
        if every < LEAST_EVERY {
            return Err(SpecError::RateWalkTime {
                every,
                least: LEAST_EVERY,
            });
        }
        Ok(())
    }

    pub(super) fn mean(&self) -> Rate {
        let (min, max) = (self.min.as_bps(), self.max.as_bps());
        Rate::from_bps(min + (max - min) / 2)
    }
}

#[derive(Clone, Debug)]
pub(super) struct Process {
    walk: Walk,
    bps: u64,
    stream: Stream,
}

impl Process {
    pub(super) fn new(walk: &Walk, stream: Stream) -> Self {
        Process {
            walk: *walk,
            bps: walk.mean().as_bps(),
            stream,
        }
    }

    pub(super) const fn every(&self) -> Duration {
        self.walk.every
    }

    /// The rate until the next step of time, in bits per second.
    pub(super) fn step(&mut self) -> u64 {
        let now = self.bps;
        let [min, max, step] =
            [self.walk.min, self.walk.max, self.walk.step].map(|rate| i128::from(rate.as_bps()));
        let drawn = i128::from(self.stream.below(2 * self.walk.step.as_bps() + 1));
        let wanted = i128::from(now) + drawn - step;
        let held = if wanted > max { 2 * max - wanted } else { wanted };
        self.bps = (if held < min { 2 * min - held } else { held }) as u64;
        now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WALK: Walk = Walk {
        min: Rate::from_bps(2_000_000),
        max: Rate::from_bps(20_000_000),
        step: Rate::from_bps(3_000_000),
        every: Duration::from_millis(100),
    };

    fn rates(seed: u64, name: &str) -> Vec<u64> {
        let mut process = Process::new(&WALK, Stream::named(seed, name));
        (0..100_000).map(|_| process.step()).collect()
    }

    #[test]
    fn it_begins_in_the_middle_keeps_its_bounds_and_its_step_and_visits_all_between() {
        let rates = rates(1, "link/a/forward/rate");
        assert_eq!(rates[0], 11_000_000);
        assert!(rates.iter().all(|bps| (2_000_000..=20_000_000).contains(bps)));
        assert!(
            rates
                .windows(2)
                .all(|pair| pair[0].abs_diff(pair[1]) <= 3_000_000)
        );
        for tenth in 0..10 {
            let within = 2_000_000 + tenth * 1_800_000..2_000_000 + (tenth + 1) * 1_800_000;
            let share = rates.iter().filter(|bps| within.contains(*bps)).count();
            assert!(
                (9_000..11_000).contains(&share),
                "{share} of 100000 in {within:?}"
            );
        }
        let mean = rates.iter().sum::<u64>() / rates.len() as u64;
        assert!(mean.abs_diff(11_000_000) < 400_000, "{mean}");
    }

    #[test]
    fn seed_and_name_make_the_walk() {
        assert_eq!(rates(1, "a"), rates(1, "a"));
        assert_ne!(rates(1, "a"), rates(2, "a"));
        assert_ne!(rates(1, "a"), rates(1, "b"));
    }

    #[test]
    fn a_walk_has_room_between_its_bounds() {
        let broken = |change: fn(&mut Walk)| {
            let mut walk = WALK;
            change(&mut walk);
            walk.check().expect_err("impossible").to_string()
        };
        assert_eq!(WALK.check(), Ok(()));
        assert!(broken(|walk| walk.min = Rate::from_bps(0)).contains("above zero"));
        assert!(broken(|walk| walk.max = walk.min).contains("min below max"));
        assert!(broken(|walk| walk.step = Rate::from_bps(18_000_001)).contains("18.000001 Mbit/s"));
        assert!(broken(|walk| walk.step = Rate::from_bps(0)).contains("0 bit/s"));
        assert!(broken(|walk| walk.every = Duration::from_micros(999)).contains("999 us"));
    }
}
