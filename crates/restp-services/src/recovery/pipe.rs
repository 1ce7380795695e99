//! Recovery from selective evidence (RFC 6675, OP-44): a segment is lost when three segments that left later are
//! reported received, or one where a repeat has to beat the reader. "Left later" is the order of transmission, so a repeat that is lost again is found the
//! same way, without waiting for the timer (RFC 6675 leaves that case to the timer; RFC 8985 §1 explains why not
//! to). What may be sent is the window less the pipe, which the scoreboard counts.

use super::{Episode, Feedback, Findings, Scoreboard};
use std::collections::VecDeque;

/// State of RFC 6675.
#[derive(Debug)]
pub struct Pipe {
    /// Later transmissions reported before a segment counts as lost.
    threshold: u64,
    episode: Episode,
    /// First transmissions below this number are judged.
    judged: u64,
    /// Repeats whose fate is open, in the order they left: (order, number).
    repeats: VecDeque<(u64, u64)>,
}

impl Pipe {
    /// Nothing judged. `threshold` is 1 to [`DUPLICATE_THRESHOLD`](super::DUPLICATE_THRESHOLD).
    pub fn new(threshold: u64) -> Self {
        Pipe {
            threshold,
            episode: Episode::default(),
            judged: 0,
            repeats: VecDeque::new(),
        }
    }

    pub(super) fn is_active(&self) -> bool {
        self.episode.active
    }

    /// The lost segment `number` left again as transmission `order`.
    pub fn on_repeated(&mut self, order: u64, number: u64) {
        self.repeats.push_back((order, number));
    }

    pub(super) fn on_feedback(&mut self, board: &mut Scoreboard, feedback: &Feedback) -> Findings {
        let mut findings = Findings::default();
        if feedback.advanced > 0 {
            findings.ended = self.episode.end(board);
        }
        if feedback.delivered > 0 {
            findings.lost = self.judge(board);
            findings.began = findings.lost > 0 && self.episode.begin(board, true);
            findings.urgent = findings.began;
        }
        self.episode.add_reported(board, feedback, findings)
    }

    /// Marks what enough later transmissions have overtaken. A repeat is judged by what left after it, so a hole gets
    /// one copy in a round trip (OP-49).
    fn judge(&mut self, board: &mut Scoreboard) -> u64 {
        let overtaken = board.overtaken_below(self.threshold);
        let mut lost = 0;
        self.judged = self.judged.max(board.first());
        while let Some((order, once)) = board.order_and_once(self.judged) {
            if once {
                if order >= overtaken {
                    break;
                }
                lost += u64::from(board.mark_lost(self.judged));
            }
            self.judged += 1;
        }
        while let Some(&(order, number)) = self.repeats.front() {
            let open = board.order_in_flight(number) == Some(order);
            if open && order >= overtaken {
                break;
            }
            if open {
                lost += u64::from(board.mark_lost(number));
            }
            self.repeats.pop_front();
        }
        lost
    }

