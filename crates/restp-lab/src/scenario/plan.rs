//! One point of a scenario, validated: everything a run needs and nothing that could still be wrong.

use super::document::Document;
use super::flow::{FlowPlan, Surroundings, flows};
use super::host::{HostPlan, check_caches, hosts};
use super::link::links;
use super::map::{challenge, lay, map};
use super::measure::{GroupPlan, groups, window};
use super::medium::media;
use super::names::MOST;
use super::profiles::Profile;
use super::raw::{RawLink, RawScenario};
use restp_base::time::{Duration, Time};
use restp_base::units::{self, Rate};
use restp_sim::config::{Fault, positive, read};
use restp_sim::medium::MediumSpec;
use restp_sim::topology::Graph;
use restp_sim::{LinkSpec, QueueLimit, Topology, Way};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::Path;
use toml::Spanned;

/// One point, ready to run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Short name of the scenario.
    pub id: String,
    /// One line about it.
    pub title: String,
    /// A run ends here, or as soon as every flow is finished.
    pub duration: Duration,
    /// Seed of the first run; the others follow, one by one.
    pub seed: u64,
    /// How many runs.
    pub runs: u64,
    /// How coarse the timers of all hosts are; exact where absent.
    pub timers: Option<Duration>,
    /// The network, with every queue resolved.
    pub links: Vec<LinkSpec>,
    /// Its channels of 802.11, with their stations.
    pub media: Vec<MediumSpec>,
    /// Machines that flows share, or that lie on their way, in the order written.
    pub hosts: Vec<HostPlan>,
    /// The flows, in the order written.
    pub flows: Vec<FlowPlan>,
    /// The part of a run that counters and rates are of.
    pub measure: Range<Time>,
    /// Flows that are looked at together, in the order written.
    pub groups: Vec<GroupPlan>,
}

/// The most runs of one point.
const MOST_RUNS: u64 = 1_000_000;
/// A queue of one bandwidth-delay product is counted in packets of this size.
const PACKET_BYTES: u64 = 1500;

impl Plan {
    pub(super) fn new(document: &Document<'_>, dir: &Path) -> Result<Plan, Fault> {
        let raw: RawScenario = document.read()?;
        let duration = positive(&raw.duration, read(&raw.duration, units::duration)?)?;
        let runs = raw.runs.as_ref().map_or(1, |runs| *runs.get_ref());
        if let Some(written) = raw.runs.as_ref().filter(|_| runs == 0 || runs > MOST_RUNS) {
            return Err(Fault::at(
                written,
                format!("{runs} runs are impossible; write 1 to {MOST_RUNS}"),
            ));
        }
        let seed = raw.seed.as_ref().map_or(1, |seed| *seed.get_ref());
        if let Some(written) = raw.seed.as_ref().filter(|_| seed.checked_add(runs).is_none()) {
            return Err(Fault::at(
                written,
                format!("seeds {seed} and on leave no room for {runs} runs"),
            ));
        }

        let timers = |written| positive(written, read(written, units::duration)?);
        let timers = raw.timers.as_ref().map(timers).transpose()?;
        let profile = raw.profile.as_ref().map(Profile::named).transpose()?;
        let media = media(&raw)?;
        let (mut links, topology, map) = network(&raw, &media, dir)?;
        let surroundings = Surroundings {
            topology: &topology,
            map: &map,
            links: &links,
            duration,
            profile,
            dir,
        };
        let hosts = hosts(&raw.host, &surroundings)?;
        let flows = all_flows(&raw, &hosts, &surroundings)?;
        check_caches(&raw.host, &hosts, &flows, &topology)?;
        resolve_queues(&mut links, &flows, &topology, (duration, profile));
        Ok(Plan {
            id: identifier(&raw.id)?,
            title: raw.title,
            duration,
            seed,
            runs,
            timers,
            links,
            media,
            measure: window(raw.measure.as_ref(), duration)?,
            groups: groups(&raw.group, &flows)?,
            hosts,
            flows,
        })
    }

    /// Names of its links, as results have them: wires, then the pairs of each medium.
    pub fn link_names(&self) -> Vec<String> {
        let wires = self.links.iter().map(|link| link.name.clone());
        let pairs = self.media.iter().flat_map(MediumSpec::pairs);
        wires.chain(pairs.map(|pair| pair.name)).collect()
    }
}

