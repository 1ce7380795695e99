//! Paths in the order of their ordinals, for the two variants of hot-standby (ResTP §3.3.2, OP-54). All-or-nothing: the
//! first one carries everything, and while it is full everything waits. Overflow: the next one is used as well when all
//! before it are full and more waits than they carry in a round trip.

use super::{Candidate, Placement, Queue, Schedule};

/// Which of the two.
#[derive(Clone, Copy, Debug)]
pub struct InOrder {
    /// More than the first path may be used.
    pub overflow: bool,
}

impl Schedule for InOrder {
    fn choose(&mut self, paths: &[Candidate], queue: &Queue) -> Placement {
        let mut ahead_bytes = 0;
        for (index, path) in paths.iter().enumerate() {
            let wanted = index == 0 || (self.overflow && queue.queued_bytes > ahead_bytes);
            if !wanted {
                break;
            }
            if path.has_room {
                return Placement::from_slice(&[path.path]);
            }
            ahead_bytes += path.carries_bytes;
        }
        Placement::new()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{BULK, candidate};
    use super::*;

    #[test]
    fn the_first_path_carries_all_and_a_full_one_overflows_only_under_a_long_queue() {
        let paths = [candidate(0, 10, false), candidate(1, 10, true)];
        let choose = |overflow, queue: &Queue| InOrder { overflow }.choose(&paths, queue).to_vec();
        assert_eq!(choose(false, &BULK), []);
        let slow = Candidate {
            carries_bytes: 0,
            ..paths[0]
        };
        let other = InOrder { overflow: false }.choose(&[slow, paths[1]], &BULK);
        assert_eq!(other[..], [], "the first one, however slow it is");
        assert_eq!(choose(true, &BULK), [1]);
        let short = Queue {
            queued_bytes: 14_000,
            ..BULK
        };
        assert_eq!(
            choose(true, &short),
            [],
            "no more waits than one window of the first path"
        );
        let first = [candidate(0, 10, true), candidate(1, 5, true)];
        assert_eq!(InOrder { overflow: true }.choose(&first, &BULK)[..], [0]);
    }
}
