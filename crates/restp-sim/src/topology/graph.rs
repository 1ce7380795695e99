//! A network on a map: nodes at places, links along great circles, and node-disjoint paths through it.

use super::earth::Position;
use restp_base::time::Duration;
use std::collections::BTreeMap;
use thiserror::Error;

/// Nodes with places, and the links between them.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    names: Vec<String>,
    places: Vec<Position>,
    by_name: BTreeMap<String, usize>,
    links: Vec<(String, [usize; 2])>,
    /// Neighbour and link, by node, in the order of the links.
    neighbours: Vec<Vec<(usize, usize)>>,
}

/// Why a node or link cannot be added, or a path not be found.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum GraphError {
    /// Two nodes of one name.
    #[error("two nodes are called \"{0}\"; give each a name of its own")]
    DuplicateNode(String),
    /// A link to a node that is not there.
    #[error("link \"{link}\" ends at \"{node}\", which has no place; add a node with latitude and longitude")]
    NoNode {
        /// The link.
        link: String,
        /// The node.
        node: String,
    },
    /// A link from a node to itself.
    #[error("link \"{0}\" joins a node with itself; name two different nodes")]
    Loop(String),
}

/// A path: nodes in the order of travel, ends included.
pub type NodePath = Vec<usize>;

impl Graph {
    /// Adds a node.
    ///
    /// # Errors
    /// When there is one of this name.
    pub fn add_node(&mut self, name: &str, place: Position) -> Result<usize, GraphError> {
        let index = self.names.len();
        if self.by_name.insert(name.into(), index).is_some() {
            return Err(GraphError::DuplicateNode(name.into()));
        }
        self.names.push(name.into());
        self.places.push(place);
        self.neighbours.push(Vec::new());
        Ok(index)
    }

    /// Adds a link.
    ///
    /// # Errors
    /// When an end has no place, or both are one.
    pub fn add_link(&mut self, name: &str, between: [&str; 2]) -> Result<(), GraphError> {
        let find = |node: &str| {
            self.node(node).ok_or_else(|| GraphError::NoNode {
                link: name.into(),
                node: node.into(),
            })
        };
        let [a, b] = [find(between[0])?, find(between[1])?];
        if a == b {
            return Err(GraphError::Loop(name.into()));
        }
        let link = self.links.len();
        self.neighbours[a].push((b, link));
        self.neighbours[b].push((a, link));
        self.links.push((name.into(), [a, b]));
        Ok(())
    }

    /// The node of this name.
    pub fn node(&self, name: &str) -> Option<usize> {
        self.by_name.get(name).copied()
    }

    /// The name of a node.
    pub fn name(&self, node: usize) -> &str {
        &self.names[node]
    }

    /// The place of a node.
    pub fn place(&self, node: usize) -> &Position {
        &self.places[node]
    }

    /// Nodes, counted from zero in the order added.
    pub fn nodes(&self) -> usize {
        self.names.len()
    }

    /// Each link by name and ends.
    pub fn links(&self) -> impl Iterator<Item = (&str, [usize; 2])> {
        self.links.iter().map(|(name, ends)| (name.as_str(), *ends))
    }

    /// Great-circle delay between two nodes.
    pub fn delay(&self, a: usize, b: usize) -> Duration {
        self.places[a].delay_to(&self.places[b])
    }

    /// Delay along a path.
    pub fn path_delay(&self, path: &[usize]) -> Duration {
        path.windows(2)
            .fold(Duration::ZERO, |total, hop| total + self.delay(hop[0], hop[1]))
    }

    /// The links of a path, each the first between its two nodes.
    pub fn links_of(&self, path: &[usize]) -> Vec<String> {
        let first = |hop: &[usize]| {
            let mut neighbours = self.neighbours[hop[0]].iter();
            neighbours
                .find(|&&(node, _)| node == hop[1])
                .map(|&(_, link)| self.links[link].0.clone())
        };
        path.windows(2).filter_map(first).collect()
    }

    /// Neighbours of a node, in the order of the links.
    pub(super) fn neighbours(&self, node: usize) -> impl Iterator<Item = usize> {
        self.neighbours[node].iter().map(|&(neighbour, _)| neighbour)
    }

    /// `count` paths without a common node but their ends, of the least total delay (Suurballe 1974, by successive
    /// shortest paths as in Bhandari 1999); fewer when there are no more. The path of least delay comes first.
    pub fn disjoint_paths(&self, from: usize, to: usize, count: usize) -> Vec<NodePath> {
        let mut flow = Flow::new(self, from, to);
        (0..count).take_while(|_| flow.augment()).count();
        let mut paths = flow.paths();
        paths.sort_by_key(|path| (self.path_delay(path), path.clone()));
        paths
    }
}

/// A flow of one unit per node. Every node is split: arcs enter at `2n` and leave from `2n + 1`, with an arc of
/// capacity one between, so that no two paths share it.
struct Flow {
    arcs: Vec<Arc>,
    source: usize,
    sink: usize,
}

/// An arc with room for one unit. Its reverse, next to it (`index ^ 1`), has room when it is used.
#[derive(Clone, Copy)]
struct Arc {
    from: usize,
    to: usize,
    cost: i64,
    free: bool,
}

