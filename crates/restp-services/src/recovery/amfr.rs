//! How many reports from other paths make a segment late enough for a copy by a faster one (SMT §3.5)? Each report waited for is a
//! chance that the segment comes by itself and no copy is sent for nothing; each takes room in the receiver's buffer, where all
//! that has overtaken it waits. So the adaptive rule (AMFR) goes by what of that buffer is free.

use crate::loss_handling::LateAfter;

/// Free shares of the buffer at which zones meet, in percent: below the first three reports served best, above the second
/// five did (SMT §3.5).
const CRITICAL_PERCENT: u64 = 45;
const SUBSTANTIAL_PERCENT: u64 = 80;

/// The rule at work: one for all paths, which share the buffer.
#[derive(Clone, Copy, Debug)]
pub struct LateThreshold {
    rule: LateAfter,
    /// The whole buffer, in bytes.
    total: u64,
    /// Free bytes from which on the zone is moderate.
    moderate_from: u64,
    /// Reports in a row in the substantial zone.
    moderating: u64,
}

impl LateThreshold {
    /// By this `rule`; nothing is known of the peer's buffer.
    pub fn new(rule: LateAfter) -> Self {
        LateThreshold {
            rule,
            total: 0,
            moderate_from: 0,
            moderating: 0,
        }
    }

    /// The peer's buffer has so many bytes, and nothing is in it.
    pub fn begin(&mut self, total_bytes: u64) {
        self.total = total_bytes;
        self.moderate_from = self.share(SUBSTANTIAL_PERCENT);
        self.moderating = 0;
    }

    /// A report says that so many bytes are free. Returns the reports after which a segment is late from now on.
    pub fn on_report(&mut self, free_bytes: u64) -> u64 {
        match self.rule {
            LateAfter::Reports(reports) => reports,
            LateAfter::Pivot { percent, below, .. } if free_bytes < self.share(percent) => below,
            LateAfter::Pivot { above, .. } => above,
            LateAfter::Adaptive { cycles } => self.adapt(free_bytes, cycles),
        }
    }

    /// Algorithm 2 of SMT.
    fn adapt(&mut self, free_bytes: u64, cycles: u64) -> u64 {
        let critical_below = self.share(CRITICAL_PERCENT);
        if free_bytes < critical_below {
            self.begin(self.total);
            return 3;
        }
        if free_bytes >= self.moderate_from {
            self.moderating = 0;
            return 5;
        }
        self.moderating += 1;
        if self.moderating >= cycles {
            let step = self.total / 1000;
            self.moderate_from = free_bytes.saturating_sub(step).max(critical_below);
            self.moderating = 0;
        }
        4
    }

    fn share(&self, percent: u64) -> u64 {
        (u128::from(self.total) * u128::from(percent)).div_ceil(100) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn amfr() -> LateThreshold {
        let mut threshold = LateThreshold::new(LateAfter::Adaptive {
            cycles: LateAfter::CYCLES,
        });
        threshold.begin(100_000);
        threshold
    }

    #[test]
    fn zones_meet_at_45_and_80_percent() {
        let after = |free| amfr().on_report(free);
        assert_eq!(
            [100_000, 80_000, 79_999, 45_000, 44_999, 0].map(after),
            [5, 5, 4, 4, 3, 3]
        );
    }

    #[test]
    fn ten_reports_in_the_substantial_zone_make_it_moderate_until_it_is_critical() {
        let mut amfr = amfr();
        assert_eq!([60_000; 10].map(|free| amfr.on_report(free)), [4; 10]);
        assert_eq!(amfr.on_report(60_000), 5, "the border is a thousandth below");
        assert_eq!(amfr.on_report(59_900), 5);
        assert_eq!(amfr.on_report(59_899), 4);
        assert_eq!(amfr.on_report(44_999), 3);
        assert_eq!(amfr.on_report(60_000), 4, "the borders are as they were");
    }

    #[test]
    fn only_reports_in_a_row_count_and_the_border_stays_above_the_critical_one() {
        let mut amfr = amfr();
        for _ in 0..20 {
            assert_eq!([50_000; 9].map(|free| amfr.on_report(free)), [4; 9]);
            assert_eq!(amfr.on_report(90_000), 5);
        }
        assert_eq!([45_050; 10].map(|free| amfr.on_report(free)), [4; 10]);
        assert_eq!(amfr.on_report(45_000), 5, "not below 45 %");
        assert_eq!(amfr.on_report(44_999), 3);
    }

    #[test]
    fn fixed_rules_and_one_pivot() {
        let with = |rule, free| {
            let mut threshold = LateThreshold::new(rule);
            threshold.begin(65_536);
            threshold.on_report(free)
        };
        assert_eq!(with(LateAfter::default(), 0), 3);
        let pivot = LateAfter::Pivot {
            percent: 50,
            below: 4,
            above: 5,
        };
        assert_eq!((with(pivot, 32_767), with(pivot, 32_768)), (4, 5));
    }
}
