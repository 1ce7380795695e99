//! Nodes, and the routes between them; places on a map, and paths that keep apart there.

mod challenge;
mod dumbbell;
mod earth;
mod geodiverse;
mod graph;
mod point_to_point;
mod route;
mod routes;

pub use challenge::Challenge;
pub use dumbbell::dumbbell;
pub use earth::{NoPlace, Position};
pub use geodiverse::{NoPaths, PathRequest, ThreatModel};
pub use graph::{Graph, GraphError, NodePath};
pub use point_to_point::point_to_point;
pub use route::{Route, RouteError};

use crate::medium::MediumSpec;
use crate::spec::{LinkSpec, NetworkError, Way};
use restp_base::time::Duration;
use restp_base::units::Rate;
use routes::Routes;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Most links of a network.
const MAX_LINKS: usize = 1 << 16;
/// Most nodes: the table of routes holds four bytes for each pair, 64 MiB in all.
const MAX_NODES: usize = 1 << 12;

/// A node of the network, in the order in which links first name them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub(crate) u32);

/// The graph of a list of links, with one route between any two nodes: the least total delay; then the fewest hops;
/// then, at each node, the neighbour and link whose names come first. A hop through the air counts for as much delay as an
/// exchange around a packet of 1500 bytes takes there, so that few long hops win over many short ones.
///
/// Direction `2n` is the forward one of link `n`, direction `2n + 1` its reverse.
#[derive(Clone, Debug)]
pub struct Topology {
    names: Vec<String>,
    by_name: BTreeMap<String, NodeId>,
    edges: Vec<Edge>,
    routes: Routes,
    /// Names of media, and the directions that are theirs.
    media: Vec<(String, Range<usize>)>,
}

/// One direction as the routes see it.
#[derive(Clone, Debug)]
struct Edge {
    link: String,
    from: u32,
    to: u32,
    delay: Duration,
    /// What routes keep small.
    cost: Duration,
    rate: Option<Rate>,
}

/// A packet of this size counts where hops through the air are compared with wires.
const COMPARED_BYTES: u32 = 1500;
/// What a hop costs whose ends cannot hear each other yet: more than any route of others.
const LATER: Duration = Duration::from_secs(1 << 20);

impl Topology {
    /// The graph of `links`. Queues need not be resolved yet: path round-trip times and rates come from here.
    ///
    /// # Errors
    /// When the list is empty or too long, a name is missing or given twice, a link ends where it starts, or there are two nodes
    /// without a route.
    pub fn new(links: &[LinkSpec]) -> Result<Self, NetworkError> {
        Topology::with_media(links, &[])
    }

    /// The graph of `links` and of the pairs of each medium that hear each other, behind them. Where there is a medium,
    /// parts of the network may lie apart.
    ///
    /// # Errors
    /// As [`Topology::new`], and when a medium is impossible.
    pub fn with_media(links: &[LinkSpec], media: &[MediumSpec]) -> Result<Self, NetworkError> {
        if links.is_empty() && media.is_empty() {
            return Err(NetworkError::Empty);
        }
        at_most(MAX_LINKS, "links", links.len())?;
        let mut nodes = Nodes::default();
        let mut edges = wires(links, &mut nodes)?;
        let media = air(media, &mut nodes, &mut edges)?;
        at_most(MAX_NODES, "nodes", nodes.names.len())?;
        let Nodes { names, by_name } = nodes;
        let (routes, apart) = Routes::new(&names, &edges);
        if let Some((from, to)) = apart.filter(|_| media.is_empty()) {
            return Err(NetworkError::Unreachable {
                from: names[from].clone(),
                to: names[to].clone(),
            });
        }
        Ok(Topology {
            names,
            by_name,
            edges,
            routes,
            media,
        })
    }

    /// The node of this name.
    pub fn node(&self, name: &str) -> Option<NodeId> {
        self.by_name.get(name).copied()
    }

    /// The name of a node.
    pub fn name(&self, node: NodeId) -> &str {
        &self.names[node.0 as usize]
    }

    /// All nodes, in the order in which links first name them.
    pub fn nodes(&self) -> impl Iterator<Item = NodeId> {
        (0..self.names.len() as u32).map(NodeId)
    }

    /// Propagation along the route; serialisation and waiting come on top. Nothing where there is no route.
    pub fn one_way_delay(&self, from: NodeId, to: NodeId) -> Duration {
        self.edges_on(from, to)
            .fold(Duration::ZERO, |total, edge| total + edge.delay)
    }

    /// Propagation there and back.
    pub fn path_rtt(&self, from: NodeId, to: NodeId) -> Duration {
        self.one_way_delay(from, to) + self.one_way_delay(to, from)
    }