impl Flow {
    fn new(graph: &Graph, from: usize, to: usize) -> Self {
        let mut arcs = Vec::new();
        let mut add = |from: usize, to: usize, cost: i64| {
            arcs.push(Arc {
                from,
                to,
                cost,
                free: true,
            });
            arcs.push(Arc {
                from: to,
                to: from,
                cost: -cost,
                free: false,
            });
        };
        for node in (0..graph.nodes()).filter(|&node| node != from && node != to) {
            add(2 * node, 2 * node + 1, 0);
        }
        for &(_, [a, b]) in &graph.links {
            let cost = graph.delay(a, b).as_nanos() as i64;
            add(2 * a + 1, 2 * b, cost);
            add(2 * b + 1, 2 * a, cost);
        }
        Flow {
            arcs,
            source: 2 * from + 1,
            sink: 2 * to,
        }
    }

    /// Adds one unit along the cheapest way that is left (Bellman, Ford: used arcs give their cost back).
    fn augment(&mut self) -> bool {
        let vertices = self.arcs.iter().map(|arc| arc.from.max(arc.to) + 1).max();
        let vertices = vertices.unwrap_or(0).max(self.source.max(self.sink) + 1);
        let mut reached: Vec<Option<(i64, usize)>> = vec![None; vertices];
        reached[self.source] = Some((0, usize::MAX));
        let mut changed = true;
        while changed {
            changed = false;
            for (index, arc) in self.arcs.iter().enumerate().filter(|(_, arc)| arc.free) {
                let Some((cost, _)) = reached[arc.from] else {
                    continue;
                };
                let cost = cost + arc.cost;
                if arc.to != self.source && reached[arc.to].is_none_or(|(best, _)| cost < best) {
                    reached[arc.to] = Some((cost, index));
                    changed = true;
                }
            }
        }
        let mut vertex = self.sink;
        while let Some((_, index)) = reached[vertex].filter(|_| vertex != self.source) {
            self.arcs[index].free = false;
            self.arcs[index ^ 1].free = true;
            vertex = self.arcs[index].from;
        }
        reached[self.sink].is_some()
    }

    /// The units followed from source to sink.
    fn paths(&self) -> Vec<NodePath> {
        let used = |vertex: usize| {
            let forward = self.arcs.iter().step_by(2);
            forward.filter(move |arc| arc.from == vertex && !arc.free)
        };
        let mut paths = Vec::new();
        for first in used(self.source) {
            let mut path = vec![self.source / 2, first.to / 2];
            let mut vertex = first.to;
            while vertex != self.sink
                && let Some(arc) = used(vertex).next()
            {
                vertex = arc.to;
                if path.last() != Some(&(vertex / 2)) {
                    path.push(vertex / 2);
                }
            }
            paths.push(path);
        }
        paths
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A graph on the equator's neighbourhood: name, latitude, longitude; links by the two letters.
    pub(in super::super) fn graph(nodes: &[(&str, f64, f64)], links: &[[&str; 2]]) -> Graph {
        let mut graph = Graph::default();
        for &(name, latitude, longitude) in nodes {
            let place = Position::new(latitude, longitude).expect("a place");
            graph.add_node(name, place).expect("a new node");
        }
        for between in links {
            graph.add_link(&between.concat(), *between).expect("a link");
        }
        graph
    }

    pub(in super::super) fn names(graph: &Graph, paths: &[NodePath]) -> Vec<String> {
        let name = |path: &NodePath| path.iter().map(|&node| graph.name(node)).collect();
        paths.iter().map(name).collect()
    }

    /// The trap of Suurballe's paper: the shortest path s-a-b-t takes a node of both disjoint ones. Taken first and
    /// removed, it leaves none; the least pair is s-a-t and s-b-t.
    #[test]
    fn the_shortest_path_may_have_to_give_way() {
        let graph = graph(
            &[
                ("s", 0.0, 0.0),
                ("a", 0.5, 3.0),
                ("b", -0.5, 4.0),
                ("t", 0.0, 7.0),
                ("c", 6.0, 3.5),
                ("d", -6.0, 3.5),
            ],
            &[
                ["s", "a"],
                ["a", "b"],
                ["b", "t"],
                ["s", "d"],
                ["d", "b"],
                ["a", "c"],
                ["c", "t"],
            ],
        );
        let [s, t] = ["s", "t"].map(|name| graph.node(name).expect("a node"));
        assert_eq!(names(&graph, &graph.disjoint_paths(s, t, 1)), ["sabt"]);
        assert_eq!(names(&graph, &graph.disjoint_paths(s, t, 2)), ["sact", "sdbt"]);
        assert_eq!(graph.disjoint_paths(s, t, 3).len(), 2, "there is no third");
    }

    #[test]
    fn nodes_and_links_that_cannot_be_are_refused() {
        let mut graph = graph(&[("a", 0.0, 0.0)], &[]);
        let place = *graph.place(0);
        assert!(
            graph
                .add_node("a", place)
                .expect_err("twice")
                .to_string()
                .contains("\"a\"")
        );
        let error = graph.add_link("x", ["a", "b"]).expect_err("no b");
        assert!(error.to_string().contains("\"b\", which has no place"), "{error}");
        assert_eq!(graph.add_link("x", ["a", "a"]), Err(GraphError::Loop("x".into())));
    }
}
