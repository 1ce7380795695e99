//! GeoDivRP: k paths that stay d kilometres apart, so that no challenge of a radius below d/2 meets two of them
//! (ResTP §3.4, §4.6; Cheng, Gardner, Sterbenz 2014). Stretch h and skew t bound what that may cost.
//!
//! Their heuristic steers paths through way points. This one takes the paths without circles in the order of their
//! delay and looks among the first [`MOST_CANDIDATES`] for the first that go together, which on a backbone of tens of
//! nodes is the better answer at a price that does not matter.

use super::earth::distance_of_lines_km;
use super::graph::{Graph, NodePath};
use restp_base::time::Duration;
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};
use thiserror::Error;

/// Paths looked at.
const MOST_CANDIDATES: usize = 2000;
/// Unfinished paths looked at; between distant nodes of a dense graph there are more than anybody can count.
const MOST_STEPS: usize = 1_000_000;

/// What a set of paths must be (ResTP §3.4: k, d, \[h, t\]).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PathRequest {
    /// k: how many.
    pub paths: usize,
    /// d: least distance between any two of them in kilometres, not counting their ends and the links at these.
    pub separation_km: f64,
    /// h: most hops beyond those of the path with fewest.
    pub stretch_hops: Option<usize>,
    /// t: most difference between the delays of any two.
    pub skew: Option<Duration>,
}

/// What a set of paths must survive (ResTP §3.4, OP-56).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ThreatModel {
    /// Challenges at the same time, each of which may take a path.
    pub simultaneous_failures: usize,
    /// Radius of each.
    pub challenge_radius_km: f64,
}

impl ThreatModel {
    /// OP-56: k = simultaneous failures + 1, d = 2 × challenge radius, so that no challenge meets two paths.
    #[must_use]
    pub const fn request(&self) -> PathRequest {
        PathRequest {
            paths: self.simultaneous_failures.saturating_add(1),
            separation_km: 2.0 * self.challenge_radius_km,
            stretch_hops: None,
            skew: None,
        }
    }
}

/// Why there are no such paths.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum NoPaths {
    /// None at all.
    #[error("no path leads from \"{from}\" to \"{to}\"")]
    Unreachable {
        /// One end.
        from: String,
        /// The other.
        to: String,
    },
    /// Not as many as asked for.
    #[error(
        "no {wanted} paths from \"{from}\" to \"{to}\" keep {separation_km} km apart within stretch and skew; ask for fewer paths, less distance, or more stretch and skew"
    )]
    TooFew {
        /// How many were asked for.
        wanted: usize,
        /// One end.
        from: String,
        /// The other.
        to: String,
        /// The distance asked for.
        separation_km: f64,
    },
}

impl Graph {
    /// Paths that meet `request`, the least delay first. The first of them has the least delay any such set allows,
    /// then the second, and so on.
    ///
    /// # Errors
    /// When there are none among the candidates.
    pub fn geodiverse_paths(
        &self,
        from: usize,
        to: usize,
        request: &PathRequest,
    ) -> Result<Vec<NodePath>, NoPaths> {
        let candidates = self.candidates(from, to, request.stretch_hops);
        if candidates.is_empty() {
            return Err(NoPaths::Unreachable {
                from: self.name(from).into(),
                to: self.name(to).into(),
            });
        }
        let search = Search {
            graph: self,
            request,
            delays: candidates.iter().map(|path| self.path_delay(path)).collect(),
            candidates: &candidates,
        };
        let start: Vec<usize> = (0..candidates.len()).collect();
        let mut chosen = Vec::new();
        if search.extend(&mut chosen, &start) {
            return Ok(chosen
                .into_iter()
                .map(|index| candidates[index].clone())
                .collect());
        }
        Err(NoPaths::TooFew {
            wanted: request.paths,
            from: self.name(from).into(),
            to: self.name(to).into(),
            separation_km: request.separation_km,
        })
    }

