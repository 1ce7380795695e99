//! The path with the least smoothed round-trip time that has room (header bit FRS, ResTP §3.5.10); ties go to the lowest
//! ordinal (OP-55).

use super::{Candidate, Placement, Queue, Schedule};

/// No state: every choice stands for itself.
#[derive(Clone, Copy, Debug, Default)]
pub struct FastestRtt;

impl Schedule for FastestRtt {
    fn choose(&mut self, paths: &[Candidate], _queue: &Queue) -> Placement {
        let open = paths.iter().filter(|path| path.has_room);
        let fastest = open.min_by_key(|path| (path.smoothed_rtt, path.path));
        fastest.map(|path| path.path).into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{BULK, candidate};
    use super::*;

    #[test]
    fn the_fastest_with_room_and_the_first_of_equals() {
        let choose = |paths: &[Candidate]| FastestRtt.choose(paths, &BULK).to_vec();
        assert_eq!(choose(&[candidate(0, 40, true), candidate(1, 20, true)]), [1]);
        assert_eq!(choose(&[candidate(0, 40, true), candidate(1, 20, false)]), [0]);
        assert_eq!(choose(&[candidate(0, 20, true), candidate(1, 20, true)]), [0]);
        assert_eq!(choose(&[candidate(0, 20, false)]), []);
    }
}
