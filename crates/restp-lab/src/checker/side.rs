//! What is compared: the point at one value of an axis, or the sum of those at several, as an ideal that uses what each
//! of them gets.

use super::rows::{Row, plain, same};
use super::{Check, json};
use crate::metrics::Interval;
use serde_json::Value;
use std::fmt;

/// One side of a comparison.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Side(Vec<Value>);

impl Side {
    /// A value of the axis, or `{ sum = [values] }`.
    pub fn new(written: &toml::Value) -> Side {
        let summed = written
            .as_table()
            .filter(|table| table.len() == 1)
            .and_then(|table| table.get("sum")?.as_array());
        match summed {
            Some(values) => Side(values.iter().map(json).collect()),
            None => Side(vec![json(written)]),
        }
    }

    pub fn values(&self) -> impl Iterator<Item = &Value> {
        self.0.iter()
    }
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<String> = self.0.iter().map(plain).collect();
        f.write_str(&names.join(" and "))
    }
}

impl Check {
    /// The mean of a side and its interval, where each part has results. The parts are independent runs.
    pub(super) fn of_side(&self, side: &Side, row: &Row<'_>) -> Option<Interval> {
        let parts = side.0.iter().map(|wanted| {
            let (_, runs) = row.cells.iter().find(|(value, _)| same(value, wanted))?;
            self.interval(runs)
        });
        let parts: Vec<Interval> = parts.collect::<Option<_>>()?;
        let (first, rest) = parts.split_first()?;
        Some(rest.iter().fold(*first, |sum, part| {
            let (mean, half) = (sum.mean + part.mean, sum.chance(part));
            let known = sum.half_width().and(part.half_width()).map(|_| half);
            Interval {
                mean,
                low: known.map(|half| mean - half),
                high: known.map(|half| mean + half),
                median: sum.median + part.median,
                n: sum.n.min(part.n),
            }
        }))
    }

    /// Seed and metric of every run of a side; of a sum, of its parts together, which have the same seeds in the same order.
    pub(super) fn runs_of_side(&self, side: &Side, row: &Row<'_>) -> Vec<(u64, Option<f64>)> {
        let parts = side.0.iter().map(|wanted| {
            let found = row.cells.iter().find(|(value, _)| same(value, wanted));
            let runs = found.map_or(&[][..], |(_, runs)| *runs);
            runs.iter().map(|run| (run.seed, self.metric.of(run))).collect()
        });
        let mut parts: Vec<Vec<(u64, Option<f64>)>> = parts.collect();
        let rest = parts.split_off(1.min(parts.len()));
        let first = parts.pop().unwrap_or_default();
        let sum = |(index, (seed, value)): (usize, (u64, Option<f64>))| {
            let others = rest
                .iter()
                .map(|part| part.get(index).filter(|(other, _)| *other == seed));
            let value = others.fold(value, |sum, part| Some(sum? + part?.1?));
            (seed, value)
        };
        first.into_iter().enumerate().map(sum).collect()
    }
}
