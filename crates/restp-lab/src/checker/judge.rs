//! Holds claims against results.

use super::formula::coordinate;
use super::raw::Each;
use super::rows::{Group, Row, cells_of, groups, merged, rows};
use super::{Bound, Check, Compare, Expect, Near, Trend};
use crate::metrics::Interval;
use crate::run::RunResult;
use crate::scenario::Coordinates;
use serde::Serialize;
use serde_json::Value;

/// One claim at one point, pair or row.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Verdict {
    /// The scenario's id.
    pub scenario: String,
    /// The claim's id.
    pub check: String,
    /// The claim in words.
    pub text: String,
    /// What was published, in words, where the claim is somebody else's.
    pub published: Option<String>,
    /// Why the claim does not hold here, where it does not and that is known.
    pub explained: Option<String>,
    /// The coordinates that all results judged here share.
    pub point: Coordinates,
    /// What is compared, in words.
    pub claim: String,
    /// What the claim expects.
    pub expected: Option<f64>,
    /// What was measured.
    pub measured: Option<f64>,
    /// The lower end of its 95 % interval, with several runs.
    pub low: Option<f64>,
    /// The upper end.
    pub high: Option<f64>,
    /// Does the claim hold? Absent when the results it speaks of are not there.
    pub held: Option<bool>,
}

/// How a verdict came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The claim holds.
    Holds,
    /// It does not, and it is known why.
    Explained,
    /// It does not, and nothing explains it.
    Fails,
    /// There is nothing to judge it by.
    NoData,
}

impl Verdict {
    /// How it came out.
    pub fn outcome(&self) -> Outcome {
        match self.held {
            Some(true) => Outcome::Holds,
            Some(false) if self.explained.is_some() => Outcome::Explained,
            Some(false) => Outcome::Fails,
            None => Outcome::NoData,
        }
    }
}

/// How many verdicts came out how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// The claim holds.
    pub hold: usize,
    /// It does not, and it is known why.
    pub explained: usize,
    /// It does not, and nothing explains it.
    pub fail: usize,
    /// There is nothing to judge it by.
    pub no_data: usize,
}

impl Tally {
    /// Of all of them.
    pub fn of(verdicts: &[Verdict]) -> Self {
        let mut tally = Tally::default();
        for verdict in verdicts {
            *match verdict.outcome() {
                Outcome::Holds => &mut tally.hold,
                Outcome::Explained => &mut tally.explained,
                Outcome::Fails => &mut tally.fail,
                Outcome::NoData => &mut tally.no_data,
            } += 1;
        }
        tally
    }

    /// Nothing is open.
    pub fn is_clean(&self) -> bool {
        self.fail + self.no_data == 0
    }
}

/// The verdicts on all claims, in the order written. `results` are in the order of points and seeds.
pub fn judge(checks: &[Check], results: &[RunResult]) -> Vec<Verdict> {
    checks.iter().flat_map(|check| check.judge(results)).collect()
}

/// What was measured in the run of a seed.
type Run = (u64, Option<f64>);

impl Check {
    fn judge(&self, results: &[RunResult]) -> Vec<Verdict> {
        let concerned = results.iter().filter(|run| self.filter.admits(&run.point));
        let groups = groups(concerned, &self.pooled);
        let mut verdicts: Vec<Verdict> = match &self.expect {
            Expect::Near(near) => groups.iter().map(|group| self.near(near, group)).collect(),
            Expect::Bound(bound) => groups.iter().map(|group| self.bound(bound, group)).collect(),
            Expect::Steady(within) => groups.iter().map(|group| self.steady(*within, group)).collect(),
            Expect::Compare(compare) => self.compare_rows(compare, &rows(&groups, &compare.axis)),
            Expect::Trend(trend) => rows(&groups, &trend.along)
                .iter()
                .map(|row| self.trend(trend, row))
                .collect(),
            Expect::Rank(rank) => self.rank(rank, &rows(&groups, &rank.axis)),
            Expect::Gain(gain) => self.gain(gain, &rows(&groups, &gain.axis)),
            Expect::Premium(premium) => rows(&groups, &premium.axis)
                .iter()
                .map(|row| self.premium(premium, row))
                .collect(),
            Expect::Premiums(premiums) => rows(&groups, &premiums.axis)
                .iter()
                .map(|row| self.premiums(premiums, row))
                .collect(),
            Expect::Spread(spread) => rows(&groups, &spread.axis)
                .iter()
                .map(|row| self.spread(spread, row))
                .collect(),
        };
        if verdicts.is_empty() {
            // A setting has taken the points away. Who counts verdicts is to miss nothing.
            verdicts.push(self.open(Coordinates::new(), "no point that it speaks of has run".into()));
        }
        let scenario = results.first().map_or("", |run| &run.scenario);
        for verdict in &mut verdicts {
            verdict.scenario = scenario.to_owned();
            let explanation = self.explanation.as_ref().filter(|why| why.covers(verdict));
            verdict.explained = explanation.map(|why| why.text().to_owned());
        }
        verdicts
    }

