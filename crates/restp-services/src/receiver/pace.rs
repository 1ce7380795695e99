//! How far apart segments come, so that it can be told when one that is missing would have come (OP-48).

use restp_base::time::{Duration, Time};

/// The distance of two segments, smoothed.
#[derive(Debug, Default)]
pub(super) struct Pace {
    newest: Option<(u64, Time)>,
    interval: Option<Duration>,
}

impl Pace {
    /// The segment `number` arrives for the first time.
    pub(super) fn on_arrival(&mut self, now: Time, number: u64) {
        let Some((newest, at)) = self.newest.replace((number, now)) else {
            return;
        };
        if number <= newest {
            self.newest = Some((newest, at));
            return;
        }
        let sample = now.since(at) / (number - newest);
        self.interval = Some(match self.interval {
            None => sample,
            Some(interval) => interval.scaled(15, 16) + sample / 16,
        });
    }

    /// From one segment to the next, once two have come.
    pub(super) fn interval(&self) -> Option<Duration> {
        self.interval
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_between_two_arrivals_has_its_share_of_the_time() {
        let at = |ms| Time::ZERO + Duration::from_millis(ms);
        let mut pace = Pace::default();
        pace.on_arrival(at(0), 10);
        assert_eq!(pace.interval(), None);
        pace.on_arrival(at(60), 13);
        pace.on_arrival(at(70), 11); // rebuilt
        pace.on_arrival(at(80), 14);
        assert_eq!(pace.interval(), Some(Duration::from_millis(20)));
    }
}