fn network(
    raw: &RawScenario,
    media: &[MediumSpec],
    dir: &Path,
) -> Result<(Vec<LinkSpec>, Topology, Graph), Fault> {
    let mut map = map(&raw.node)?;
    let mut all: Vec<LinkSpec> = Vec::new();
    let mut written = BTreeMap::new();
    for table in &raw.link {
        for mut link in links(table, dir)? {
            if written.insert(link.name.clone(), table).is_some() {
                return Err(taken(&table.get_ref().name, "link", &link.name));
            }
            lay(&mut map, &mut link, table)?;
            all.push(link);
        }
        if all.len() as u64 > MOST {
            return Err(Fault::at(
                &table.get_ref().name,
                format!("more than {MOST} links are too many for one network"),
            ));
        }
    }
    let blame = |table: Option<&Spanned<RawLink>>, error: &dyn std::fmt::Display| match table {
        Some(table) => Fault::at(&table.get_ref().between, error),
        None => Fault::at(&raw.id, error),
    };
    let topology = Topology::with_media(&all, media).map_err(|error| match &error {
        restp_sim::NetworkError::Unreachable { from, to } => {
            // The later of the two parts is the one that hangs loose.
            let touches = |link: &&LinkSpec| link.between.contains(from) || link.between.contains(to);
            blame(all.iter().rfind(touches).map(|link| written[&link.name]), &error)
        }
        _ => blame(raw.link.first(), &error),
    })?;
    challenge(raw, &map, &mut all)?;
    Ok((all, topology, map))
}

fn all_flows(
    raw: &RawScenario,
    hosts: &[HostPlan],
    surroundings: &Surroundings<'_>,
) -> Result<Vec<FlowPlan>, Fault> {
    let mut all: Vec<FlowPlan> = Vec::new();
    let (mut names, mut pairs) = (BTreeSet::new(), BTreeSet::new());
    for table in &raw.flow {
        for flow in flows(table, hosts, surroundings)? {
            if !names.insert(flow.name.clone()) {
                return Err(taken(&table.name, "flow", &flow.name));
            }
            if let [Some(from), Some(to)] = flow.hosts
                && !pairs.insert([from.min(to), from.max(to)])
            {
                let [from, to] = [from, to].map(|host| &hosts[host].name);
                let sentence = format!(
                    "\"{from}\" and \"{to}\" have a flow between them already, and their addresses do not tell two apart; name a node in from or to"
                );
                return Err(Fault::at(&table.name, sentence));
            }
            all.push(flow);
        }
        if all.len() as u64 > MOST {
            return Err(Fault::at(
                &table.name,
                format!("more than {MOST} flows are too many for one network"),
            ));
        }
    }
    if all.is_empty() {
        return Err(Fault::at(
            &raw.id,
            "a scenario without flows measures nothing; add a [[flow]]",
        ));
    }
    Ok(all)
}

/// Files are named by it.
fn identifier(written: &Spanned<String>) -> Result<String, Fault> {
    let id = written.get_ref();
    let plain = |c: char| c.is_alphanumeric() || "-_.".contains(c);
    if id.is_empty() || id.starts_with('.') || !id.chars().all(plain) {
        let message =
            format!("\"{id}\" is no id: files are named by it; write letters, digits, \"-\" and \"_\"");
        return Err(Fault::at(written, message));
    }
    Ok(id.clone())
}

fn taken(written: &Spanned<String>, kind: &str, name: &str) -> Fault {
    Fault::at(
        written,
        format!("two {kind}s are called \"{name}\"; every {kind} needs a name of its own"),
    )
}

/// A queue of one bandwidth-delay product: the direction's own rate, in the mean over the run, times the longest round trip (propagation
/// only) of a flow that crosses the link, in packets of 1500 bytes, at least one, or as many as the profile says.
fn resolve_queues(
    links: &mut [LinkSpec],
    flows: &[FlowPlan],
    topology: &Topology,
    (duration, profile): (Duration, Option<&Profile>),
) {
    let least = profile.map_or(1, |profile| profile.least_queue_packets);
    let mut longest: BTreeMap<&str, Duration> = BTreeMap::new();
    for path in flows.iter().flat_map(|flow| &flow.paths) {
        for (link, _) in topology
            .links_of(&path.there)
            .chain(topology.links_of(&path.back))
        {
            let entry = longest.entry(link).or_default();
            *entry = path.rtt.max(*entry);
        }
    }
    for link in links {
        let own = link.forward.delay + link.reverse.delay;
        let rtt = longest.get(link.name.as_str()).copied().unwrap_or(own);
        for way in Way::BOTH {
            let direction = match way {
                Way::Forward => &mut link.forward,
                Way::Reverse => &mut link.reverse,
            };
            if direction.queue.limit() == QueueLimit::Bdp {
                let rate = direction.rate.as_ref().map(|rate| rate.mean(duration));
                let bdp = packets(rate.unwrap_or_default(), rtt).max(least);
                direction.queue = direction.queue.with_limit(QueueLimit::Packets(bdp));
            }
        }
    }
}

fn packets(rate: Rate, rtt: Duration) -> u64 {
    rate.bytes_in(rtt).div_ceil(PACKET_BYTES)
}
