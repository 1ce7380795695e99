//! Arrivals above the receiver's pointer, counted by the acknowledgements they cause. A duplicate that names nothing
//! still proves one arrival; without this credit the pipe of a NAK sender would never shrink between two NAKs
//! (TC §3.2.2, completed from RFC 5681 §3.2 (4)).

use super::{Feedback, Scoreboard};

/// What duplicates tell.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Arrivals {
    /// Segments received above the pointer, estimated.
    above: u64,
    /// Since the pointer moved.
    duplicates: u64,
}

impl Arrivals {
    /// Segments received above the pointer, estimated.
    pub(super) fn above(&self) -> u64 {
        self.above
    }
    /// Duplicates since the pointer moved.
    pub(super) fn duplicates(&self) -> u64 {
        self.duplicates
    }

    /// Of the numbers that the pointer passes, those sent once were among the arrivals, and what was known to have arrived; other
    /// retransmissions filled the holes. No more have arrived above it than have left.
    pub(super) fn note(&mut self, board: &Scoreboard, feedback: &Feedback) {
        if feedback.advanced > 0 {
            let arrived = feedback.advanced - feedback.advanced_retransmissions;
            self.above = self.above.saturating_sub(arrived);
            self.duplicates = 0;
        } else if feedback.duplicate || feedback.delivered > 0 {
            self.above += 1;
            self.duplicates += 1;
        }
        self.above = self.above.min(board.next().saturating_sub(board.first() + 1));
    }

    /// What has arrived beyond what the board knows of has left the network.
    pub(super) fn credit(&self, board: &mut Scoreboard) {
        board.set_departed(self.above.saturating_sub(board.arrived()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ack::AckReport;
    use restp_base::time::Time;

    #[test]
    fn a_duplicate_is_an_arrival_until_the_pointer_passes_it() {
        let mut board = Scoreboard::new(1);
        for _ in 0..10 {
            board.on_sent(Time::ZERO, 1460);
        }
        let mut arrivals = Arrivals::default();
        let mut heard = |board: &mut Scoreboard, pointer| {
            let feedback = board.acknowledge(Time::ZERO, &AckReport::pointer(pointer));
            arrivals.note(board, &feedback.expect("true"));
            arrivals.credit(board);
            (arrivals.above(), arrivals.duplicates(), board.in_flight())
        };
        assert_eq!(heard(&mut board, 1), (1, 1, 9));
        assert_eq!(heard(&mut board, 1), (2, 2, 8));
        board.mark_lost(1);
        board.on_retransmitted(Time::ZERO, 1);
        assert_eq!(
            heard(&mut board, 3),
            (1, 0, 7),
            "2 was among the arrivals, the retransmission of 1 was not"
        );
        assert_eq!(heard(&mut board, 8), (0, 0, 3), "no more than there were");
    }

    #[test]
    fn a_retransmission_that_was_named_was_an_arrival_and_filled_no_hole() {
        let mut board = Scoreboard::new(1);
        for number in 1..=6 {
            board.on_sent(Time::ZERO, 1460);
            board.mark_lost(number);
            board.on_retransmitted(Time::ZERO, number);
        }
        let mut arrivals = Arrivals::default();
        for (pointer, named, above) in [(1, 3..4, 1), (1, 3..5, 2), (5, 6..7, 0)] {
            let report = AckReport {
                received: std::iter::once(named).collect(),
                ..AckReport::pointer(pointer)
            };
            let feedback = board.acknowledge(Time::ZERO, &report).expect("true");
            arrivals.note(&board, &feedback);
            assert_eq!(arrivals.above(), above, "{report:?}");
        }
    }
}