    /// The claim without results.
    pub(super) fn open(&self, point: Coordinates, claim: String) -> Verdict {
        Verdict {
            scenario: String::new(),
            check: self.id.clone(),
            text: self.text.clone(),
            published: self.published.clone(),
            explained: None,
            point,
            claim,
            expected: None,
            measured: None,
            low: None,
            high: None,
            held: None,
        }
    }

    /// The claim beside what was measured of it.
    pub(super) fn verdict(&self, point: Coordinates, claim: String, measured: Option<Interval>) -> Verdict {
        Verdict {
            measured: measured.map(|interval| interval.mean),
            low: measured.and_then(|interval| interval.low),
            high: measured.and_then(|interval| interval.high),
            ..self.open(point, claim)
        }
    }

    /// The metric over the runs, all of which have to have it: where some flows never finish, the mean of the others is that of the
    /// lucky ones.
    pub(super) fn interval(&self, runs: &[&RunResult]) -> Option<Interval> {
        let values: Option<Vec<f64>> = runs.iter().map(|run| self.metric.of(run)).collect();
        Interval::of(&values?)
    }

    pub(super) fn metric(&self) -> &impl std::fmt::Display {
        &self.metric
    }

    fn near(&self, near: &Near, (point, runs): &Group<'_>) -> Verdict {
        let (expected, interval) = (near.formula.at(point), self.interval(runs));
        let within =
            |(expected, measured): (f64, f64)| (measured - expected).abs() <= expected.abs() * near.within;
        let claim = format!(
            "{}: mean within {} % of the formula",
            self.metric,
            near.within * 100.0
        );
        let verdict = self.verdict(point.clone(), claim, interval);
        Verdict {
            expected,
            held: expected.zip(verdict.measured).map(within),
            ..verdict
        }
    }

    fn bound(&self, bound: &Bound, (point, runs): &Group<'_>) -> Verdict {
        let (expected, interval) = (bound.formula.at(point), self.interval(runs));
        let holds = |(limit, measured): (f64, f64)| match bound.each {
            Each::Mean => bound.relation.holds(measured, limit, 0.0),
            Each::Run => {
                let mut each = runs.iter().map(|run| self.metric.of(run));
                each.all(|value| value.is_some_and(|value| bound.relation.holds(value, limit, 0.0)))
            }
        };
        let claim = format!(
            "{} is {}{} the formula",
            self.metric,
            every(bound.each),
            bound.relation
        );
        let verdict = self.verdict(point.clone(), claim, interval);
        Verdict {
            expected,
            held: expected.zip(verdict.measured).map(holds),
            ..verdict
        }
    }

    /// What is measured is the standard deviation of a sample, as a share of its mean.
    fn steady(&self, within: f64, (point, runs): &Group<'_>) -> Verdict {
        let values: Option<Vec<f64>> = runs.iter().map(|run| self.metric.of(run)).collect();
        let values = values.unwrap_or_default();
        let (count, mean) = (
            values.len() as f64,
            values.iter().sum::<f64>() / values.len() as f64,
        );
        let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
        let share = (values.len() > 1).then(|| (squares / (count - 1.0)).sqrt() / mean.abs());
        let measured = share.filter(|share| share.is_finite());
        let claim = format!(
            "{}: runs deviate by {} % of the mean at most",
            self.metric,
            within * 100.0
        );
        Verdict {
            expected: Some(within),
            measured,
            held: measured.map(|share| share <= within),
            ..self.open((*point).clone(), claim)
        }
    }

