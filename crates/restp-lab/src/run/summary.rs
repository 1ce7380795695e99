//! One point over all its runs: every number of every flow and link as mean, interval and median.

use super::RunResult;
use crate::metrics::{Interval, jain};
use crate::scenario::Coordinates;
use serde::Serialize;
use serde_json::{Map, Value};

/// All runs of one point.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// The scenario's id.
    pub scenario: String,
    /// Where the point lies in the sweep.
    pub point: Coordinates,
    /// The numbers.
    pub summary: Numbers,
}

/// Intervals under the names the metrics have in a single run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Numbers {
    /// Runs.
    pub runs: usize,
    /// Each flow: `name`, `transport`, then every metric.
    pub flows: Vec<Map<String, Value>>,
    /// Each link: `name`, then every metric.
    pub links: Vec<Map<String, Value>>,
    /// Goodput of all flows together.
    pub goodput_bps: Option<Interval>,
    /// Jain's index over the goodputs, with two flows or more.
    pub fairness: Option<Interval>,
}

impl Summary {
    /// Of the runs of one point; `None` without runs.
    pub fn of(runs: &[RunResult]) -> Option<Summary> {
        let first = runs.first()?;
        let goodputs: Vec<Vec<f64>> = runs
            .iter()
            .map(|run| run.flows.iter().filter_map(|flow| flow.goodput_bps).collect())
            .collect();
        let totals: Vec<f64> = goodputs.iter().map(|shares| shares.iter().sum()).collect();
        let fairness: Vec<f64> = goodputs.iter().filter_map(|shares| jain(shares)).collect();
        Some(Summary {
            scenario: first.scenario.clone(),
            point: first.point.clone(),
            summary: Numbers {
                runs: runs.len(),
                flows: columns(runs.iter().map(|run| &run.flows)),
                links: columns(runs.iter().map(|run| &run.links)),
                goodput_bps: Interval::of(&totals),
                fairness: Interval::of(&fairness),
            },
        })
    }
}

/// Element `i` of every run becomes one record: text as it is, numbers as an interval over the runs that have one.
fn columns<'a, T: Serialize + 'a>(runs: impl Iterator<Item = &'a Vec<T>>) -> Vec<Map<String, Value>> {
    let mut elements: Vec<Map<String, Value>> = Vec::new();
    let mut values: Vec<Vec<Vec<f64>>> = Vec::new();
    for run in runs {
        for (i, element) in run.iter().enumerate() {
            let Ok(Value::Object(fields)) = serde_json::to_value(element) else {
                continue;
            };
            if elements.len() == i {
                values.push(vec![Vec::new(); fields.len()]);
                elements.push(fields.clone());
            }
            for (value, (_, field)) in values[i].iter_mut().zip(&fields) {
                value.extend(number(field));
            }
        }
    }
    for (element, values) in elements.iter_mut().zip(&values) {
        for ((_, field), values) in element.iter_mut().zip(values) {
            if !field.is_string() && !field.is_array() {
                *field = Interval::of(values)
                    .and_then(|one| serde_json::to_value(one).ok())
                    .unwrap_or(Value::Null);
            }
        }
        element.retain(|_, field| !field.is_array());
    }
    elements
}

/// A metric as a number; `true` counts 1, so that the mean is a share.
pub(crate) fn number(field: &Value) -> Option<f64> {
    match field {
        Value::Bool(flag) => Some(f64::from(u8::from(*flag))),
        other => other.as_f64(),
    }
}
