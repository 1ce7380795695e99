//! Fast retransmit and fast recovery from duplicate acknowledgements alone (RFC 5681 §3.2, RFC 6582): the third
//! duplicate means the segment at the pointer is lost; during recovery each partial acknowledgement names the
//! next one. Duplicates also say that a segment has left the network, which is what lets new data out
//! (the window inflation of RFC 5681, kept as a count of departures).
//!
//! A segment that an encoded packet may still repair is spared: duplicates of what left before the encoded packet do
//! not count, and a partial acknowledgement does not name it (HARQ: forward error correction first, ResTP §3.5.8).

use super::{Episode, Feedback, LossUpdate, Scoreboard};

/// What follows the third duplicate. The congestion algorithm names it, as the papers do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FastRecovery {
    /// None: everything outstanding leaves again, from the lowest number on, and the duplicates that these retransmissions
    /// cause say nothing (Tahoe, TC §2.3.1).
    None,
    /// One retransmission; the first acknowledgement of new data ends it, whatever is still missing (RFC 5681 §3.2).
    Reno,
    /// It lasts until everything sent before it is acknowledged (RFC 6582).
    #[default]
    NewReno,
}

/// State of RFC 5681 and RFC 6582.
#[derive(Debug, Default)]
pub struct DuplicateAck {
    fast: FastRecovery,
    /// Below the numbers a timeout has answered, duplicates may stem from its own retransmissions and begin no episode: the
    /// careful variant of RFC 2582 §5, which RFC 6582 keeps. Where an episode cuts no window, a needless retransmission is
    /// cheaper than another timeout, and the less careful variant serves better.
    careful: bool,
    duplicates: u64,
    episode: Episode,
    /// The hole that the last partial acknowledgement would have named, had it not been spared.
    spared: Option<u64>,
}

impl DuplicateAck {
    /// `careful`: an episode has a price (RFC 6582); otherwise retransmissions that are lost again are found sooner.
    pub fn new(fast: FastRecovery, careful: bool) -> Self {
        DuplicateAck {
            fast,
            careful,
            ..DuplicateAck::default()
        }
    }

    pub(super) fn is_active(&self) -> bool {
        self.episode.active
    }

