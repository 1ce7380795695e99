//! One way through the network, link by link: the shortest one, or one that is named.

use super::routes::{best_first, costs_to};
use super::{NodeId, Topology};
use crate::spec::Way;
use restp_base::time::Duration;
use std::sync::Arc;
use thiserror::Error;

/// Directions in the order of travel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Route(Arc<[u32]>);

/// Why links are no route.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RouteError {
    /// No link has this name.
    #[error("no link is called \"{0}\", nor a medium")]
    NoLink(String),
    /// The next link starts elsewhere.
    #[error("link \"{link}\" does not touch \"{node}\", where the links before it lead")]
    Gap {
        /// The link.
        link: String,
        /// Where the route has come to.
        node: String,
    },
    /// A medium does not lead on.
    #[error("no hops of medium \"{medium}\" lead from \"{node}\" to where the path goes on")]
    Beyond {
        /// The medium.
        medium: String,
        /// Where the route has come to.
        node: String,
    },
    /// The last link ends elsewhere.
    #[error("the links lead to \"{end}\", not to \"{to}\"")]
    Astray {
        /// Where they lead.
        end: String,
        /// Where they were to lead.
        to: String,
    },
}

impl Route {
    /// The same links the other way.
    pub fn reversed(&self) -> Route {
        Route(self.0.iter().rev().map(|direction| direction ^ 1).collect())
    }

    /// The direction to take after `hops` others.
    pub(crate) fn hop(&self, hops: usize) -> Option<u32> {
        self.0.get(hops).copied()
    }
}

impl Topology {
    /// The route that packets take by themselves.
    pub fn shortest(&self, from: NodeId, to: NodeId) -> Route {
        Route(self.route_indices(from, to).map(|index| index as u32).collect())
    }

    /// The route over these links, in this order. The name of a medium stands for its hops to an end of the next link, or to `to`.
    ///
    /// # Errors
    /// When they do not lead from `from` to `to`.
    pub fn along(&self, from: NodeId, to: NodeId, links: &[String]) -> Result<Route, RouteError> {
        let mut node = from.0;
        let mut directions = Vec::with_capacity(links.len());
        for (place, link) in links.iter().enumerate() {
            let known = |edge: &super::Edge| edge.link == *link;
            if !self.edges.iter().any(known) {
                let next = links.get(place + 1);
                for direction in self.through(link, node, next, to)? {
                    directions.push(direction);
                    node = self.edges[direction as usize].to;
                }
                continue;
            }
            let leaves = |edge: &super::Edge| edge.link == *link && edge.from == node;
            let index = self
                .edges
                .iter()
                .position(leaves)
                .ok_or_else(|| RouteError::Gap {
                    link: link.clone(),
                    node: self.names[node as usize].clone(),
                })?;
            directions.push(index as u32);
            node = self.edges[index].to;
        }
        if node != to.0 {
            let [end, to] = [node, to.0].map(|node| self.names[node as usize].clone());
            return Err(RouteError::Astray { end, to });
        }
        Ok(Route(directions.into()))
    }

    /// The hops of a medium from `node` to the nearer end of the link `next`, or to `to` where there is none.
    fn through(
        &self,
        medium: &str,
        node: u32,
        next: Option<&String>,
        to: NodeId,
    ) -> Result<Vec<u32>, RouteError> {
        let Some((_, own)) = self.media.iter().find(|(name, _)| name == medium) else {
            return Err(RouteError::NoLink(medium.into()));
        };
        let edges = &self.edges[..own.end];
        let (mut leaving, mut entering) = (
            vec![Vec::new(); self.names.len()],
            vec![Vec::new(); self.names.len()],
        );
        for index in own.clone() {
            leaving[edges[index].from as usize].push(index);
            entering[edges[index].to as usize].push(index);
        }
        let goals: Vec<u32> = match next {
            None => vec![to.0],
            Some(next) => self
                .edges
                .iter()
                .filter(|edge| edge.link == *next)
                .map(|edge| edge.from)
                .collect(),
        };
        let costs = goals
            .iter()
            .map(|&goal| costs_to(goal as usize, &entering, edges));
        let nearest = costs
            .filter(|costs| costs[node as usize].is_some())
            .min_by_key(|costs| costs[node as usize]);
        let costs = nearest.ok_or_else(|| RouteError::Beyond {
            medium: medium.into(),
            node: self.names[node as usize].clone(),
        })?;
        let (mut node, mut hops) = (node as usize, Vec::new());
        while costs[node].is_some_and(|(_, left)| left > 0)
            && let Some(hop) = best_first(&leaving[node], edges, &self.names, |next| costs[next])
        {
            hops.push(hop);
            node = edges[hop as usize].to as usize;
        }
        Ok(hops)
    }

