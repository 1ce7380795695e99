//! How long a segment that others have overtaken may still come before it counts as lost: the reordering window of RACK
//! (RFC 8985 §6.2, step 4). Evidence is the scoreboard's: a segment taken for lost was late when its acknowledgement comes
//! before the retransmission can be answered (RFC 3522 §3.2, from the sender's own times), or when the peer names it as
//! arrived twice, a round trip later (DSACK, RFC 2883). Without such evidence the window is empty, and the duplicate
//! threshold decides alone.

use super::{RttEstimator, Scoreboard};
use restp_base::time::Duration;

/// What an overtaken segment is taken for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reordering {
    /// Lost, as soon as as many later ones as the duplicate threshold are reported (RFC 6675 §4).
    #[default]
    Threshold,
    /// Late for the length of the [`ReorderingWindow`]. An episode whose losses all prove late is undone.
    Adaptive,
    /// The same; and what a single later one has overtaken is lost, too, a quarter of the shortest round trip after its
    /// acknowledgement should have come (RFC 8985 §6.2, step 5).
    Rack,
}

impl Reordering {
    /// All with their names in compositions.
    pub const ALL: [(&'static str, Reordering); 3] = [
        ("threshold", Reordering::Threshold),
        ("adaptive", Reordering::Adaptive),
        ("rack", Reordering::Rack),
    ];
}

/// Loss episodes in a row without a late segment that close the window (RFC 8985 §6.2, step 4: RACK.reo_wnd_persist).
const PERSISTENCE: u32 = 16;

/// State of the window.
#[derive(Debug, Default)]
pub struct ReorderingWindow {
    /// Its length in quarters of the smallest round trip (RACK.reo_wnd_mult).
    quarters: u32,
    /// Episodes left before it closes.
    persistence: u32,
    /// It grows once per round trip: not again before the pointer is here (RACK.dsack_round).
    grown_until: u64,
}

impl ReorderingWindow {
    /// An acknowledgement shows that `late` segments taken for lost had been late; `ended`: it ends a loss episode.
    pub(super) fn on_feedback(&mut self, board: &Scoreboard, late: u64, ended: bool) {
        if late > 0 {
            self.persistence = PERSISTENCE;
            if board.first() >= self.grown_until {
                self.quarters += 1;
                self.grown_until = board.next();
            }
        } else if ended {
            self.persistence = self.persistence.saturating_sub(1);
            if self.persistence == 0 {
                self.quarters = 0;
            }
        }
    }

    /// How old an overtaken segment must be to count as lost: a round trip and the window, which is no longer than a
    /// smoothed round trip. None while the window is empty.
    pub(super) fn least_age(&self, rtt: &RttEstimator) -> Option<Duration> {
        if self.quarters == 0 {
            return None;
        }
        let window = (rtt.minimum()?.scaled(u64::from(self.quarters), 4)).min(rtt.smoothed()?);
        Some(rtt.latest()? + window)
    }

    /// The same for a segment that fewer later ones than the duplicate threshold have overtaken.
    pub(super) fn least_age_by_time(&self, rtt: &RttEstimator) -> Option<Duration> {
        self.least_age(rtt)
            .or_else(|| Some(rtt.latest()? + rtt.minimum()? / 4))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ack::AckReport;
    use restp_base::time::Time;

    fn millis(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }
    /// 40 ms at least, 60 ms smoothed, 200 ms last.
    fn rtt() -> RttEstimator {
        let mut rtt = RttEstimator::default();
        rtt.sample(millis(40));
        rtt.sample(millis(200));
        rtt
    }

    #[test]
    fn the_window_grows_by_a_quarter_per_round_trip_up_to_the_smoothed_one() {
        let mut board = Scoreboard::new(0);
        let mut window = ReorderingWindow::default();
        assert_eq!(window.least_age(&rtt()), None);
        let mut ages = Vec::new();
        for _ in 0..8 {
            (0..4).for_each(|_| {
                board.on_sent(Time::ZERO, 1000);
            });
            window.on_feedback(&board, 1, false);
            window.on_feedback(&board, 2, true);
            ages.push(window.least_age(&rtt()));
            let pointer = AckReport::pointer(board.next());
            assert!(board.acknowledge(Time::ZERO, &pointer).is_ok());
        }
        let expected = [210, 220, 230, 240, 250, 260, 260, 260];
        assert_eq!(ages, expected.map(|ms| Some(millis(ms))));
    }

    #[test]
    fn sixteen_episodes_without_a_late_segment_close_it() {
        let board = Scoreboard::new(0);
        let mut window = ReorderingWindow::default();
        window.on_feedback(&board, 1, true);
        (0..15).for_each(|_| window.on_feedback(&board, 0, true));
        window.on_feedback(&board, 0, false);
        assert!(window.least_age(&rtt()).is_some());
        window.on_feedback(&board, 0, true);
        assert_eq!(window.least_age(&rtt()), None);
    }
}
