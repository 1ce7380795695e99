//! Senders that are there and send next to nothing: each would hold one of a bounded number of places.

use restp_base::time::{Duration, Time};

/// Bytes that came within the present span.
pub struct Pace {
    span: Duration,
    begin: Time,
    bytes: u64,
}

impl Pace {
    /// Bytes a second at least, over a whole span: a hundredth of the slowest modem, so that who only suffers an outage of half a
    /// span keeps his place.
    pub const LEAST: u64 = 64;

    /// Judged after each `span`.
    pub fn over(span: std::time::Duration) -> Self {
        Pace {
            span: Duration::from_nanos(span.as_nanos().try_into().unwrap_or(u64::MAX)),
            begin: Time::ZERO,
            bytes: 0,
        }
    }

    /// `bytes` more came at `now`. False when they are too few.
    pub fn keeps(&mut self, now: Time, bytes: u64) -> bool {
        self.bytes = self.bytes.saturating_add(bytes);
        let passed = now.since(self.begin);
        if passed < self.span {
            return true;
        }
        let least = u128::from(Self::LEAST) * u128::from(passed.as_nanos()) / 1_000_000_000;
        let keeps = u128::from(self.bytes) >= least;
        (self.begin, self.bytes) = (now, 0);
        keeps
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_drips_loses_his_place_and_who_is_slow_keeps_it() {
        let at = |seconds: u64| Time::ZERO + Duration::from_secs(seconds);
        let lasts = |every: u64, bytes: u64| {
            let mut pace = Pace::over(std::time::Duration::from_secs(60));
            let times = (1..).map(|n| n * every).take_while(|seconds| *seconds <= 3_600);
            times.map(at).take_while(|now| pace.keeps(*now, bytes)).last()
        };
        assert!(lasts(5, 1) < Some(at(60)), "a byte every five seconds");
        assert_eq!(lasts(1, 100), Some(at(3_600)));
        assert_eq!(lasts(50, 6_000), Some(at(3_600)), "with outages");
    }
}
