//! Is a path alive (OP-54)? Silence while an answer is due makes it suspect: its data is repeated elsewhere at once,
//! which costs little when the suspicion is wrong. Two timeouts in a row, or a notice of the lower layer, make it
//! failed: it is probed until three answers in a row bring it back.

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
const LEAST_PATIENCE: Duration = Duration::from_millis(30);
/// Timeouts in a row that make a path failed (OP-54).
const TIMEOUTS: u32 = 2;
/// Answers in a row that bring a failed path back (OP-54).
const GOOD_PROBES: u32 = 3;

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

    /// When a path that is silent since `since`, while an answer is due, becomes suspect: after two round trips, or
    /// 30 ms.
    pub fn suspect_at(&self, since: Option<Time>, smoothed_rtt: Option<Duration>) -> Option<Time> {
        let patience = (smoothed_rtt? * 2).max(LEAST_PATIENCE);
        (self.health == Health::Good).then_some(since? + patience)
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

    #[test]
    fn silence_of_two_round_trips_makes_suspect_and_one_answer_clears() {
        let mut path = PathHealth::default();
        let since = Some(Time::ZERO);
        assert_eq!(
            path.suspect_at(since, Some(MS * 100)),
            Some(Time::ZERO + MS * 200)
        );
        assert_eq!(path.suspect_at(since, Some(MS)), Some(Time::ZERO + MS * 30));
        assert_eq!(
            (path.suspect_at(None, Some(MS)), path.suspect_at(since, None)),
            (None, None)
        );
        path.on_silence();
        assert_eq!(
            (path.verdict(), path.suspect_at(since, Some(MS))),
            (Health::Suspect, None)
        );
        assert!(path.on_answer() && !path.on_answer());
        assert_eq!(path.verdict(), Health::Good);
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
