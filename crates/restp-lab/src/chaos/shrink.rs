//! Makes a failing case small: leaves out one thing after another as long as the same law stays broken.

use super::network::Hop;
use super::seat::Maker;
use super::{Case, Fault, Seal, Traffic, Violation, judge_with, paths};

/// Most plays of one shrinking.
const PLAYS: u32 = 500;

/// The smallest case found, with what it breaks.
pub fn shrink(case: &Case, make: Maker<'_>) -> Option<(Case, Violation)> {
    let mut smallest = (case.clone(), judge_with(case, make).violation?);
    let mut plays = 0;
    'again: loop {
        for smaller in candidates(&smallest.0) {
            if plays == PLAYS {
                return Some(smallest);
            }
            if smaller.check().is_err() {
                continue;
            }
            plays += 1;
            if let Some(violation) = judge_with(&smaller, make).violation
                && violation.law == smallest.1.law
            {
                smallest = (smaller, violation);
                continue 'again;
            }
        }
        return Some(smallest);
    }
}

/// Cases with one thing less, those that leave out most first.
fn candidates(case: &Case) -> Vec<Case> {
    let mut all = Vec::new();
    let mut add = |change: &dyn Fn(&mut Case)| {
        let mut smaller = case.clone();
        change(&mut smaller);
        if smaller != *case {
            all.push(smaller);
        }
    };
    for index in 0..case.faults.len() {
        add(&|case| {
            case.faults.remove(index);
        });
    }
    for index in 0..case.changes.len() {
        add(&|case| {
            case.changes.remove(index);
        });
    }
    add(&|case| *case = case.clone().plain());
    let attacks = case.seal.as_ref().map_or(0, |seal| seal.attacks.len());
    for index in 0..attacks {
        let without = |seal: &mut Seal| {
            seal.attacks.remove(index);
        };
        add(&|case| case.seal.as_mut().map_or((), without));
    }
    for plainer in [
        |seal: &mut Seal| seal.pinned = true,
        |seal: &mut Seal| seal.keeps = false,
        |seal: &mut Seal| seal.awaits_proof = false,
        |seal: &mut Seal| seal.fast_aes = true,
        |seal: &mut Seal| seal.unproved_per_second = 50,
    ] {
        add(&|case| case.seal.as_mut().map_or((), plainer));
    }
    add(&|case| case.opens_ms.truncate(1));
    add(&|case| case.server_writes = Traffic::Nothing);
    add(&|case| case.client_writes = Traffic::Nothing);
    add(&|case| case.server_writes = case.server_writes.halved().unwrap_or(Traffic::Nothing));
    add(&|case| case.client_writes = case.client_writes.halved().unwrap_or(Traffic::Nothing));
    add(&|case| case.server_writes = case.server_writes.at_once());
    add(&|case| case.client_writes = case.client_writes.at_once());
    add(&|case| case.exact = true);
    add(&|case| case.server = case.client.clone());
    // Without it an outage over several paths lasts a day, and breaks the law of progress for another reason.
    let removed = |key: &&String| case.further.is_empty() || *key != "outage-timeout";
    for key in case.client.keys().filter(removed) {
        add(&|case| drop((case.client.remove(key), case.server.remove(key))));
        add(&|case| drop(case.client.remove(key)));
    }
    for key in case.server.keys().filter(removed) {
        add(&|case| drop(case.server.remove(key)));
    }
    for path in 1..case.paths() {
        add(&|case| paths::without(case, path));
        add(&|case| case.further[path - 1].leaves_ms = None);
        add(&|case| case.further[path - 1].joins_ms = 0);
        add(&|case| case.further[path - 1].backup = false);
    }
    add(&|case| case.pin_every = 0);
    for path in 0..case.paths() {
        for hop in 0..case.path(path).len() {
            if case.path(path).len() > 1 {
                add(&|case| without_hop(case, path, hop));
            }
            add(&|case| hops(case, path)[hop] = PLAIN);
        }
    }
    all
}

fn hops(case: &mut Case, path: usize) -> &mut Vec<Hop> {
    match path {
        0 => &mut case.hops,
        _ => &mut case.further[path - 1].hops,
    }
}

/// A hop that nothing is remarkable about.
const PLAIN: Hop = Hop {
    rates_bps: [10_000_000; 2],
    delay_us: 10_000,
    queue_bytes: 100_000,
};

/// Faults of the hop move to its neighbour.
fn without_hop(case: &mut Case, path: usize, gone: usize) {
    let range = case.hops_of(path);
    hops(case, path).remove(gone);
    for hop in case.faults.iter_mut().filter_map(Fault::hop_mut) {
        let beyond = *hop >= range.start + gone.max(1);
        *hop -= usize::from(beyond);
    }
}
