//! Shares by configuration: bytes go to the paths as their weights are to each other, whatever the paths could carry
//! (SMOS: bandwidth-aware source scheduling, by configured rates). A path without room is passed over (OP-55), so the
//! shares are kept only while every path can keep up.

use super::{Candidate, Placement, Queue, Schedule};

/// Start-time fair queueing turned around (Goyal and others 1996): one queue, several servers.
#[derive(Clone, Debug, Default)]
pub struct Weighted {
    /// Per path: when it would have sent everything it was given, if each weight were a rate.
    finish: Vec<u64>,
    /// The same for the segment placed last.
    now: u64,
}

/// Bytes count this many times, so that shares of small segments are not rounded away.
const SCALE: u64 = 1 << 16;

impl Schedule for Weighted {
    fn choose(&mut self, paths: &[Candidate], queue: &Queue) -> Placement {
        let most = paths.iter().map(|path| path.path + 1).max().unwrap_or(0);
        if self.finish.len() < most {
            self.finish.resize(most, 0);
        }
        let open = paths.iter().filter(|path| path.has_room);
        // What a path could not take while it was full it does not catch up with.
        let start = |path: &Candidate| self.finish[path.path].max(self.now);
        let Some((start, chosen)) = open
            .map(|path| (start(path), path))
            .min_by_key(|(start, path)| (*start, path.path))
        else {
            return Placement::new();
        };
        self.now = start;
        let served = queue.segment_bytes.saturating_mul(SCALE) / u64::from(chosen.weight.max(1));
        self.finish[chosen.path] = start.saturating_add(served);
        Placement::from_slice(&[chosen.path])
    }
}

#[cfg(test)]
mod tests {
    use super::super::{BULK, candidate};
    use super::*;

    fn weighing(weights: [u32; 2], has_room: [bool; 2]) -> [Candidate; 2] {
        [0, 1].map(|path| Candidate {
            weight: weights[path],
            ..candidate(path, 10, has_room[path])
        })
    }

    #[test]
    fn segments_go_by_weight_and_a_full_path_is_not_paid_back() {
        let mut scheduler = Weighted::default();
        let mut count = |has_room, times| {
            let paths = weighing([3, 1], has_room);
            let chosen = (0..times).flat_map(|_| scheduler.choose(&paths, &BULK));
            chosen.filter(|path| *path == 0).count()
        };
        assert_eq!(count([true, true], 400), 300);
        assert_eq!(count([false, true], 100), 0);
        let after = count([true, true], 400);
        assert!((299..=301).contains(&after), "no more than its share: {after}");
        assert_eq!(count([false, false], 1), 0);
    }
}
