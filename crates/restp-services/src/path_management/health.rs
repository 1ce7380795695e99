//! Is a path alive (OP-54)? Silence while an answer is due makes it suspect: its data is retransmitted elsewhere at once,
//! which costs little when the suspicion is wrong. Two timeouts in a row, or a notice of the lower layer, make it
//! failed: it is probed until three answers in a row bring it back.
//!
//! An answer that comes within two round trips is on time. Where a queue grows it comes later, but then others flow: so
//! long as the last one is less than a round trip old the path lives.

use restp_base::time::{Duration, Time};

/// What a path is good for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Health {
    /// It answers.
    Good,
    /// An answer is overdue: nothing new is given to it.
    Suspect,
    /// It is taken for dead, and probed.
    Failed,
}

/// Longest silence that a short path is allowed: schedulers of operating systems and delayed acknowledgements are this
/// coarse.
const LEAST_WAIT: Duration = Duration::from_millis(30);
/// Longest wait of a lone packet for its acknowledgement on one of several paths, unless its sender says that nothing hurries: well
/// below [`LEAST_WAIT`].
pub const LONGEST_ACK_DELAY: Duration = Duration::from_millis(5);
/// Round trip of a path that nobody has measured (RFC 9002 §6.2.2).
const UNMEASURED_RTT: Duration = Duration::from_millis(333);
/// Timeouts in a row that make a path failed (OP-54).
const TIMEOUTS: u32 = 2;
/// Answers in a row that bring a failed path back (OP-54).
const GOOD_PROBES: u32 = 3;

/// An answer that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unanswered {
    /// When the first packet left of those that are not answered.
    pub since: Time,
    /// When the last answer came to one before it.
    pub last_answer: Time,
}

/// The verdict on one path, and what it rests on.
#[derive(Clone, Copy, Debug)]
pub struct PathHealth {
    health: Health,
    answers: u32,
}

impl Default for PathHealth {
    fn default() -> Self {
        PathHealth {
            health: Health::Good,
            answers: 0,
        }
    }
}

impl PathHealth {
    /// The verdict.
    pub fn verdict(&self) -> Health {
        self.health
    }

    /// When a path on which an answer is due becomes suspect. An answer may wait `ack_wait` at the peer.
    pub fn suspect_at(
        &self,
        due: Option<Unanswered>,
        smoothed_rtt: Option<Duration>,
        ack_wait: Duration,
    ) -> Option<Time> {
        let (due, round_trip) = (due?, smoothed_rtt.unwrap_or(UNMEASURED_RTT));
        let overdue = due.since + (round_trip * 2).max(LEAST_WAIT);
        // The answer before it may have waited, so the whole silence is no longer than two round trips.
        let silent = due.last_answer + round_trip.saturating_sub(LONGEST_ACK_DELAY);
        (self.health == Health::Good).then_some(overdue.max(silent) + ack_wait)
    }

    /// The time of [`PathHealth::suspect_at`] has come.
    pub fn on_silence(&mut self) {
        if self.health == Health::Good {
            self.health = Health::Suspect;
        }
    }

    /// The retransmission timer has run out `in_row` times without an answer. True when that is the end of it.
    pub fn on_timeouts(&mut self, in_row: u32) -> bool {
        let fails = in_row >= TIMEOUTS && self.health != Health::Failed;
        if fails {
            self.on_down();
        }
        fails
    }

    /// The lower layer says that the path is down.
    pub fn on_down(&mut self) {
        (self.health, self.answers) = (Health::Failed, 0);
    }

    /// The peer has answered on this path. True when that brings it back.
    pub fn on_answer(&mut self) -> bool {
        match self.health {
            Health::Good => return false,
            Health::Suspect => {}
            Health::Failed => {
                self.answers += 1;
                if self.answers < GOOD_PROBES {
                    return false;
                }
            }
        }
        *self = PathHealth::default();
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn suspect_at(path: &PathHealth, last_answer: u64, rtt: u64) -> Option<u64> {
        let due = Unanswered {
            since: Time::ZERO + MS * 1000,
            last_answer: Time::ZERO + MS * last_answer,
        };
        let at = path.suspect_at(Some(due), Some(MS * rtt), Duration::ZERO)?;
        Some(at.since(Time::ZERO).as_millis())
    }

    #[test]
    fn silence_of_two_round_trips_makes_suspect_and_one_answer_clears() {
        let mut path = PathHealth::default();
        assert_eq!(suspect_at(&path, 900, 100), Some(1200));
        assert_eq!(suspect_at(&path, 900, 1), Some(1030));
        assert_eq!(path.suspect_at(None, Some(MS), Duration::ZERO), None);
        path.on_silence();
        assert_eq!(
            (path.verdict(), suspect_at(&path, 900, 1)),
            (Health::Suspect, None)
        );
        assert!(path.on_answer() && !path.on_answer());
        assert_eq!(path.verdict(), Health::Good);
    }

    #[test]
    fn a_path_that_nobody_has_measured_does_not_wait_for_its_first_timer() {
        let due = Unanswered {
            since: Time::ZERO + MS * 1000,
            last_answer: Time::ZERO,
        };
        let at = PathHealth::default().suspect_at(Some(due), None, MS);
        assert_eq!(at, Some(Time::ZERO + MS * (1000 + 2 * 333 + 1)));
    }

    /// What left before the first unanswered packet was answered after a round trip and the longest wait: that changes
    /// nothing. Later answers mean that a queue grows.
    #[test]
    fn a_path_that_answers_late_but_steadily_is_not_suspect() {
        let path = PathHealth::default();
        assert_eq!(suspect_at(&path, 1105, 100), Some(1200));
        assert_eq!(suspect_at(&path, 1106, 100), Some(1201));
        assert_eq!(suspect_at(&path, 1190, 100), Some(1285));
    }

    #[test]
    fn two_timeouts_make_failed_and_three_answers_in_a_row_bring_it_back() {
        let mut path = PathHealth::default();
        assert!(!path.on_timeouts(1) && path.on_timeouts(2) && !path.on_timeouts(3));
        path.on_silence();
        assert_eq!(path.verdict(), Health::Failed, "silence proves nothing new");
        assert_eq!(
            [path.on_answer(), path.on_answer(), path.on_answer()],
            [false, false, true]
        );
        path.on_down();
        assert_eq!((path.verdict(), path.on_answer()), (Health::Failed, false));
    }
}
