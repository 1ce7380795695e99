//! The duplicate-ACK option (ResTP §3.5.9): a receiver without new data for a while sends its last acknowledgement again,
//! so that one lost on a noisy way back does not freeze a window-limited sender until its timer. At most twice in an
//! idle spell, fewer than make a sender retransmit data (OP-47).

use super::delayed::UNKNOWN_RTT;
use restp_base::time::{Duration, Time};

/// When the last acknowledgement leaves again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RepeatParameters {
    /// Time without new data. Default: 3/2 round trips (OP-47).
    pub idle: Option<Duration>,
}

/// Duplicates in one idle spell (OP-47).
const MOST: u8 = 2;

/// The spell since the last new data.
#[derive(Clone, Copy, Debug)]
pub(super) struct IdleSpell {
    parameters: RepeatParameters,
    idle: Duration,
    left: u8,
    next_at: Option<Time>,
}

impl IdleSpell {
    pub(super) fn new(parameters: RepeatParameters) -> Self {
        IdleSpell {
            parameters,
            idle: Duration::ZERO,
            left: 0,
            next_at: None,
        }
    }

    /// New data has come. It is acknowledged at `acknowledged_at`, at the latest; the spell begins then.
    pub(super) fn begin(&mut self, acknowledged_at: Time, rtt: Option<Duration>) {
        let rtt = rtt.unwrap_or(UNKNOWN_RTT);
        self.idle = self.parameters.idle.unwrap_or(rtt.scaled(3, 2));
        self.left = MOST;
        self.next_at = Some(acknowledged_at + self.idle);
    }

    pub(super) fn deadline(&self) -> Option<Time> {
        self.next_at
    }

    /// True when a duplicate is due at `now`, which is said once for each.
    pub(super) fn take_due(&mut self, now: Time) -> bool {
        let due = self.next_at.is_some_and(|at| at <= now);
        if due {
            self.left -= 1;
            self.next_at = (self.left > 0).then(|| now + self.idle);
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_duplicates_one_and_a_half_round_trips_apart_until_new_data_comes() {
        let at = |ms| Time::ZERO + Duration::from_millis(ms);
        let rtt = Some(Duration::from_millis(100));
        let mut spell = IdleSpell::new(RepeatParameters::default());
        assert_eq!(spell.deadline(), None, "nothing was acknowledged yet");
        spell.begin(at(0), rtt);
        assert!(!spell.take_due(at(149)));
        assert!(spell.take_due(at(150)) && !spell.take_due(at(150)));
        assert!(spell.take_due(at(300)));
        assert_eq!(spell.deadline(), None);
        spell.begin(at(1000), rtt);
        assert_eq!(spell.deadline(), Some(at(1150)));
    }
}
