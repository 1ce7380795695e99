//! Losses that the receiver reports as beyond repair (HARQ, ResTP §3.5.8, OP-42): each segment of the range that was
//! sent once leaves again at once, and the congestion reaction is that of one fast retransmit. Where neither
//! duplicates nor blocks are looked at, this is the only trigger besides the timer.

use super::{Episode, Feedback, LossUpdate, Scoreboard};

/// Reports alone.
#[derive(Debug, Default)]
pub struct Reported {
    episode: Episode,
}

impl Reported {
    pub(super) fn is_active(&self) -> bool {
        self.episode.active
    }

    pub(super) fn on_feedback(&mut self, board: &Scoreboard, feedback: &Feedback) -> LossUpdate {
        let update = LossUpdate {
            ended: feedback.advanced > 0 && self.episode.end(board.head()),
            ..LossUpdate::default()
        };
        self.episode.add_reported(board, feedback, update)
    }

    pub(super) fn on_timeout(&mut self, board: &Scoreboard) {
        self.episode.start_over(board);
    }
}

impl Episode {
    /// Adds what the receiver reported to what the algorithm itself has found.
    pub(super) fn add_reported(
        &mut self,
        board: &Scoreboard,
        feedback: &Feedback,
        found: LossUpdate,
    ) -> LossUpdate {
        if feedback.reported == 0 {
            return found;
        }
        let began = self.begin(board, board.head(), true);
        LossUpdate {
            lost: found.lost + feedback.reported,
            began: found.began || began,
            urgent: true,
            ..found
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Evidence, FastRecovery, PipeParameters, Recovery, RecoveryChoice, RttEstimator};
    use super::*;
    use crate::ack::{AckReport, Detail};
    use restp_base::time::Time;

    fn report(board: &mut Scoreboard, recovery: &mut Recovery, pointer: u64, range: u64) -> LossUpdate {
        let report = AckReport {
            lost: pointer..pointer + range,
            ..AckReport::pointer(pointer)
        };
        let evidence = Evidence {
            now: Time::ZERO,
            feedback: &board.acknowledge(Time::ZERO, &report).unwrap(),
            report: &report,
            rtt: &RttEstimator::default(),
        };
        recovery.on_feedback(board, &evidence)
    }

    /// ResTP §11.3: 21 and 23 of 20 to 23 are lost, ack 21, Range 3.
    #[test]
    fn a_reported_range_is_retransmitted_once_and_counts_as_one_episode() {
        for (_, choice) in RecoveryChoice::ALL {
            let mut board = Scoreboard::coded(20);
            let mut recovery = Recovery::new(
                choice,
                FastRecovery::NewReno,
                true,
                PipeParameters::new(Detail::Pointer),
            );
            (0..4).for_each(|_| {
                board.on_sent(Time::ZERO, 1000);
            });
            board.on_encoded();
            let update = report(&mut board, &mut recovery, 21, 3);
            assert_eq!(
                (update.lost, update.began, update.urgent),
                (3, true, true),
                "{choice:?}"
            );
            for number in 21..24 {
                assert_eq!(board.next_lost(), Some(number));
                let order = board.on_retransmitted(Time::ZERO, number).unwrap();
                recovery.on_retransmitted(Time::ZERO, order, number);
            }
            assert_eq!(
                report(&mut board, &mut recovery, 21, 3),
                LossUpdate::default(),
                "again"
            );
            let partial = report(&mut board, &mut recovery, 23, 1);
            assert_eq!(
                (partial.lost, partial.began),
                (0, false),
                "23 is on its way: {choice:?}"
            );
            assert!(recovery.is_active());
            assert!(report(&mut board, &mut recovery, 24, 0).ended);
        }
    }

    #[test]
    fn what_was_never_sent_cannot_be_lost() {
        let mut board = Scoreboard::coded(20);
        board.on_sent(Time::ZERO, 1000);
        let report = AckReport {
            lost: 20..22,
            ..AckReport::pointer(20)
        };
        assert!(board.acknowledge(Time::ZERO, &report).is_err());
        assert_eq!(board.lost(), 0);
    }
}
