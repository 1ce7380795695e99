//! Losses of a consumer that asks for its data (ITP, 2020, §IV). Every Interest has a number of its own, retransmissions included, and
//! data says which Interest it answers. Rule (a): an Interest whose timeout has passed is lost, and only that one. Rule (b): so is
//! one sent before the Interest that data answers, when more than a round trip has passed since it left. What is lost leaves again
//! under another number.

use super::{Evidence, LossUpdate, RtoTimer, RttEstimator, Scoreboard};
use restp_base::time::Time;
use std::collections::VecDeque;

/// What of rule (b) can be set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overtaking {
    /// Deviations of the round trip that are added to its mean, which is what ITP leaves open (OP-5). Default 0.
    pub deviations: u64,
}

/// Found lost by their timeouts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Overdue {
    /// How many.
    pub lost: u64,
    /// None of the window they belong to had been taken for lost before.
    pub cuts: bool,
    /// None of it had been overdue before.
    pub backs_off: bool,
}

/// The two rules, for one lane.
#[derive(Debug)]
pub struct ReceiverDriven {
    /// Rule (b), if it is on.
    overtaking: Option<Overtaking>,
    /// Below this number nothing is in flight.
    below: u64,
    /// `recoverSeq` + 1: the loss of a lower number was answered (OP-6).
    recover: u64,
    /// Numbers from here on wait for the timer as it was last doubled.
    doubled: u64,
    /// Declared lost, and not asked for again yet.
    lost: VecDeque<u64>,
}

impl ReceiverDriven {
    /// Rule (a), and rule (b) if `overtaking`.
    pub fn new(overtaking: Option<Overtaking>) -> Self {
        ReceiverDriven {
            overtaking,
            below: 0,
            recover: 0,
            doubled: 0,
            lost: VecDeque::new(),
        }
    }

    /// Rule (b). The round trip is the mean before the data that came now.
    pub(super) fn on_feedback(&mut self, board: &mut Scoreboard, evidence: &Evidence<'_>) -> LossUpdate {
        let mut update = LossUpdate::default();
        let highest = board
            .lane(board.in_hand())
            .news()
            .span
            .map(|(_, highest)| highest);
        let (Some(rule), Some(highest), Some(mean)) = (self.overtaking, highest, evidence.rtt.smoothed())
        else {
            return update;
        };
        let slack = evidence.rtt.variation().unwrap_or_default() * rule.deviations;
        while let Some((number, sent_at)) = self.oldest(board) {
            if number >= highest || evidence.now.since(sent_at) <= mean + slack {
                break;
            }
            update.lost += u64::from(board.mark_lost(number));
            update.began |= self.note_lost(number, board);
        }
        update.urgent = update.began;
        update
    }

    /// Rule (a).
    pub(crate) fn on_deadline(
        &mut self,
        board: &mut Scoreboard,
        now: Time,
        timer: &RtoTimer,
        rtt: &RttEstimator,
    ) -> Overdue {
        let mut overdue = Overdue::default();
        while let Some((number, sent_at)) = self.oldest(board) {
            if now < sent_at + timer.value_of(rtt, number >= self.doubled) {
                break;
            }
            overdue.lost += u64::from(board.mark_lost(number));
            overdue.backs_off |= number >= self.doubled;
            overdue.cuts |= self.note_lost(number, board);
        }
        if overdue.backs_off {
            self.doubled = board.next();
        }
        overdue
    }

    /// Everything in flight is lost.
    pub(super) fn on_timeout(&mut self, board: &Scoreboard) {
        while let Some((number, _)) = self.oldest(board) {
            self.lost.push_back(number);
            self.below = number + 1;
        }
        self.recover = board.next();
    }

    /// The Interest whose timeout comes first, when it left, and whether it waits for the timer as it was last doubled.
    pub(crate) fn watched(&mut self, board: &Scoreboard) -> Option<(Time, bool)> {
        let (number, sent_at) = self.oldest(board)?;
        Some((sent_at, number >= self.doubled))
    }

    /// The next that was declared lost, once each.
    pub(crate) fn take_lost(&mut self) -> Option<u64> {
        self.lost.pop_front()
    }

    /// True when it is the first loss of its window.
    fn note_lost(&mut self, number: u64, board: &Scoreboard) -> bool {
        self.lost.push_back(number);
        self.below = number + 1;
        let is_first = number >= self.recover;
        if is_first {
            self.recover = board.next();
        }
        is_first
    }

    /// The lowest number in flight on the lane in hand, and when it left. Numbers leave once and in order, so none is looked at
    /// twice.
    fn oldest(&mut self, board: &Scoreboard) -> Option<(u64, Time)> {
        self.below = self.below.max(board.first());
        while self.below < board.next() {
            let is_here = board.lane_of(self.below) == Some(board.in_hand());
            if let Some((sent_at, _)) = board.in_flight_since(self.below).filter(|_| is_here) {
                return Some((self.below, sent_at));
            }
            self.below += 1;
        }
        None
    }
}