    pub(super) fn on_feedback(&mut self, board: &mut Scoreboard, feedback: &Feedback) -> LossUpdate {
        let mut update = LossUpdate::default();
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
            update.ended = match self.fast {
                FastRecovery::None => false,
                FastRecovery::Reno => self.episode.end_at_once(board.head()),
                FastRecovery::NewReno => self.episode.end(board.head()),
            };
            if self.episode.active {
                // A partial acknowledgement names the next hole (RFC 6582 §3.2 (5)), unless what may repair that left
                // later than what filled the last one, and is still under way.
                let hole = board.first();
                let passed = self.episode.after.max(feedback.filled_by.saturating_sub(1));
                self.spared = board.may_be_repaired_after(passed, hole).then_some(hole);
                update.lost += u64::from(self.spared.is_none() && board.mark_lost(hole));
                update.urgent = update.lost > 0;
            }
        } else if feedback.duplicate && !self.starts_over(board) {
            self.duplicates += 1;
            if feedback.delivered == 0 {
                board.depart_one(); // otherwise the report has named what left
            }
            let hole = board.first();
            let threshold = board.duplicate_threshold();
            if self.duplicates >= threshold.saturating_add(board.spared(hole)) {
                update.began = self.episode.begin(board, board.head(), self.careful);
                if update.began || self.spared.take() == Some(hole) {
                    update.lost = self.answer(board);
                    update.urgent = true;
                }
            }
        }
        self.episode.add_reported(board, feedback, update)
    }

    /// Without fast recovery: retransmissions of what may have arrived are on their way, and cause duplicates, the last of
    /// them when the pointer has passed everything sent before (RFC 6582 §3.2 (1): it must cover more).
    fn starts_over(&self, board: &Scoreboard) -> bool {
        self.fast == FastRecovery::None && self.episode.recover > 0 && board.first() <= self.episode.recover
    }

    /// The third duplicate has come. Returns how many segments count as lost by it.
    fn answer(&mut self, board: &mut Scoreboard) -> u64 {
        if self.fast == FastRecovery::None {
            self.on_timeout(board);
            return board.mark_all_lost();
        }
        u64::from(board.mark_lost(board.first()))
    }

    pub(super) fn on_timeout(&mut self, board: &Scoreboard) {
        self.duplicates = 0;
        self.spared = None;
        self.episode.start_over(board);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ack::AckReport;
    use restp_base::time::Time;

    fn sent(count: u64) -> (Scoreboard, DuplicateAck) {
        sent_by(FastRecovery::NewReno, count)
    }
    fn sent_by(fast: FastRecovery, count: u64) -> (Scoreboard, DuplicateAck) {
        let mut board = Scoreboard::new(1);
        for _ in 0..count {
            board.on_sent(Time::ZERO, 1000);
        }
        (board, DuplicateAck::new(fast, true))
    }
    fn ack(board: &mut Scoreboard, recovery: &mut DuplicateAck, cumulative: u64) -> LossUpdate {
        let feedback = board
            .acknowledge(Time::ZERO, &AckReport::pointer(cumulative))
            .unwrap();
        recovery.on_feedback(board, &feedback)
    }

    #[test]
    fn the_third_duplicate_and_each_partial_acknowledgement_name_one_loss() {
        let (mut board, mut recovery) = sent(10); // 1 and 4 are lost
        assert_eq!(ack(&mut board, &mut recovery, 1), LossUpdate::default());
        assert_eq!(ack(&mut board, &mut recovery, 1), LossUpdate::default());
        assert_eq!(
            board.in_flight(),
            8,
            "limited transmit (RFC 3042): two segments have left"
        );
        let third = ack(&mut board, &mut recovery, 1);
        assert_eq!(
            third,
            LossUpdate {
                lost: 1,
                began: true,
                ended: false,
                urgent: true,
                ..LossUpdate::default()
            }
        );
        assert_eq!(board.in_flight(), 6, "ten less the lost one and three departed");
        assert_eq!(board.next_lost(), Some(1));
        board.on_retransmitted(Time::ZERO, 1);
        (0..5).for_each(|_| assert_eq!(ack(&mut board, &mut recovery, 1), LossUpdate::default()));
        assert_eq!(
            board.in_flight(),
            2,
            "4 is still counted, and the retransmission of 1"
        );

        let partial = ack(&mut board, &mut recovery, 4);
        assert_eq!(
            partial,
            LossUpdate {
                lost: 1,
                began: false,
                ended: false,
                urgent: true,
                ..LossUpdate::default()
            }
        );
        assert_eq!(board.in_flight(), 0);
        board.on_retransmitted(Time::ZERO, 4);
        let full = ack(&mut board, &mut recovery, 11);
        assert_eq!(
            full,
            LossUpdate {
                lost: 0,
                began: false,
                ended: true,
                urgent: false,
                ..LossUpdate::default()
            }
        );
        assert_eq!(board.in_flight(), 0);
    }

    /// RFC 5681 §3.2 (4): each duplicate makes room for one segment, whether a block names what has left or nothing does.
    #[test]
    fn a_duplicate_with_a_block_is_one_departure() {
        let (mut board, mut recovery) = sent(10); // 1 is lost
        for last in 2..=6 {
            let report = AckReport {
                received: std::iter::once(2..last + 1).collect(),
                ..AckReport::pointer(1)
            };
            let feedback = board.acknowledge(Time::ZERO, &report).unwrap();
            recovery.on_feedback(&mut board, &feedback);
        }
        assert_eq!(board.in_flight(), 4, "7 to 10");
    }

    #[test]
    fn a_hole_beyond_the_episode_is_found_although_most_of_what_followed_it_has_arrived() {
        let (mut board, mut recovery) = sent(10); // 1 is lost, and 15
        for _ in 0..9 {
            ack(&mut board, &mut recovery, 1);
        }
        board.on_retransmitted(Time::ZERO, 1);
        for _ in 0..10 {
            board.on_sent(Time::ZERO, 1000);
        }
        assert_eq!(board.in_flight(), 11, "1 again, and 11 to 20");
        (0..9).for_each(|_| assert!(!ack(&mut board, &mut recovery, 1).began)); // 11 to 20 but 15
        assert!(
            ack(&mut board, &mut recovery, 15).ended,
            "the retransmission of 1 has arrived"
        );
        assert_eq!(board.in_flight(), 1, "16 to 20 are known to have arrived");
    }

    /// 1 is lost; 1 to 4 were encoded before 5 left: what arrived of 2 to 4 says nothing yet.
    #[test]
    fn duplicates_from_before_the_encoded_packet_do_not_count() {
        let (mut board, mut recovery) = (
            Scoreboard::coded(1),
            DuplicateAck::new(FastRecovery::NewReno, true),
        );
        for number in 1..=10 {
            board.on_sent(Time::ZERO, 1000);
            if number == 4 {
                assert_eq!(ack(&mut board, &mut recovery, 1), LossUpdate::default());
                board.on_encoded();
            }
        }
        // 2 to 6 arrive, of which 5 and 6 left after the encoded packet.
        (0..4).for_each(|_| assert!(!ack(&mut board, &mut recovery, 1).began));
        let third = ack(&mut board, &mut recovery, 1);
        assert!(third.began && third.urgent);
        assert_eq!(board.next_lost(), Some(1));
    }

    #[test]
    fn a_partial_acknowledgement_spares_a_hole_whose_encoded_packet_is_under_way() {
        let (mut board, mut recovery) = (
            Scoreboard::coded(1),
            DuplicateAck::new(FastRecovery::NewReno, true),
        );
        (0..4).for_each(|_| {
            board.on_sent(Time::ZERO, 1000);
        });
        board.on_encoded(); // 1 is lost, and so is this
        (0..4).for_each(|_| {
            board.on_sent(Time::ZERO, 1000);
        }); // 5 is lost
        assert!((0..6).any(|_| ack(&mut board, &mut recovery, 1).began));
        board.on_retransmitted(Time::ZERO, 1);
        board.on_encoded();
        assert_eq!(ack(&mut board, &mut recovery, 5), LossUpdate::default());
        (0..3).for_each(|_| {
            board.on_sent(Time::ZERO, 1000);
        });
        // 6, 7 and 8 arrived long ago; the retransmission, then 9, 10 and 11 left after 5.
        let spared = board.spared(5);
        assert_eq!(spared, 4, "6, 7, 8 and the retransmission of 1");
        for _ in 0..spared + 2 {
            assert_eq!(ack(&mut board, &mut recovery, 5), LossUpdate::default());
        }
        let found = ack(&mut board, &mut recovery, 5);
        assert_eq!((found.lost, found.began, found.urgent), (1, false, true));
    }

    /// A reported range was retransmitted, and both retransmissions were lost. The first left once more: when that arrives, nothing
    /// under way can fill the hole behind it.
    #[test]
    fn a_partial_acknowledgement_names_a_hole_whose_retransmission_was_overtaken() {
        let (mut board, mut recovery) = (
            Scoreboard::coded(1),
            DuplicateAck::new(FastRecovery::NewReno, true),
        );
        (0..4).for_each(|_| {
            board.on_sent(Time::ZERO, 1000);
        });
        board.on_encoded();
        let report = AckReport {
            lost: 1..3,
            ..AckReport::pointer(1)
        };
        let feedback = board.acknowledge(Time::ZERO, &report).unwrap();
        assert_eq!(recovery.on_feedback(&mut board, &feedback).lost, 2);
        (1..3).for_each(|number| assert!(board.on_retransmitted(Time::ZERO, number).is_some()));
        board.mark_lost(1);
        board.on_retransmitted(Time::ZERO, 1);
        let found = ack(&mut board, &mut recovery, 2);
        assert_eq!((found.lost, found.began, found.urgent), (1, false, true));
        assert_eq!(board.next_lost(), Some(2));
    }

    #[test]
    fn duplicates_caused_by_the_retransmissions_of_a_timeout_begin_no_episode() {
        let (mut board, mut recovery) = sent(10);
        recovery.on_timeout(&board);
        board.mark_all_lost();
        board.on_retransmitted(Time::ZERO, 1);
        for _ in 0..5 {
            assert!(!ack(&mut board, &mut recovery, 1).began);
        }
        let mut careless = DuplicateAck::new(FastRecovery::NewReno, false);
        careless.on_timeout(&board);
        let began = (0..3)
            .map(|_| ack(&mut board, &mut careless, 1).began)
            .collect::<Vec<_>>();
        assert_eq!(began, [false, false, true], "unless an episode has no price");
        board.on_retransmitted(Time::ZERO, 1);
        ack(&mut board, &mut recovery, 11);
        for _ in 0..4 {
            board.on_sent(Time::ZERO, 1000);
        }
        ack(&mut board, &mut recovery, 11);
        ack(&mut board, &mut recovery, 11);
        assert!(ack(&mut board, &mut recovery, 11).began);
    }

    #[test]
    fn reno_retransmits_one_segment_and_the_next_loss_is_an_episode_of_its_own() {
        let (mut board, mut reno) = sent_by(FastRecovery::Reno, 10); // 1 and 4 are lost
        (0..2).for_each(|_| assert_eq!(ack(&mut board, &mut reno, 1), LossUpdate::default()));
        assert!(ack(&mut board, &mut reno, 1).began && reno.is_active());
        board.on_retransmitted(Time::ZERO, 1);
        (0..5).for_each(|_| assert_eq!(ack(&mut board, &mut reno, 1), LossUpdate::default()));
        let partial = ack(&mut board, &mut reno, 4);
        assert!(partial.ended && partial.lost == 0 && !reno.is_active());
        assert_eq!(board.next_lost(), None, "4 is not retransmitted yet");
        for _ in 0..3 {
            board.on_sent(Time::ZERO, 1000);
        }
        let again: Vec<LossUpdate> = (0..3).map(|_| ack(&mut board, &mut reno, 4)).collect();
        assert!(!again[1].began && again[2].began, "its own three duplicates");
        assert_eq!(board.next_lost(), Some(4));
        board.on_retransmitted(Time::ZERO, 4);
        assert!(ack(&mut board, &mut reno, 14).ended);
        assert_eq!(board.in_flight(), 0);
    }

    #[test]
    fn reno_is_as_careful_after_a_timeout_as_newreno() {
        let (mut board, mut reno) = sent_by(FastRecovery::Reno, 10);
        reno.on_timeout(&board);
        board.mark_all_lost();
        board.on_retransmitted(Time::ZERO, 1);
        assert!(!ack(&mut board, &mut reno, 2).ended, "there was no episode");
        board.on_retransmitted(Time::ZERO, 2);
        (0..5).for_each(|_| assert!(!ack(&mut board, &mut reno, 2).began));
    }

    #[test]
    fn tahoe_retransmits_everything_from_the_lowest_number_and_ignores_further_duplicates() {
        let (mut board, mut tahoe) = sent_by(FastRecovery::None, 10); // 1 and 4 are lost
        (0..2).for_each(|_| assert_eq!(ack(&mut board, &mut tahoe, 1), LossUpdate::default()));
        let third = ack(&mut board, &mut tahoe, 1);
        let everything = LossUpdate {
            lost: 10,
            began: true,
            ended: false,
            urgent: true,
            ..LossUpdate::default()
        };
        assert_eq!(third, everything);
        assert!(!tahoe.is_active(), "slow start is no recovery");
        assert_eq!((board.next_lost(), board.in_flight()), (Some(1), 0));
        board.on_retransmitted(Time::ZERO, 1);
        (0..5).for_each(|_| assert_eq!(ack(&mut board, &mut tahoe, 1), LossUpdate::default()));
        assert_eq!(board.in_flight(), 1, "what is late makes no room");
        assert_eq!(ack(&mut board, &mut tahoe, 4), LossUpdate::default());
        board.on_retransmitted(Time::ZERO, 4);
        board.on_retransmitted(Time::ZERO, 5);
        assert_eq!(ack(&mut board, &mut tahoe, 11), LossUpdate::default());
        assert_eq!((board.in_flight(), board.lost()), (0, 0));
        for _ in 0..5 {
            board.on_sent(Time::ZERO, 1000);
        }
        let late: Vec<bool> = (0..3).map(|_| ack(&mut board, &mut tahoe, 11).began).collect();
        assert_eq!(late, [false; 3], "retransmissions of what had arrived");
        assert!(!ack(&mut board, &mut tahoe, 12).began);
        let next: Vec<bool> = (0..3).map(|_| ack(&mut board, &mut tahoe, 12).began).collect();
        assert_eq!(next, [false, false, true], "the next loss is the next episode's");
    }
}
