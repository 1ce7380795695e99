//! The next path with room, in turn (header bit RRS, ResTP §3.5.10).

use super::{Candidate, Placement, Queue, Schedule};

/// Whose turn it is.
#[derive(Clone, Copy, Debug, Default)]
pub struct RoundRobin {
    last: Option<usize>,
}

impl Schedule for RoundRobin {
    fn choose(&mut self, paths: &[Candidate], _queue: &Queue) -> Placement {
        let open = |path: &&Candidate| path.has_room;
        let later = paths
            .iter()
            .filter(open)
            .find(|path| self.last.is_none_or(|last| path.path > last));
        let next = later.or_else(|| paths.iter().find(open)).map(|path| path.path);
        self.last = next.or(self.last);
        next.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{BULK, candidate};
    use super::*;

    #[test]
    fn paths_take_turns_and_a_full_one_is_passed_over() {
        let mut scheduler = RoundRobin::default();
        let all = [
            candidate(0, 10, true),
            candidate(1, 10, true),
            candidate(2, 10, true),
        ];
        let turns: Vec<_> = (0..4).flat_map(|_| scheduler.choose(&all, &BULK)).collect();
        assert_eq!(turns, [0, 1, 2, 0]);
        let full = [
            candidate(0, 10, true),
            candidate(1, 10, false),
            candidate(2, 10, true),
        ];
        assert_eq!(scheduler.choose(&full, &BULK)[..], [2]);
        assert_eq!(scheduler.choose(&all[..1], &BULK)[..], [0]);
        assert_eq!(scheduler.choose(&[candidate(0, 10, false)], &BULK).len(), 0);
    }
}
