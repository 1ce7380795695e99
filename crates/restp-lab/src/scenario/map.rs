//! Nodes with places, validated: the map on which links have lengths, challenges happen and paths keep apart.

use super::raw::{RawChallenge, RawGeodiverse, RawLink, RawNode, RawScenario};
use restp_base::units;
use restp_sim::LinkSpec;
use restp_sim::config::{Exactly, Fault, read, span};
use restp_sim::topology::{Challenge, Graph, PathRequest, Position, ThreatModel};
use toml::Spanned;

/// The map of the `[[node]]` tables, still without links.
pub(super) fn map(nodes: &[RawNode]) -> Result<Graph, Fault> {
    let mut graph = Graph::default();
    for node in nodes {
        let place = Position::new(*node.latitude.get_ref(), *node.longitude.get_ref())
            .map_err(|error| Fault::at(&node.latitude, error))?;
        graph
            .add_node(node.name.get_ref(), place)
            .map_err(|error| Fault::at(&node.name, error))?;
    }
    Ok(graph)
}

/// Puts a link on the map; one that was written without a delay takes as long as light in fibre does. Links of nodes
/// without a place are not on it.
pub(super) fn lay(graph: &mut Graph, link: &mut LinkSpec, written: &Spanned<RawLink>) -> Result<(), Fault> {
    let ends = link.between.each_ref().map(|name| graph.node(name));
    let wire = written.get_ref().wire();
    if let [Some(a), Some(b)] = ends {
        let delay = graph.delay(a, b);
        if wire.delay.is_none() {
            link.forward.delay = delay;
            if wire.reverse_delay.is_none() {
                link.reverse.delay = delay;
            }
        }
        let between = [&*link.between[0], &*link.between[1]];
        return graph
            .add_link(&link.name, between)
            .map_err(|error| Fault::at(&written.get_ref().between, error));
    }
    match wire.delay {
        Some(_) => Ok(()),
        None => Err(Fault::at(
            written,
            "missing field \"delay\"; write it, or give both ends a [[node]] with latitude and longitude",
        )),
    }
}

/// Takes down the links that the challenges touch, for as long as they do.
pub(super) fn challenge(raw: &RawScenario, graph: &Graph, links: &mut [LinkSpec]) -> Result<(), Fault> {
    let challenges: Vec<Challenge> = raw.challenge.iter().map(disc).collect::<Result<_, _>>()?;
    let mut outages = graph.outages(&challenges);
    for link in links {
        for span in outages.remove(link.name.as_str()).unwrap_or_default() {
            link.forward.outage.push(span.clone());
            link.reverse.outage.push(span);
        }
    }
    Ok(())
}

fn disc(raw: &RawChallenge) -> Result<Challenge, Fault> {
    let place = |written: &Spanned<Exactly<f64, 2>>| {
        let [latitude, longitude] = **written.get_ref();
        Position::new(latitude, longitude).map_err(|error| Fault::at(written, error))
    };
    let radius = |written: &Spanned<f64>| match *written.get_ref() {
        km if (0.0..=20_000.0).contains(&km) => Ok(km),
        km => Err(Fault::at(
            written,
            format!("{km} km is no radius on earth; write 0 to 20000"),
        )),
    };
    let (centre, radius_km) = (place(&raw.centre)?, radius(&raw.radius_km)?);
    Ok(Challenge {
        during: span(&raw.during)?,
        centre: [centre, raw.moves_to.as_ref().map_or(Ok(centre), place)?],
        radius_km: [radius_km, raw.grows_to_km.as_ref().map_or(Ok(radius_km), radius)?],
    })
}

/// The links of each path that a flow asks for by `disjoint` or `geodiverse`.
pub(super) fn disjoint(
    graph: &Graph,
    ends: [&str; 2],
    count: &Spanned<u64>,
) -> Result<Vec<Vec<String>>, Fault> {
    let [from, to] = placed(graph, ends, count)?;
    let wanted = *count.get_ref() as usize;
    let paths = graph.disjoint_paths(from, to, wanted);
    if paths.len() < wanted || wanted == 0 {
        let found = graph.disjoint_paths(from, to, usize::MAX).len();
        let [from, to] = ends;
        let sentence =
            format!("{wanted} disjoint paths from \"{from}\" to \"{to}\" are impossible; write 1 to {found}");
        return Err(Fault::at(count, sentence));
    }
    Ok(paths.iter().map(|path| graph.links_of(path)).collect())
}

/// As [`disjoint`], with a distance between them.
pub(super) fn geodiverse(
    graph: &Graph,
    ends: [&str; 2],
    written: &Spanned<RawGeodiverse>,
) -> Result<Vec<Vec<String>>, Fault> {
    let [from, to] = placed(graph, ends, written)?;
    let raw = written.get_ref();
    let asked = match (raw.paths, raw.separation_km, raw.failures, raw.radius_km) {
        (Some(paths), Some(separation_km), None, None) => PathRequest {
            paths: paths as usize,
            separation_km,
            stretch_hops: None,
            skew: None,
        },
        (None, None, Some(failures), Some(challenge_radius_km)) => ThreatModel {
            simultaneous_failures: failures as usize,
            challenge_radius_km,
        }
        .request(),
        _ => {
            let sentence = "ask for paths and separation_km, or say failures and radius_km to survive";
            return Err(Fault::at(written, sentence));
        }
    };
    let request = PathRequest {
        stretch_hops: raw.stretch.map(|hops| hops as usize),
        skew: raw
            .skew
            .as_ref()
            .map(|skew| read(skew, units::duration))
            .transpose()?,
        ..asked
    };
    let paths = graph
        .geodiverse_paths(from, to, &request)
        .map_err(|error| Fault::at(written, error))?;
    Ok(paths.iter().map(|path| graph.links_of(path)).collect())
}

fn placed<T>(graph: &Graph, ends: [&str; 2], written: &Spanned<T>) -> Result<[usize; 2], Fault> {
    let place = |name: &str| {
        graph.node(name).ok_or_else(|| {
            Fault::at(
                written,
                format!("\"{name}\" has no place on the map; add a [[node]] with latitude and longitude"),
            )
        })
    };
    Ok([place(ends[0])?, place(ends[1])?])
}
