//! BLEST, blocking estimation: a slower path gets a segment only if the shared window, while that segment is on its way,
//! still has room for all that the fastest path can send meanwhile (Ferlin and others, IFIP Networking 2016 §III). With
//! an open window every path is used; with a small one the fastest keeps it for itself.

use super::{Candidate, Placement, Queue, Schedule};
use restp_base::time::Time;

/// How much the estimate is corrected, and when.
#[derive(Clone, Copy, Debug)]
pub struct Blest {
    /// Factor on what the fastest path is expected to send.
    lambda: f64,
    stalls: u64,
    /// λ is looked at once per round trip of the slower path.
    review_at: Time,
}

/// λ begins in the middle and stays within bounds of the authors' code.
const LAMBDA: f64 = 1.2;
const LEAST_LAMBDA: f64 = 1.0;
const LARGEST_LAMBDA: f64 = 1.3;
/// Step of λ after a round trip in which the window was shut, and after one in which it was not.
const BLOCKED_STEP: f64 = 0.04;
const OPEN_STEP: f64 = 0.01;

impl Default for Blest {
    fn default() -> Self {
        Blest {
            lambda: LAMBDA,
            stalls: 0,
            review_at: Time::ZERO,
        }
    }
}

impl Schedule for Blest {
    fn choose(&mut self, paths: &[Candidate], queue: &Queue) -> Placement {
        let rank = |path: &&Candidate| (path.smoothed_rtt, path.path);
        let Some(fastest) = paths.iter().min_by_key(rank) else {
            return Placement::new();
        };
        let Some(open) = paths.iter().filter(|path| path.has_room).min_by_key(rank) else {
            return Placement::new();
        };
        if open.path != fastest.path && self.would_block(fastest, open, queue) {
            return Placement::new();
        }
        Placement::from_slice(&[open.path])
    }
}

impl Blest {
    /// What the fastest path sends in a round trip of the slower one, its window growing by one segment in each of its
    /// own, against the window without what is then still on the slower path.
    fn would_block(&mut self, fast: &Candidate, slow: &Candidate, queue: &Queue) -> bool {
        self.review(slow, queue);
        let segment = queue.segment_bytes.max(1) as f64;
        let round_trips = slow.smoothed_rtt.as_nanos() as f64 / fast.smoothed_rtt.as_nanos().max(1) as f64;
        let window = fast.carries_bytes as f64 / segment;
        let sent = (window + (round_trips - 1.0) / 2.0) * round_trips;
        let on_slow = slow.in_flight_bytes as f64 / segment + 1.0;
        let total = (queue.outstanding_segments + queue.window_segments) as f64;
        sent * self.lambda > total - on_slow
    }

    fn review(&mut self, slow: &Candidate, queue: &Queue) {
        if queue.now < self.review_at {
            return;
        }
        let blocked = queue.stalls > self.stalls;
        let step = if blocked { BLOCKED_STEP } else { -OPEN_STEP };
        self.lambda = (self.lambda + step).clamp(LEAST_LAMBDA, LARGEST_LAMBDA);
        self.stalls = queue.stalls;
        self.review_at = queue.now + slow.smoothed_rtt;
    }
}

#[cfg(test)]
mod tests {
    use super::super::{BULK, candidate};
    use super::*;

    #[test]
    fn a_slow_path_waits_for_a_window_that_lasts_until_it_has_delivered() {
        // Windows of 10 segments, 20 and 100 ms: the fastest sends (10 + 2) · 5 = 60 in a round trip of the other, with
        // λ 1.19 after the first look 71.4; one segment goes to the slow path.
        let paths = [candidate(0, 20, false), candidate(1, 100, true)];
        let choose = |window_segments: u64| {
            let queue = Queue {
                window_segments: window_segments - 10,
                outstanding_segments: 10,
                ..BULK
            };
            Blest::default().choose(&paths, &queue).to_vec()
        };
        assert_eq!((choose(72), choose(73)), (vec![], vec![1]));
        let fast = [candidate(0, 20, true), candidate(1, 100, true)];
        assert_eq!(Blest::default().choose(&fast, &BULK)[..], [0]);
        assert_eq!(
            Blest::default().choose(&[candidate(0, 20, false)], &BULK).len(),
            0
        );
    }

    #[test]
    fn lambda_grows_while_the_window_is_shut_and_falls_slowly() {
        let paths = [candidate(0, 20, false), candidate(1, 100, true)];
        let mut scheduler = Blest::default();
        let mut queue = BULK;
        for (stalls, lambda) in [(1, 1.24), (2, 1.28), (3, 1.3), (3, 1.29)] {
            queue.stalls = stalls;
            scheduler.choose(&paths, &queue);
            assert!((scheduler.lambda - lambda).abs() < 1e-9, "{}", scheduler.lambda);
            queue.now += paths[1].smoothed_rtt;
        }
    }
}
