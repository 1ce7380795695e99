//! What was the cause of a loss, so does it count as congestion (ResTP §3.6)? The cause is set by an operator;
//! the connection asks once per loss episode, timeout or mark.

mod causes;
mod interpath;
mod outage;

pub use causes::{Causes, Verdict};
pub use interpath::{Differentiation, LateAfter, Member, Missing, PathNews};
pub use outage::{Acknowledged, ProbeState, Silence};

/// Cause to which losses are attributed. Default congestion (ResTP §3.6).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LossHandling {
    /// As TCP: reduce the window, back off the timer.
    #[default]
    Congestion,
    /// Retransmit at an unchanged rate, no back-off of the timer; abort by elapsed time (OP-50).
    Corruption,
    /// Probe state: stop new data, probe once per RTO, keep the window.
    Outage,
    /// Each loss has the cause that what the path shows makes most probable; silence is an outage.
    Adaptive,
}

/// What found a loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossSignal {
    /// Feedback: duplicates, blocks, holes.
    Feedback,
    /// The retransmission timer.
    Timeout,
    /// A mark of the network (ECN).
    Mark,
}

/// What to do about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reaction {
    /// Tell the congestion controller.
    pub reduce_window: bool,
    /// Double the retransmission timer.
    pub back_off_timer: bool,
    /// Count towards the limit of attempts; otherwise elapsed time alone ends the connection.
    pub count_attempt: bool,
}

impl LossHandling {
    /// Every cause with its name in compositions.
    pub const ALL: [(&'static str, LossHandling); 4] = [
        ("congestion", LossHandling::Congestion),
        ("corruption", LossHandling::Corruption),
        ("outage", LossHandling::Outage),
        ("adaptive", LossHandling::Adaptive),
    ];

    /// True when a timeout begins the [`ProbeState`].
    pub fn probes(self) -> bool {
        matches!(self, LossHandling::Outage | LossHandling::Adaptive)
    }

    /// The table of ResTP §3.6. A mark always means congestion: only a queue sets it.
    pub fn reaction(self, signal: LossSignal) -> Reaction {
        let congested = self == LossHandling::Congestion || signal == LossSignal::Mark;
        let timed_out = signal == LossSignal::Timeout;
        Reaction {
            reduce_window: congested || (self.probes() && !timed_out),
            back_off_timer: congested && timed_out,
            count_attempt: congested && timed_out,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn corruption_changes_neither_rate_nor_timer_but_a_mark_is_congestion() {
        let corruption = LossHandling::Corruption;
        let nothing = Reaction {
            reduce_window: false,
            back_off_timer: false,
            count_attempt: false,
        };
        assert_eq!(corruption.reaction(LossSignal::Feedback), nothing);
        assert_eq!(corruption.reaction(LossSignal::Timeout), nothing);
        assert!(corruption.reaction(LossSignal::Mark).reduce_window);
    }

    #[test]
    fn congestion_cuts_on_both_and_backs_off_on_the_timer_only() {
        let congestion = LossHandling::Congestion;
        assert!(congestion.reaction(LossSignal::Feedback).reduce_window);
        assert!(!congestion.reaction(LossSignal::Feedback).back_off_timer);
        let timeout = congestion.reaction(LossSignal::Timeout);
        assert!(timeout.reduce_window && timeout.back_off_timer && timeout.count_attempt);
    }

    #[test]
    fn an_outage_keeps_window_timer_and_attempts_on_a_timeout() {
        let outage = LossHandling::Outage;
        assert!(outage.reaction(LossSignal::Feedback).reduce_window);
        let timeout = outage.reaction(LossSignal::Timeout);
        assert!(!timeout.reduce_window && !timeout.back_off_timer && !timeout.count_attempt);
    }
}
