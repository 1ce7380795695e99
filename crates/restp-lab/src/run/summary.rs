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
    /// Each group of flows: `name`, then every metric.
    pub groups: Vec<Map<String, Value>>,
    /// Each host: `name`, then every metric.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<Map<String, Value>>,
    /// Each link: `name`, then every metric.
    pub links: Vec<Map<String, Value>>,
    /// Goodput of all flows together.
    pub goodput_bps: Option<Interval>,
    /// What all flows together get while all are open.
    pub shared_bps: Option<Interval>,
    /// Jain's index over what each gets while all are open, with two flows or more.
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
        let shares: Vec<Vec<f64>> = runs
            .iter()
            .map(|run| run.flows.iter().filter_map(|flow| flow.shared_bps).collect())
            .collect();
        let shared: Vec<f64> = shares.iter().map(|shares| shares.iter().sum()).collect();
        let fairness: Vec<f64> = shares.iter().filter_map(|shares| jain(shares)).collect();
        Some(Summary {
            scenario: first.scenario.clone(),
            point: first.point.clone(),
            summary: Numbers {
                runs: runs.len(),
                flows: columns(runs.iter().map(|run| &run.flows)),
                groups: columns(runs.iter().map(|run| &run.groups)),
                hosts: columns(runs.iter().map(|run| &run.hosts)),
                links: columns(runs.iter().map(|run| &run.links)),
                goodput_bps: Interval::of(&totals),
                shared_bps: Interval::of(&shared),
                fairness: Interval::of(&fairness),
            },
        })
    }
}

/// Element `i` of every run becomes one record.
fn columns<'a, T: Serialize + 'a>(runs: impl Iterator<Item = &'a Vec<T>>) -> Vec<Map<String, Value>> {
    let runs: Vec<Value> = runs.filter_map(|run| serde_json::to_value(run).ok()).collect();
    match merged(&Vec::from_iter(&runs)) {
        Value::Array(records) => records.into_iter().filter_map(record).collect(),
        _ => Vec::new(),
    }
}

fn record(value: Value) -> Option<Map<String, Value>> {
    match value {
        Value::Object(record) => Some(record),
        _ => None,
    }
}

/// The same place in every run: text as it is, lists and records part by part, numbers as an interval over the runs
/// that have one.
fn merged(values: &[&Value]) -> Value {
    let at = |i: usize| Vec::from_iter(values.iter().filter_map(|value| value.get(i)));
    let of = |key: &String| Vec::from_iter(values.iter().filter_map(|value| value.get(key)));
    match values.first() {
        Some(Value::String(text)) => Value::String(text.clone()),
        Some(Value::Object(fields)) => {
            Value::Object(fields.keys().map(|key| (key.clone(), merged(&of(key)))).collect())
        }
        Some(Value::Array(_)) => {
            let lengths = values.iter().filter_map(|value| value.as_array().map(Vec::len));
            Value::Array((0..lengths.max().unwrap_or(0)).map(|i| merged(&at(i))).collect())
        }
        _ => {
            let numbers: Vec<f64> = values.iter().filter_map(|value| number(value)).collect();
            let interval = Interval::of(&numbers).and_then(|one| serde_json::to_value(one).ok());
            interval.unwrap_or(Value::Null)
        }
    }
}

/// A metric as a number; `true` counts 1, so that the mean is a share.
pub(crate) fn number(field: &Value) -> Option<f64> {
    match field {
        Value::Bool(flag) => Some(f64::from(u8::from(*flag))),
        other => other.as_f64(),
    }
}
