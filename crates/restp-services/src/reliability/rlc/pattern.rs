//! How one path loses segments: how many, and how many in a row (ResTP §3.5.8). Measured from what the peer reports of each for the
//! first time, so that what is rebuilt or retransmitted counts as lost all the same.

use crate::ack::AckReport;
use std::collections::VecDeque;

/// Segments after which half of what was seen is forgotten.
const REMEMBERED: f64 = 1024.0;
/// What is believed before anything is seen: so many losses among so many segments.
const PRIOR: (f64, f64) = (2.0, 100.0);
/// Most numbers whose fate is awaited; the oldest are forgotten.
const MOST_AWAITED: usize = 4096;

/// Losses of one path so far.
#[derive(Clone, Debug)]
pub(super) struct LossPattern {
    segments: f64,
    losses: f64,
    /// Losses after something that was not lost.
    bursts: f64,
    /// Was the last that is counted lost?
    in_burst: bool,
    /// What left by the path and is not counted.
    awaited: VecDeque<Awaited>,
}

#[derive(Clone, Copy, Debug)]
struct Awaited {
    number: u64,
    is_uncarried: bool,
}

impl Default for LossPattern {
    fn default() -> Self {
        LossPattern {
            segments: PRIOR.1,
            losses: PRIOR.0,
            bursts: PRIOR.0,
            in_burst: false,
            awaited: VecDeque::new(),
        }
    }
}

impl LossPattern {
    /// `number` leaves by the path, for the first time.
    pub(super) fn on_sent(&mut self, number: u64) {
        if self.awaited.len() == MOST_AWAITED {
            self.awaited.pop_front();
        }
        self.awaited.push_back(Awaited {
            number,
            is_uncarried: false,
        });
    }

    /// The peer reports. What left before something that arrived, and has not arrived itself, is lost.
    pub(super) fn on_report(&mut self, report: &AckReport) {
        for number in report.uncarried.iter() {
            if let Ok(place) = self
                .awaited
                .binary_search_by_key(&number, |awaited| awaited.number)
            {
                self.awaited[place].is_uncarried = true;
            }
        }
        let is_in = |awaited: &Awaited| {
            let number = awaited.number;
            number < report.cumulative || report.received.iter().any(|range| range.contains(&number))
        };
        let arrived = |awaited: &Awaited| !awaited.is_uncarried && is_in(awaited);
        let newest = report.received.iter().map(|range| range.end).max();
        let below = newest.unwrap_or(0).max(report.cumulative);
        let told = self.awaited.partition_point(|awaited| awaited.number < below);
        let last = self.awaited.range(..told).rposition(arrived);
        for _ in 0..last.map_or(0, |last| last + 1) {
            if let Some(awaited) = self.awaited.pop_front() {
                self.count(!arrived(&awaited));
            }
        }
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
    /// Losses in a row, in the mean. Where no more follow one another than chance may make of this share, chance has.
    pub(super) fn burst(&self) -> f64 {
        let by_chance = self.losses * self.loss();
        if self.losses - self.bursts > by_chance + 2.0 * by_chance.sqrt() + 1.0 {
            self.losses / self.bursts
        } else {
            1.0 / (1.0 - self.loss()).max(0.01)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ack::Uncarried;
    use restp_base::random::Stream;

    /// A path that carries `numbers`, of which those arrive that are not `lost`. Each arrival is acknowledged.
    fn pattern(numbers: impl Iterator<Item = u64>, lost: impl Fn(u64) -> bool) -> LossPattern {
        let mut pattern = LossPattern::default();
        for number in numbers {
            pattern.on_sent(number);
            if !lost(number) {
                pattern.on_report(&naming(number));
            }
        }
        pattern
    }
    fn naming(number: u64) -> AckReport {
        let mut report = AckReport::pointer(1);
        report.received.push(number..number + 1);
        report
    }

    #[test]
    fn share_and_bursts_are_those_of_the_reports() {
        let single = pattern(1..10_000, |number| number % 20 == 0);
        assert!((single.loss() - 0.05).abs() < 0.003, "{}", single.loss());
        assert!((single.burst() - 1.05).abs() < 0.01, "{}", single.burst());
        let bursts = pattern(1..10_000, |number| number % 60 < 3);
        assert!((bursts.loss() - 0.05).abs() < 0.005, "{}", bursts.loss());
        assert!((bursts.burst() - 3.0).abs() < 0.1, "{}", bursts.burst());
    }

    /// Some always follow one another. Who took that for bursts would send each frame twice.
    #[test]
    fn losses_that_chance_puts_in_a_row_are_no_bursts() {
        let mut random = Stream::named(1, "losses");
        let mut pattern = LossPattern::default();
        let (mut taken, mut most) = (0, 0.0_f64);
        for number in 1..100_000 {
            pattern.on_sent(number);
            if !random.chance(0.05) {
                pattern.on_report(&naming(number));
            }
            let burst = pattern.burst() * (1.0 - pattern.loss());
            taken += u32::from(burst > 1.001);
            most = most.max(burst);
        }
        assert!(taken < 3_000, "{taken} of 100,000");
        assert!(most < 1.3, "{most}");
    }

    /// The even numbers left by another path, and say nothing of this one.
    #[test]
    fn each_path_has_losses_of_its_own() {
        let mut odd = pattern((1..10_000).step_by(2), |number| number % 20 == 1);
        assert!((odd.loss() - 0.1).abs() < 0.005, "{}", odd.loss());
        let before = odd.segments;
        (10_001..10_011).step_by(2).for_each(|number| odd.on_sent(number));
        odd.on_report(&naming(10_020));
        assert_eq!(odd.segments, before, "they may still come");
    }

    #[test]
    fn what_is_uncarried_before_anything_shows_that_it_is_missing_is_lost_all_the_same() {
        let mut pattern = LossPattern::default();
        let mut uncarried = Uncarried::default();
        for number in 1..10_000 {
            pattern.on_sent(number);
            if number % 20 < 2 {
                uncarried.insert(number);
            }
            pattern.on_report(&AckReport {
                uncarried,
                ..AckReport::pointer(number + 1)
            });
        }
        assert!((pattern.loss() - 0.1).abs() < 0.005, "{}", pattern.loss());
        assert!((pattern.burst() - 2.0).abs() < 0.1, "{}", pattern.burst());
    }

    #[test]
    fn a_clean_path_is_believed_in_time_and_each_number_counts_once() {
        let mut clean = pattern(1..400, |_| false);
        assert!(clean.loss() < 0.005);
        let before = clean.segments;
        clean.on_report(&AckReport::pointer(300));
        assert_eq!(clean.segments, before);
        assert!(pattern(1..20_000, |_| false).loss() < 0.0001);
    }

    #[test]
    fn a_path_that_is_silent_for_ever_takes_bounded_memory() {
        let silent = pattern(1..100_000, |_| true);
        assert_eq!(silent.awaited.len(), MOST_AWAITED);
    }
}
