//! The largest value of the recent past, in two periods of it: the last whole one and the one that runs. Two numbers instead of a
//! queue: it remembers between one and two periods (as the filters of draft-ietf-ccwg-bbr §5.5.5, in time).

use restp_base::time::{Duration, Time};

/// A maximum that forgets. `Reverse` makes it a minimum.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Recent<T> {
    since: Time,
    now: Option<T>,
    before: Option<T>,
}

impl<T> Default for Recent<T> {
    fn default() -> Self {
        Recent {
            since: Time::ZERO,
            now: None,
            before: None,
        }
    }
}

impl<T: Ord + Copy> Recent<T> {
    /// A value seen at `now`; values are remembered for one `period` at least.
    pub fn on_sample(&mut self, now: Time, value: T, period: Duration) {
        let age = now.since(self.since);
        if age >= period {
            self.before = self.now.take().filter(|_| age < period * 2);
            self.since = now;
        }
        self.now = self.now.max(Some(value));
    }

    /// The largest of them.
    pub fn get(&self) -> Option<T> {
        self.now.max(self.before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cmp::Reverse;

    const PERIOD: Duration = Duration::from_millis(100);

    fn at(millis: u64) -> Time {
        Time::ZERO + Duration::from_millis(millis)
    }

    #[test]
    fn a_value_is_remembered_for_one_to_two_periods() {
        let mut recent = Recent::default();
        assert_eq!(recent.get(), None);
        for (now, value, largest) in [
            (100, 9, 9),
            (199, 5, 9),
            (200, 4, 9),
            (299, 3, 9),
            (300, 2, 4),
            (399, 1, 4),
        ] {
            recent.on_sample(at(now), value, PERIOD);
            assert_eq!(recent.get(), Some(largest), "at {now}");
        }
        recent.on_sample(at(499), 0, PERIOD);
        assert_eq!(recent.get(), Some(2), "the last period that ran");
        recent.on_sample(at(700), 0, PERIOD);
        assert_eq!(
            recent.get(),
            Some(0),
            "after two periods of silence nothing else is known"
        );
    }

    #[test]
    fn reversed_it_is_a_minimum() {
        let mut recent = Recent::default();
        for value in [7, 3, 5] {
            recent.on_sample(at(1), Reverse(value), PERIOD);
        }
        assert_eq!(recent.get(), Some(Reverse(3)));
    }

    #[test]
    fn two_whole_periods_later_a_value_is_forgotten() {
        for (later, largest) in [(299, 9), (300, 1)] {
            let mut recent = Recent::default();
            recent.on_sample(at(100), 9, PERIOD);
            recent.on_sample(at(later), 1, PERIOD);
            assert_eq!(recent.get(), Some(largest), "at {later}");
        }
    }
}
