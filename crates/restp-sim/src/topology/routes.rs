//! Static shortest paths, computed once: for each node and destination the direction to take.

use super::Edge;
use restp_base::time::Duration;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Total delay, then hops. Hops fall by one with every step of a route, so even links without delay make no circle.
type Cost = (Duration, u32);

/// The next-hop table.
#[derive(Clone, Debug)]
pub(super) struct Routes {
    nodes: usize,
    /// Direction to take, by node and then destination. A node's entry for itself is never read.
    next_hop: Vec<u32>,
}

impl Routes {
    /// Routes between all nodes, or two nodes without one.
    pub(super) fn new(names: &[String], edges: &[Edge]) -> Result<Self, (usize, usize)> {
        let nodes = names.len();
        let mut leaving = vec![Vec::new(); nodes];
        let mut entering = vec![Vec::new(); nodes];
        for (index, edge) in edges.iter().enumerate() {
            leaving[edge.from as usize].push(index);
            entering[edge.to as usize].push(index);
        }
        let mut next_hop = vec![u32::MAX; nodes * nodes];
        for destination in 0..nodes {
            let costs = costs_to(destination, &entering, edges);
            for node in (0..nodes).filter(|&node| node != destination) {
                let best = leaving[node].iter().filter_map(|&index| {
                    let edge = &edges[index];
                    let (delay, hops) = costs[edge.to as usize]?;
                    Some((
                        (delay + edge.delay, hops + 1),
                        &names[edge.to as usize],
                        &edge.link,
                        index,
                    ))
                });
                let (_, _, _, index) = best.min().ok_or((destination, node))?;
                next_hop[node * nodes + destination] = index as u32;
            }
        }
        Ok(Routes { nodes, next_hop })
    }

    pub(super) fn next_hop(&self, from: u32, to: u32) -> u32 {
        self.next_hop[from as usize * self.nodes + to as usize]
    }
}

/// What it costs to reach `destination` from every node (Dijkstra, against the direction of travel).
fn costs_to(destination: usize, entering: &[Vec<usize>], edges: &[Edge]) -> Vec<Option<Cost>> {
    let mut costs: Vec<Option<Cost>> = vec![None; entering.len()];
    let mut open = BinaryHeap::from([Reverse(((Duration::ZERO, 0), destination))]);
    while let Some(Reverse((cost, node))) = open.pop() {
        if costs[node].is_some() {
            continue;
        }
        costs[node] = Some(cost);
        for edge in entering[node].iter().map(|&index| &edges[index]) {
            open.push(Reverse(((cost.0 + edge.delay, cost.1 + 1), edge.from as usize)));
        }
    }
    costs
}
