//! Names one number of a run: `flow.NAME.FIELD`, `link.NAME.FIELD`, `goodput_bps` (all flows), `fairness`.

use crate::metrics::jain;
use crate::run::{RunResult, number};
use crate::scenario::{Plan, unknown};
use serde::Serialize;
use serde_json::Value;
use std::fmt;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Metric {
    Flow { name: String, field: String },
    Link { name: String, field: String },
    Goodput,
    Fairness,
}

const FLOW_FIELDS: [&str; 17] = [
    "goodput_bps",
    "throughput_bps",
    "load_bps",
    "completion_s",
    "first_byte_s",
    "handshake_s",
    "delivered_bytes",
    "delivered_messages",
    "late_messages",
    "lost_messages",
    "latency_mean_ms",
    "latency_p99_ms",
    "sent_packets",
    "retransmitted_packets",
    "repaired_packets",
    "timeouts",
    "aborted",
];
const LINK_FIELDS: [&str; 6] = [
    "packets",
    "bytes",
    "dropped_queue",
    "dropped_error",
    "dropped_outage",
    "utilisation",
];

impl Metric {
    /// Reads a name; flows and links must exist in `plan`.
    pub fn parse(written: &str, plan: &Plan) -> Result<Metric, String> {
        let parts: Vec<&str> = written.split('.').collect();
        let known = |what: &str, word: &str, names: &mut dyn Iterator<Item = &str>| {
            let names: Vec<&str> = names.collect();
            if names.contains(&word) {
                Ok(word.to_owned())
            } else {
                Err(unknown(what, word, names))
            }
        };
        match parts[..] {
            ["flow", name, field] => Ok(Metric::Flow {
                name: known(
                    "flow",
                    name,
                    &mut plan.flows.iter().map(|flow| flow.name.as_str()),
                )?,
                field: known("field of flows", field, &mut FLOW_FIELDS.into_iter())?,
            }),
            ["link", name, field] => Ok(Metric::Link {
                name: known(
                    "link",
                    name,
                    &mut plan.links.iter().map(|link| link.name.as_str()),
                )?,
                field: known("field of links", field, &mut LINK_FIELDS.into_iter())?,
            }),
            ["goodput_bps"] => Ok(Metric::Goodput),
            ["fairness"] => Ok(Metric::Fairness),
            _ => Err(unknown(
                "metric",
                written,
                ["flow.NAME.FIELD", "link.NAME.FIELD", "goodput_bps", "fairness"],
            )),
        }
    }

    /// Its value in one run, if it has one there.
    pub fn of(&self, run: &RunResult) -> Option<f64> {
        let goodputs = || run.flows.iter().filter_map(|flow| flow.goodput_bps);
        match self {
            Metric::Flow { name, field } => {
                field_of(run.flows.iter().find(|flow| flow.name == *name)?, field)
            }
            Metric::Link { name, field } => {
                field_of(run.links.iter().find(|link| link.name == *name)?, field)
            }
            Metric::Goodput => Some(goodputs().sum()),
            Metric::Fairness => jain(&goodputs().collect::<Vec<f64>>()),
        }
    }
}

fn field_of<T: Serialize>(record: &T, field: &str) -> Option<f64> {
    match serde_json::to_value(record).ok()? {
        Value::Object(fields) => number(fields.get(field)?),
        _ => None,
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Metric::Flow { name, field } => write!(f, "{field} of flow {name}"),
            Metric::Link { name, field } => write!(f, "{field} of link {name}"),
            Metric::Goodput => f.write_str("goodput_bps of all flows"),
            Metric::Fairness => f.write_str("fairness"),
        }
    }
}
