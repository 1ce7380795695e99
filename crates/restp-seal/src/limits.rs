//! How much is done for addresses that are not validated: handshakes computed for them, and bytes sent to them (RFC 9000
//! §8.1, §21.2). Beyond these limits a request is answered from nothing but a keyed hash, or not at all.

use restp_base::sources::Sources;
use restp_base::time::{Duration, Time};
use std::net::IpAddr;

const SECOND: u64 = 1_000_000_000;

/// Token bucket whose rate is per second and whose burst is one second of it (ITU-T I.371, 2004, §A.1: virtual scheduling).
#[derive(Debug, Default)]
pub(crate) struct RateLimiter {
    /// When the next is due if all come evenly, in nanoseconds.
    next: u64,
}

impl RateLimiter {
    /// One more at `now`? False when it would be more than `per_second`.
    pub(crate) fn take(&mut self, now: Time, per_second: u32) -> bool {
        let Some(interval) = SECOND.checked_div(per_second.into()) else {
            return false;
        };
        let now = now.as_nanos() + SECOND; // the first second lies before zero
        let after = self.next.max(now - SECOND) + interval;
        let fits = after <= now;
        if fits {
            self.next = after;
        }
        fits
    }
}

/// An address that is not validated gets at most so many times the bytes that came from it (RFC 9000 §8.1).
const AMPLIFICATION: usize = 3;

/// Bytes received from an address that is not validated, and sent there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct AmplificationLimit {
    received: usize,
    sent: usize,
}

impl AmplificationLimit {
    /// `bytes` were received from there, and none sent.
    pub(crate) fn after(bytes: usize) -> Self {
        AmplificationLimit {
            received: bytes,
            sent: 0,
        }
    }

    /// `bytes` more were received from there.
    pub(crate) fn on_received(&mut self, bytes: usize) {
        self.received += bytes;
    }

    /// Counts `bytes` that are sent there whatever the limit says: they answer more than they are.
    pub(crate) fn charge(&mut self, bytes: usize) {
        self.sent += bytes;
    }

    /// May `bytes` be sent there?
    pub(crate) fn leaves(&self, bytes: usize) -> bool {
        self.sent + bytes <= AMPLIFICATION * self.received
    }

    /// The same. If so they are counted.
    pub(crate) fn take(&mut self, bytes: usize) -> bool {
        let fits = self.leaves(bytes);
        if fits {
            self.sent += bytes;
        }
        fits
    }
}

/// Requests that open nothing, of one source that has proved its address, within a second: he pays less for them than this host.
const FAILURES_OF_ONE: usize = 16;
/// From so many of all on, each source has one.
const FAILURES: usize = 500;

/// Requests that were computed with for nothing, of sources that have proved their address.
#[derive(Default)]
pub(crate) struct Failures {
    of: Sources,
    all: usize,
    since: Time,
}

impl Failures {
    /// Has `source` had its share of this second?
    pub(crate) fn are_too_many(&mut self, now: Time, source: IpAddr) -> bool {
        if now.since(self.since) >= Duration::from_secs(1) {
            *self = Failures {
                since: now,
                ..Failures::default()
            };
        }
        let most = if self.all < FAILURES { FAILURES_OF_ONE } else { 1 };
        self.of.count(source) >= most
    }

    /// One more of `source`.
    pub(crate) fn note(&mut self, source: IpAddr) {
        self.of.enter(source);
        self.all += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_limiter_admits_one_second_at_once_and_refills_evenly() {
        let mut rate = RateLimiter::default();
        let at = |ms: u64| Time::from_nanos(ms * 1_000_000);
        let taken = |rate: &mut RateLimiter, ms| (0..1000).filter(|_| rate.take(at(ms), 100)).count();
        assert_eq!(taken(&mut rate, 0), 100);
        assert_eq!(taken(&mut rate, 9), 0);
        assert_eq!(taken(&mut rate, 50), 5);
        assert_eq!(taken(&mut rate, 60_000), 100, "what was not used is gone");
        assert!(!RateLimiter::default().take(at(0), 0));
    }

    #[test]
    fn who_fails_again_and_again_waits_and_others_do_not() {
        let mut failures = Failures::default();
        let source = |n: usize| IpAddr::from([10, 0, (n >> 8) as u8, n as u8]);
        let computed = |failures: &mut Failures, at: u64, source: IpAddr| {
            let takes = !failures.are_too_many(Time::from_nanos(at * 1_000_000), source);
            (0..u32::from(takes)).for_each(|_| failures.note(source));
            takes
        };
        let one = (0..1_000)
            .filter(|at| computed(&mut failures, *at, source(0)))
            .count();
        assert_eq!(one, FAILURES_OF_ONE);
        assert!(computed(&mut failures, 1_000, source(0)), "a second later");
        let many = (0..10_000).filter(|n| computed(&mut failures, 1_000, source(n % 1_000)));
        assert!((FAILURES..=FAILURES + 1_000).contains(&many.count()));
        assert!(
            computed(&mut failures, 1_999, source(5_000)),
            "who is new has one"
        );
    }

    #[test]
    fn an_address_that_is_not_validated_gets_three_times_what_came_from_it() {
        let mut limit = AmplificationLimit::after(100);
        assert!(limit.take(300) && !limit.take(1));
        limit.on_received(10);
        assert!(
            !limit.take(31) && limit.take(30),
            "what was not sent does not count"
        );
    }
}
