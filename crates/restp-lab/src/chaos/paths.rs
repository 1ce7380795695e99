//! Several paths: the further ones, when the application adds and removes them, and what befalls a path as a whole.

use super::network::{self, Hop};
use super::{Case, Fault, Side, skewed};
use crate::host::address_of;
use restp_base::machine::PathAddress;
use restp_base::random::Stream;
use restp_base::time::{Duration, Time};
use serde::{Deserialize, Serialize};

/// One path beside the first. Times count from the beginning of each conversation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Further {
    /// When the client adds it.
    #[serde(default)]
    pub joins_ms: u64,
    /// When it removes it again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leaves_ms: Option<u64>,
    /// Only for when no other works.
    #[serde(default)]
    pub backup: bool,
    /// The path from client to server.
    pub hops: Vec<Hop>,
}

/// How many cases have several paths.
const SEVERAL: f64 = 1.0 / 3.0;
/// Most of them beside the first.
const MOST: u64 = 3;
/// Latest and latest late of what applications do with paths and of notices, in milliseconds.
const LATE_MS: u64 = 5_000;

/// The paths of a case beside the first, often none.
pub fn draw(draw: &mut Stream) -> Vec<Further> {
    if !draw.chance(SEVERAL) {
        return Vec::new();
    }
    (0..1 + draw.below(MOST))
        .map(|_| {
            let joins_ms = if draw.chance(0.7) { 0 } else { draw.below(LATE_MS) };
            Further {
                joins_ms,
                leaves_ms: draw.chance(0.1).then(|| joins_ms + 1 + draw.below(LATE_MS)),
                backup: draw.chance(0.15),
                hops: network::draw(draw),
            }
        })
        .collect()
}

/// Adds what befalls whole paths. One of them lives, in half of the cases without any fault.
pub fn draw_faults(draw: &mut Stream, case: &mut Case) {
    let staying = |path: &usize| *path == 0 || case.further[path - 1].leaves_ms.is_none();
    let stays: Vec<usize> = (0..case.paths()).filter(staying).collect();
    let survivor = stays[draw.below(stays.len() as u64) as usize];
    let whole = draw.chance(0.5);
    if whole {
        let spared = case.hops_of(survivor);
        case.faults
            .retain(|fault| fault.hop().is_none_or(|hop| !spared.contains(&hop)));
    }
    for path in 0..case.paths() {
        if path != survivor || !whole {
            let fate = fate(draw, case, path, path == survivor);
            case.faults.extend(fate);
        }
    }
}

/// Adds what befalls the address of a client with one path: only under the seal does a flow go on elsewhere.
pub fn draw_moves(draw: &mut Stream, case: &mut Case) {
    if draw.chance(0.4) {
        for _ in 0..1 + draw.below(3) {
            let at_ms = draw.below(case.heal_ms);
            case.faults.push(Fault::Rebind { path: 0, at_ms });
        }
    }
}

/// What befalls `path`, which `lives` on.
fn fate(draw: &mut Stream, case: &Case, path: usize, lives: bool) -> Vec<Fault> {
    let heal_ms = case.heal_ms;
    let hops = case.hops_of(path);
    let hop = hops.start + draw.below(hops.len() as u64) as usize;
    let from = Side::BOTH[draw.below(2) as usize];
    let from_ms = if draw.chance(0.3) { 0 } else { draw.below(heal_ms) };
    let until_ms = from_ms + 1 + draw.below(heal_ms - from_ms);
    let outage = |from| Fault::Outage {
        hop,
        from,
        from_ms,
        until_ms,
    };
    let kill = |from| Fault::Kill {
        hop,
        from,
        at_ms: from_ms,
    };
    let mut faults = match draw.below(10) {
        0 | 1 if !lives => Side::BOTH.map(kill).to_vec(),
        2 if !lives => vec![kill(from)],
        0 | 3 => Side::BOTH.map(outage).to_vec(),
        1 | 4 => vec![outage(from)],
        2 | 5 => vec![Fault::Flap {
            hop,
            from_ms,
            until_ms,
            down_ms: 1 + skewed(draw, 2_000),
            up_ms: 1 + skewed(draw, 2_000),
        }],
        6 => vec![Fault::Rebind { path, at_ms: from_ms }],
        7 => vec![Fault::Refuse {
            hop: if from == Side::Client {
                hops.start
            } else {
                hops.end - 1
            },
            from,
            from_ms,
            until_ms,
        }],
        _ => Vec::new(),
    };
    let broken = !faults.is_empty();
    for side in Side::BOTH {
        let mut notice = |at: u64, up: bool| {
            let at_ms = (at + skewed(draw, LATE_MS)).min(heal_ms);
            faults.push(Fault::Notice {
                side,
                path,
                at_ms,
                up,
            });
        };
        match (broken, from_ms % 4) {
            (true, 0 | 1) => {
                notice(from_ms, false);
                notice(until_ms, true);
            }
            (false, 0) => notice(from_ms, from_ms % 8 == 0), // a false one, or one that says nothing new
            _ => {}
        }
    }
    faults
}

