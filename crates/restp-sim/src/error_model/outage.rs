//! Outages by schedule: times in which a direction is a black hole. No draws.

use restp_base::time::Time;
use std::ops::Range;

/// The schedule of one direction, read with a time that only grows.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outages {
    /// Sorted by start; they may overlap.
    windows: Vec<Range<Time>>,
}

impl Outages {
    pub(crate) fn new(schedule: &[Range<Time>]) -> Self {
        let mut windows = schedule.to_vec();
        windows.sort_by_key(|window| (window.start, window.end));
        Outages { windows }
    }

    /// Is the direction down at `at`?
    pub(crate) fn covers(&self, at: Time) -> bool {
        // Most directions have none, and are asked three times per packet.
        !self.windows.is_empty()
            && self
                .windows
                .iter()
                .take_while(|window| window.start <= at)
                .any(|window| at < window.end)
    }

    /// Forgets what is over by `now`.
    pub(crate) fn advance(&mut self, now: Time) {
        if self.windows.first().is_some_and(|window| window.end <= now) {
            self.windows.retain(|window| window.end > now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_includes_its_start_and_not_its_end() {
        let at = Time::from_nanos;
        let mut outages = Outages::new(&[at(30)..at(40), at(10)..at(20), at(12)..at(15)]);
        let down: Vec<u64> = (0..50).filter(|&n| outages.covers(at(n))).collect();
        assert_eq!(down, (10..20).chain(30..40).collect::<Vec<_>>());
        outages.advance(at(16));
        assert!(outages.covers(at(16)) && outages.covers(at(30)));
        outages.advance(at(20));
        assert!(!outages.covers(at(20)) && outages.covers(at(30)));
    }
}
