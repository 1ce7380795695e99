//! Claims about how much more one alternative has than another, in percent.

use super::rows::Row;
use super::{Check, Pair, Premium, Premiums, Verdict};
use crate::metrics::Interval;
use std::fmt;

impl fmt::Display for Pair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} has more than {}", self.of, self.over)
    }
}

impl Check {
    /// `row`: all else equal, both sides.
    pub(super) fn premium(&self, premium: &Premium, row: &Row<'_>) -> Verdict {
        let measured = self.of_pair(&premium.pair, row);
        let expected = premium.formula.at(&row.rest);
        let holds =
            |(expected, measured): (f64, Interval)| (measured.mean - expected).abs() <= premium.points;
        let claim = format!(
            "{}: {} has so many percent more than {}, give or take {}",
            self.metric(),
            premium.pair.of,
            premium.pair.over,
            premium.points
        );
        Verdict {
            expected,
            held: expected.zip(measured).map(holds),
            ..self.verdict(row.rest.clone(), claim, measured)
        }
    }

    /// `row`: all else equal, the sides of both pairs.
    pub(super) fn premiums(&self, premiums: &Premiums, row: &Row<'_>) -> Verdict {
        let measured = self.of_pair(&premiums.larger, row);
        let expected = self.of_pair(&premiums.smaller, row).map(|smaller| smaller.mean);
        let claim = format!(
            "{}: {} by as many percent at least as {}",
            self.metric(),
            premiums.larger,
            premiums.smaller
        );
        Verdict {
            expected,
            held: expected
                .zip(measured)
                .map(|(expected, measured)| measured.mean >= expected),
            ..self.verdict(row.rest.clone(), claim, measured)
        }
    }

    fn of_pair(&self, pair: &Pair, row: &Row<'_>) -> Option<Interval> {
        percent(self.of_side(&pair.of, row)?, self.of_side(&pair.over, row)?)
    }
}

/// By how many percent `of` exceeds `over`; the shares that each may be off by add up as those of independent means.
fn percent(of: Interval, over: Interval) -> Option<Interval> {
    if over.mean == 0.0 {
        return None;
    }
    let ratio = of.mean / over.mean;
    let share = |one: &Interval| Some(one.half_width()? / one.mean);
    let half = share(&of)
        .zip(share(&over))
        .map(|(a, b)| (100.0 * ratio * (a * a + b * b).sqrt()).abs());
    let mean = 100.0 * (ratio - 1.0);
    Some(Interval {
        mean,
        low: half.map(|half| mean - half),
        high: half.map(|half| mean + half),
        median: mean,
        n: of.n.min(over.n),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_premium_is_in_percent_and_as_sure_as_both_of_its_means() {
        let interval = |mean: f64, half: f64| Interval {
            mean,
            low: Some(mean - half),
            high: Some(mean + half),
            median: mean,
            n: 30,
        };
        let measured = percent(interval(110.0, 3.3), interval(100.0, 4.0)).expect("a premium");
        assert!((measured.mean - 10.0).abs() < 1e-9, "{measured:?}");
        let half = measured.half_width().expect("of several runs");
        assert!((half - 110.0 * 0.05).abs() < 1e-9, "3 % and 4 % make 5 %: {half}");
        assert_eq!(percent(interval(1.0, 0.0), interval(0.0, 0.0)), None);
    }
}
