//! Makes a failing case small: leaves out one thing after another as long as the same law stays broken.

use super::network::Hop;
use super::stage::Maker;
use super::{Case, Fault, Traffic, Violation, judge_with};

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
    add(&|case| case.opens_ms.truncate(1));
    add(&|case| case.server_writes = Traffic::Nothing);
    add(&|case| case.client_writes = Traffic::Nothing);
    add(&|case| case.server_writes = case.server_writes.halved().unwrap_or(Traffic::Nothing));
    add(&|case| case.client_writes = case.client_writes.halved().unwrap_or(Traffic::Nothing));
    add(&|case| case.server_writes = case.server_writes.at_once());
    add(&|case| case.client_writes = case.client_writes.at_once());
    add(&|case| case.shuffle_ties = false);
    add(&|case| case.exact = true);
    add(&|case| case.server = case.client.clone());
    for key in case.client.keys() {
        add(&|case| drop((case.client.remove(key), case.server.remove(key))));
        add(&|case| drop(case.client.remove(key)));
    }
    for key in case.server.keys() {
        add(&|case| drop(case.server.remove(key)));
    }
    for hop in 0..case.hops.len() {
        if case.hops.len() > 1 {
            add(&|case| without_hop(case, hop));
        }
        add(&|case| case.hops[hop] = PLAIN);
    }
    all
}

/// A hop that nothing is remarkable about.
const PLAIN: Hop = Hop {
    rates_bps: [10_000_000; 2],
    delay_us: 10_000,
    queue_bytes: 100_000,
};

/// Faults of the hop move to its neighbour.
fn without_hop(case: &mut Case, gone: usize) {
    case.hops.remove(gone);
    for fault in &mut case.faults {
        if let Fault::Loss { hop, .. }
        | Fault::Burst { hop, .. }
        | Fault::Reorder { hop, .. }
        | Fault::Duplicate { hop, .. }
        | Fault::Corrupt { hop, .. }
        | Fault::Outage { hop, .. } = fault
            && *hop >= gone
        {
            *hop = hop.saturating_sub(1);
        }
    }
}
