//! Finds one number of a summary: `flow.NAME.FIELD` (`*` for NAME: each flow has a row of its own), `group.NAME.FIELD`, `host.NAME.FIELD`,
//! `link.NAME.FIELD`, `goodput_bps`, `shared_bps`, `fairness`. Elements of lists are numbers in FIELD, from 0.

use crate::run::Summary;
use crate::scenario::Plan;
use crate::unknown::unknown;
use restp_base::time::Duration;
use serde_json::{Map, Value};

/// Where a number stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// In the record of every flow.
    EachFlow {
        field: String,
    },
    Flow {
        name: String,
        field: String,
    },
    Group {
        name: String,
        field: String,
    },
    Host {
        name: String,
        field: String,
    },
    Link {
        name: String,
        field: String,
    },
    /// Of all flows together.
    All {
        field: String,
    },
}

/// What is said of all flows together.
const OF_ALL: [&str; 3] = ["goodput_bps", "shared_bps", "fairness"];

/// What a flow gets over time.
const BINS: &str = "bins_bps";

/// Mean and 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Measured {
    pub mean: f64,
    /// Absent with one run.
    pub half: Option<f64>,
}

impl Measured {
    /// In another unit.
    pub fn times(self, scale: f64) -> Measured {
        Measured {
            mean: self.mean * scale,
            half: self.half.map(|half| half * scale),
        }
    }

    /// The mean; its interval is that of independent measurements.
    pub fn mean_of(of: &[Measured]) -> Measured {
        let share = 1.0 / of.len() as f64;
        let squares: Option<f64> = of.iter().map(|one| one.half.map(|half| half * half)).sum();
        Measured {
            mean: of.iter().map(|one| one.mean).sum::<f64>() * share,
            half: squares.map(|sum| sum.sqrt() * share),
        }
    }
}

impl Source {
    /// Reads a name; flows and links must exist in `plan`.
    pub fn parse(written: &str, plan: &Plan) -> Result<Source, String> {
        let known = |what: &str, word: &str, names: &mut dyn Iterator<Item = &str>| {
            let names: Vec<&str> = names.collect();
            match names.contains(&word) {
                true => Ok(word.to_owned()),
                false => Err(unknown(what, word, names)),
            }
        };
        let mut parts = written.splitn(3, '.');
        let field = |rest: &str| rest.to_owned();
        match (parts.next(), parts.next(), parts.next()) {
            (Some("flow"), Some("*"), Some(rest)) => Ok(Source::EachFlow { field: field(rest) }),
            (Some("flow"), Some(name), Some(rest)) => Ok(Source::Flow {
                name: known(
                    "flow",
                    name,
                    &mut plan.flows.iter().map(|flow| flow.name.as_str()),
                )?,
                field: field(rest),
            }),
            (Some("group"), Some(name), Some(rest)) => Ok(Source::Group {
                name: known(
                    "group",
                    name,
                    &mut plan.groups.iter().map(|group| group.name.as_str()),
                )?,
                field: field(rest),
            }),
            (Some("host"), Some(name), Some(rest)) => Ok(Source::Host {
                name: known(
                    "host",
                    name,
                    &mut plan.hosts.iter().map(|host| host.name.as_str()),
                )?,
                field: field(rest),
            }),
            (Some("link"), Some(name), Some(rest)) => Ok(Source::Link {
                name: known("link", name, &mut plan.link_names().iter().map(String::as_str))?,
                field: field(rest),
            }),
            _ => Ok(Source::All {
                field: known("metric", written, &mut OF_ALL.into_iter())?,
            }),
        }
    }

    /// The width of the bins that it names, of the first flow where it names all.
    pub fn bin(&self, plan: &Plan) -> Option<Duration> {
        let (flow, field) = match self {
            Source::EachFlow { field } => (plan.flows.first()?, field),
            Source::Flow { name, field } => (plan.flows.iter().find(|flow| flow.name == *name)?, field),
            _ => return None,
        };
        flow.bins.filter(|_| field == BINS)
    }

    /// The flows that it names, with the mean of each bin.
    pub fn bins(&self, summary: &Summary) -> Vec<(String, Vec<f64>)> {
        let of = |record: &Map<String, Value>| {
            let name = record.get("name")?.as_str()?;
            let is_meant = match self {
                Source::Flow { name: meant, .. } => name == meant,
                _ => true,
            };
            let bins = record.get(BINS)?.as_array()?.iter();
            let means = bins.filter_map(|bin| bin.get("mean")?.as_f64()).collect();
            is_meant.then(|| (name.to_owned(), means))
        };
        summary.summary.flows.iter().filter_map(of).collect()
    }

    /// The number in `summary`, or that of each flow with its name.
    pub fn each(&self, summary: &Summary) -> Vec<(Option<String>, Measured)> {
        if !matches!(self, Source::EachFlow { .. }) {
            return self.of(summary, 0).map(|of| (None, of)).into_iter().collect();
        }
        let flows = summary.summary.flows.iter().enumerate();
        let named = flows.filter_map(|(index, record)| {
            let name = record.get("name")?.as_str()?.to_owned();
            Some((Some(name), self.of(summary, index)?))
        });
        named.collect()
    }

    /// The number in `summary`; `flow` counts where each flow has one of its own.
    pub fn of(&self, summary: &Summary, flow: usize) -> Option<Measured> {
        let numbers = &summary.summary;
        let named = |records: &'_ [Map<String, Value>], name: &str| {
            let is = |record: &&Map<String, Value>| record.get("name").and_then(Value::as_str) == Some(name);
            records.iter().find(is).cloned()
        };
        let (record, field) = match self {
            Source::EachFlow { field } => (numbers.flows.get(flow).cloned(), field),
            Source::Flow { name, field } => (named(&numbers.flows, name), field),
            Source::Group { name, field } => (named(&numbers.groups, name), field),
            Source::Host { name, field } => (named(&numbers.hosts, name), field),
            Source::Link { name, field } => (named(&numbers.links, name), field),
            Source::All { field } => {
                let interval = match field.as_str() {
                    "goodput_bps" => numbers.goodput_bps,
                    "shared_bps" => numbers.shared_bps,
                    _ => numbers.fairness,
                }?;
                return Some(Measured {
                    mean: interval.mean,
                    half: interval.half_width(),
                });
            }
        };
        let record = Value::Object(record?);
        let interval = record.pointer(&format!("/{}", field.replace('.', "/")))?;
        let part = |name: &str| interval.get(name).and_then(Value::as_f64);
        let mean = part("mean")?;
        Some(Measured {
            mean,
            half: part("high").map(|high| high - mean),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mean_of_two_is_half_as_uncertain_as_both_in_a_row() {
        let measured = |mean, half| Measured { mean, half };
        let of = [measured(1.0, Some(3.0)), measured(2.0, Some(4.0))];
        assert_eq!(Measured::mean_of(&of), measured(1.5, Some(2.5)));
        assert_eq!(
            Measured::mean_of(&[of[0], measured(2.0, None)]),
            measured(1.5, None)
        );
    }
}
