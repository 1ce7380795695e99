//! One `[[flow]]` table, validated.

use super::change::{ChangePlan, changes};
use super::host::{HostPlan, named, transport_of};
use super::names::{Copy, copies, expand};
use super::path::{PathPlan, joined, paths};
use super::profiles::Profile;
use super::raw::RawFlow;
use super::traffic::traffic;
use crate::registry::Transport;
use crate::traffic::Traffic;
use crate::unknown::unknown;
use restp_base::time::{Duration, Time};
use restp_base::units;
use restp_sim::config::{Fault, positive, read};
use restp_sim::topology::Graph;
use restp_sim::{LinkSpec, NodeId, Topology};
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
    /// The hosts at these ends, by their places in the plan; a machine of its own where there is none.
    pub hosts: [Option<usize>; 2],
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
    /// What its window does is measured.
    pub sawtooth: bool,
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

    /// Does the end that it is opened to ask for the data? Then losses are found there, and the window is there. Who asks for objects of
    /// a catalogue opens the flow.
    pub fn asks_for_data(&self) -> bool {
        self.transport.is_receiver_driven() && !matches!(self.traffic, Traffic::Zipf(_))
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

impl Surroundings<'_> {
    /// The node called `name` in `written`, where one of `hosts` would do as well.
    pub fn node(&self, written: &Spanned<String>, name: &str, hosts: &[HostPlan]) -> Result<NodeId, Fault> {
        let topology = self.topology;
        topology.node(name).ok_or_else(|| {
            let nodes = topology.nodes().map(|node| topology.name(node)).take(20);
            let known = nodes.chain(hosts.iter().map(|host| host.name.as_str()).take(20));
            Fault::at(
                written,
                unknown("node", name, known) + "; nodes exist because links or stations name them",
            )
        })
    }
}

/// One end of a flow.
struct End {
    node: NodeId,
    name: String,
    host: Option<usize>,
}

impl End {
    fn new(
        written: &Spanned<String>,
        copy: Copy,
        hosts: &[HostPlan],
        surroundings: &Surroundings<'_>,
    ) -> Result<End, Fault> {
        let name = expand(written, copy)?;
        let host = named(written, &name, hosts)?;
        let name = host.map_or(name, |host| hosts[host].node.clone());
        Ok(End {
            node: surroundings.node(written, &name, hosts)?,
            name,
            host,
        })
    }
}

/// What depends on the machines at both ends alone, so that it is found once for all copies of a table.
#[derive(Clone)]
struct Carried {
    transport: Transport,
    traffic: Traffic,
    changes: Vec<ChangePlan>,
}

/// The flows `raw` stands for, some of whose ends may be on `hosts`.
pub(super) fn flows(
    raw: &RawFlow,
    hosts: &[HostPlan],
    surroundings: &Surroundings<'_>,
) -> Result<Vec<FlowPlan>, Fault> {
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
    let mut last: Option<([Option<usize>; 2], Carried)> = None;
    copies(&raw.name, raw.count.as_ref())?
        .map(|copy| {
            let end = |written| End::new(written, copy, hosts, surroundings);
            let (from, to) = (end(&raw.from)?, end(&raw.to)?);
            if from.node == to.node {
                let sentence = format!(
                    "a flow from \"{}\" to itself crosses no link; name another node",
                    from.name
                );
                return Err(Fault::at(&raw.to, sentence));
            }
            let machines = [from.host, to.host];
            let known = last.take().filter(|(known, _)| *known == machines);
            let carried = match known {
                Some((_, carried)) => carried,
                None => carried(raw, machines, hosts, (start + start_spread, surroundings))?,
            };
            last = Some((machines, carried.clone()));
            let Carried {
                transport,
                traffic,
                changes,
            } = carried;
            let paths = paths(raw, copy, (from.node, to.node), &transport, surroundings)?;
            let pinned = raw
                .traffic
                .get_ref()
                .path()
                .map(|written| pinned(written, paths.len(), &transport))
                .transpose()?;
            Ok(FlowPlan {
                name: expand(&raw.name, copy)?,
                from: from.name,
                to: to.name,
                hosts: machines,
                transport,
                traffic,
                start,
                start_spread,
                bins,
                sawtooth: raw.sawtooth,
                paths,
                pinned,
                notice: raw.notice,
                changes,
            })
        })
        .collect()
}

/// What a flow that is `opened` at this time at the latest carries, and by what, between these machines.
fn carried(
    raw: &RawFlow,
    machines: [Option<usize>; 2],
    hosts: &[HostPlan],
    (opened, surroundings): (Duration, &Surroundings<'_>),
) -> Result<Carried, Fault> {
    let transport = transport_of(
        raw,
        machines.map(|host| host.map(|host| &hosts[host])),
        surroundings,
    )?;
    let traffic = traffic(&raw.traffic, surroundings.duration, &transport)?;
    let changes = changes(raw, &transport, (opened, surroundings.duration))?;
    let transport = if changes.is_empty() {
        transport
    } else {
        transport.following()
    };
    Ok(Carried {
        transport,
        traffic,
        changes,
    })
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
