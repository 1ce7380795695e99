//! A random path: up to three hops, each with rates, a delay and a queue of its own. Hops are counted on from one path
//! to the next; paths share their two ends and nothing else.

use super::faults::Fault;
use super::{Case, Side, skewed};
use restp_base::random::Stream;
use restp_base::time::{Duration, Time};
use restp_base::units::Rate;
use restp_sim::error_model::{BurstLoss, Corrupt, Duplicate, LossUnit, RateLoss, Reorder};
use restp_sim::{DirectionSpec, ErrorModel, LinkSpec, QueueLimit};
use serde::{Deserialize, Serialize};

/// One link of the path.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hop {
    /// Bits per second, from the client and towards it.
    pub rates_bps: [u64; 2],
    /// Propagation, the same both ways.
    pub delay_us: u64,
    /// Bytes that may wait, the same both ways.
    pub queue_bytes: u64,
}

/// Slowest and fastest link.
const RATES_BPS: [u64; 2] = [200_000, 200_000_000];
/// Longest propagation of one hop.
const DELAY_US: u64 = 150_000;
/// A queue holds a few large packets at least and, so that no timer runs out in it, a second at most.
const QUEUE_BYTES: u64 = 20_000;

/// A path of one to three hops.
pub fn draw(draw: &mut Stream) -> Vec<Hop> {
    (0..1 + draw.below(3))
        .map(|_| {
            let forward = rate(draw);
            let reverse = if draw.chance(0.5) { forward } else { rate(draw) };
            let slowest = forward.min(reverse);
            Hop {
                rates_bps: [forward, reverse],
                delay_us: 10 + skewed(draw, DELAY_US),
                queue_bytes: QUEUE_BYTES + draw.below(slowest / 8),
            }
        })
        .collect()
}

/// A rate whose size is drawn first, so that slow links are as frequent as fast ones.
fn rate(draw: &mut Stream) -> u64 {
    let doublings = (RATES_BPS[1] / RATES_BPS[0]).ilog2() as u64;
    let least = RATES_BPS[0] << draw.below(doublings);
    least + draw.below(least)
}

/// Says what is impossible about a path.
///
/// # Errors
/// The rule that is broken.
pub fn check(hops: &[Hop]) -> Result<(), String> {
    if hops.is_empty() {
        return Err("there is no path; write at least 1 hop".into());
    }
    if hops.iter().any(|hop| hop.rates_bps.contains(&0)) {
        return Err("a rate of 0 never sends anything; write at least 1".into());
    }
    Ok(())
}

/// The name of the node where every path begins, and where it ends.
pub fn ends(case: &Case) -> [String; 2] {
    [node(0), node(case.hops.len())]
}

/// The name of the node of the first path after `hop` hops.
fn node(hop: usize) -> String {
    format!("node{hop}")
}

/// The links of every path with their share of the faults.
pub fn links(case: &Case) -> Vec<LinkSpec> {
    let mut links = Vec::new();
    for path in 0..case.paths() {
        let range = case.hops_of(path);
        let between = |index: usize| match path {
            0 => node(index),
            _ if index == range.start => node(0),
            _ if index == range.end => node(case.hops.len()),
            _ => format!("path{path}node{index}"),
        };
        for (index, hop) in range.clone().zip(case.path(path)) {
            links.push(LinkSpec {
                name: link(index),
                between: [between(index), between(index + 1)],
                forward: direction(index, hop, Side::Client, &case.faults),
                reverse: direction(index, hop, Side::Server, &case.faults),
            });
        }
    }
    links
}

/// The names of the links of path number `path`, as the client's packets meet them.
pub fn route(case: &Case, path: usize) -> Vec<String> {
    case.hops_of(path).map(link).collect()
}

/// The name of hop number `index`.
pub fn link(index: usize) -> String {
    format!("hop{index}")
}

fn direction(index: usize, hop: &Hop, from: Side, faults: &[Fault]) -> DirectionSpec {
    let mut spec = DirectionSpec::new(
        Rate::from_bps(hop.rates_bps[from.index()]),
        Duration::from_micros(hop.delay_us),
        QueueLimit::Bytes(hop.queue_bytes),
    );
    for fault in faults {
        if fault.hits(index, from) {
            apply(&mut spec, fault);
        }
    }
    spec
}

fn apply(spec: &mut DirectionSpec, fault: &Fault) {
    let at = |millis: u64| Time::ZERO + Duration::from_millis(millis);
    match *fault {
        Fault::Loss { rate, .. } => spec.loss.push(ErrorModel::Rate(RateLoss {
            probability: rate,
            unit: LossUnit::Packet,
        })),
        Fault::Burst { rate, longest, .. } => spec.loss.push(ErrorModel::Burst(BurstLoss {
            probability: rate,
            sizes: 1..=longest,
        })),
        Fault::Reorder { rate, extra_ms, .. } => {
            spec.reorder = Some(Reorder {
                probability: rate,
                extra: Duration::from_millis(extra_ms),
            })
        }
        Fault::Duplicate { rate, .. } => spec.duplicate = Some(Duplicate { probability: rate }),
        Fault::Corrupt { rate, .. } => spec.corrupt = Some(Corrupt { probability: rate }),
        Fault::Outage {
            from_ms, until_ms, ..
        }
        | Fault::Refuse {
            from_ms, until_ms, ..
        } => spec.outage.push(at(from_ms)..at(until_ms)),
        Fault::Flap { .. } => {
            let downs = fault.downs().map(|down| at(down.start)..at(down.end));
            spec.outage.extend(downs);
        }
        Fault::Kill { at_ms, .. } => spec.outage.push(at(at_ms)..Time::MAX),
        Fault::Restart { .. }
        | Fault::ClockJump { .. }
        | Fault::PauseReading { .. }
        | Fault::Finish { .. }
        | Fault::Abort { .. }
        | Fault::Rebind { .. }
        | Fault::Notice { .. } => {}
    }
}

/// The longest a packet of `bytes` takes through any path and back when every queue is full.
pub fn longest_of_all(case: &Case, bytes: u64) -> Duration {
    let paths = (0..case.paths()).map(|path| longest_round_trip(case.path(path), bytes));
    paths.max().unwrap_or_default()
}

/// The longest a packet of `bytes` takes through `hops` and back when every queue is full.
pub fn longest_round_trip(hops: &[Hop], bytes: u64) -> Duration {
    let mut total = Duration::ZERO;
    for hop in hops {
        total += Duration::from_micros(2 * hop.delay_us);
        for rate in hop.rates_bps {
            total += Rate::from_bps(rate).transmission_time(hop.queue_bytes + 2 * bytes);
        }
    }
    total
}

/// The shortest that anything takes through a path and back: the propagation alone.
pub fn shortest_round_trip(case: &Case) -> Duration {
    let delays = |path: usize| case.path(path).iter().map(|hop| 2 * hop.delay_us).sum();
    let shortest: Option<u64> = (0..case.paths()).map(delays).min();
    Duration::from_micros(shortest.unwrap_or_default())
}
