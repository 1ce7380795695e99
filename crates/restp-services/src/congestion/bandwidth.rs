//! The bandwidth that Westwood (MobiCom 2001) and Westwood+ (Perf. Eval. 2004) estimate by low-pass filters. Floating
//! point by + − × ÷ alone.

use super::CongestionEvent;
use restp_base::time::Duration;

/// What of the estimate stays with each sample where the filter is constant (TC §2.3.6, §2.3.7).
pub(super) const KEPT: f64 = 0.9;

/// What acknowledgements show delivered, duplicates included (MobiCom 2001; TC §2.3.6): a duplicate stands for one segment,
/// which the acknowledgement that names it later does not count again.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Deliveries {
    /// Bytes that duplicates stood for and no acknowledgement has named yet.
    accounted: u64,
}

impl Deliveries {
    /// The bytes that `event` shows delivered; `None` where it is no acknowledgement.
    pub fn on(&mut self, event: &CongestionEvent, segment: u64) -> Option<u64> {
        match *event {
            CongestionEvent::Duplicate => {
                self.accounted = self.accounted.saturating_add(segment);
                Some(segment)
            }
            // The segment that filled the hole has arrived just now, whatever was accounted for.
            CongestionEvent::Acked { bytes, .. } if bytes > segment => {
                let known = self.accounted.min(bytes);
                self.accounted -= known;
                Some((bytes - known).max(segment))
            }
            CongestionEvent::Acked { bytes, .. } => Some(bytes),
            _ => None,
        }
    }
}

/// An estimate in bytes per second, 0 at first.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Bandwidth {
    estimate: f64,
    last_sample: f64,
}

/// Bytes per second.
pub(super) fn rate(bytes: u64, elapsed: Duration) -> f64 {
    bytes as f64 * 1e9 / elapsed.as_nanos().max(1) as f64
}

impl Bandwidth {
    /// `B_k = a · B_{k-1} + (1 − a) · (b_k + b_{k-1}) / 2`, with `kept` for a.
    pub fn pair(&mut self, kept: f64, sample: f64) {
        self.estimate = kept * self.estimate + (1.0 - kept) * (sample + self.last_sample) / 2.0;
        self.last_sample = sample;
    }

    /// `B_k = a · B_{k-1} + (1 − a) · b_k`; the first sample is the first estimate.
    pub fn single(&mut self, kept: f64, sample: f64) {
        self.estimate = if self.last_sample > 0.0 {
            kept * self.estimate + (1.0 - kept) * sample
        } else {
            sample
        };
        self.last_sample = sample;
    }

    /// B · RTTmin in bytes: what fills the path without a queue. 0 before the first round trip.
    pub fn product(&self, shortest: Option<Duration>) -> u64 {
        (self.estimate * shortest.unwrap_or_default().as_nanos() as f64 / 1e9) as u64
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Bytes per second of so many Mbit/s.
    pub(in super::super) fn mbit(megabits: f64) -> f64 {
        megabits * 125_000.0
    }

    pub(in super::super) fn megabits(bandwidth: &Bandwidth) -> f64 {
        bandwidth.estimate / 125_000.0
    }

    /// An estimate of `megabits`, with a last sample of as much.
    pub(in super::super) fn steady(megabits: f64) -> Bandwidth {
        Bandwidth {
            estimate: mbit(megabits),
            last_sample: mbit(megabits),
        }
    }

    #[test]
    fn the_worked_numbers() {
        // TC §4.12.
        let mut pair = steady(1.0);
        pair.pair(KEPT, mbit(2.0));
        assert!((megabits(&pair) - 1.05).abs() < 1e-9);
        let mut single = steady(1.0);
        single.single(KEPT, mbit(2.0));
        assert!((megabits(&single) - 1.10).abs() < 1e-9);
        assert_eq!(steady(8.0).product(Some(Duration::from_millis(200))), 200_000);
    }

    /// TC §2.3.6: three duplicates, then the retransmission fills the hole before them; and more duplicates than segments named.
    #[test]
    fn what_duplicates_stood_for_is_not_counted_again() {
        let mut deliveries = Deliveries::default();
        let mut after = |event| deliveries.on(&event, 1000);
        let named = |bytes| CongestionEvent::Acked {
            bytes,
            rtt: None,
            rate: None,
        };
        assert_eq!(
            [(); 3].map(|()| after(CongestionEvent::Duplicate)),
            [Some(1000); 3]
        );
        assert_eq!(
            after(named(1000)),
            Some(1000),
            "one segment is the one that came now"
        );
        assert_eq!(after(named(5000)), Some(2000));
        assert_eq!(after(named(5000)), Some(5000), "accounted for once");
        assert_eq!(
            [(); 5].map(|()| after(CongestionEvent::Duplicate)),
            [Some(1000); 5]
        );
        assert_eq!(after(named(3000)), Some(1000), "all three were known");
        assert_eq!(after(named(3000)), Some(1000), "two of them");
        assert_eq!(after(named(3000)), Some(3000));
        assert_eq!(after(CongestionEvent::RecoveryEnded), None);
    }

    #[test]
    fn one_filter_begins_at_zero_and_the_other_with_its_first_sample() {
        let mut pair = Bandwidth::default();
        pair.pair(KEPT, mbit(2.0));
        assert!((megabits(&pair) - 0.1).abs() < 1e-9);
        let mut single = Bandwidth::default();
        single.single(KEPT, mbit(2.0));
        assert!((megabits(&single) - 2.0).abs() < 1e-9);
    }

    #[test]
    fn numbers_without_meaning_do_no_harm() {
        assert_eq!(rate(0, Duration::ZERO), 0.0);
        let mut endless = Bandwidth::default();
        endless.pair(KEPT, rate(u64::MAX, Duration::ZERO));
        assert_eq!(endless.product(Some(Duration::MAX)), u64::MAX);
        assert_eq!(endless.product(None), 0);
    }
}