    fn compare_rows(&self, compare: &Compare, rows: &[Row<'_>]) -> Vec<Verdict> {
        if !compare.average {
            return rows.iter().map(|row| self.compare(compare, row)).collect();
        }
        let all = merged(rows);
        let row = Row {
            rest: Coordinates::new(),
            cells: cells_of(&all),
        };
        vec![self.compare(compare, &row)]
    }

    fn compare(&self, compare: &Compare, row: &Row<'_>) -> Verdict {
        let (plus, tolerance) = (compare.plus.at(&row.rest), compare.tolerance.at(&row.rest));
        let aim = |right: f64| Some(right * compare.factor + plus?);
        let (interval, beside) = (
            self.of_side(&compare.left, row),
            self.of_side(&compare.right, row),
        );
        let chance = match interval.zip(beside) {
            Some((left, right)) if compare.beyond_chance => left.chance(&right.scaled(compare.factor)),
            _ => 0.0,
        };
        let holds = |left: f64, right: f64| {
            let aim = aim(right)?;
            let slack = aim.abs() * compare.within + tolerance? + chance;
            Some(compare.relation.holds(left, aim, slack))
        };
        let beside = beside.map(|beside| beside.mean);
        let expected = beside.and_then(aim);
        let held = interval
            .map(|left| left.mean)
            .zip(beside)
            .and_then(|(l, r)| match compare.each {
                Each::Mean => holds(l, r),
                Each::Run => {
                    let [left, right] =
                        [&compare.left, &compare.right].map(|side| self.runs_of_side(side, row));
                    let pair = |(l, r): (&Run, &Run)| {
                        l.0 == r.0 && l.1.zip(r.1).and_then(|(l, r)| holds(l, r)) == Some(true)
                    };
                    Some(left.len() == right.len() && left.iter().zip(&right).all(pair))
                }
            });
        let times = if compare.factor == 1.0 {
            String::new()
        } else {
            format!("{} times ", compare.factor)
        };
        let every = every(compare.each);
        let (l, relation, r) = (&compare.left, compare.relation, &compare.right);
        let claim = format!("{}: {l} is {every}{relation} {times}{r}", self.metric);
        Verdict {
            expected,
            held,
            ..self.verdict(row.rest.clone(), claim, interval)
        }
    }

    /// The step that goes most against the trend is the one reported.
    fn trend(&self, trend: &Trend, row: &Row<'_>) -> Verdict {
        let step = |(value, runs): &(&Value, &[&RunResult])| Some((coordinate(value)?, self.interval(runs)?));
        let steps: Option<Vec<(f64, Interval)>> = row.cells.iter().map(step).collect();
        let mut steps = steps.unwrap_or_default();
        steps.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (word, sign) = (trend.direction.verb(), trend.direction.sign());
        let gain = |pair: &[(f64, Interval)]| {
            let (from, to) = (&pair[0].1, &pair[1].1);
            let chance = if trend.beyond_chance { from.chance(to) } else { 0.0 };
            (sign * (to.mean - from.mean) + chance) / from.mean.abs().max(f64::MIN_POSITIVE)
        };
        let worst = steps.windows(2).min_by(|a, b| gain(a).total_cmp(&gain(b)));
        let claim = format!("{} {word} with {}", self.metric, trend.along.key);
        Verdict {
            expected: worst.map(|pair| pair[0].1.mean),
            held: worst.map(|pair| gain(pair) >= -trend.within),
            ..self.verdict(row.rest.clone(), claim, worst.map(|pair| pair[1].1))
        }
    }
}

fn every(each: Each) -> &'static str {
    match each {
        Each::Mean => "",
        Each::Run => "in every run ",
    }
}
