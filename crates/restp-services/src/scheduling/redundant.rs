//! Redundant: a copy of every segment on every path, for latency where capacity is not the matter; the receiver takes the
//! first (Frömmgen and others, ICC 2016; the rule against piling up is the project's).
//!
//! A path that is slower than a repeat on the fastest would be brings nothing sooner. It gets a copy only when it carries
//! none: enough to measure it and to survive the fastest, and no queue of old copies in front of new ones.

use super::{Candidate, Placement, Queue, Schedule};

/// No state: every choice stands for itself.
#[derive(Clone, Copy, Debug, Default)]
pub struct Redundant;

/// A repeat arrives this many round trips of the fastest path after the first try was sent: one until the loss is known,
/// half of one on its way; in half round trips, as copies on other paths are counted.
const REPEAT_HALVES: u64 = 3;

impl Schedule for Redundant {
    fn choose(&mut self, paths: &[Candidate], _queue: &Queue) -> Placement {
        let Some(fastest) = paths.iter().map(|path| path.smoothed_rtt).min() else {
            return Placement::new();
        };
        let in_time = |path: &&Candidate| path.smoothed_rtt <= fastest * REPEAT_HALVES;
        let useful = |path: &&Candidate| path.has_room && (in_time(path) || path.in_flight_bytes == 0);
        // Nothing of use has room: what only measures a slow path does not go ahead of the fast ones.
        if !paths.iter().filter(in_time).any(|path| path.has_room) {
            return Placement::new();
        }
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
