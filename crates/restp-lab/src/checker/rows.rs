//! Results put in order: the runs of one point, and points that differ on one axis only.

use super::Axis;
use crate::run::RunResult;
use crate::scenario::Coordinates;
use serde_json::Value;

/// The runs of one point, or of all points that differ in pooled axes alone.
pub(super) type Group<'a> = (Coordinates, Vec<&'a RunResult>);

/// Runs put together by where they lie, but for the keys of `pooled` axes.
pub(super) fn groups<'a>(runs: impl Iterator<Item = &'a RunResult>, pooled: &[String]) -> Vec<Group<'a>> {
    let mut groups: Vec<Group<'a>> = Vec::new();
    for run in runs {
        let is_here = |point: &Coordinates| {
            let kept = run.point.iter().filter(|(key, _)| !pooled.contains(key));
            point.iter().eq(kept)
        };
        match groups.iter_mut().find(|(point, _)| is_here(point)) {
            Some((_, runs)) => runs.push(run),
            None => {
                let mut point = run.point.clone();
                point.retain(|key, _| !pooled.contains(key));
                groups.push((point, vec![run]));
            }
        }
    }
    groups
}

/// Points that differ on one axis only.
pub(super) struct Row<'a> {
    pub rest: Coordinates,
    pub cells: Vec<(&'a Value, &'a [&'a RunResult])>,
}

pub(super) fn rows<'a>(groups: &'a [Group<'a>], axis: &Axis) -> Vec<Row<'a>> {
    let mut rows: Vec<Row<'a>> = Vec::new();
    for (point, runs) in groups {
        let Some(value) = point.get(&axis.key) else {
            continue;
        };
        let mut rest = point.clone();
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

/// The runs of all rows together, by their value of the axis.
pub(super) fn merged<'a>(rows: &[Row<'a>]) -> Vec<(&'a Value, Vec<&'a RunResult>)> {
    let mut all: Vec<(&Value, Vec<&RunResult>)> = Vec::new();
    for (value, runs) in rows.iter().flat_map(|row| &row.cells) {
        match all.iter_mut().find(|(known, _)| known == value) {
            Some((_, known)) => known.extend(*runs),
            None => all.push((value, runs.to_vec())),
        }
    }
    all
}

/// The same as cells of one row.
pub(super) fn cells_of<'a>(
    merged: &'a [(&'a Value, Vec<&'a RunResult>)],
) -> Vec<(&'a Value, &'a [&'a RunResult])> {
    merged
        .iter()
        .map(|(value, runs)| (*value, runs.as_slice()))
        .collect()
}

/// Points with one of some values on each of some axes.
#[derive(Clone, Debug)]
pub(super) struct Filter(pub Vec<(String, Vec<Value>)>);

impl Filter {
    pub fn admits(&self, point: &Coordinates) -> bool {
        let allows = |(axis, values): &(String, Vec<Value>)| {
            let value = point.get(axis);
            value.is_some_and(|value| values.iter().any(|allowed| same(allowed, value)))
        };
        self.0.iter().all(allows)
    }
}

/// Equal, where 1 and 1.0 are the same number.
pub(super) fn same(a: &Value, b: &Value) -> bool {
    match (a.as_f64(), b.as_f64()) {
        (Some(a), Some(b)) => a == b,
        _ => a == b,
    }
}

pub(super) fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