/// Every hop of every path.
pub fn every_hop<'a>(hops: &'a [Hop], further: &'a [Further]) -> impl Iterator<Item = &'a Hop> {
    hops.iter().chain(further.iter().flat_map(|path| &path.hops))
}

/// Says what is impossible about the paths of a case.
///
/// # Errors
/// The rule that is broken.
pub fn check(case: &Case, several: bool) -> Result<(), String> {
    if !several && case.paths() > 1 {
        return Err("this composition uses one path only; choose paths = \"spreading\"".into());
    }
    if !(0..case.paths()).any(|path| lives(case, path)) {
        return Err("no path lives on; at least 1 is neither killed nor removed".into());
    }
    Ok(())
}

/// It is neither killed nor removed.
pub fn lives(case: &Case, path: usize) -> bool {
    let hops = case.hops_of(path);
    let kills = |fault: &Fault| matches!(fault, Fault::Kill { hop, .. } if hops.contains(hop));
    let leaves = path > 0 && case.further[path - 1].leaves_ms.is_some();
    !leaves && !case.faults.iter().any(kills)
}

/// How often the translator of `path` has forgotten by `now`: the port of the client's address as the server sees it.
pub fn binding(case: &Case, path: usize, now: Time) -> u16 {
    let forgets = |fault: &&Fault| matches!(**fault, Fault::Rebind { path: of, at_ms } if of == path && at(at_ms) <= now);
    case.faults.iter().filter(forgets).count() as u16
}

/// Does the lower layer of `side` refuse what it sends on `path`?
pub fn refuses(case: &Case, side: Side, path: usize, now: Time) -> bool {
    let hops = case.hops_of(path);
    case.faults.iter().any(|fault| {
        matches!(*fault, Fault::Refuse { hop, from, from_ms, until_ms }
            if from == side && hops.contains(&hop) && (at(from_ms)..at(until_ms)).contains(&now))
    })
}

/// This many milliseconds after the beginning of the run.
pub fn at(millis: u64) -> Time {
    Time::ZERO + Duration::from_millis(millis)
}

/// The case without path number `gone`, which is not the first, and without what befalls it.
pub fn without(case: &mut Case, gone: usize) {
    let hops = case.hops_of(gone);
    case.faults.retain_mut(|fault| {
        if let Some(path) = fault.path_mut() {
            let stays = *path != gone;
            *path -= usize::from(*path > gone);
            return stays;
        }
        let Some(hop) = fault.hop_mut() else { return true };
        let stays = !hops.contains(hop);
        if *hop >= hops.end {
            *hop -= hops.len();
        }
        stays
    });
    case.further.remove(gone - 1);
}

/// The addresses of path number `path`, as `side` sees them.
pub fn address(side: Side, path: usize) -> PathAddress {
    PathAddress {
        local: address_of(2 * path + side.index()),
        remote: address_of(2 * path + side.other().index()),
    }
}

/// The path that a packet of `side` between these addresses takes. The server may know the client by any port that the
/// translator has given it.
pub fn path_of(case: &Case, side: Side, mut pair: PathAddress) -> Option<usize> {
    if side == Side::Server {
        pair.remote.set_port(0);
    }
    (0..case.paths()).find(|path| address(side, *path) == pair)
}
