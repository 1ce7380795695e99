//! Round-trip time estimator (RFC 6298 §2, OP-58), in integers. Whether a sample may be taken (Karn's rule) is
//! the scoreboard's decision.

use restp_base::time::Duration;

/// Smoothed round-trip time and its variation.
#[derive(Clone, Copy, Debug, Default)]
pub struct RttEstimator {
    smoothed: Option<Duration>,
    variation: Duration,
    latest: Option<Duration>,
    minimum: Option<Duration>,
    samples: u64,
}

impl RttEstimator {
    /// Takes a sample (RFC 6298 (2.2), (2.3): alpha = 1/8, beta = 1/4).
    pub fn sample(&mut self, rtt: Duration) {
        self.latest = Some(rtt);
        self.samples += 1;
        self.minimum = Some(self.minimum.map_or(rtt, |minimum| minimum.min(rtt)));
        match self.smoothed {
            None => {
                self.smoothed = Some(rtt);
                self.variation = rtt / 2;
            }
            Some(smoothed) => {
                let deviation = rtt.max(smoothed).saturating_sub(rtt.min(smoothed));
                self.variation = self.variation.scaled(3, 4) + deviation / 4;
                self.smoothed = Some(smoothed.scaled(7, 8) + rtt / 8);
            }
        }
    }
    /// Acknowledgements take another way from now on: the smallest sample is found anew.
    pub fn forget_minimum(&mut self) {
        self.minimum = None;
    }
    /// Takes a sample as the first one after a pause: of the earlier ones only the smallest counts (RFC 6298 (2.2)).
    pub fn restart(&mut self, rtt: Duration) {
        self.smoothed = None;
        self.sample(rtt);
    }
    /// Smoothed round-trip time, once known.
    pub fn smoothed(&self) -> Option<Duration> {
        self.smoothed
    }
    /// The last sample.
    pub fn latest(&self) -> Option<Duration> {
        self.latest
    }
    /// Samples so far.
    pub fn samples(&self) -> u64 {
        self.samples
    }
    /// The smallest sample.
    pub fn minimum(&self) -> Option<Duration> {
        self.minimum
    }
    /// RTTVAR: the mean deviation, once known.
    pub fn variation(&self) -> Option<Duration> {
        self.smoothed.map(|_| self.variation)
    }
    /// SRTT + 4·RTTVAR, before bounds and back-off (RFC 6298 (2.3)).
    pub fn timeout(&self) -> Option<Duration> {
        self.smoothed.map(|smoothed| smoothed + self.variation * 4)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_sample_and_gains_of_rfc_6298() {
        let mut rtt = RttEstimator::default();
        assert_eq!(rtt.timeout(), None);
        rtt.sample(Duration::from_millis(100));
        assert_eq!(rtt.timeout(), Some(Duration::from_millis(300)));
        rtt.sample(Duration::from_millis(180));
        // RTTVAR = 3/4·50 + 1/4·80 = 57.5 ms; SRTT = 7/8·100 + 1/8·180 = 110 ms.
        assert_eq!(rtt.smoothed(), Some(Duration::from_millis(110)));
        assert_eq!(rtt.timeout(), Some(Duration::from_millis(340)));
        assert_eq!(rtt.minimum(), Some(Duration::from_millis(100)));
    }

    #[test]
    fn the_first_sample_after_a_pause_stands_for_all() {
        let mut rtt = RttEstimator::default();
        rtt.sample(Duration::from_millis(100));
        rtt.restart(Duration::from_millis(300));
        assert_eq!(rtt.smoothed(), Some(Duration::from_millis(300)));
        assert_eq!(rtt.timeout(), Some(Duration::from_millis(900)));
        assert_eq!(rtt.minimum(), Some(Duration::from_millis(100)));
    }
}