    /// The smallest rate on the route, in the mean where it changes; `None` when nothing limits it.
    pub fn bottleneck_rate(&self, from: NodeId, to: NodeId) -> Option<Rate> {
        self.edges_on(from, to).filter_map(|edge| edge.rate).min()
    }

    /// Names and ways of the links on the route, in the order of travel.
    pub fn route(&self, from: NodeId, to: NodeId) -> impl Iterator<Item = (&str, Way)> {
        self.route_indices(from, to)
            .map(|index| (self.edges[index].link.as_str(), Way::BOTH[index % 2]))
    }

    /// Is there a route?
    pub fn reaches(&self, from: NodeId, to: NodeId) -> bool {
        from == to || self.next_hop(from.0, to.0).is_some()
    }

    /// The direction that leads from `from` towards `to`, which is another node; none where parts lie apart.
    pub(crate) fn next_hop(&self, from: u32, to: u32) -> Option<u32> {
        self.routes.next_hop(from, to)
    }

    /// Where a direction ends.
    pub(crate) fn far_end(&self, direction: usize) -> u32 {
        self.edges[direction].to
    }

    fn edges_on(&self, from: NodeId, to: NodeId) -> impl Iterator<Item = &Edge> {
        self.route_indices(from, to).map(|index| &self.edges[index])
    }

    fn route_indices(&self, from: NodeId, to: NodeId) -> impl Iterator<Item = usize> {
        let mut node = from.0;
        std::iter::from_fn(move || {
            if node == to.0 {
                return None;
            }
            let index = self.next_hop(node, to.0)? as usize;
            node = self.edges[index].to;
            Some(index)
        })
    }
}

/// Nodes in the order in which they are first named.
#[derive(Default)]
struct Nodes {
    names: Vec<String>,
    by_name: BTreeMap<String, NodeId>,
}

impl Nodes {
    fn number(&mut self, name: &str) -> u32 {
        if let Some(known) = self.by_name.get(name) {
            return known.0;
        }
        let number = self.names.len() as u32;
        self.by_name.insert(name.into(), NodeId(number));
        self.names.push(name.into());
        number
    }
}

fn wires(links: &[LinkSpec], nodes: &mut Nodes) -> Result<Vec<Edge>, NetworkError> {
    let mut seen = BTreeSet::new();
    let mut edges = Vec::with_capacity(2 * links.len());
    for (index, link) in links.iter().enumerate() {
        if link.name.is_empty() || link.between.iter().any(String::is_empty) {
            return Err(NetworkError::Nameless(index + 1));
        }
        if !seen.insert(&link.name) {
            return Err(NetworkError::DuplicateLink(link.name.clone()));
        }
        let [a, b] = link.between.each_ref().map(|name| nodes.number(name));
        if a == b {
            return Err(NetworkError::Loop {
                link: link.name.clone(),
                node: link.between[0].clone(),
            });
        }
        for (way, from, to) in [(Way::Forward, a, b), (Way::Reverse, b, a)] {
            let spec = link.direction(way);
            edges.push(Edge {
                link: link.name.clone(),
                from,
                to,
                delay: spec.delay,
                cost: spec.delay,
                rate: spec.rate.as_ref().map(|rate| rate.mean(Duration::MAX)),
            });
        }
    }
    Ok(edges)
}

/// Adds the pairs of each medium, and says which directions are whose.
fn air(
    media: &[MediumSpec],
    nodes: &mut Nodes,
    edges: &mut Vec<Edge>,
) -> Result<Vec<(String, Range<usize>)>, NetworkError> {
    let mut seen: Vec<(String, Range<usize>)> = Vec::new();
    for medium in media {
        let name = || medium.name.clone();
        let of = |error| NetworkError::Medium {
            medium: name(),
            error,
        };
        medium.check().map_err(of)?;
        if seen.iter().any(|(known, _)| *known == medium.name) {
            return Err(NetworkError::DuplicateMedium(name()));
        }
        let numbers: Vec<u32> = medium
            .stations
            .iter()
            .map(|station| nodes.number(&station.node))
            .collect();
        let (exchange, first) = (
            medium.timing.exchange(&medium.rates.fastest(), COMPARED_BYTES),
            edges.len(),
        );
        for pair in medium.pairs() {
            let [a, b] = pair.stations.map(|station| numbers[station]);
            for (from, to) in [(a, b), (b, a)] {
                edges.push(Edge {
                    link: pair.name.clone(),
                    from,
                    to,
                    delay: pair.delay,
                    cost: pair.delay + exchange + if pair.apart { LATER } else { Duration::ZERO },
                    rate: Some(Rate::from_bps(u64::from(medium.rates.fastest().kbps) * 1000)),
                });
            }
            at_most(MAX_LINKS, "links", edges.len() / 2)?;
        }
        seen.push((name(), first..edges.len()));
    }
    Ok(seen)
}

