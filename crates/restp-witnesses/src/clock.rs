//! Other people's engines take the instants of std, which have no zero. One reading stands for our zero; only differences
//! to it are ever used, so its value has no influence on anything.

use restp_base::time::Time;
use std::time::{Duration, Instant};

/// Our zero, among std's instants.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Epoch(Instant);

impl Epoch {
    #[expect(
        clippy::disallowed_methods,
        reason = "std has no other way to make an instant, and engines compare differences only"
    )]
    pub(crate) fn new() -> Self {
        Epoch(Instant::now())
    }

    /// The epoch in which `instant` is `now`.
    pub(crate) fn with(instant: Instant, now: Time) -> Self {
        Epoch(instant - Duration::from_nanos(now.as_nanos()))
    }

    pub(crate) fn instant(self, now: Time) -> Instant {
        self.0 + Duration::from_nanos(now.as_nanos())
    }

    /// What lies before our zero is our zero.
    pub(crate) fn time(self, instant: Instant) -> Time {
        let since = instant.saturating_duration_since(self.0).as_nanos();
        Time::from_nanos(u64::try_from(since).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_comes_back_as_it_went_in() {
        let epoch = Epoch::new();
        for nanos in [0, 1, 999_999_999, 3_600_000_000_001] {
            let time = Time::from_nanos(nanos);
            assert_eq!(epoch.time(epoch.instant(time)), time);
        }
        let late = Epoch::with(epoch.instant(Time::from_nanos(70)), Time::from_nanos(50));
        assert_eq!(
            late.time(epoch.instant(Time::from_nanos(120))),
            Time::from_nanos(100)
        );
        assert_eq!(late.time(epoch.instant(Time::ZERO)), Time::ZERO);
    }
}
