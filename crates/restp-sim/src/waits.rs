//! For how long packets waited.

use hdrhistogram::Histogram;
use restp_base::time::Duration;

/// One significant digit: buckets are a sixteenth of their value wide at most, and the middle of one is reported.
const DIGITS: u8 = 1;

/// Waits of those packets that had to wait before they were sent. Where none had to, they take no memory.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Waits {
    sum: Duration,
    /// In nanoseconds.
    waits: Option<Histogram<u32>>,
}

impl Waits {
    /// One packet waited for so long.
    pub(crate) fn record(&mut self, wait: Duration) {
        if wait.is_zero() {
            return;
        }
        self.sum += wait;
        let new = || Histogram::new(DIGITS).expect("one digit is enough");
        let waits = self.waits.get_or_insert_with(new);
        waits.record(wait.as_nanos()).expect("it grows");
    }

    /// All together.
    pub const fn sum(&self) -> Duration {
        self.sum
    }

    /// Of `sent` packets, which these and those that did not wait are. Zero when there is none.
    pub fn mean(&self, sent: u64) -> Duration {
        Duration::from_nanos(self.sum.as_nanos() / sent.max(1))
    }

    /// As long as half of `sent` packets waited at most, within 4 %.
    pub fn median(&self, sent: u64) -> Duration {
        let Some(waits) = &self.waits else {
            return Duration::ZERO;
        };
        let at_once = sent.saturating_sub(waits.len());
        let rank = sent.div_ceil(2).saturating_sub(at_once);
        if rank == 0 {
            return Duration::ZERO;
        }
        let value = waits.value_at_quantile((rank as f64 - 0.5) / waits.len() as f64);
        Duration::from_nanos(waits.median_equivalent(value))
    }

    /// Those after an `earlier` moment of the same direction.
    #[must_use]
    pub fn since(&self, earlier: &Waits) -> Waits {
        let mut since = self.clone();
        since.sum = since.sum.saturating_sub(earlier.sum);
        if let (Some(waits), Some(earlier)) = (&mut since.waits, &earlier.waits) {
            waits.subtract(earlier).expect("it holds those and later ones");
        }
        since
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(waits_us: impl IntoIterator<Item = u64>) -> Waits {
        let mut waits = Waits::default();
        for us in waits_us {
            waits.record(Duration::from_micros(us));
        }
        waits
    }

    fn is_close(found: Duration, us: u64) -> bool {
        found.as_nanos().abs_diff(us * 1000) <= us * 40
    }

    #[test]
    fn nothing_waited() {
        for (waits, sent) in [(Waits::default(), 0), (of([0, 0]), 2)] {
            assert_eq!(waits, Waits::default());
            assert_eq!((waits.mean(sent), waits.median(sent)), Default::default());
        }
    }

    #[test]
    fn the_median_counts_those_that_did_not_wait() {
        assert_eq!(of([9]).median(3), Duration::ZERO);
        assert_eq!(of([9]).median(2), Duration::ZERO, "half of them");
        assert!(is_close(of([9, 9]).median(3), 9));
        assert!(is_close(of([5, 9]).median(3), 5));
        assert_eq!(of([4, 8]).mean(3), Duration::from_micros(4));
    }

    #[test]
    fn it_is_close_whatever_the_scale() {
        for scale in [1, 17, 1_000, 123_456, 60_000_000] {
            let median = of((1..=1001).map(|n| n * scale)).median(1001);
            assert!(is_close(median, 501 * scale), "{scale}: {median:?}");
        }
    }

    #[test]
    fn those_since_a_moment_are_without_the_earlier() {
        let before = of([10, 10, 10]);
        let mut after = before.clone();
        after.record(Duration::from_micros(500));
        let since = after.since(&before);
        assert_eq!(since.sum(), Duration::from_micros(500));
        assert!(is_close(since.median(1), 500));
        assert_eq!(after.since(&after).median(4), Duration::ZERO);
        assert_eq!(after.since(&Waits::default()), after);
    }
}
