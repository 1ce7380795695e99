//! Losses that encoded packets repair (HARQ, ResTP §3.5.8). Nothing leaves again for them, but the network has dropped something,
//! and who does not slow down for that takes what others give way with (RFC 9265 §4). The peer counts what it rebuilt, and the
//! window is cut once per window of data, whether its losses were repaired or have to leave again.

use crate::recovery::Scoreboard;

/// What the peer has rebuilt, and which of it was answered.
#[derive(Debug, Default)]
pub(super) struct RepairedLosses {
    /// As the peer said last.
    count: u8,
    /// The window was cut for losses below this number.
    answered_below: u64,
}

impl RepairedLosses {
    /// The peer has rebuilt `count` segments so far, in a counter that wraps. True when that is news, and no loss of the window
    /// of data was answered.
    pub(super) fn reacts(&mut self, board: &Scoreboard, count: u8) -> bool {
        let is_news = std::mem::replace(&mut self.count, count) != count;
        // What was rebuilt was outstanding when the report came.
        is_news
            && board
                .own_head_before()
                .is_some_and(|head| self.answers_from(head, board.next()))
    }

    /// What the counter shows when `more` segments of one of several lanes did not come: the peer's own is of all lanes.
    pub(super) fn after(&self, more: u64) -> u8 {
        self.count.wrapping_add(more as u8)
    }

    /// The window is about to be cut for what is outstanding. False: it was already.
    pub(super) fn answers(&mut self, board: &Scoreboard) -> bool {
        self.answers_from(board.own_head(), board.next())
    }

    fn answers_from(&mut self, head: u64, next: u64) -> bool {
        let is_new = head >= self.answered_below;
        if is_new {
            self.answered_below = next;
        }
        is_new
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ack::AckReport;
    use restp_base::time::Time;

    #[test]
    fn what_is_rebuilt_is_answered_once_per_window_of_data() {
        let mut board = Scoreboard::coded(1);
        let mut losses = RepairedLosses::default();
        let mut hears = |pointer: u64, count: u8| {
            while board.next() < pointer + 10 {
                board.on_sent(Time::ZERO, 1000);
            }
            let report = AckReport::pointer(pointer);
            board.acknowledge(Time::ZERO, &report).expect("possible");
            losses.reacts(&board, count)
        };
        assert!(!hears(1, 0));
        assert!(hears(2, 1));
        assert!(!hears(3, 1), "the same");
        assert!(!hears(4, 2), "it left before the answer");
        assert!(!hears(11, 2));
        assert!(!hears(12, 3), "11 was of that window");
        assert!(hears(13, 0), "the counter wraps");
    }

    /// The same of one of several lanes: what was rebuilt was all that it had out.
    #[test]
    fn the_last_of_a_lanes_window_is_of_that_window() {
        let mut board = Scoreboard::coded(1);
        let second = board.open_lane().expect("a second");
        let mut losses = RepairedLosses::default();
        board.take_in_hand(second);
        (0..2).for_each(|_| _ = board.on_sent(Time::ZERO, 1000));
        let mut hears = |board: &mut Scoreboard, pointer, count| {
            let mut report = AckReport::pointer(pointer);
            report.uncarried.insert(pointer - 1);
            board.acknowledge(Time::ZERO, &report).expect("possible");
            losses.reacts(board, count)
        };
        assert!(hears(&mut board, 2, 1));
        assert!(!hears(&mut board, 3, 2), "the window was cut for 1");
        board.on_sent(Time::ZERO, 1000);
        assert!(hears(&mut board, 4, 3));
    }

    #[test]
    fn a_retransmission_of_the_same_window_costs_nothing_more() {
        let mut board = Scoreboard::coded(1);
        board.on_sent(Time::ZERO, 1000);
        board
            .acknowledge(Time::ZERO, &AckReport::pointer(1))
            .expect("possible");
        let mut losses = RepairedLosses::default();
        assert!(losses.reacts(&board, 1) && !losses.answers(&board));
    }
}
