//! Who reaches whom on a medium: the table that every transmission walks, and the hops that routes are made of.

use super::place::{Place, propagation};
use super::rates::Chooser;
use super::spec::MediumSpec;
use crate::counters::Counters;
use restp_base::random::Stream;
use restp_base::time::{Duration, Time};

/// Where frames add up, those from beyond this multiple of the range do not count: the root of ten, a hundredth of the power of
/// the weakest that is received.
const HEARD: f64 = 3.162_277_660_168_379_5;

/// Nearer than a centimetre, nothing gets stronger.
const NEAREST: f64 = 0.01;

/// A station that another one's frames reach.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reach {
    pub station: u32,
    pub delay: Duration,
    /// How strong they are there; 1 at the end of the range.
    pub power: f64,
    pub senses: bool,
}

/// From a station to a neighbour, and what has crossed there.
#[derive(Clone, Debug)]
pub(super) struct Hop {
    pub from: u32,
    pub to: u32,
    pub delay: Duration,
    pub chooser: Chooser,
    pub counters: Counters,
}

/// Two stations that decode each other's frames.
#[derive(Clone, Debug, PartialEq)]
pub struct Pair {
    /// `<medium>:<node>-<node>`.
    pub name: String,
    /// By their places among the stations.
    pub stations: [usize; 2],
    /// Propagation at the beginning.
    pub delay: Duration,
    /// They meet later, and cannot hear each other at the beginning.
    pub apart: bool,
}

impl MediumSpec {
    /// The links of this medium: every two stations that ever reach each other.
    pub fn pairs(&self) -> Vec<Pair> {
        let mut pairs = Vec::new();
        for (a, one) in self.stations.iter().enumerate() {
            for (b, other) in self.stations.iter().enumerate().skip(a + 1) {
                let metres = one.place.metres_to(other.place);
                if one.nearest_metres(other) <= self.ranges.decode {
                    pairs.push(Pair {
                        name: format!("{}:{}-{}", self.name, one.node, other.node),
                        stations: [a, b],
                        delay: propagation(metres),
                        apart: metres > self.ranges.decode,
                    });
                }
            }
        }
        pairs
    }
}

/// The hops of the pairs, there and back.
pub(super) fn hops(spec: &MediumSpec, stream: impl Fn(&str) -> Stream) -> Vec<Hop> {
    let both = |pair: Pair| {
        let [a, b] = pair.stations.map(|station| station as u32);
        let node = |station: u32| &spec.stations[station as usize].node;
        [(a, b), (b, a)].map(|(from, to)| Hop {
            from,
            to,
            delay: pair.delay,
            chooser: Chooser::new(&spec.rates, || {
                stream(&format!("{}/rates/{}", node(from), node(to)))
            }),
            counters: Counters::default(),
        })
    };
    spec.pairs().into_iter().flat_map(both).collect()
}

/// Whom each station reaches at all, when it is `now`.
pub(super) fn reaches(spec: &MediumSpec, now: Time) -> Vec<Vec<Reach>> {
    let places: Vec<Place> = spec
        .stations
        .iter()
        .map(|station| station.place_at(now))
        .collect();
    let ranges = spec.ranges;
    let furthest = match spec.capture {
        None => ranges.interfere.max(ranges.sense),
        Some(_) => (ranges.decode * HEARD).max(ranges.sense),
    };
    let of = |(index, one): (usize, &Place)| {
        let others = places.iter().enumerate().filter(|(other, _)| *other != index);
        let reach = |(station, other): (usize, &Place)| {
            let metres = one.metres_to(*other);
            let (ratio, square) = (ranges.decode / metres.max(NEAREST), |x: f64| x * x);
            (metres <= furthest).then(|| Reach {
                station: station as u32,
                delay: propagation(metres),
                power: square(square(ratio)),
                senses: metres <= ranges.sense,
            })
        };
        others.filter_map(reach).collect()
    };
    places.iter().enumerate().map(of).collect()
}