    /// Least distance between two paths with common ends: between inner nodes of one and of the other, and between
    /// links that touch neither end. Infinite when one of them has no inner node.
    pub fn separation_km(&self, one: &[usize], other: &[usize]) -> f64 {
        let inner = |path: &[usize]| {
            path.get(1..path.len().saturating_sub(1))
                .unwrap_or_default()
                .to_vec()
        };
        // A node is a line without length.
        let lines = |path: &[usize]| -> Vec<[usize; 2]> {
            let nodes = inner(path);
            let links = nodes.windows(2).map(|hop| [hop[0], hop[1]]);
            links.chain(nodes.iter().map(|&node| [node, node])).collect()
        };
        let others = lines(other);
        let distances = lines(one).into_iter().flat_map(|[a, b]| {
            let line = [self.place(a), self.place(b)];
            others
                .iter()
                .map(move |&[c, d]| distance_of_lines_km(line, [self.place(c), self.place(d)]))
        });
        distances.fold(f64::INFINITY, f64::min)
    }

    /// Paths without circles in the order of their delay, by the best first: what a path has cost and what the rest
    /// must cost at least.
    fn candidates(&self, from: usize, to: usize, stretch_hops: Option<usize>) -> Vec<NodePath> {
        let left = self.costs_to(to, |a, b| self.delay(a, b).as_nanos());
        let hops = self.costs_to(to, |_, _| 1);
        let (Some(first), Some(fewest)) = (left[from], hops[from]) else {
            return Vec::new();
        };
        let most_hops = stretch_hops.map_or(usize::MAX, |stretch| (fewest as usize).saturating_add(stretch));
        let mut open = BinaryHeap::from([Reverse((first, 0, vec![from]))]);
        let mut found = Vec::new();
        for _ in 0..MOST_STEPS {
            let Some(Reverse((_, cost, path))) = open.pop() else {
                break;
            };
            let node = path[path.len() - 1];
            if node == to {
                found.push(path);
                if found.len() == MOST_CANDIDATES {
                    break;
                }
                continue;
            }
            // Two links between the same nodes are one step.
            let neighbours: BTreeSet<usize> = self.neighbours(node).collect();
            for next in neighbours.into_iter().filter(|next| !path.contains(next)) {
                let (Some(rest), Some(hops)) = (left[next], hops[next]) else {
                    continue;
                };
                if path.len() + hops as usize <= most_hops {
                    let cost = cost + self.delay(node, next).as_nanos();
                    let path = [&path[..], &[next]].concat();
                    open.push(Reverse((cost + rest, cost, path)));
                }
            }
        }
        found
    }

    /// What it costs to reach `to` from every node (Dijkstra).
    fn costs_to(&self, to: usize, cost: impl Fn(usize, usize) -> u64) -> Vec<Option<u64>> {
        let mut costs = vec![None; self.nodes()];
        let mut open = BinaryHeap::from([Reverse((0, to))]);
        while let Some(Reverse((reached, node))) = open.pop() {
            if costs[node].is_some() {
                continue;
            }
            costs[node] = Some(reached);
            for next in self.neighbours(node) {
                open.push(Reverse((reached + cost(next, node), next)));
            }
        }
        costs
    }
}

struct Search<'a> {
    graph: &'a Graph,
    request: &'a PathRequest,
    candidates: &'a [NodePath],
    delays: Vec<Duration>,
}

impl Search<'_> {
    /// Completes `chosen` from `left`, which go together with all of them.
    fn extend(&self, chosen: &mut Vec<usize>, left: &[usize]) -> bool {
        if chosen.len() == self.request.paths {
            return true;
        }
        for (i, &next) in left.iter().enumerate() {
            let fits: Vec<usize> = left[i + 1..]
                .iter()
                .copied()
                .filter(|&other| self.go_together(next, other))
                .collect();
            chosen.push(next);
            if chosen.len() + fits.len() >= self.request.paths && self.extend(chosen, &fits) {
                return true;
            }
            chosen.pop();
        }
        false
    }

    fn go_together(&self, one: usize, other: usize) -> bool {
        let (first, second) = (self.delays[one], self.delays[other]);
        let skew = first.max(second).saturating_sub(first.min(second));
        let [one, other] = [one, other].map(|index| &self.candidates[index][..]);
        self.request.skew.is_none_or(|most| skew <= most)
            && one[1..one.len() - 1].iter().all(|node| !other.contains(node))
            && self.graph.separation_km(one, other) >= self.request.separation_km
    }
}

