//! Retransmission of set-up packets (ResTP §3.5.5, OP-32): 3 s at first, doubled each time, six attempts.
//! SYN and SYN-ACK are timed independently, so each end has one of these.

use restp_base::time::{Duration, Time};

/// When and how often a set-up packet is retransmitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HandshakeParameters {
    /// First wait. 3 s as published (ResTP §4.2.3); RFC 6298 §2.1 says 1 s.
    pub rto: Duration,
    /// Transmissions in all, the first included (OP-32).
    pub attempts: u32,
}

impl Default for HandshakeParameters {
    fn default() -> Self {
        HandshakeParameters {
            rto: Duration::from_secs(3),
            attempts: 6,
        }
    }
}

/// One set-up packet: whether it must leave now, and when again.
#[derive(Clone, Debug)]
pub struct Handshake {
    rto: Duration,
    attempts_left: u32,
    deadline: Option<Time>,
    due: bool,
    retransmitted: bool,
}

impl Handshake {
    /// The packet is due for the first time.
    pub fn start(now: Time, parameters: HandshakeParameters) -> Self {
        Handshake {
            rto: parameters.rto,
            attempts_left: parameters.attempts.saturating_sub(1),
            deadline: Some(now + parameters.rto),
            due: true,
            retransmitted: false,
        }
    }

    /// When the packet is due again, or all attempts are used.
    pub fn deadline(&self) -> Option<Time> {
        self.deadline
    }

    /// Judges the timer at `now`. After each attempt it runs again with twice the wait; `false` when all attempts are
    /// used.
    #[must_use]
    pub fn expire(&mut self, now: Time) -> bool {
        if self.deadline.is_none_or(|deadline| now < deadline) {
            return true;
        }
        if self.attempts_left == 0 {
            self.deadline = None;
            return false;
        }
        self.attempts_left -= 1;
        self.rto = self.rto * 2;
        self.deadline = Some(now + self.rto);
        self.retransmit();
        true
    }

    /// The peer asks again, so it has not heard the packet.
    pub fn retransmit(&mut self) {
        (self.due, self.retransmitted) = (true, true);
    }

    /// Must the packet leave now? Asked once per transmission.
    pub fn take_due(&mut self) -> bool {
        std::mem::take(&mut self.due)
    }

    /// More than one copy may be on its way, so an answer gives no round trip (Karn's rule, RFC 6298 §3).
    pub fn is_retransmitted(&self) -> bool {
        self.retransmitted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn six_attempts_at_doubling_distance_then_the_end() {
        let mut timer = Handshake::start(Time::ZERO, HandshakeParameters::default());
        assert!(timer.take_due() && !timer.take_due() && !timer.is_retransmitted());
        let mut sent_at = vec![0];
        loop {
            let at = timer.deadline().unwrap();
            assert!(timer.expire(at - Duration::from_nanos(1)) && !timer.take_due());
            if !timer.expire(at) {
                break assert_eq!(at, Time::ZERO + Duration::from_secs(189));
            }
            assert!(timer.take_due() && timer.is_retransmitted());
            sent_at.push(at.as_nanos() / 1_000_000_000);
        }
        assert_eq!(sent_at, [0, 3, 9, 21, 45, 93]);
        assert_eq!(timer.deadline(), None);
    }
}
