//! Delayed acknowledgement (ResTP §3.5.9): once per period, for return links that one ACK per two packets would
//! overrun. How long a period is, is OP-46.

use restp_base::time::Duration;

/// How often to acknowledge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DelayedParameters {
    /// From the first arrival not acknowledged to the acknowledgement. Default: half a round trip, 10 ms to 1 s.
    pub period: Option<Duration>,
}

/// Taken for the round trip before one is known, as for the encoder (OP-38).
pub(super) const UNKNOWN_RTT: Duration = Duration::from_millis(100);

impl DelayedParameters {
    /// The shortest and the longest period (OP-46).
    pub const BOUNDS: (Duration, Duration) = (Duration::from_millis(10), Duration::from_secs(1));

    /// The period while a round trip takes `rtt`.
    pub fn time(&self, rtt: Option<Duration>) -> Duration {
        let (shortest, longest) = Self::BOUNDS;
        self.period
            .unwrap_or_else(|| (rtt.unwrap_or(UNKNOWN_RTT) / 2).clamp(shortest, longest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_period_is_half_a_round_trip_within_bounds() {
        let ms = Duration::from_millis;
        let auto = DelayedParameters::default();
        assert_eq!(auto.time(Some(ms(600))), ms(300));
        assert_eq!(auto.time(Some(ms(2))), ms(10));
        assert_eq!(auto.time(Some(ms(9000))), ms(1000));
        assert_eq!(auto.time(None), ms(50));
        let set = DelayedParameters { period: Some(ms(70)) };
        assert_eq!(set.time(Some(ms(600))), ms(70));
    }
}
