//! Regional challenges: a disc that moves and grows over the map, and takes down every link it touches (ResTP §4.6).
//! A node inside takes down all its links. What comes of it are outages by schedule, as a user might have written them.

use super::earth::Position;
use super::graph::Graph;
use restp_base::time::{Duration, Time};
use std::collections::BTreeMap;
use std::ops::Range;

/// A disc during one span of time. Centre and radius change evenly from its start to its end.
#[derive(Clone, Debug, PartialEq)]
pub struct Challenge {
    /// When it is there.
    pub during: Range<Time>,
    /// Centre at the start and at the end.
    pub centre: [Position; 2],
    /// Radius at the start and at the end.
    pub radius_km: [f64; 2],
}

/// A disc that moves or grows is looked at this often: what it reaches between is down from the next look on.
const STEP: Duration = Duration::from_millis(100);

impl Challenge {
    /// When the challenge touches the line from `a` to `b`.
    fn touches(&self, a: &Position, b: &Position) -> Vec<Range<Time>> {
        let mut spans: Vec<Range<Time>> = Vec::new();
        let mut at = self.during.start;
        while at < self.during.end {
            let until = if self.is_still() {
                self.during.end
            } else {
                self.during.end.min(at + STEP)
            };
            if self.reaches(at, a, b) {
                match spans.last_mut().filter(|span| span.end == at) {
                    Some(span) => span.end = until,
                    None => spans.push(at..until),
                }
            }
            at = until;
        }
        spans
    }

    fn is_still(&self) -> bool {
        self.centre[0] == self.centre[1] && self.radius_km[0] == self.radius_km[1]
    }

    fn reaches(&self, at: Time, a: &Position, b: &Position) -> bool {
        let length = self.during.end.since(self.during.start).as_nanos() as f64;
        let share = at.since(self.during.start).as_nanos() as f64 / length;
        let centre = self.centre[0].towards(&self.centre[1], share);
        let radius_km = self.radius_km[0] + (self.radius_km[1] - self.radius_km[0]) * share;
        centre.distance_to_line_km(a, b) <= radius_km
    }
}

impl Graph {
    /// When each link is down under all `challenges`, by its name.
    pub fn outages(&self, challenges: &[Challenge]) -> BTreeMap<&str, Vec<Range<Time>>> {
        let down = |[a, b]: [usize; 2]| {
            let touches = |challenge: &Challenge| challenge.touches(self.place(a), self.place(b));
            challenges.iter().flat_map(touches).collect()
        };
        self.links().map(|(name, ends)| (name, down(ends))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::graph::tests::graph;
    use super::*;

    fn outages(graph: &Graph, challenge: Challenge) -> Vec<Vec<Range<Time>>> {
        graph.outages(&[challenge]).into_values().collect()
    }

    fn at(latitude: f64, longitude: f64) -> Position {
        Position::new(latitude, longitude).expect("a place")
    }

    fn s(seconds: f64) -> Time {
        Time::ZERO + Duration::from_millis((seconds * 1000.0) as u64)
    }

    /// Two links on the equator, 0 to 10 and 10 to 20 degrees; a degree is 111.2 km.
    #[test]
    fn what_lies_inside_is_down_while_it_does() {
        let graph = graph(
            &[("a", 0.0, 0.0), ("b", 0.0, 10.0), ("c", 0.0, 20.0)],
            &[["a", "b"], ["b", "c"]],
        );
        let still = |latitude, longitude, radius| Challenge {
            during: s(20.0)..s(40.0),
            centre: [at(latitude, longitude); 2],
            radius_km: [radius; 2],
        };
        let down = [vec![s(20.0)..s(40.0)], vec![]];
        assert_eq!(outages(&graph, still(2.0, 5.0, 223.0)), down);
        assert_eq!(
            outages(&graph, still(2.0, 5.0, 222.0)),
            [vec![], vec![]],
            "not quite"
        );
        let both = outages(&graph, still(0.0, 10.0, 1.0));
        assert!(
            both.iter().all(|spans| *spans == down[0]),
            "a node takes its links with it"
        );
    }

    /// From 111.2 km off the line it grows by 10 km/s from nothing; then moves off, 1/10 degree per second.
    #[test]
    fn a_disc_grows_and_moves() {
        let graph = graph(&[("a", 0.0, 0.0), ("b", 0.0, 10.0)], &[["a", "b"]]);
        let grows = Challenge {
            during: s(0.0)..s(20.0),
            centre: [at(1.0, 5.0); 2],
            radius_km: [0.0, 200.0],
        };
        assert_eq!(outages(&graph, grows), [[s(11.2)..s(20.0)]]);
        let moves = Challenge {
            during: s(20.0)..s(40.0),
            centre: [at(1.0, 5.0), at(3.0, 5.0)],
            radius_km: [200.0; 2],
        };
        assert_eq!(
            outages(&graph, moves),
            [[s(20.0)..s(28.0)]],
            "200 km are 1.8 degrees"
        );
    }
}
