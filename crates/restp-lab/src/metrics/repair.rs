//! How long what the network lost is missing where it was to go, whatever its sender does about it.

use restp_base::observe::Transmitted;
use restp_base::time::{Duration, Time};
use std::collections::BTreeMap;

/// Segments that were lost and have not come since, and how long those took that have.
#[derive(Clone, Debug, Default)]
pub struct RepairMeter {
    /// When the first copy that was lost left, by the sender's number.
    missing: BTreeMap<u64, Time>,
    repaired: RepairSum,
}

/// How many came after a loss, and how long they took in all.
#[derive(Clone, Copy, Debug, Default)]
pub struct RepairSum {
    count: u64,
    took: Duration,
}

impl RepairMeter {
    /// This copy did not arrive as it was sent.
    pub fn on_lost(&mut self, lost: Transmitted) {
        let first = self.missing.entry(lost.number).or_insert(lost.at);
        *first = lost.at.min(*first);
    }

    /// A copy came.
    pub fn on_arrived(&mut self, now: Time, came: Transmitted) {
        if !self.missing.is_empty()
            && let Some(first) = self.missing.remove(&came.number)
        {
            self.repaired.count += 1;
            self.repaired.took += now.since(first);
        }
    }

    /// Up to now.
    pub fn sum(&self) -> RepairSum {
        self.repaired
    }
}

impl RepairSum {
    /// The mean since `earlier`, in milliseconds.
    pub fn mean_ms_since(self, earlier: RepairSum) -> Option<f64> {
        let count = self.count.saturating_sub(earlier.count);
        let took = self.took.saturating_sub(earlier.took);
        (count > 0).then(|| took.as_nanos() as f64 / 1e6 / count as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_lost_is_missing_until_a_copy_comes() {
        let at = |ms| Time::ZERO + Duration::from_millis(ms);
        let copy = |number, ms| Transmitted { number, at: at(ms) };
        let mut meter = RepairMeter::default();
        meter.on_arrived(at(5), copy(0, 0));
        assert_eq!(meter.sum().mean_ms_since(RepairSum::default()), None);
        // Lost, and its retransmission as well.
        meter.on_lost(copy(1, 10));
        meter.on_lost(copy(1, 60));
        meter.on_lost(copy(2, 11));
        meter.on_arrived(at(130), copy(1, 110));
        let first = meter.sum();
        assert_eq!(first.mean_ms_since(RepairSum::default()), Some(120.0));
        meter.on_arrived(at(140), copy(1, 120)); // it was there
        meter.on_arrived(at(91), copy(2, 61));
        assert_eq!(meter.sum().mean_ms_since(RepairSum::default()), Some(100.0));
        assert_eq!(meter.sum().mean_ms_since(first), Some(80.0));
    }
}
