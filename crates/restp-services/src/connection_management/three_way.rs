//! Retransmission of set-up packets (ResTP §3.5.5, OP-32): 3 s at first, doubled each time, six attempts.
//! SYN and SYN-ACK are timed independently, so each end has one of these.

use restp_base::time::{Duration, Time};

/// When and how often a set-up packet is repeated.
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

/// What to do when the timer has run out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandshakeVerdict {
    /// Not yet.
    Wait,
    /// Send the packet again.
    Repeat,
    /// All attempts are used.
    GiveUp,
}

/// The timer of one set-up packet.
#[derive(Clone, Debug)]
pub struct Handshake {
    rto: Duration,
    attempts_left: u32,
    deadline: Option<Time>,
}

impl Handshake {
    /// The packet is about to be sent for the first time.
    pub fn start(now: Time, parameters: HandshakeParameters) -> Self {
        Handshake {
            rto: parameters.rto,
            attempts_left: parameters.attempts.saturating_sub(1),
            deadline: Some(now + parameters.rto),
        }
    }

    /// The exchange is complete.
    pub fn stop(&mut self) {
        self.deadline = None;
    }

    /// When the packet is due again.
    pub fn deadline(&self) -> Option<Time> {
        self.deadline
    }

    /// Judges the timer at `now`; after [`HandshakeVerdict::Repeat`] it runs again with twice the wait.
    pub fn expire(&mut self, now: Time) -> HandshakeVerdict {
        if self.deadline.is_none_or(|deadline| now < deadline) {
            return HandshakeVerdict::Wait;
        }
        if self.attempts_left == 0 {
            self.deadline = None;
            return HandshakeVerdict::GiveUp;
        }
        self.attempts_left -= 1;
        self.rto = self.rto * 2;
        self.deadline = Some(now + self.rto);
        HandshakeVerdict::Repeat
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn six_attempts_at_doubling_distance_then_the_end() {
        let mut timer = Handshake::start(Time::ZERO, HandshakeParameters::default());
        let mut sent_at = vec![0];
        loop {
            let at = timer.deadline().unwrap();
            assert_eq!(timer.expire(at - Duration::from_nanos(1)), HandshakeVerdict::Wait);
            match timer.expire(at) {
                HandshakeVerdict::Repeat => sent_at.push(at.as_nanos() / 1_000_000_000),
                HandshakeVerdict::GiveUp => break assert_eq!(at, Time::ZERO + Duration::from_secs(189)),
                HandshakeVerdict::Wait => unreachable!("the deadline has come"),
            }
        }
        assert_eq!(sent_at, [0, 3, 9, 21, 45, 93]);
        assert_eq!(timer.deadline(), None);
    }
}
