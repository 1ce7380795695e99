//! How much is done for addresses that are not validated: handshakes computed for them, and bytes sent to them (RFC 9000
//! §8.1, §21.2). Beyond these limits a request is answered from nothing but a keyed hash, or not at all.

use restp_base::time::Time;

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

    /// May `bytes` be sent there? If so they are counted.
    pub(crate) fn take(&mut self, bytes: usize) -> bool {
        let fits = self.sent + bytes <= AMPLIFICATION * self.received;
        if fits {
            self.sent += bytes;
        }
        fits
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
