//! The `paths` of a flow, validated: which links each one takes, there and back, and when it is down.

use super::flow::Surroundings;
use super::map::{disjoint, geodiverse};
use super::names::{Copy, expand};
use super::raw::RawFlow;
use crate::registry::Transport;
use restp_base::time::{Duration, Time};
use restp_sim::config::Fault;
use restp_sim::{NodeId, Route};
use std::ops::Range;
use toml::Spanned;

/// One path of a flow, ready to run.
#[derive(Clone, Debug)]
pub struct PathPlan {
    /// The links from the flow's `from` to its `to`, in the order of travel.
    pub links: Vec<String>,
    /// What the packets of the opening end follow.
    pub there: Route,
    /// What those of the serving end follow.
    pub back: Route,
    /// Used only when no other path works.
    pub backup: bool,
    /// Propagation from end to end and back.
    pub rtt: Duration,
    /// When it is down, in the order of time.
    pub outages: Vec<Range<Time>>,
}

/// Most paths of one flow: k has four bits (ResTP §3.1.1).
const MOST_PATHS: usize = 15;

/// The paths of a flow from `from` to `to`: those written, or the shortest route there and the shortest back.
pub(super) fn paths(
    raw: &RawFlow,
    copy: Copy,
    (from, to): (NodeId, NodeId),
    transport: &Transport,
    surroundings: &Surroundings<'_>,
) -> Result<Vec<PathPlan>, Fault> {
    let topology = surroundings.topology;
    let backups = raw.backups.as_ref().map_or(0, |count| *count.get_ref());
    let Some(routes) = asked(raw, copy, (from, to), surroundings)? else {
        if let Some(count) = raw.backups.as_ref().filter(|_| backups > 0) {
            return Err(Fault::at(
                count,
                "a flow whose paths are not named has no backups; add paths = [ ]",
            ));
        }
        if !topology.reaches(from, to) {
            let [from, to] = [from, to].map(|node| topology.name(node));
            let sentence = format!(
                "no route leads from \"{from}\" to \"{to}\"; add a link, or a [[station]] between them"
            );
            return Err(Fault::at(&raw.to, sentence));
        }
        let (there, back) = (topology.shortest(from, to), topology.shortest(to, from));
        return Ok(vec![path(there, back, false, surroundings)]);
    };
    let count = routes.get_ref().len();
    check_count(count, transport).map_err(|message| Fault::at(&routes, message))?;
    if let Some(place) = raw.backups.as_ref().filter(|_| backups >= count as u64) {
        let sentence = format!("{backups} of {count} paths cannot be backups; the first one never is");
        return Err(Fault::at(place, sentence));
    }
    let one = |(index, there): (usize, Route)| {
        let backup = (count - index) as u64 <= backups;
        path(there.clone(), there.reversed(), backup, surroundings)
    };
    Ok(routes.into_inner().into_iter().enumerate().map(one).collect())
}

/// The routes that the flow names or asks the map for, and where it does so.
fn asked(
    raw: &RawFlow,
    copy: Copy,
    (from, to): (NodeId, NodeId),
    surroundings: &Surroundings<'_>,
) -> Result<Option<Spanned<Vec<Route>>>, Fault> {
    let (topology, map) = (surroundings.topology, surroundings.map);
    let ends = [topology.name(from), topology.name(to)];
    let (place, paths) = match (&raw.paths, &raw.disjoint, &raw.geodiverse) {
        (None, None, None) => return Ok(None),
        (Some(written), None, None) => {
            let route = |links: &Spanned<Vec<Spanned<String>>>| {
                let names = links.get_ref().iter().map(|link| expand(link, copy));
                let names: Vec<String> = names.collect::<Result<_, _>>()?;
                topology.along(from, to, &names).map_err(|error| {
                    Fault::at(
                        links,
                        format!("{error}; write the links of one path in the order of travel, or media in place of their hops"),
                    )
                })
            };
            let routes = written.get_ref().iter().map(route).collect::<Result<_, _>>()?;
            return Ok(Some(Spanned::new(written.span(), routes)));
        }
        (None, Some(count), None) => (count.span(), disjoint(map, ends, count)?),
        (None, None, Some(request)) => (request.span(), geodiverse(map, ends, request)?),
        _ => {
            return Err(Fault::at(
                &raw.name,
                "paths, disjoint and geodiverse exclude each other; keep one of them",
            ));
        }
    };
    let route = |links: &Vec<String>| {
        topology.along(from, to, links).map_err(|error| Fault {
            span: place.clone(),
            message: error.to_string(),
        })
    };
    let routes = paths.iter().map(route).collect::<Result<_, _>>()?;
    Ok(Some(Spanned::new(place, routes)))
}

pub(crate) fn check_count(count: usize, transport: &Transport) -> Result<(), String> {
    let name = transport.name();
    match count {
        0 => Err("a flow without a path goes nowhere; name one, or leave paths out".into()),
        1 => Ok(()),
        _ if !transport.takes_several_paths() => Err(format!(
            "{name} has one path; name one, or choose a transport with several, such as restp:geo-spread"
        )),
        n if n > MOST_PATHS => Err(format!(
            "{n} paths are too many; one flow has at most {MOST_PATHS}"
        )),
        _ => Ok(()),
    }
}

fn path(there: Route, back: Route, backup: bool, surroundings: &Surroundings<'_>) -> PathPlan {
    let topology = surroundings.topology;
    let mut spans = Vec::new();
    for (name, way) in topology.links_of(&there).chain(topology.links_of(&back)) {
        let link = surroundings.links.iter().find(|link| link.name == name);
        spans.extend(
            link.into_iter()
                .flat_map(|link| link.direction(way).outage.iter().cloned()),
        );
    }
    PathPlan {
        links: topology
            .links_of(&there)
            .map(|(name, _)| name.to_owned())
            .collect(),
        rtt: topology.delay_of(&there) + topology.delay_of(&back),
        outages: joined(spans),
        there,
        back,
        backup,
    }
}

/// In the order of time; spans that touch are one.
pub(super) fn joined(mut spans: Vec<Range<Time>>) -> Vec<Range<Time>> {
    spans.sort_by_key(|span| (span.start, span.end));
    let mut joined: Vec<Range<Time>> = Vec::new();
    for span in spans {
        match joined.last_mut().filter(|last| span.start <= last.end) {
            Some(last) => last.end = last.end.max(span.end),
            None => joined.push(span),
        }
    }
    joined
}
