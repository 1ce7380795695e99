//! Static shortest paths, computed once: for each node and destination the direction to take.
//!
//! Most nodes of a large network have one neighbour. What leads to such a leaf leads to its neighbour first, so a search
//! is needed for the other nodes alone: without this a dumbbell of a thousand flows spends more on its routes than on
//! ten thousand packets.

use super::Edge;
use restp_base::time::Duration;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Total cost, the delay of wires, then hops. Hops fall by one with every step of a route, so even links without delay make no circle.
pub(super) type Cost = (Duration, u32);

/// Stands for no direction.
const NONE: u32 = u32::MAX;

/// The next-hop table.
#[derive(Clone, Debug)]
pub(super) struct Routes {
    nodes: usize,
    /// Direction to take, by node and then destination. A node's entry for itself is never read.
    next_hop: Vec<u32>,
}

impl Routes {
    /// Routes between all nodes, and two nodes without one where there are such.
    pub(super) fn new(names: &[String], edges: &[Edge]) -> (Self, Option<(usize, usize)>) {
        let nodes = names.len();
        let mut leaving = vec![Vec::new(); nodes];
        let mut entering = vec![Vec::new(); nodes];
        for (index, edge) in edges.iter().enumerate() {
            leaving[edge.from as usize].push(index);
            entering[edge.to as usize].push(index);
        }
        let mut next_hop = vec![NONE; nodes * nodes];
        let mut apart = None;
        let leaf_of: Vec<Option<usize>> = (0..nodes)
            .map(|node| only_neighbour(&leaving[node], edges))
            .collect();
        for destination in (0..nodes).filter(|&node| leaf_of[node].is_none()) {
            let costs = costs_to(destination, &entering, edges);
            for node in (0..nodes).filter(|&node| node != destination) {
                let best = best_first(&leaving[node], edges, names, |next| costs[next]);
                match best {
                    Some(first) => next_hop[node * nodes + destination] = first,
                    None => apart = apart.or(Some((destination, node))),
                }
            }
        }
        for (leaf, hub) in leaf_of
            .iter()
            .enumerate()
            .filter_map(|(leaf, hub)| Some((leaf, (*hub)?)))
        {
            let last = |next| (next == leaf).then_some((Duration::ZERO, 0));
            for node in (0..nodes).filter(|&node| node != leaf) {
                let first = match node == hub {
                    true => best_first(&leaving[hub], edges, names, last),
                    false => Some(next_hop[node * nodes + hub]).filter(|&first| first != NONE),
                };
                match first {
                    Some(first) => next_hop[node * nodes + leaf] = first,
                    None => apart = apart.or(Some((leaf, node))),
                }
            }
        }
        (Routes { nodes, next_hop }, apart)
    }

    /// The direction to take; none between parts that nothing joins.
    pub(super) fn next_hop(&self, from: u32, to: u32) -> Option<u32> {
        Some(self.next_hop[from as usize * self.nodes + to as usize]).filter(|&first| first != NONE)
    }
}

/// The direction to leave by: least cost, then fewest hops, then the first name. `cost` says what is left from each
/// node.
pub(super) fn best_first(
    leaving: &[usize],
    edges: &[Edge],
    names: &[String],
    cost: impl Fn(usize) -> Option<Cost>,
) -> Option<u32> {
    let ways = leaving.iter().filter_map(|&index| {
        let edge = &edges[index];
        let next = edge.to as usize;
        let (delay, hops) = cost(next)?;
        Some(((delay + edge.cost, hops + 1), &names[next], &edge.link, index))
    });
    ways.min().map(|(.., index)| index as u32)
}

/// The one node that all `leaving` lead to.
fn only_neighbour(leaving: &[usize], edges: &[Edge]) -> Option<usize> {
    let mut neighbours = leaving.iter().map(|&index| edges[index].to as usize);
    let first = neighbours.next()?;
    neighbours.all(|next| next == first).then_some(first)
}

/// What it costs to reach `destination` from every node (Dijkstra, against the direction of travel).
pub(super) fn costs_to(destination: usize, entering: &[Vec<usize>], edges: &[Edge]) -> Vec<Option<Cost>> {
    let mut costs: Vec<Option<Cost>> = vec![None; entering.len()];
    let mut open = BinaryHeap::from([Reverse(((Duration::ZERO, 0), destination))]);
    while let Some(Reverse((cost, node))) = open.pop() {
        if costs[node].is_some() {
            continue;
        }
        costs[node] = Some(cost);
        for edge in entering[node].iter().map(|&index| &edges[index]) {
            open.push(Reverse(((cost.0 + edge.cost, cost.1 + 1), edge.from as usize)));
        }
    }
    costs
}

#[cfg(test)]
mod tests {
    use super::*;
    use restp_base::random::Stream;

    /// A few nodes in a ring, leaves around them, some on two links; delays that often tie.
    fn network(stream: &mut Stream) -> (Vec<String>, Vec<Edge>) {
        let hubs = 2 + stream.below(4) as u32;
        let nodes = hubs + stream.below(6) as u32;
        let mut edges = Vec::new();
        for node in 1..nodes {
            let other = if node < hubs {
                node - 1
            } else {
                stream.below(u64::from(hubs)) as u32
            };
            for _ in 0..1 + stream.below(2) {
                let delay = Duration::from_millis(stream.below(3));
                let link = format!("{}", stream.bits());
                for (from, to) in [(node, other), (other, node)] {
                    let link = link.clone();
                    edges.push(Edge {
                        link,
                        from,
                        to,
                        delay,
                        cost: delay,
                        rate: None,
                    });
                }
            }
        }
        let (from, to) = (0, hubs - 1);
        edges.push(Edge {
            link: "closing".into(),
            from,
            to,
            delay: Duration::ZERO,
            cost: Duration::ZERO,
            rate: None,
        });
        edges.push(Edge {
            link: "closing".into(),
            from: to,
            to: from,
            delay: Duration::ZERO,
            cost: Duration::ZERO,
            rate: None,
        });
        ((0..nodes).map(|node| format!("{node}")).collect(), edges)
    }

    #[test]
    fn leaves_are_reached_as_a_search_would_have_it() {
        let mut stream = Stream::named(1, "routes");
        for _ in 0..200 {
            let (names, edges) = network(&mut stream);
            let (routes, apart) = Routes::new(&names, &edges);
            assert_eq!(apart, None, "a connected network");
            let ends = |end: fn(&Edge) -> u32| {
                let mut of = vec![Vec::new(); names.len()];
                edges
                    .iter()
                    .enumerate()
                    .for_each(|(index, edge)| of[end(edge) as usize].push(index));
                of
            };
            let (leaving, entering) = (ends(|edge| edge.from), ends(|edge| edge.to));
            for to in 0..names.len() {
                let costs = costs_to(to, &entering, &edges);
                for from in (0..names.len()).filter(|&from| from != to) {
                    let searched = best_first(&leaving[from], &edges, &names, |next| costs[next]);
                    assert_eq!(
                        routes.next_hop(from as u32, to as u32),
                        searched,
                        "{from} to {to}"
                    );
                }
            }
        }
    }
}
