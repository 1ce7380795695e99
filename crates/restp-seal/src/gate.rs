//! How much is done for strangers: handshakes computed for addresses that prove nothing, and bytes sent to them (RFC 9000
//! §8.1, §21.2). What is beyond is answered from nothing but a keyed hash, or not at all.

use restp_base::time::Time;

const SECOND: u64 = 1_000_000_000;

/// So many at once, and so many in every second (ITU-T I.371, 2004, §A.1: virtual scheduling).
#[derive(Debug, Default)]
pub(crate) struct Budget {
    /// When the next would come if all came evenly, in nanoseconds.
    next: u64,
}

impl Budget {
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

/// An address that is not proved gets at most so many times what came from it (RFC 9000 §8.1).
const AMPLIFICATION: usize = 3;

/// Bytes that came from an address which proved nothing, and that went there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Allowance {
    received: usize,
    sent: usize,
}

impl Allowance {
    /// After `bytes` from there.
    pub(crate) fn after(bytes: usize) -> Self {
        Allowance {
            received: bytes,
            sent: 0,
        }
    }

    /// `bytes` more came from there.
    pub(crate) fn hear(&mut self, bytes: usize) {
        self.received += bytes;
    }

    /// `bytes` go there, fewer than what they answer.
    pub(crate) fn charge(&mut self, bytes: usize) {
        self.sent += bytes;
    }

    /// May `bytes` go there? If so they are counted.
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
    fn a_budget_is_a_second_ahead_at_most_and_fills_evenly() {
        let mut budget = Budget::default();
        let at = |ms: u64| Time::from_nanos(ms * 1_000_000);
        let taken = |budget: &mut Budget, ms| (0..1000).filter(|_| budget.take(at(ms), 100)).count();
        assert_eq!(taken(&mut budget, 0), 100);
        assert_eq!(taken(&mut budget, 9), 0);
        assert_eq!(taken(&mut budget, 50), 5);
        assert_eq!(taken(&mut budget, 60_000), 100, "what was not used is gone");
        assert!(!Budget::default().take(at(0), 0));
    }

    #[test]
    fn an_address_that_proved_nothing_gets_three_times_what_came_from_it() {
        let mut allowance = Allowance::after(100);
        assert!(allowance.take(300) && !allowance.take(1));
        allowance.hear(10);
        assert!(
            !allowance.take(31) && allowance.take(30),
            "what was not sent does not count"
        );
    }
}
