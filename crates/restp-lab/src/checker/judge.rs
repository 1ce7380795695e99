//! Holds claims against results.

use super::formula::coordinate;
use super::raw::{Direction, Each};
use super::{Axis, Bound, Check, Compare, Expect, Near, Trend};
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
    /// The coordinates that all results judged here share.
    pub point: Coordinates,
    /// What is compared, in words.
    pub claim: String,
    /// What the claim expects.
    pub expected: Option<f64>,
    /// What was measured.
    pub measured: Option<f64>,
    /// Does the claim hold? Absent when the results it speaks of are not there.
    pub held: Option<bool>,
}

/// The verdicts on all claims, in the order written. `results` are in the order of points and seeds.
pub fn judge(checks: &[Check], results: &[RunResult]) -> Vec<Verdict> {
    checks.iter().flat_map(|check| check.judge(results)).collect()
}

/// The runs of one point.
type Group<'a> = (&'a Coordinates, Vec<&'a RunResult>);

impl Check {
    fn judge(&self, results: &[RunResult]) -> Vec<Verdict> {
        let mut groups: Vec<Group<'_>> = Vec::new();
        for run in results.iter().filter(|run| self.concerns(&run.point)) {
            match groups.iter_mut().find(|(point, _)| **point == run.point) {
                Some((_, runs)) => runs.push(run),
                None => groups.push((&run.point, vec![run])),
            }
        }
        let mut verdicts: Vec<Verdict> = match &self.expect {
            Expect::Near(near) => groups.iter().map(|group| self.near(near, group)).collect(),
            Expect::Bound(bound) => groups.iter().map(|group| self.bound(bound, group)).collect(),
            Expect::Compare(compare) => rows(&groups, &compare.axis)
                .iter()
                .map(|row| self.compare(compare, row))
                .collect(),
            Expect::Trend(trend) => rows(&groups, &trend.along)
                .iter()
                .map(|row| self.trend(trend, row))
                .collect(),
        };
        let scenario = results.first().map_or("", |run| &run.scenario);
        verdicts
            .iter_mut()
            .for_each(|verdict| verdict.scenario = scenario.to_owned());
        verdicts
    }

    fn concerns(&self, point: &Coordinates) -> bool {
        let allows = |(axis, values): &(String, Vec<Value>)| {
            point
                .get(axis)
                .is_some_and(|value| values.iter().any(|allowed| same(allowed, value)))
        };
        self.filter.iter().all(allows)
    }

    fn verdict(&self, point: Coordinates, claim: String) -> Verdict {
        let (check, text) = (self.id.clone(), self.text.clone());
        Verdict {
            scenario: String::new(),
            check,
            text,
            point,
            claim,
            expected: None,
            measured: None,
            held: None,
        }
    }

