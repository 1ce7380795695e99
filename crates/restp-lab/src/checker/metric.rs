//! Names one number of a run: `flow.NAME.FIELD`, `group.NAME.FIELD`, `host.NAME.FIELD`, `link.NAME.FIELD`, `goodput_bps` and `shared_bps` (all
//! flows), `fairness`, `bins.ONE.OTHER.FIELD`; or one of these per another one, `A / B`.

use super::series;
use crate::metrics::jain;
use crate::run::{RunResult, number};
use crate::scenario::Plan;
use crate::unknown::unknown;
use serde::Serialize;
use std::fmt;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Metric {
    /// The field as a JSON pointer without its first slash.
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
    /// What two flows got, bin by bin.
    Bins {
        names: [String; 2],
        field: Series,
    },
    Goodput,
    Shared,
    Fairness,
    /// One per the other.
    Ratio(Box<[Metric; 2]>),
}

/// What is asked of two series of bins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Series {
    Correlation,
    Ahead,
}

const SERIES: [(&str, Series); 2] = [("correlation", Series::Correlation), ("ahead", Series::Ahead)];

const FLOW_FIELDS: [&str; 36] = [
    "goodput_bps",
    "shared_bps",
    "throughput_bps",
    "load_bps",
    "completion_s",
    "first_byte_s",
    "handshake_s",
    "delivered_bytes",
    "wrong_bytes",
    "sent_messages",
    "delivered_messages",
    "late_messages",
    "lost_messages",
    "missed_messages",
    "on_time_share",
    "latency_mean_ms",
    "latency_p99_ms",
    "pages",
    "plt_first_s",
    "plt_mean_s",
    "plt_median_s",
    "sent_packets",
    "retransmitted_packets",
    "repeat_share",
    "report_bytes",
    "report_share",
    "lost_packets",
    "timed_out_packets",
    "repair_ms",
    "duplicate_packets",
    "encoded_packets",
    "repaired_packets",
    "timeouts",
    "window_mean_bytes",
    "aborted",
    "stray_timeouts",
];
const OUTAGE_FIELDS: [&str; 7] = [
    "resume_s",
    "pause_s",
    "timeouts",
    "first_rto_s",
    "last_rto_s",
    "rto_growth",
    "burst_share",
];
const PATH_FIELDS: [&str; 11] = [
    "bytes_sent",
    "packets_sent",
    "packets_lost",
    "srtt_ms",
    "suspicions",
    "down_events",
    "window_cuts",
    "window_mean_bytes",
    "window_share",
    "raw_bps",
    "unique_bps",
];
const WINDOW_FIELDS: [&str; 6] = [
    "cuts",
    "doubling_rtts",
    "slope_bytes",
    "regrowth_rtts",
    "return_rtts",
    "mean_bytes",
];
const GROUP_FIELDS: [&str; 15] = [
    "goodput_bps",
    "shared_bps",
    "share",
    "advantage",
    "least_share",
    "throughput_bps",
    "load_bps",
    "useful_share",
    "fairness",
    "completion_s",
    "delivered_bytes",
    "sent_packets",
    "retransmitted_packets",
    "lost_packets",
    "timeouts",
];
const HOST_FIELDS: [&str; 10] = [
    "sent_packets",
    "sent_bytes",
    "sent_payload_bytes",
    "received_packets",
    "received_bytes",
    "hits",
    "misses",
    "merged",
    "evicted",
    "hit_share",
];
/// Of losses, true and inferred.
const CAUSES: [&str; 4] = ["congestion", "corruption", "outage", "late"];
const TRUE_CAUSES: [&str; 6] = [
    "congestion",
    "collision",
    "contention",
    "corruption",
    "outage",
    "late",
];
const LINK_FIELDS: [&str; 12] = [
    "packets",
    "bytes",
    "dropped_queue",
    "dropped_error",
    "dropped_outage",
    "dropped_length",
    "dropped_police",
    "dropped_collision",
    "dropped_contention",
    "queue_mean_ms",
    "queue_median_ms",
    "utilisation",
];

impl Metric {
    /// Reads a name; flows and links must exist in `plan`.
    pub fn parse(written: &str, plan: &Plan) -> Result<Metric, String> {
        match written.split_once('/') {
            None => Metric::plain(written.trim(), plan),
            Some((one, other)) => {
                let pair = [
                    Metric::plain(one.trim(), plan)?,
                    Metric::plain(other.trim(), plan)?,
                ];
                Ok(Metric::Ratio(Box::new(pair)))
            }
        }
    }

