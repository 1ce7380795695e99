//! The only reading of a clock in the product. Everything below this crate is given the time.

use restp_base::time::{Duration, Time};
use std::time::{Instant, SystemTime};

/// The time since a driver started, never going backwards.
///
/// A driver reads it once per batch that it takes from a socket or collects for one, and hands the same value to all of
/// it: cheaper than a reading per packet, and never earlier than a packet came.
///
/// ```
/// use restp::clock::Clock;
/// use restp_base::time::Time;
///
/// let clock = Clock::start();
/// let first = clock.now();
/// assert!(first >= Time::ZERO && clock.now() >= first);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    origin: Instant,
}

impl Clock {
    /// A clock that shows [`Time::ZERO`] now.
    pub fn start() -> Self {
        Clock { origin: read() }
    }

    /// The time since the start. The system's monotonic clock counts on when the civil clock is set.
    pub fn now(&self) -> Time {
        let since = read().saturating_duration_since(self.origin);
        Time::from_nanos(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
    }

    /// The instant at which this clock shows `time`, for a runtime's timer. Times no system clock can show
    /// (beyond a century) become a century from the start.
    pub fn instant(&self, time: Time) -> Instant {
        const CENTURY: Duration = Duration::from_secs(100 * 365 * 86_400);
        let since = time.as_nanos().min(CENTURY.as_nanos());
        self.origin + std::time::Duration::from_nanos(since)
    }
}

#[allow(
    clippy::disallowed_methods,
    reason = "drivers are where real time enters; all others are given it"
)]
fn read() -> Instant {
    Instant::now()
}

/// Seconds since 1970 by the civil clock, for what files keep from one run to the next; no protocol sees it.
#[allow(
    clippy::disallowed_methods,
    reason = "the monotonic clock means nothing to the next process"
)]
pub fn unix_seconds() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starts_at_zero_and_never_goes_backwards() {
        let clock = Clock::start();
        assert!(
            clock.now() < Time::ZERO + Duration::from_secs(5),
            "a fresh clock is near zero"
        );
        let mut last = Time::ZERO;
        for _ in 0..10_000 {
            let now = clock.now();
            assert!(now >= last);
            last = now;
        }
    }

    #[test]
    fn a_time_and_its_instant_belong_together() {
        let clock = Clock::start();
        let later = clock.instant(Time::ZERO + Duration::from_millis(1500));
        assert_eq!(
            later.duration_since(clock.instant(Time::ZERO)),
            std::time::Duration::from_millis(1500)
        );
        assert!(clock.instant(Time::MAX) > later);
    }
}
