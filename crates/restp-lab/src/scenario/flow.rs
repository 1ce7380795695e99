//! One `[[flow]]` table, validated.

use super::change::{ChangePlan, changes};
use super::error::unknown;
use super::names::{copies, expand};
use super::path::{PathPlan, joined, paths};
use super::profiles::Profile;
use super::raw::RawFlow;
use super::traffic::traffic;
use crate::registry::{Transport, text_of};
use crate::traffic::Traffic;
use restp_base::time::{Duration, Time};
use restp_base::units;
use restp_sim::config::{Fault, positive, read};
use restp_sim::topology::Graph;
use restp_sim::{LinkSpec, Topology};
use std::ops::Range;
use std::path::Path;
use toml::Spanned;

/// One flow, ready to run.
#[derive(Clone, Debug)]
pub struct FlowPlan {
    /// Its name in results.
    pub name: String,
    /// The node that opens it and sends.
    pub from: String,
    /// The node that serves it and receives.
    pub to: String,
    /// The protocol at both ends.
    pub transport: Transport,
    /// What is sent.
    pub traffic: Traffic,
    /// When it is opened.
    pub start: Duration,
    /// It is opened up to this much later, by a uniform draw from the flow's own stream.
    pub start_spread: Duration,
    /// Width of the bins in which throughput is reported over time; none when absent.
    pub bins: Option<Duration>,
    /// Where its packets go: one path, or several where the transport takes them. The first one is used first.
    pub paths: Vec<PathPlan>,
    /// Which of `paths` its messages are pinned to; the scheduler chooses when absent.
    pub pinned: Option<usize>,
    /// Both ends are told at once when a path goes down or comes up again (ResTP §3.4).
    pub notice: bool,
    /// What its opener changes while it runs, in the order of time.
    pub changes: Vec<ChangePlan>,
}

impl FlowPlan {
    /// When one of its paths is down, in the order of time.
    pub fn outages(&self) -> Vec<Range<Time>> {
        joined(
            self.paths
                .iter()
                .flat_map(|path| path.outages.iter().cloned())
                .collect(),
        )
    }

    /// The longest round trip of its paths, propagation only.
    pub fn rtt(&self) -> Duration {
        self.paths.iter().map(|path| path.rtt).max().unwrap_or_default()
    }
}

/// What a flow is read against.
pub(super) struct Surroundings<'a> {
    pub topology: &'a Topology,
    pub map: &'a Graph,
    pub links: &'a [LinkSpec],
    pub duration: Duration,
    pub profile: Option<&'static Profile>,
    /// Where names of profile files start.
    pub dir: &'a Path,
}

/// The flows `raw` stands for.
pub(super) fn flows(raw: &RawFlow, surroundings: &Surroundings<'_>) -> Result<Vec<FlowPlan>, Fault> {
    let topology = surroundings.topology;
    let transport = transport(raw, surroundings)?;
    let traffic = traffic(&raw.traffic, surroundings.duration, &transport)?;
    let time = |written: &Option<_>| {
        written
            .as_ref()
            .map_or(Ok(Duration::ZERO), |text| read(text, units::duration))
    };
    let (start, start_spread) = (time(&raw.start)?, time(&raw.start_spread)?);
    let bins = raw
        .bins
        .as_ref()
        .map(|written| bins(written, surroundings.duration))
        .transpose()?;
    let changes = changes(raw, &transport, (start + start_spread, surroundings.duration))?;
    let transport = if changes.is_empty() {
        transport
    } else {
        transport.following()
    };
    copies(&raw.name, raw.count.as_ref())?
        .map(|copy| {
            let node = |written: &Spanned<String>| {
                let name = expand(written, copy)?;
                if let Some(id) = topology.node(&name) {
                    return Ok((name, id));
                }
                let known = topology.nodes().map(|node| topology.name(node)).take(20);
                Err(Fault::at(
                    written,
                    unknown("node", &name, known) + "; nodes exist because links or stations name them",
                ))
            };
            let ((from, a), (to, b)) = (node(&raw.from)?, node(&raw.to)?);
            if a == b {
                let sentence = format!("a flow from \"{from}\" to itself crosses no link; name another node");
                return Err(Fault::at(&raw.to, sentence));
            }
            let paths = paths(raw, copy, (a, b), &transport, surroundings)?;
            let pinned = raw
                .traffic
                .get_ref()
                .path()
                .map(|written| pinned(written, paths.len(), &transport))
                .transpose()?;
            let (transport, traffic) = (transport.clone(), traffic.clone());
            Ok(FlowPlan {
                name: expand(&raw.name, copy)?,
                from,
                to,
                transport,
                traffic,
                start,
                start_spread,
                bins,
                paths,
                pinned,
                notice: raw.notice,
                changes: changes.clone(),
            })
        })
        .collect()
}

/// The index of the path that the traffic names by its number, counted from 1 in the order of the flow's `count` paths.
fn pinned(written: &Spanned<u64>, count: usize, transport: &Transport) -> Result<usize, Fault> {
    let number = *written.get_ref();
    if count > 1 && !transport.pins_messages() {
        let sentence = format!(
            "{} chooses the path of each message itself; choose a restp transport, or leave path out",
            transport.name()
        );
        return Err(Fault::at(written, sentence));
    }
    if !(1..=count as u64).contains(&number) {
        let sentence = format!("path {number} is none of this flow, which has {count}; count them from 1");
        return Err(Fault::at(written, sentence));
    }
    Ok(number as usize - 1)
}

/// The most bins of one flow: each is a number in every result.
const MOST_BINS: u64 = 100_000;

fn bins(written: &Spanned<restp_sim::config::Written>, duration: Duration) -> Result<Duration, Fault> {
    let width = positive(written, read(written, units::duration)?)?;
    let count = duration.as_nanos().div_ceil(width.as_nanos());
    if count > MOST_BINS {
        let sentence = format!("{count} bins are too many for one run; at most {MOST_BINS} are possible");
        return Err(Fault::at(written, sentence));
    }
    Ok(width)
}

/// The profile speaks where `set` is silent, to every transport that has a timer.
fn transport(raw: &RawFlow, surroundings: &Surroundings<'_>) -> Result<Transport, Fault> {
    let mut set = Vec::new();
    for (key, value) in surroundings.profile.iter().flat_map(|profile| profile.set) {
        let written = raw.set.keys().any(|own| own.replace('_', "-") == key);
        if !written && Transport::has_timers(raw.transport.get_ref()) {
            set.push((key, value.to_owned()));
        }
    }
    for (key, value) in &raw.set {
        let Some(text) = text_of(value.get_ref()) else {
            return Err(Fault::at(
                value,
                format!("\"{key}\" takes one value, such as \"bic\" or 10"),
            ));
        };
        set.push((key.as_str(), text));
    }
    let pairs: Vec<(&str, &str)> = set.iter().map(|(key, text)| (*key, text.as_str())).collect();
    let plain = Transport::over(
        raw.takes_several_paths(),
        raw.transport.get_ref(),
        &pairs,
        surroundings.dir,
    );
    let transport = if raw.seal {
        plain.and_then(Transport::sealed)
    } else {
        plain
    };
    transport.map_err(
        |error| match error.key.as_ref().and_then(|key| raw.set.get(key)) {
            Some(value) => Fault::at(value, error),
            None => Fault::at(&raw.transport, error),
        },
    )
}
