//! `[[host]]`, validated: machines that serve many flows, and caches on their way.

use super::flow::{FlowPlan, Surroundings};
use super::names::{copies, expand};
use super::raw::{RawFlow, RawHost};
use super::transport::transport;
use crate::registry::Transport;
use crate::unknown::unknown;
use restp_sim::Topology;
use restp_sim::config::Fault;
use toml::Spanned;

/// One machine, ready to run.
#[derive(Clone, Debug)]
pub struct HostPlan {
    /// Its name in flows and results.
    pub name: String,
    /// The node that it sits on.
    pub node: String,
    /// What it is.
    pub role: HostRole,
    /// The table that it is written in, by its place.
    table: usize,
}

/// What a machine of its own does.
#[derive(Clone, Debug)]
pub enum HostRole {
    /// It opens and serves flows, all of them with one engine.
    Endpoint(Transport),
    /// It keeps data of ITP that passes, so many bytes, and answers for what it holds; with room for none it is a router.
    Cache(u64),
}

impl HostPlan {
    /// Its protocol, if flows may begin or end here.
    pub fn transport(&self) -> Option<&Transport> {
        match &self.role {
            HostRole::Endpoint(transport) => Some(transport),
            HostRole::Cache(_) => None,
        }
    }
}

/// What a cache holds where its size is not written: 64 MiB, as much as the largest object of a flow.
const CACHE_BYTES: u64 = 64 << 20;

/// The hosts of all tables.
pub(super) fn hosts(tables: &[RawHost], surroundings: &Surroundings<'_>) -> Result<Vec<HostPlan>, Fault> {
    let mut all: Vec<HostPlan> = Vec::new();
    for (table, raw) in tables.iter().enumerate() {
        let role = role(raw, surroundings)?;
        for copy in copies(&raw.name, raw.count.as_ref())? {
            let name = expand(&raw.name, copy)?;
            let written = raw.node.as_ref().unwrap_or(&raw.name);
            let node = expand(written, copy)?;
            surroundings.node(written, &node, &[])?;
            if name != node && surroundings.topology.node(&name).is_some() {
                let sentence =
                    format!("\"{name}\" is a node, and not the one of this host; call the host otherwise");
                return Err(Fault::at(&raw.name, sentence));
            }
            if all.iter().any(|host| host.name == name) {
                let sentence = format!("two hosts are called \"{name}\"; every host needs a name of its own");
                return Err(Fault::at(&raw.name, sentence));
            }
            let is_cache = |host: &HostPlan| matches!(host.role, HostRole::Cache(_));
            if let HostRole::Cache(_) = role
                && all.iter().any(|host| host.node == node && is_cache(host))
            {
                let sentence = format!("a node has one cache, and \"{node}\" has one; make that larger");
                return Err(Fault::at(written, sentence));
            }
            let role = role.clone();
            all.push(HostPlan {
                name,
                node,
                role,
                table,
            });
        }
    }
    Ok(all)
}

fn role(raw: &RawHost, surroundings: &Surroundings<'_>) -> Result<HostRole, Fault> {
    const ROLES: [&str; 2] = ["endpoint", "cache"];
    let role = raw
        .role
        .as_ref()
        .map_or("endpoint", |role| role.get_ref().as_str());
    match (role, &raw.transport) {
        ("endpoint", Some(name)) => {
            if let Some(size) = &raw.size {
                let sentence = "only a cache has a size; leave it out, or write role = \"cache\"";
                return Err(Fault::at(size, sentence));
            }
            let transport = transport(name, &raw.set, (false, false), surroundings)?;
            transport.check_shared().map_err(|error| Fault::at(name, error))?;
            Ok(HostRole::Endpoint(transport))
        }
        ("endpoint", None) => Err(Fault::at(
            &raw.name,
            "a host has a transport, such as \"restp:default\", or role = \"cache\"; write one of them",
        )),
        ("cache", Some(name)) => Err(Fault::at(
            name,
            "a cache opens no flows, and knows ITP alone; leave transport out",
        )),
        ("cache", None) => {
            if let Some((_, value)) = raw.set.first_key_value() {
                return Err(Fault::at(
                    value,
                    "a cache has a size and nothing else to set; leave it out",
                ));
            }
            let bytes = raw.size.as_ref().map_or(CACHE_BYTES, |size| size.get_ref().0);
            Ok(HostRole::Cache(bytes))
        }
        (other, _) => {
            let written = raw.role.as_ref().unwrap_or(&raw.name);
            Err(Fault::at(written, unknown("role of a host", other, ROLES)))
        }
    }
}