    pub(super) fn on_timeout(&mut self, board: &Scoreboard) {
        self.repeats = VecDeque::new();
        self.episode.start_over(board);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ack::AckReport;
    use crate::recovery::DUPLICATE_THRESHOLD;
    use restp_base::time::Time;
    use smallvec::SmallVec;
    use std::ops::Range;

    fn sent(count: u64) -> (Scoreboard, Pipe) {
        sent_under(DUPLICATE_THRESHOLD, count)
    }
    fn sent_under(threshold: u64, count: u64) -> (Scoreboard, Pipe) {
        let mut board = Scoreboard::new(10);
        for _ in 0..count {
            board.on_sent(Time::ZERO, 1000);
        }
        (board, Pipe::new(threshold))
    }
    fn ack(board: &mut Scoreboard, pipe: &mut Pipe, cumulative: u64, blocks: &[(u64, u64)]) -> Findings {
        let received: SmallVec<[Range<u64>; 4]> = blocks.iter().map(|(start, end)| *start..*end).collect();
        let report = AckReport {
            cumulative,
            received,
            ..Default::default()
        };
        let feedback = board.acknowledge(Time::ZERO, &report).unwrap();
        pipe.on_feedback(board, &feedback)
    }
    fn repeat(board: &mut Scoreboard, pipe: &mut Pipe) -> Option<u64> {
        let number = board.next_lost()?;
        let order = board.on_repeated(Time::ZERO, number)?;
        pipe.on_repeated(order, number);
        Some(number)
    }

    #[test]
    fn the_worked_example_finds_the_first_hole_at_the_third_report() {
        let (mut board, mut pipe) = sent(8); // 10 to 13 and 16 are lost (ResTP §3.1.9)
        assert_eq!(ack(&mut board, &mut pipe, 10, &[(14, 15)]), Findings::default());
        assert_eq!(ack(&mut board, &mut pipe, 10, &[(14, 16)]), Findings::default());
        let found = ack(&mut board, &mut pipe, 10, &[(17, 18), (14, 16)]);
        assert_eq!(
            found,
            Findings {
                lost: 4,
                began: true,
                ended: false,
                urgent: true
            }
        );
        assert_eq!(
            board.in_flight(),
            1,
            "16 is not known to be lost: only one later segment is reported"
        );
        let repeated: Vec<_> = std::iter::from_fn(|| repeat(&mut board, &mut pipe)).collect();
        assert_eq!(repeated, [10, 11, 12, 13]);
    }

    #[test]
    fn a_lost_repeat_is_found_by_three_later_transmissions() {
        let (mut board, mut pipe) = sent(5); // 10 is lost, and its repeat
        assert!(ack(&mut board, &mut pipe, 10, &[(11, 15)]).began);
        assert_eq!(repeat(&mut board, &mut pipe), Some(10));
        for _ in 0..3 {
            board.on_sent(Time::ZERO, 1000);
        }
        assert_eq!(ack(&mut board, &mut pipe, 10, &[(11, 17)]).lost, 0);
        let found = ack(&mut board, &mut pipe, 10, &[(11, 18)]);
        assert_eq!(
            found,
            Findings {
                lost: 1,
                began: false,
                ended: false,
                urgent: false
            },
            "the same episode"
        );
        assert_eq!(repeat(&mut board, &mut pipe), Some(10));
        assert!(ack(&mut board, &mut pipe, 18, &[]).ended);
    }

    #[test]
    fn under_a_threshold_of_one_every_reported_hole_is_lost_at_once_and_repeated_once_per_round_trip() {
        let (mut board, mut pipe) = sent_under(1, 4); // 10 and 12 are lost
        assert_eq!(ack(&mut board, &mut pipe, 10, &[(11, 12)]).lost, 1);
        assert_eq!(repeat(&mut board, &mut pipe), Some(10));
        assert_eq!(ack(&mut board, &mut pipe, 10, &[(13, 14), (11, 12)]).lost, 1);
        assert_eq!(repeat(&mut board, &mut pipe), Some(12));
        board.on_sent(Time::ZERO, 1000);
        assert_eq!(
            ack(&mut board, &mut pipe, 10, &[(13, 14), (11, 12)]).lost,
            0,
            "nothing that left after the repeats has been reported"
        );
        assert_eq!(ack(&mut board, &mut pipe, 10, &[(13, 15), (11, 12)]).lost, 2);
    }

    #[test]
    fn a_segment_is_spared_until_three_have_overtaken_the_encoded_packet() {
        let (mut board, mut pipe) = (Scoreboard::coded(10), Pipe::new(DUPLICATE_THRESHOLD));
        for number in 10..20 {
            board.on_sent(Time::ZERO, 1000);
            if number == 15 {
                assert_eq!(
                    ack(&mut board, &mut pipe, 10, &[(11, 15)]).lost,
                    0,
                    "not encoded yet"
                );
                board.on_encoded();
            }
        }
        assert_eq!(
            ack(&mut board, &mut pipe, 10, &[(11, 18)]).lost,
            0,
            "16 and 17 came later"
        );
        assert!(ack(&mut board, &mut pipe, 10, &[(11, 19)]).began);
        assert_eq!(repeat(&mut board, &mut pipe), Some(10));
    }

    #[test]
    fn reordering_by_less_than_three_is_not_loss() {
        let (mut board, mut pipe) = sent(6);
        assert_eq!(ack(&mut board, &mut pipe, 10, &[(11, 13)]).lost, 0);
        assert_eq!(ack(&mut board, &mut pipe, 13, &[]).lost, 0);
    }
}