    fn plain(written: &str, plan: &Plan) -> Result<Metric, String> {
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
            ["flow", name, ref field @ ..] if !field.is_empty() => Ok(Metric::Flow {
                name: known(
                    "flow",
                    name,
                    &mut plan.flows.iter().map(|flow| flow.name.as_str()),
                )?,
                field: match *field {
                    ["bins_bps", bin] => format!("bins_bps/{}", index(bin)?),
                    ["outages", outage, field] => {
                        let field = known("field of outages", field, &mut OUTAGE_FIELDS.into_iter())?;
                        format!("outages/{}/{field}", index(outage)?)
                    }
                    ["paths", path, field] => {
                        let field = known("field of paths", field, &mut PATH_FIELDS.into_iter())?;
                        format!("paths/{}/{field}", index(path)?)
                    }
                    ["window", field] => {
                        let field = known("field of windows", field, &mut WINDOW_FIELDS.into_iter())?;
                        format!("window/{field}")
                    }
                    ["loss_causes", truth, inferred] => {
                        let truth = known("true cause of losses", truth, &mut TRUE_CAUSES.into_iter())?;
                        let inferred = known("cause of losses", inferred, &mut CAUSES.into_iter())?;
                        format!("loss_causes/{truth}/{inferred}")
                    }
                    _ => {
                        let lists = [
                            "bins_bps.N",
                            "outages.N.FIELD",
                            "paths.N.FIELD",
                            "window.FIELD",
                            "loss_causes.TRUE.INFERRED",
                        ];
                        let mut all = FLOW_FIELDS.into_iter().chain(lists);
                        known("field of flows", &field.join("."), &mut all)?
                    }
                },
            }),
            ["group", name, field] => Ok(Metric::Group {
                name: known(
                    "group",
                    name,
                    &mut plan.groups.iter().map(|group| group.name.as_str()),
                )?,
                field: known("field of groups", field, &mut GROUP_FIELDS.into_iter())?,
            }),
            ["host", name, field] => Ok(Metric::Host {
                name: known(
                    "host",
                    name,
                    &mut plan.hosts.iter().map(|host| host.name.as_str()),
                )?,
                field: known("field of hosts", field, &mut HOST_FIELDS.into_iter())?,
            }),
            ["link", name, field] => Ok(Metric::Link {
                name: known("link", name, &mut plan.link_names().iter().map(String::as_str))?,
                field: known("field of links", field, &mut LINK_FIELDS.into_iter())?,
            }),
            ["bins", one, other, field] => {
                let flow = |name: &str| {
                    let flow = plan.flows.iter().find(|flow| flow.name == name);
                    let flow = flow.ok_or_else(|| {
                        unknown("flow", name, plan.flows.iter().map(|flow| flow.name.as_str()))
                    })?;
                    let said = "has no bins; write bins = \"1 s\" there";
                    flow.bins
                        .map(|_| name.to_owned())
                        .ok_or(format!("flow \"{name}\" {said}"))
                };
                let names = SERIES.iter().map(|(name, _)| *name);
                let found = SERIES.iter().find(|(name, _)| *name == field);
                let (_, field) = found.ok_or_else(|| unknown("field of bins", field, names))?;
                Ok(Metric::Bins {
                    names: [flow(one)?, flow(other)?],
                    field: *field,
                })
            }
            ["goodput_bps"] => Ok(Metric::Goodput),
            ["shared_bps"] => Ok(Metric::Shared),
            ["fairness"] => Ok(Metric::Fairness),
            _ => Err(unknown(
                "metric",
                written,
                [
                    "flow.NAME.FIELD",
                    "group.NAME.FIELD",
                    "host.NAME.FIELD",
                    "link.NAME.FIELD",
                    "bins.ONE.OTHER.FIELD",
                    "goodput_bps",
                    "shared_bps",
                    "fairness",
                ],
            )),
        }
    }

    /// Its value in one run, if it has one there.
    pub fn of(&self, run: &RunResult) -> Option<f64> {
        let shares = || run.flows.iter().filter_map(|flow| flow.shared_bps);
        match self {
            Metric::Flow { name, field } => {
                field_of(run.flows.iter().find(|flow| flow.name == *name)?, field)
            }
            Metric::Group { name, field } => {
                field_of(run.groups.iter().find(|group| group.name == *name)?, field)
            }
            Metric::Host { name, field } => {
                field_of(run.hosts.iter().find(|host| host.name == *name)?, field)
            }
            Metric::Link { name, field } => {
                field_of(run.links.iter().find(|link| link.name == *name)?, field)
            }
            Metric::Bins { names, field } => {
                let bins = |name: &String| {
                    let flow = run.flows.iter().find(|flow| flow.name == *name)?;
                    Some(&flow.bins_bps[..])
                };
                let (one, other) = series::shared(bins(&names[0])?, bins(&names[1])?);
                match field {
                    Series::Correlation => series::correlation(one, other),
                    Series::Ahead => series::ahead(one, other),
                }
            }
            Metric::Ratio(pair) => {
                let [one, other] = [pair[0].of(run)?, pair[1].of(run)?];
                (other != 0.0).then(|| one / other)
            }
            Metric::Goodput => Some(run.flows.iter().filter_map(|flow| flow.goodput_bps).sum()),
            Metric::Shared => Some(shares().sum()),
            Metric::Fairness => jain(&shares().collect::<Vec<f64>>()),
        }
    }
}

/// The number of an element of a list, from 0.
fn index(written: &str) -> Result<usize, String> {
    let wrong = |_| format!("\"{written}\" is no number of an element; write 0 for the first");
    written.parse().map_err(wrong)
}

fn field_of<T: Serialize>(record: &T, field: &str) -> Option<f64> {
    let record = serde_json::to_value(record).ok()?;
    number(record.pointer(&format!("/{field}"))?)
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Metric::Flow { name, field } => write!(f, "{field} of flow {name}"),
            Metric::Group { name, field } => write!(f, "{field} of group {name}"),
            Metric::Host { name, field } => write!(f, "{field} of host {name}"),
            Metric::Link { name, field } => write!(f, "{field} of link {name}"),
            Metric::Bins { names, field } => {
                let name = SERIES
                    .iter()
                    .find(|(_, one)| one == field)
                    .map_or("", |(name, _)| name);
                write!(f, "{name} of the bins of {} and {}", names[0], names[1])
            }
            Metric::Ratio(pair) => write!(f, "{} per {}", pair[0], pair[1]),
            Metric::Goodput => f.write_str("goodput_bps of all flows"),
            Metric::Shared => f.write_str("shared_bps of all flows"),
            Metric::Fairness => f.write_str("fairness"),
        }
    }
}