fn at_most(limit: usize, what: &'static str, count: usize) -> Result<(), NetworkError> {
    if count <= limit {
        Ok(())
    } else {
        Err(NetworkError::TooLarge { what, count, limit })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::DirectionSpec;

    fn link(name: &str, a: &str, b: &str, delay_ms: u64) -> LinkSpec {
        let delay = Duration::from_millis(delay_ms);
        LinkSpec::symmetric(
            name,
            [a, b],
            DirectionSpec {
                delay,
                ..DirectionSpec::default()
            },
        )
    }

    fn route(links: &[LinkSpec], from: &str, to: &str) -> String {
        let topology = Topology::new(links).expect("a network");
        let node = |name| topology.node(name).expect("a node");
        topology
            .route(node(from), node(to))
            .map(|(link, way)| format!("{link}/{way} "))
            .collect()
    }

    #[test]
    fn the_least_delay_wins_over_the_fewest_hops() {
        let links = [
            link("direct", "a", "d", 30),
            link("ab", "a", "b", 10),
            link("db", "d", "b", 10),
        ];
        assert_eq!(route(&links, "a", "d"), "ab/forward db/reverse ");
        assert_eq!(route(&links, "d", "a"), "db/forward ab/reverse ");
    }

    #[test]
    fn equal_delays_take_fewer_hops_then_the_first_name() {
        let links = [
            link("direct", "a", "d", 20),
            link("ab", "a", "b", 10),
            link("bd", "b", "d", 10),
        ];
        assert_eq!(route(&links, "a", "d"), "direct/forward ");
        let diamond = |first, second| {
            [
                link("1", "a", first, 1),
                link("2", "a", second, 1),
                link("3", first, "d", 1),
                link("4", second, "d", 1),
            ]
        };
        assert_eq!(route(&diamond("x", "y"), "a", "d"), "1/forward 3/forward ");
        assert_eq!(route(&diamond("y", "x"), "a", "d"), "2/forward 4/forward ");
        let twins = [link("second", "a", "b", 1), link("first", "a", "b", 1)];
        assert_eq!(route(&twins, "a", "b"), "first/forward ");
    }

    #[test]
    fn links_without_delay_make_no_circles() {
        let links = [
            link("1", "a", "b", 0),
            link("2", "b", "c", 0),
            link("3", "c", "a", 0),
            link("4", "c", "d", 0),
        ];
        assert_eq!(route(&links, "a", "d"), "3/reverse 4/forward ");
    }

    #[test]
    fn directions_have_delays_of_their_own() {
        let mut links = [link("fast", "a", "b", 10), link("slow", "a", "b", 20)];
        links[1].reverse.delay = Duration::from_millis(5);
        links[1].reverse.rate = Some(Rate::from_bps(1_000).into());
        let topology = Topology::new(&links).expect("a network");
        let [a, b] = ["a", "b"].map(|name| topology.node(name).expect("a node"));
        assert_eq!(topology.one_way_delay(a, b), Duration::from_millis(10));
        assert_eq!(topology.path_rtt(a, b), Duration::from_millis(15));
        assert_eq!(topology.bottleneck_rate(a, b), None);
        assert_eq!(topology.bottleneck_rate(b, a), Some(Rate::from_bps(1_000)));
        assert_eq!(topology.path_rtt(a, a), Duration::ZERO);
    }

    #[test]
    fn lists_that_are_no_network_are_refused_by_name() {
        let refused = |links: &[LinkSpec]| Topology::new(links).expect_err("refused").to_string();
        assert!(refused(&[]).contains("no links"));
        assert!(refused(&[link("x", "a", "b", 1), link("x", "b", "c", 1)]).contains("\"x\""));
        assert!(refused(&[link("x", "a", "a", 1)]).contains("\"a\" with itself"));
        assert!(refused(&[link("x", "a", "", 1)]).contains("number 1"));
        let star: Vec<LinkSpec> = (0..5000)
            .map(|n| link(&n.to_string(), "hub", &format!("n{n}"), 1))
            .collect();
        assert!(refused(&star).contains("5001 nodes are too many"));
        let split = refused(&[link("x", "a", "b", 1), link("y", "c", "d", 1)]);
        assert!(split.contains("\"a\"") && split.contains("\"c\""), "{split}");
    }
}