    fn mean(&self, runs: &[&RunResult]) -> Option<f64> {
        let values: Vec<f64> = runs.iter().filter_map(|run| self.metric.of(run)).collect();
        (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
    }

    fn near(&self, near: &Near, (point, runs): &Group<'_>) -> Verdict {
        let (expected, measured) = (near.formula.at(point), self.mean(runs));
        let within =
            |(expected, measured): (f64, f64)| (measured - expected).abs() <= expected.abs() * near.within;
        let claim = format!(
            "{}: mean within {} % of the formula",
            self.metric,
            near.within * 100.0
        );
        let held = expected.zip(measured).map(within);
        Verdict {
            expected,
            measured,
            held,
            ..self.verdict((*point).clone(), claim)
        }
    }

    fn bound(&self, bound: &Bound, (point, runs): &Group<'_>) -> Verdict {
        let (expected, measured) = (bound.formula.at(point), self.mean(runs));
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
        Verdict {
            expected,
            measured,
            held: expected.zip(measured).map(holds),
            ..self.verdict((*point).clone(), claim)
        }
    }

    fn compare(&self, compare: &Compare, row: &Row<'_>) -> Verdict {
        let side = |wanted: &Value| {
            let found = row.cells.iter().find(|(value, _)| same(value, wanted));
            found.map_or(&[][..], |(_, runs)| *runs)
        };
        let (left, right) = (side(&compare.left), side(&compare.right));
        let (plus, tolerance) = (compare.plus.at(&row.rest), compare.tolerance.at(&row.rest));
        let aim = |right: f64| Some(right * compare.factor + plus?);
        let holds = |left: f64, right: f64| {
            let aim = aim(right)?;
            Some(
                compare
                    .relation
                    .holds(left, aim, aim.abs() * compare.within + tolerance?),
            )
        };
        let (measured, beside) = (self.mean(left), self.mean(right));
        let expected = beside.and_then(aim);
        let held = measured.zip(beside).and_then(|(l, r)| match compare.each {
            Each::Mean => holds(l, r),
            Each::Run => {
                let pair = |(l, r): (&&RunResult, &&RunResult)| {
                    let both = self.metric.of(l).zip(self.metric.of(r));
                    l.seed == r.seed && both.and_then(|(l, r)| holds(l, r)) == Some(true)
                };
                Some(left.len() == right.len() && left.iter().zip(right).all(pair))
            }
        });
        let times = if compare.factor == 1.0 {
            String::new()
        } else {
            format!("{} times ", compare.factor)
        };
        let every = every(compare.each);
        let (l, relation, r) = (plain(&compare.left), compare.relation, plain(&compare.right));
        let claim = format!("{}: {l} is {every}{relation} {times}{r}", self.metric);
        Verdict {
            expected,
            measured,
            held,
            ..self.verdict(row.rest.clone(), claim)
        }
    }

    /// The step that goes most against the trend is the one reported.
    fn trend(&self, trend: &Trend, row: &Row<'_>) -> Verdict {
        let mut steps: Vec<(f64, f64)> = row
            .cells
            .iter()
            .filter_map(|(value, runs)| Some((coordinate(value)?, self.mean(runs)?)))
            .collect();
        steps.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (word, sign) = match trend.direction {
            Direction::Rising => ("rises", 1.0),
            Direction::Falling => ("falls", -1.0),
        };
        let gain =
            |pair: &[(f64, f64)]| sign * (pair[1].1 - pair[0].1) / pair[0].1.abs().max(f64::MIN_POSITIVE);
        let worst = steps.windows(2).min_by(|a, b| gain(a).total_cmp(&gain(b)));
        let claim = format!("{} {word} with {}", self.metric, trend.along.key);
        Verdict {
            expected: worst.map(|pair| pair[0].1),
            measured: worst.map(|pair| pair[1].1),
            held: worst.map(|pair| gain(pair) >= -trend.within),
            ..self.verdict(row.rest.clone(), claim)
        }
    }
}

fn every(each: Each) -> &'static str {
    match each {
        Each::Mean => "",
        Each::Run => "in every run ",
    }
}

/// Points that differ on one axis only.
struct Row<'a> {
    rest: Coordinates,
    cells: Vec<(&'a Value, &'a [&'a RunResult])>,
}

fn rows<'a>(groups: &'a [Group<'a>], axis: &Axis) -> Vec<Row<'a>> {
    let mut rows: Vec<Row<'a>> = Vec::new();
    for (point, runs) in groups {
        let Some(value) = point.get(&axis.key) else {
            continue;
        };
        let mut rest = (*point).clone();
        rest.retain(|key, _| !axis.together.contains(key));
        let cell = (value, runs.as_slice());
        match rows.iter_mut().find(|row| row.rest == rest) {
            Some(row) => row.cells.push(cell),
            None => rows.push(Row {
                rest,
                cells: vec![cell],
            }),
        }
    }
    rows
}

/// Equal, where 1 and 1.0 are the same number.
fn same(a: &Value, b: &Value) -> bool {
    match (a.as_f64(), b.as_f64()) {
        (Some(a), Some(b)) => a == b,
        _ => a == b,
    }
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
