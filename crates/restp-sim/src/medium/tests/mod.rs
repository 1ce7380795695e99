//! A medium without a network around it: packets are put into queues and come out, or do not.

mod bianchi;
mod chains;
mod exchange;
mod moving;
mod nanoseconds;
mod power;

use super::{Medium, MediumSpec, Outcome, Place, Station};
use crate::direction::{DropReason, Parcel};
use restp_base::machine::Ecn;
use restp_base::time::{Duration, Time};

/// An SCTP packet around 1000 bytes.
const PACKET: u32 = 1048;

/// Stations on a line, 300 m apart.
fn chain(hops: usize) -> MediumSpec {
    line(&(0..=hops).map(|n| 300.0 * n as f64).collect::<Vec<f64>>())
}

fn line(metres: &[f64]) -> MediumSpec {
    let station = |(n, &x): (usize, &f64)| Station::new(&format!("n{n}"), Place::new(x, 0.0));
    MediumSpec::new("air", metres.iter().enumerate().map(station).collect())
}

/// The hop from a station to another.
fn hop(spec: &MediumSpec, from: usize, to: usize) -> u32 {
    let pairs = spec.pairs();
    let index = pairs
        .iter()
        .position(|pair| pair.stations == [from.min(to), from.max(to)])
        .expect("neighbours");
    2 * index as u32 + u32::from(from > to)
}

fn parcel(tag: u64, bytes: u32) -> Parcel {
    Parcel {
        bytes,
        ecn: Ecn::NotEct,
        may_fragment: false,
        flow: 0,
        tag,
    }
}

fn seconds(s: u64) -> Time {
    Time::ZERO + Duration::from_secs(s)
}

/// What became of the packets of each flow.
#[derive(Clone, Debug, Default, PartialEq)]
struct Tally {
    delivered: u64,
    dropped: Vec<(DropReason, u64)>,
}

impl Tally {
    fn drops(&self, reason: DropReason) -> u64 {
        let of = |(why, count): &(DropReason, u64)| (*why == reason).then_some(*count);
        self.dropped.iter().find_map(of).unwrap_or(0)
    }

    fn on_drop(&mut self, reason: DropReason) {
        match self.dropped.iter_mut().find(|(why, _)| *why == reason) {
            Some((_, count)) => *count += 1,
            None => self.dropped.push((reason, 1)),
        }
    }
}

/// Flows along hops; the source of each always has `backlog` packets of [`PACKET`] bytes at its first station.
fn saturate(spec: &MediumSpec, flows: &[Vec<u32>], (backlog, end): (u32, Time), seed: u64) -> Vec<Tally> {
    spec.check().expect("possible");
    let mut medium = Medium::new(spec, seed);
    let mut tallies = vec![Tally::default(); flows.len()];
    let refill = |medium: &mut Medium, now, flow: usize| {
        let packet = parcel(flow as u64, PACKET);
        medium
            .offer(now, flows[flow][0], packet)
            .expect("room at the source");
    };
    for _ in 0..backlog {
        (0..flows.len()).for_each(|flow| refill(&mut medium, Time::ZERO, flow));
    }
    while let Some(now) = medium.next().filter(|now| *now < end) {
        let Some(outcome) = medium.advance(now) else {
            continue;
        };
        let (Outcome::Delivered { packet, hop } | Outcome::Dropped { packet, hop, .. }) = outcome;
        let flow = packet as usize;
        let place = flows[flow]
            .iter()
            .position(|own| *own == hop)
            .expect("a hop of its flow");
        if place == 0 {
            refill(&mut medium, now, flow);
        }
        match (outcome, flows[flow].get(place + 1)) {
            (Outcome::Dropped { reason, .. }, _) => tallies[flow].on_drop(reason),
            (_, None) => tallies[flow].delivered += 1,
            (_, Some(next)) => {
                if let Err(reason) = medium.offer(now, *next, parcel(flow as u64, PACKET)) {
                    tallies[flow].on_drop(reason);
                }
            }
        }
    }
    tallies
}

/// Of 1000 bytes of each packet, in bits per microsecond.
fn mbps(tally: &Tally, end: Time) -> f64 {
    tally.delivered as f64 * 8000.0 / 1e6 / end.as_secs_f64()
}
