//! ECF, earliest completion first: waits for the fastest path when what is queued would be through it sooner than a
//! segment on the slower one (Lim and others, CoNEXT 2017, algorithm 1). It knows the end of what waits in the send
//! buffer, not what an application will still write: for short messages and last segments.

use super::{Candidate, Placement, Queue, Schedule};

/// Waiting is only given up when it looks a quarter worse.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ecf {
    waiting: bool,
}

/// β of the paper: hysteresis of waiting.
const BETA: f64 = 0.25;

impl Schedule for Ecf {
    fn choose(&mut self, paths: &[Candidate], queue: &Queue) -> Placement {
        let rank = |path: &&Candidate| (path.smoothed_rtt, path.path);
        let Some(fastest) = paths.iter().min_by_key(rank) else {
            return Placement::new();
        };
        let Some(open) = paths.iter().filter(|path| path.has_room).min_by_key(rank) else {
            return Placement::new();
        };
        if open.path != fastest.path && self.is_worth_waiting(fastest, open, queue) {
            return Placement::new();
        }
        Placement::from_slice(&[open.path])
    }
}

impl Ecf {
    fn is_worth_waiting(&mut self, fast: &Candidate, slow: &Candidate, queue: &Queue) -> bool {
        let seconds = |time: restp_base::time::Duration| time.as_secs_f64();
        let rounds = |path: &Candidate| queue.queued_bytes as f64 / path.carries_bytes.max(1) as f64;
        let margin = seconds(fast.rtt_variation.max(slow.rtt_variation));
        let through_fast = (1.0 + rounds(fast)) * seconds(fast.smoothed_rtt);
        let hysteresis = if self.waiting { 1.0 + BETA } else { 1.0 };
        if through_fast >= hysteresis * (seconds(slow.smoothed_rtt) + margin) {
            self.waiting = false;
            return false;
        }
        // The slower path would also have to be slower with all of it.
        let through_slow = rounds(slow) * seconds(slow.smoothed_rtt);
        let waits = through_slow >= 2.0 * seconds(fast.smoothed_rtt) + margin;
        self.waiting |= waits;
        waits
    }
}

#[cfg(test)]
mod tests {
    use super::super::{BULK, candidate};
    use super::*;

    /// Windows of ten segments, 20 and 100 ms.
    #[test]
    fn the_fastest_is_waited_for_when_it_is_through_first() {
        let paths = [candidate(0, 20, false), candidate(1, 100, true)];
        let choose = |scheduler: &mut Ecf, segments: u64| {
            let queue = Queue {
                queued_bytes: segments * 1400,
                ..BULK
            };
            scheduler.choose(&paths, &queue).to_vec()
        };
        // 20 segments: (1 + 2) · 20 < 100, and 2 · 100 ≥ 40.
        assert_eq!(choose(&mut Ecf::default(), 20), []);
        // 40: 100 ms either way, no gain in waiting. 3: 30 ms on the slower one, less than two round trips.
        assert_eq!(choose(&mut Ecf::default(), 40), [1]);
        assert_eq!(choose(&mut Ecf::default(), 3), [1]);
        let mut waiting = Ecf::default();
        choose(&mut waiting, 20);
        assert_eq!(choose(&mut waiting, 50), [], "120 ms < 1.25 · 100 ms");
        assert_eq!(choose(&mut waiting, 53), [1]);
        assert_eq!(choose(&mut waiting, 50), [1], "no longer waiting");
    }
}