    /// Names and ways of the links of a route, in the order of travel.
    pub fn links_of<'a>(&'a self, route: &'a Route) -> impl Iterator<Item = (&'a str, Way)> {
        let named = |&index: &u32| {
            (
                self.edges[index as usize].link.as_str(),
                Way::BOTH[index as usize % 2],
            )
        };
        route.0.iter().map(named)
    }

    /// Does a route lead through `node`, which is neither of its ends?
    pub fn passes(&self, route: &Route, node: NodeId) -> bool {
        let inner = route.0.split_last().map_or(&[][..], |(_, inner)| inner);
        inner.iter().any(|&index| self.far_end(index as usize) == node.0)
    }

    /// Propagation along a route; serialisation and waiting come on top.
    pub fn delay_of(&self, route: &Route) -> Duration {
        let delays = route.0.iter().map(|&index| self.edges[index as usize].delay);
        delays.fold(Duration::ZERO, |total, delay| total + delay)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::{DirectionSpec, LinkSpec};

    fn diamond() -> Topology {
        let link = |name, a, b, ms| {
            let delay = Duration::from_millis(ms);
            LinkSpec::symmetric(
                name,
                [a, b],
                DirectionSpec {
                    delay,
                    ..DirectionSpec::default()
                },
            )
        };
        let links = [
            link("a1", "source", "a", 1),
            link("a2", "sink", "a", 2),
            link("b1", "source", "b", 10),
            link("b2", "b", "sink", 20),
        ];
        Topology::new(&links).expect("a network")
    }

    fn along(links: &[&str]) -> Result<String, RouteError> {
        let topology = diamond();
        let [from, to] = ["source", "sink"].map(|name| topology.node(name).expect("a node"));
        let links: Vec<String> = links.iter().map(|&link| link.into()).collect();
        let route = topology.along(from, to, &links)?;
        let there: String = topology
            .links_of(&route)
            .map(|(link, way)| format!("{link}/{way} "))
            .collect();
        let back = topology.delay_of(&route.reversed());
        assert_eq!(topology.delay_of(&route), back, "the delays here are symmetric");
        Ok(format!("{there}{back:?}"))
    }

    #[test]
    fn named_links_lead_where_the_shortest_route_does_not() {
        assert_eq!(
            along(&["b1", "b2"]).expect("a route"),
            "b1/forward b2/forward 30 ms"
        );
        assert_eq!(
            along(&["a1", "a2"]).expect("a route"),
            "a1/forward a2/reverse 3 ms"
        );
        let topology = diamond();
        let [from, to] = ["source", "sink"].map(|name| topology.node(name).expect("a node"));
        let shortest = topology.shortest(from, to);
        assert_eq!(topology.delay_of(&shortest), Duration::from_millis(3));
        assert_eq!(shortest.reversed(), topology.shortest(to, from));
    }

    #[test]
    fn links_that_do_not_join_are_refused_by_name() {
        let refused = |links: &[&str]| along(links).expect_err("refused").to_string();
        assert!(refused(&["c1"]).contains("\"c1\""));
        assert!(refused(&["a1", "b2"]).contains("\"b2\" does not touch \"a\""));
        assert!(refused(&["a1"]).contains("lead to \"a\", not to \"sink\""));
        assert!(refused(&[]).contains("lead to \"source\""));
    }
}
