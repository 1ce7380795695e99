//! Positive acknowledgement (ResTP §3.5.9): every second packet, every packet while an out-of-order queue
//! exists, and a lone packet after at most 40 ms (OP-45).

use restp_base::time::{Duration, Time};

/// How often to acknowledge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PositiveParameters {
    /// In-order packets per acknowledgement (ResTP §3.5.9).
    pub every: u32,
    /// Longest wait of a lone packet (OP-45).
    pub delay: Duration,
}

impl Default for PositiveParameters {
    fn default() -> Self {
        PositiveParameters {
            every: 2,
            delay: Duration::from_millis(40),
        }
    }
}

/// Decides when an acknowledgement is due.
#[derive(Clone, Debug)]
pub struct AckTimer {
    parameters: PositiveParameters,
    waiting: u32,
    /// Acknowledgements owed at once; out-of-order arrivals each get their own, so that a sender can count
    /// duplicates even when several arrivals are processed together.
    owed: u32,
    deadline: Option<Time>,
}

impl AckTimer {
    /// Nothing is waiting.
    pub fn new(parameters: PositiveParameters) -> Self {
        AckTimer {
            parameters,
            waiting: 0,
            owed: 0,
            deadline: None,
        }
    }

    /// A segment arrived in order and nothing is missing.
    pub fn on_in_order(&mut self, now: Time) {
        self.waiting += 1;
        if self.waiting >= self.parameters.every {
            self.owed = self.owed.max(1);
        } else if self.deadline.is_none() {
            self.deadline = Some(now + self.parameters.delay);
        }
    }

    /// A segment arrived out of order, filled a hole, was a repeat or a probe: its ACK goes out at once.
    pub fn on_urgent(&mut self) {
        self.owed = self.owed.saturating_add(1);
    }

    /// Something asked where we stand: one answer however often it asked.
    pub fn on_urgent_once(&mut self) {
        self.owed = self.owed.max(1);
    }

    /// Is one due whatever the time?
    pub fn is_owed(&self) -> bool {
        self.owed > 0
    }

    /// Is an acknowledgement due at `now`?
    pub fn is_due(&self, now: Time) -> bool {
        self.owed > 0 || self.deadline.is_some_and(|deadline| deadline <= now)
    }

    /// When a lone packet must be acknowledged.
    pub fn deadline(&self) -> Option<Time> {
        self.deadline
    }

    /// An acknowledgement left, alone or with data; it covers everything that arrived in order.
    pub fn on_sent(&mut self) {
        self.waiting = 0;
        self.owed = self.owed.saturating_sub(1);
        self.deadline = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_second_packet_and_a_lone_one_after_40_ms() {
        let mut timer = AckTimer::new(PositiveParameters::default());
        let now = Time::ZERO + Duration::from_secs(1);
        timer.on_in_order(now);
        assert!(!timer.is_due(now));
        assert_eq!(timer.deadline(), Some(now + Duration::from_millis(40)));
        assert!(timer.is_due(now + Duration::from_millis(40)));
        timer.on_in_order(now);
        assert!(timer.is_due(now));
        timer.on_sent();
        assert!(!timer.is_due(now + Duration::from_secs(1)));
    }

    #[test]
    fn each_out_of_order_arrival_gets_its_own_acknowledgement() {
        let mut timer = AckTimer::new(PositiveParameters::default());
        timer.on_urgent();
        timer.on_urgent();
        timer.on_in_order(Time::ZERO);
        timer.on_sent();
        assert!(timer.is_due(Time::ZERO));
        timer.on_sent();
        assert!(!timer.is_due(Time::MAX - Duration::from_secs(1)));
    }

    #[test]
    fn arrivals_processed_together_in_order_share_one_acknowledgement() {
        let mut timer = AckTimer::new(PositiveParameters::default());
        (0..44).for_each(|_| timer.on_in_order(Time::ZERO));
        timer.on_sent();
        assert!(!timer.is_due(Time::ZERO));
    }
}