/// The host called `name` in `written`, by its place, if flows may begin and end there.
pub(super) fn named(
    written: &Spanned<String>,
    name: &str,
    hosts: &[HostPlan],
) -> Result<Option<usize>, Fault> {
    let Some(index) = hosts.iter().position(|host| host.name == name) else {
        return Ok(None);
    };
    if hosts[index].transport().is_none() {
        let sentence =
            format!("\"{name}\" is a cache: it lies on the way of flows; name the node or host at their end");
        return Err(Fault::at(written, sentence));
    }
    Ok(Some(index))
}

/// The transport of a flow whose ends may be on these hosts: what a host opens or serves is the host's.
pub(super) fn transport_of(
    raw: &RawFlow,
    [from, to]: [Option<&HostPlan>; 2],
    surroundings: &Surroundings<'_>,
) -> Result<Transport, Fault> {
    if raw.seal && from.or(to).is_some() {
        let sentence =
            "a flow of a [[host]] is not sealed here; leave seal out, or name nodes in from and to";
        return Err(Fault::at(&raw.name, sentence));
    }
    if let Some(host) = from {
        let name = &host.name;
        if let Some(written) = &raw.transport {
            let sentence = format!(
                "\"{name}\" opens this flow, by its own transport; leave transport out, or set host.{name}.transport"
            );
            return Err(Fault::at(written, sentence));
        }
        if let Some((key, value)) = raw.set.first_key_value() {
            let sentence =
                format!("\"{name}\" opens this flow, and is set as a whole; write host.{name}.set.{key}");
            return Err(Fault::at(value, sentence));
        }
    }
    let shared = from.into_iter().chain(to).find_map(HostPlan::transport);
    let transport = match (&raw.transport, shared) {
        (Some(name), _) => transport(
            name,
            &raw.set,
            (raw.takes_several_paths(), raw.seal),
            surroundings,
        )?,
        (None, Some(shared)) => {
            if let Some((_, value)) = raw.set.first_key_value() {
                let sentence = format!(
                    "set changes a transport that the flow names; write transport = \"{}\" as well",
                    shared.name()
                );
                return Err(Fault::at(value, sentence));
            }
            shared.clone()
        }
        (None, None) => {
            let sentence =
                "missing field \"transport\"; name one, or a [[host]] in from or to, which has one";
            return Err(Fault::at(&raw.name, sentence));
        }
    };
    match to.and_then(|host| Some((host, host.transport()?))) {
        Some((host, served)) if !served.speaks_with(&transport) => {
            let sentence = format!(
                "\"{}\" serves \"{}\", which does not speak with \"{}\"; choose a transport of the same protocol",
                host.name,
                served.name(),
                transport.name()
            );
            Err(Fault::at(raw.transport.as_ref().unwrap_or(&raw.to), sentence))
        }
        _ => Ok(transport),
    }
}

/// A cache that nothing passes is a mistake in the map.
pub(super) fn check_caches(
    tables: &[RawHost],
    hosts: &[HostPlan],
    flows: &[FlowPlan],
    topology: &Topology,
) -> Result<(), Fault> {
    let routes = flows.iter().flat_map(|flow| &flow.paths).map(|path| &path.there);
    for host in hosts.iter().filter(|host| host.transport().is_none()) {
        let passes = |node| routes.clone().any(|route| topology.passes(route, node));
        if !topology.node(&host.node).is_some_and(passes) {
            let sentence = format!(
                "no flow leads through \"{}\", so a cache there sees nothing; put it on a node between the ends of flows",
                host.node
            );
            let raw = &tables[host.table];
            return Err(Fault::at(raw.node.as_ref().unwrap_or(&raw.name), sentence));
        }
    }
    Ok(())
}