#[cfg(test)]
mod tests {
    use super::super::graph::tests::{graph, names};
    use super::*;

    /// Three ways from s to t: straight, one degree north (111 km), five degrees south; and a detour by the north.
    fn ladder() -> Graph {
        graph(
            &[
                ("s", 0.0, 0.0),
                ("m", 0.0, 5.0),
                ("n", 1.0, 5.0),
                ("p", -5.0, 4.0),
                ("q", -5.0, 6.0),
                ("t", 0.0, 10.0),
            ],
            &[
                ["s", "m"],
                ["m", "t"],
                ["s", "n"],
                ["n", "t"],
                ["s", "p"],
                ["p", "q"],
                ["q", "t"],
                ["m", "n"],
            ],
        )
    }

    fn request(paths: usize, separation_km: f64) -> PathRequest {
        PathRequest {
            paths,
            separation_km,
            stretch_hops: None,
            skew: None,
        }
    }

    fn found(graph: &Graph, request: &PathRequest) -> Result<Vec<String>, NoPaths> {
        let [s, t] = ["s", "t"].map(|name| graph.node(name).expect("a node"));
        graph
            .geodiverse_paths(s, t, request)
            .map(|paths| names(graph, &paths))
    }

    #[test]
    fn separation_decides_which_paths_go_together() {
        let graph = ladder();
        assert_eq!(found(&graph, &request(2, 0.0)).expect("paths"), ["smt", "snt"]);
        assert_eq!(found(&graph, &request(2, 111.0)).expect("paths"), ["smt", "snt"]);
        assert_eq!(found(&graph, &request(2, 112.0)).expect("paths"), ["smt", "spqt"]);
        assert_eq!(
            found(&graph, &request(3, 100.0)).expect("paths"),
            ["smt", "snt", "spqt"]
        );
        assert_eq!(
            found(&graph, &request(2, 600.0)).expect("paths"),
            ["snt", "spqt"],
            "the shortest gives way"
        );
        let error = found(&graph, &request(3, 112.0)).expect_err("too far apart");
        assert!(
            error
                .to_string()
                .starts_with("no 3 paths from \"s\" to \"t\" keep 112 km"),
            "{error}"
        );
    }

    #[test]
    fn stretch_and_skew_bound_the_detour() {
        let graph = ladder();
        let bound = |stretch_hops, skew| PathRequest {
            stretch_hops,
            skew,
            ..request(2, 112.0)
        };
        assert!(
            found(&graph, &bound(Some(0), None)).is_err(),
            "spqt has a hop more"
        );
        assert!(found(&graph, &bound(Some(1), None)).is_ok());
        // The way by the south has 1645 km. It differs from smt (1112) by 2.67 ms, from snt (1134) by 2.56 ms, and from
        // the detours smnt and snmt (1234) by 2.05 ms.
        let skew = |micros| found(&graph, &bound(None, Some(Duration::from_micros(micros))));
        assert_eq!(skew(2700).expect("paths"), ["smt", "spqt"]);
        assert_eq!(skew(2600).expect("paths"), ["snt", "spqt"]);
        assert!(skew(2000).is_err());
    }

    #[test]
    fn a_threat_model_asks_for_one_path_more_than_may_fail_and_twice_the_radius() {
        let threat = ThreatModel {
            simultaneous_failures: 2,
            challenge_radius_km: 50.0,
        };
        assert_eq!(threat.request(), request(3, 100.0));
    }

    #[test]
    fn links_count_not_only_nodes() {
        let graph = graph(
            &[
                ("s", 0.0, 0.0),
                ("a", 2.0, 3.0),
                ("b", -2.0, 6.0),
                ("c", -2.0, 3.0),
                ("d", 2.0, 6.0),
                ("t", 0.0, 9.0),
            ],
            &[
                ["s", "a"],
                ["a", "b"],
                ["b", "t"],
                ["s", "c"],
                ["c", "d"],
                ["d", "t"],
            ],
        );
        assert!(found(&graph, &request(2, 1.0)).is_err(), "ab crosses cd");
    }
}
