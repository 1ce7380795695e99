//! Redundant: every segment on every path, for latency where capacity is not the matter; the receiver takes the first
//! (Frömmgen and others, ICC 2016; the rule for slow paths is the project's).
//!
//! A new segment leaves at once on every path with room. A path without room owes it, and takes it as soon as there is
//! room, before anything newer, unless it has arrived by then ([`PathAssignments::owed`]). So a bulk transfer gets what the best path
//! carries, and not the sum.
//!
//! A path that is slower than a retransmission on the fastest would be brings nothing sooner. It gets a segment only when it
//! carries none: enough to measure it and to survive the fastest, and no queue of old segments in front of new ones.
//!
//! [`PathAssignments::owed`]: super::PathAssignments::owed

use super::{Candidate, Placement, Queue, Schedule};
use restp_base::time::Duration;

/// No state: every choice stands for itself.
#[derive(Clone, Copy, Debug, Default)]
pub struct Redundant;

/// A retransmission arrives this many round trips of the fastest path after the first transmission left: one until the loss
/// is known, half of one on its way; in half round trips, as transmissions on other paths are counted.
const RETRANSMISSION_HALVES: u64 = 3;

impl Redundant {
    /// The paths that bring a segment no later than the fastest would bring its retransmission: these carry every segment.
    pub fn in_time(paths: &[Candidate]) -> impl Iterator<Item = &Candidate> {
        let latest = latest(paths);
        paths.iter().filter(move |path| path.smoothed_rtt <= latest)
    }
}

fn latest(paths: &[Candidate]) -> Duration {
    let fastest = paths.iter().map(|path| path.smoothed_rtt).min();
    fastest.unwrap_or_default() * RETRANSMISSION_HALVES
}

impl Schedule for Redundant {
    fn choose(&mut self, paths: &[Candidate], _queue: &Queue) -> Placement {
        // Nothing in time has room: what only measures a slow path does not go ahead of the fast ones.
        if !Redundant::in_time(paths).any(|path| path.has_room) {
            return Placement::new();
        }
        let latest = latest(paths);
        let useful =
            |path: &&Candidate| path.has_room && (path.smoothed_rtt <= latest || path.in_flight_bytes == 0);
        paths.iter().filter(useful).map(|path| path.path).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{BULK, candidate};
    use super::*;

    #[test]
    fn every_path_in_time_gets_a_copy_and_a_slow_one_only_when_it_carries_none() {
        let busy = |path: Candidate| Candidate {
            in_flight_bytes: 1400,
            ..path
        };
        let choose = |paths: &[Candidate]| Redundant.choose(paths, &BULK).to_vec();
        let fast = [candidate(0, 20, true), busy(candidate(1, 60, true))];
        assert_eq!(choose(&fast), [0, 1]);
        let slow = [candidate(0, 20, true), busy(candidate(1, 61, true))];
        assert_eq!(choose(&slow), [0]);
        let idle = [candidate(0, 20, true), candidate(1, 200, true)];
        assert_eq!(choose(&idle), [0, 1]);
        assert_eq!(choose(&[candidate(0, 20, false), candidate(1, 40, true)]), [1]);
        assert_eq!(choose(&[candidate(0, 20, false), candidate(1, 200, true)]), []);
    }
}
