//! How flows begin: when, over which addresses, and what their ends are told of paths.

use crate::host::{Notice, address_of};
use crate::scenario::{FlowPlan, PathPlan};
use crate::traffic::Attempt;
use restp_base::machine::PathAddress;
use restp_base::random::Stream;
use restp_base::time::{Duration, Time};
use std::ops::Range;

/// When a flow is opened: its start, and a uniform part of its spread from a stream of its own.
pub(super) fn start(flow: &FlowPlan, seed: u64) -> Time {
    let spread = flow.start_spread.as_nanos();
    let drawn = Stream::named(seed, &format!("flow/{}/start", flow.name)).below(spread.saturating_add(1));
    Time::ZERO + flow.start + Duration::from_nanos(drawn)
}

/// The paths of a flow whose first address is number `first`.
pub(super) fn attempts(flow: &FlowPlan, first: usize) -> Vec<Attempt> {
    let one = |(index, path): (usize, &PathPlan)| Attempt {
        path: PathAddress {
            local: address_of(first + 2 * index),
            remote: address_of(first + 2 * index + 1),
        },
        backup: path.backup,
    };
    flow.paths.iter().enumerate().map(one).collect()
}

/// What the sender and the receiver of a flow are told of its paths, where the flow has notices.
pub(super) fn notices(flow: &FlowPlan, attempts: &[Attempt]) -> [Vec<Notice>; 2] {
    [true, false].map(|sends| {
        let paths = flow.paths.iter().zip(attempts).filter(|_| flow.notice);
        let of_path = |(path, attempt): (&PathPlan, &Attempt)| {
            let local = if sends {
                attempt.path.local
            } else {
                attempt.path.remote
            };
            let both = |outage: &Range<Time>| {
                [(outage.start, false), (outage.end, true)].map(|(at, up)| Notice { at, local, up })
            };
            path.outages.iter().flat_map(both).collect::<Vec<Notice>>()
        };
        let mut all: Vec<Notice> = paths.flat_map(of_path).collect();
        all.sort();
        all
    })
}
