//! A policer: a token bucket before the queue. What exceeds it is dropped on arrival, and nothing waits for tokens; what
//! passes goes on as if there were none (the meter of RFC 2697 §3 with one bucket).

use crate::spec_error::SpecError;
use restp_base::time::Time;
use restp_base::units::Rate;

/// How much may pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Police {
    /// In the long run.
    pub rate: Rate,
    /// Bytes on top, at once; as many at the beginning.
    pub burst_bytes: u64,
}

/// With less a packet of ordinary size would never pass.
const LEAST_BURST_BYTES: u64 = 1500;
/// More than any line holds: a second at 8 Gbit/s.
const MOST_BURST_BYTES: u64 = 1_000_000_000;

/// Billionths of a bit in a byte.
const BYTE: u64 = 8_000_000_000;

impl Police {
    /// Says what is impossible about it.
    ///
    /// # Errors
    /// The first rule that is broken.
    pub fn check(&self) -> Result<(), SpecError> {
        if self.rate.as_bps() == 0 {
            return Err(SpecError::NoRate);
        }
        if !(LEAST_BURST_BYTES..=MOST_BURST_BYTES).contains(&self.burst_bytes) {
            return Err(SpecError::Burst {
                bytes: self.burst_bytes,
                least: LEAST_BURST_BYTES,
                most: MOST_BURST_BYTES,
            });
        }
        Ok(())
    }
}

/// The running form of a [`Police`].
#[derive(Clone, Debug)]
pub(crate) struct Bucket {
    bps: u64,
    /// In billionths of a bit, as what it holds.
    room: u64,
    tokens: u64,
    filled_at: Time,
}

impl Bucket {
    /// The full bucket of a checked description.
    pub(crate) fn new(police: Police) -> Self {
        let room = police.burst_bytes * BYTE;
        Bucket {
            bps: police.rate.as_bps(),
            room,
            tokens: room,
            filled_at: Time::ZERO,
        }
    }

    /// Does a packet that comes at `now` pass?
    pub(crate) fn passes(&mut self, now: Time, bytes: u32) -> bool {
        let come = u128::from(self.bps) * u128::from(now.since(self.filled_at).as_nanos());
        let held = u128::from(self.tokens) + come;
        (self.tokens, self.filled_at) = (held.min(u128::from(self.room)) as u64, now);
        let left = u128::from(self.tokens).checked_sub(u128::from(bytes) * u128::from(BYTE));
        self.tokens = left.map_or(self.tokens, |left| left as u64);
        left.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use restp_base::time::Duration;

    fn us(n: u64) -> Time {
        Time::ZERO + Duration::from_micros(n)
    }

    /// 8 Mbit/s: a byte in a microsecond.
    fn bucket() -> Bucket {
        Bucket::new(Police {
            rate: Rate::from_bps(8_000_000),
            burst_bytes: 3000,
        })
    }

    #[test]
    fn a_burst_passes_and_then_what_the_rate_brings() {
        let mut bucket = bucket();
        let at_once = [1000, 1000, 1000, 1, 1].map(|bytes| bucket.passes(us(0), bytes));
        assert_eq!(at_once, [true, true, true, false, false]);
        assert!(!bucket.passes(us(999), 1000), "a byte is missing");
        assert!(bucket.passes(us(1000), 1000), "what did not pass took nothing");
        // After a long silence it is full, and no fuller.
        let later = [3000, 1].map(|bytes| bucket.passes(us(1_000_000), bytes));
        assert_eq!(later, [true, false]);
    }

    #[test]
    fn in_the_long_run_the_rate_passes_exactly() {
        let mut bucket = bucket();
        let passed = (0..1_000_000u64).filter(|n| bucket.passes(us(n / 3), 7)).count() as u64;
        let most = (333_333 + 3000) / 7;
        assert!((most - 1..=most).contains(&passed), "{passed} of {most}");
    }

    #[test]
    fn a_bucket_holds_a_packet_and_fills() {
        let broken = |bps, burst_bytes| {
            let rate = Rate::from_bps(bps);
            let police = Police { rate, burst_bytes };
            police.check().map_err(|error| error.to_string())
        };
        assert_eq!(broken(1, 1500), Ok(()));
        assert!(broken(0, 1500).is_err_and(|error| error.contains("0 bit/s")));
        assert!(broken(1, 1499).is_err_and(|error| error.contains("1499")));
        assert!(broken(1, u64::MAX).is_err_and(|error| error.contains("1000000000")));
    }
}
