//! How segments are lost: how many, and how many in a row (ResTP §3.5.8). Measured from what the peer reports of each for the first
//! time, so that what is rebuilt or retransmitted later counts as lost all the same.

use crate::ack::AckReport;

/// Segments after which half of what was seen is forgotten.
const REMEMBERED: f64 = 1024.0;
/// What is believed before anything is seen: so many losses among so many segments.
const PRIOR: (f64, f64) = (2.0, 100.0);
/// Most numbers that one report speaks of for the first time and that are counted.
const MOST_AT_ONCE: u64 = 4096;

/// Losses so far.
#[derive(Clone, Copy, Debug)]
pub(super) struct LossPattern {
    segments: f64,
    losses: f64,
    /// Losses after something that was not lost.
    bursts: f64,
    /// Everything below this number is counted, and whether the last of it was lost.
    counted_below: Option<u64>,
    in_burst: bool,
}

impl Default for LossPattern {
    fn default() -> Self {
        LossPattern {
            segments: PRIOR.1,
            losses: PRIOR.0,
            bursts: PRIOR.0,
            counted_below: None,
            in_burst: false,
        }
    }
}

impl LossPattern {
    /// The first number will be `first`.
    pub(super) fn begin(&mut self, first: u64) {
        self.counted_below.get_or_insert(first);
    }

    /// The peer reports. What lies before something that arrived, and has not arrived, is lost.
    pub(super) fn on_report(&mut self, report: &AckReport) {
        let Some(from) = self.counted_below else { return };
        let newest = report.received.iter().map(|range| range.end).max();
        let below = newest.unwrap_or(0).max(report.cumulative);
        for number in from.max(below.saturating_sub(MOST_AT_ONCE))..below {
            let arrived =
                number < report.cumulative || report.received.iter().any(|range| range.contains(&number));
            self.count(!arrived);
        }
        self.counted_below = Some(from.max(below));
    }

    fn count(&mut self, is_lost: bool) {
        self.segments += 1.0;
        if is_lost {
            self.losses += 1.0;
            self.bursts += f64::from(u8::from(!self.in_burst));
        }
        self.in_burst = is_lost;
        if self.segments > REMEMBERED {
            for count in [&mut self.segments, &mut self.losses, &mut self.bursts] {
                *count *= 0.5;
            }
        }
    }

    /// Share of the segments that are lost.
    pub(super) fn loss(&self) -> f64 {
        self.losses / self.segments
    }
    /// Losses in a row, in the mean; not less than chance makes of this share.
    pub(super) fn burst(&self) -> f64 {
        let by_chance = 1.0 / (1.0 - self.loss()).max(0.01);
        (self.losses / self.bursts).max(by_chance)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reports of a receiver that acknowledges each arrival of `lost`, and never gets what was lost.
    fn pattern(lost: impl Fn(u64) -> bool, count: u64) -> LossPattern {
        let mut pattern = LossPattern::default();
        pattern.begin(1);
        for number in (1..=count).filter(|number| !lost(*number)) {
            let mut report = AckReport::pointer(1);
            let from = (1..=number)
                .rev()
                .take_while(|n| !lost(*n))
                .last()
                .unwrap_or(number);
            report.received.push(from..number + 1);
            pattern.on_report(&report);
        }
        pattern
    }

    #[test]
    fn share_and_bursts_are_those_of_the_reports() {
        let single = pattern(|number| number % 20 == 0, 10_000);
        assert!((single.loss() - 0.05).abs() < 0.003, "{}", single.loss());
        assert!((single.burst() - 1.05).abs() < 0.01, "{}", single.burst());
        let bursts = pattern(|number| number % 60 < 3, 10_000);
        assert!((bursts.loss() - 0.05).abs() < 0.005, "{}", bursts.loss());
        assert!((bursts.burst() - 3.0).abs() < 0.1, "{}", bursts.burst());
    }

    #[test]
    fn a_clean_path_is_believed_in_time_and_each_number_counts_once() {
        let mut clean = pattern(|_| false, 400);
        assert!(clean.loss() < 0.005);
        let before = clean.segments;
        clean.on_report(&AckReport::pointer(300));
        assert_eq!(clean.segments, before);
        assert!(pattern(|_| false, 20_000).loss() < 0.0001);
    }
}
