//! Fast retransmit and fast recovery from duplicate acknowledgements alone (RFC 5681 §3.2, RFC 6582): the third
//! duplicate means the segment at the pointer is lost; during recovery each partial acknowledgement names the
//! next one. Duplicates also say that a segment has left the network, which is what lets new data out
//! (the window inflation of RFC 5681, kept as a count of departures).

use super::{DUPLICATE_THRESHOLD, Episode, Feedback, Findings, Scoreboard};

/// State of RFC 6582.
#[derive(Debug, Default)]
pub struct DuplicateAck {
    /// Below the numbers a timeout has answered, duplicates may stem from its own repeats and begin no episode: the
    /// careful variant of RFC 2582 §5, which RFC 6582 keeps. Where an episode cuts no window, a needless repeat is
    /// cheaper than another timeout, and the less careful variant serves better.
    careful: bool,
    duplicates: u64,
    episode: Episode,
}

impl DuplicateAck {
    /// `careful`: an episode has a price (RFC 6582); otherwise repeats that are lost again are found sooner.
    pub fn new(careful: bool) -> Self {
        DuplicateAck {
            careful,
            ..DuplicateAck::default()
        }
    }

    pub(super) fn is_active(&self) -> bool {
        self.episode.active
    }

    pub(super) fn on_feedback(&mut self, board: &mut Scoreboard, feedback: &Feedback) -> Findings {
        let mut findings = Findings::default();
        if feedback.advanced > 0 {
            // One of the numbers passed filled the hole, the others are those that duplicates told of. Without
            // duplicates there was no hole, and nothing is left to explain.
            let explained = if self.duplicates > 0 || self.episode.active {
                feedback.advanced - 1
            } else {
                u64::MAX
            };
            board.departures_explained(explained);
            self.duplicates = 0;
            findings.ended = self.episode.end(board);
            if self.episode.active {
                // A partial acknowledgement names the next hole (RFC 6582 §3.2 (5)).
                findings.lost += u64::from(board.mark_lost(board.first()));
                findings.urgent = findings.lost > 0;
            }
        } else if feedback.duplicate {
            self.duplicates += 1;
            board.depart_one();
            if self.duplicates == DUPLICATE_THRESHOLD && self.episode.begin(board, self.careful) {
                findings.lost += u64::from(board.mark_lost(board.first()));
                (findings.began, findings.urgent) = (true, true);
            }
        }
        findings
    }

    pub(super) fn on_timeout(&mut self, board: &Scoreboard) {
        self.duplicates = 0;
        self.episode.timeout(board);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ack::AckReport;
    use restp_base::time::Time;

    fn sent(count: u64) -> (Scoreboard, DuplicateAck) {
        let mut board = Scoreboard::new(1);
        for _ in 0..count {
            board.on_sent(Time::ZERO, 1000);
        }
        (board, DuplicateAck::new(true))
    }
    fn ack(board: &mut Scoreboard, recovery: &mut DuplicateAck, cumulative: u64) -> Findings {
        let feedback = board
            .acknowledge(Time::ZERO, &AckReport::pointer(cumulative))
            .unwrap();
        recovery.on_feedback(board, &feedback)
    }

    #[test]
    fn the_third_duplicate_and_each_partial_acknowledgement_name_one_loss() {
        let (mut board, mut recovery) = sent(10); // 1 and 4 are lost
        assert_eq!(ack(&mut board, &mut recovery, 1), Findings::default());
        assert_eq!(ack(&mut board, &mut recovery, 1), Findings::default());
        assert_eq!(
            board.in_flight(),
            8,
            "limited transmit (RFC 3042): two segments have left"
        );
        let third = ack(&mut board, &mut recovery, 1);
        assert_eq!(
            third,
            Findings {
                lost: 1,
                began: true,
                ended: false,
                urgent: true
            }
        );
        assert_eq!(board.in_flight(), 6, "ten less the lost one and three departed");
        assert_eq!(board.next_lost(), Some(1));
        board.on_repeated(Time::ZERO, 1);
        (0..5).for_each(|_| assert_eq!(ack(&mut board, &mut recovery, 1), Findings::default()));
        assert_eq!(board.in_flight(), 2, "4 is still counted, and the repeat of 1");

        let partial = ack(&mut board, &mut recovery, 4);
        assert_eq!(
            partial,
            Findings {
                lost: 1,
                began: false,
                ended: false,
                urgent: true
            }
        );
        assert_eq!(board.in_flight(), 0);
        board.on_repeated(Time::ZERO, 4);
        let full = ack(&mut board, &mut recovery, 11);
        assert_eq!(
            full,
            Findings {
                lost: 0,
                began: false,
                ended: true,
                urgent: false
            }
        );
        assert_eq!(board.in_flight(), 0);
    }

    #[test]
    fn a_hole_beyond_the_episode_is_found_although_most_of_what_followed_it_has_arrived() {
        let (mut board, mut recovery) = sent(10); // 1 is lost, and 15
        for _ in 0..9 {
            ack(&mut board, &mut recovery, 1);
        }
        board.on_repeated(Time::ZERO, 1);
        for _ in 0..10 {
            board.on_sent(Time::ZERO, 1000);
        }
        assert_eq!(board.in_flight(), 11, "1 again, and 11 to 20");
        (0..9).for_each(|_| assert!(!ack(&mut board, &mut recovery, 1).began)); // 11 to 20 but 15
        assert!(
            ack(&mut board, &mut recovery, 15).ended,
            "the repeat of 1 has arrived"
        );
        assert_eq!(board.in_flight(), 1, "16 to 20 are known to have arrived");
    }

    #[test]
    fn duplicates_caused_by_the_repeats_of_a_timeout_begin_no_episode() {
        let (mut board, mut recovery) = sent(10);
        recovery.on_timeout(&board);
        board.mark_all_lost();
        board.on_repeated(Time::ZERO, 1);
        for _ in 0..5 {
            assert!(!ack(&mut board, &mut recovery, 1).began);
        }
        let mut careless = DuplicateAck::new(false);
        careless.on_timeout(&board);
        let began = (0..3)
            .map(|_| ack(&mut board, &mut careless, 1).began)
            .collect::<Vec<_>>();
        assert_eq!(began, [false, false, true], "unless an episode has no price");
        board.on_repeated(Time::ZERO, 1);
        ack(&mut board, &mut recovery, 11);
        for _ in 0..4 {
            board.on_sent(Time::ZERO, 1000);
        }
        ack(&mut board, &mut recovery, 11);
        ack(&mut board, &mut recovery, 11);
        assert!(ack(&mut board, &mut recovery, 11).began);
    }
}
