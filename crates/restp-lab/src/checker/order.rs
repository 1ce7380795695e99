//! Claims about the order of several alternatives: who is first or last, and whether they differ at all.

use super::raw::Place;
use super::rows::{Row, cells_of, merged, plain, same};
use super::{Check, Rank, Spread, Verdict};
use crate::metrics::Interval;
use crate::run::RunResult;
use crate::scenario::Coordinates;
use serde_json::Value;

impl Check {
    /// The last of those that claim the place is reported, beside the first of the others.
    pub(super) fn rank(&self, rank: &Rank, rows: &[Row<'_>]) -> Vec<Verdict> {
        if !rank.average {
            let one = |row: &Row<'_>| self.place(rank, row.rest.clone(), self.intervals(&row.cells));
            return rows.iter().map(one).collect();
        }
        let all = merged(rows);
        vec![self.place(rank, Coordinates::new(), self.intervals(&cells_of(&all)))]
    }

    /// None of them where one lacks the metric: it may be the one that breaks the order.
    fn intervals<'a>(&self, cells: &[(&'a Value, &[&RunResult])]) -> Vec<(&'a Value, Interval)> {
        let one = |(value, runs): &(&'a Value, &[&RunResult])| Some((*value, self.interval(runs)?));
        cells.iter().map(one).collect::<Option<_>>().unwrap_or_default()
    }

    fn place(&self, rank: &Rank, point: Coordinates, cells: Vec<(&Value, Interval)>) -> Verdict {
        let (word, sign) = match rank.place {
            Place::Highest => ("highest", 1.0),
            Place::Lowest => ("lowest", -1.0),
        };
        let height = |interval: &&Interval| sign * interval.mean;
        let claims = |value: &Value| rank.are.iter().any(|one| same(one, value));
        let side = |wanted: bool| {
            let of_side = cells.iter().filter(move |(value, _)| claims(value) == wanted);
            of_side.map(|(_, interval)| interval)
        };
        let last = side(true).min_by(|a, b| height(a).total_cmp(&height(b)));
        let first = side(false).max_by(|a, b| height(a).total_cmp(&height(b)));
        let names: Vec<String> = rank.are.iter().map(plain).collect();
        let is = if names.len() == 1 { "is" } else { "are" };
        let claim = format!("{}: {} {is} {word}", self.metric(), names.join(", "));
        let complete = side(true).count() == rank.are.len();
        let held = last.zip(first).filter(|_| complete).map(|(last, first)| {
            let chance = if rank.beyond_chance {
                last.chance(first)
            } else {
                0.0
            };
            sign * (last.mean - first.mean) >= chance
        });
        Verdict {
            expected: first.map(|interval| interval.mean),
            held,
            ..self.verdict(point, claim, last.copied())
        }
    }

    /// The smallest is reported beside the largest.
    pub(super) fn spread(&self, spread: &Spread, row: &Row<'_>) -> Verdict {
        let cells = self.intervals(&row.cells);
        let by_mean = |a: &&(&Value, Interval), b: &&(&Value, Interval)| a.1.mean.total_cmp(&b.1.mean);
        let (least, most) = (cells.iter().min_by(by_mean), cells.iter().max_by(by_mean));
        let claim = format!(
            "{}: no two differ by more than {} %",
            self.metric(),
            spread.within * 100.0
        );
        let within = |(least, most): (&(&Value, Interval), &(&Value, Interval))| {
            most.1.mean - least.1.mean <= spread.within * most.1.mean.abs()
        };
        Verdict {
            expected: most.map(|(_, interval)| interval.mean),
            held: least.zip(most).filter(|_| cells.len() > 1).map(within),
            ..self.verdict(row.rest.clone(), claim, least.map(|(_, interval)| *interval))
        }
    }
}
