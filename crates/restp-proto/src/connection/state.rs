//! States of an association and the moves between them (ResTP §3.5.5). Data flows in `Established`, and
//! before it as far as an opportunistic exchange goes; the release is tracked beside it, because both directions end on their own.

use super::Connection;
use restp_base::flow::CloseReason;
use restp_base::sequence;
use restp_base::time::{Duration, Time};
use restp_services::connection_management::{Handshake, Notice, TIME_WAIT};

/// Where an association stands.
#[derive(Clone, Debug)]
pub(crate) enum State {
    /// Our SYN is out, and early data where a cookie allows it.
    SynSent(Handshake),
    /// The peer's SYN is here, our SYN-ACK is out; data flows already where a cookie was valid.
    SynReceived(Handshake),
    /// Data may flow.
    Established,
    /// Both directions are over; retransmissions of the peer's FIN, or of data before it, are still answered (OP-61).
    TimeWait { until: Time },
    /// Broken off here: RST is sent a few times, because nobody acknowledges it.
    Resetting { left: u8, next_at: Time },
    /// Nothing is left to do.
    Closed,
}

/// RSTs of a broken-off association, and the distance between them: one survives 1 % loss with 1 − 10⁻⁶.
const RESETS: u8 = 3;
const RESET_INTERVAL: Duration = Duration::from_millis(100);

impl PartialEq for State {
    fn eq(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }
}

impl State {
    pub(super) fn resetting(now: Time) -> State {
        State::Resetting {
            left: RESETS,
            next_at: now,
        }
    }
    /// The application has been told that the association is over.
    pub(super) fn is_over(&self) -> bool {
        matches!(
            self,
            State::TimeWait { .. } | State::Resetting { .. } | State::Closed
        )
    }
    /// An RST is due at `now`: counts it and moves on.
    fn take_reset(&mut self, now: Time) -> bool {
        let State::Resetting { left, next_at } = self else {
            return false;
        };
        if *next_at > now {
            return false;
        }
        *left -= 1;
        *next_at = now + RESET_INTERVAL;
        if *left == 0 {
            *self = State::Closed;
        }
        true
    }
}

impl Connection {
    /// The exchange is complete. `acknowledged`: what the packet that completed it acknowledges. When that is our SYN
    /// alone, and it left once, the time between is a round trip; data has its own. `bare`: it carries nothing else. Data
    /// completes an exchange whose own packet was lost, later by as much as nobody knows, or as a retransmission (Karn's rule,
    /// RFC 6298 §3).
    pub(super) fn establish(&mut self, now: Time, acknowledged: Option<u32>, bare: bool) {
        let (State::SynSent(handshake) | State::SynReceived(handshake)) = &self.state else {
            return;
        };
        let has_lane = self.lane().is_some();
        let of_syn = has_lane || acknowledged.is_none_or(|number| number == sequence::truncate(self.origin));
        let took = now.since(self.counters.opened_at);
        let retransmitted = handshake.is_retransmitted();
        let rtt = (of_syn && bare && !retransmitted).then_some(took);
        self.counters.handshake = Some(took);
        self.state = State::Established;
        match self.subflow.as_mut().filter(|_| has_lane) {
            Some(subflow) => subflow.set_up_rtt = rtt, // the numbers are not its own
            None => self.sender.establish(now, rtt, retransmitted),
        }
        self.announce();
    }

    /// Tells the application once that it can read and write.
    pub(super) fn announce(&mut self) {
        if self.opened_here || !self.announced {
            self.announced = true;
            self.notices.push_back(Notice::established(self.opened_here));
        }
    }

    /// Both directions may be over: linger or close.
    pub(crate) fn conclude(&mut self, now: Time) {
        if self.state == State::Established && self.release.is_complete() {
            // The peer may have got our FIN by repair, and with it no acknowledgement of its own.
            let repaired = self.has_feedback() && self.sender.encoder().is_some();
            let next = if self.release.must_linger() || repaired {
                State::TimeWait {
                    until: now + TIME_WAIT,
                }
            } else {
                State::Closed
            };
            self.end(CloseReason::Finished, next);
        }
    }

    /// Ends the connection for the application; what the protocol still has to do is in `next`.
    pub(super) fn end(&mut self, reason: CloseReason, next: State) {
        self.state = next;
        if self.announced || self.subflow.is_some() {
            self.notices.push_back(Notice::Closed(reason));
        }
        if self.lane().is_none() {
            self.sender.stop();
            self.receiver.stop();
        }
    }

    /// It ends without another word: the application has been told, or never heard of it.
    pub(super) fn close(&mut self) {
        self.state = State::Closed;
    }

    /// Both directions are over, and retransmissions of the peer have been waited for.
    pub(super) fn check_wait(&mut self, now: Time) {
        if let State::TimeWait { until } = self.state
            && until <= now
        {
            self.close();
        }
    }

    /// The peer asks for our set-up packet again, or the link is back.
    pub(super) fn retransmit_set_up(&mut self) {
        if let State::SynSent(handshake) | State::SynReceived(handshake) = &mut self.state {
            handshake.retransmit();
        }
    }

    /// A set-up packet is to leave.
    pub(super) fn take_set_up(&mut self) -> bool {
        match &mut self.state {
            State::SynSent(handshake) | State::SynReceived(handshake) => handshake.take_due(),
            _ => false,
        }
    }

    /// An RST is to leave.
    pub(super) fn take_reset(&mut self, now: Time) -> bool {
        self.state.take_reset(now)
    }

    /// The timer of a set-up packet may have run out.
    pub(super) fn check_handshake(&mut self, now: Time) {
        let (State::SynSent(handshake) | State::SynReceived(handshake)) = &mut self.state else {
            return;
        };
        let runs_out = handshake.deadline().is_some_and(|at| at <= now);
        if !handshake.expire(now) {
            let waited = now.since(self.counters.opened_at);
            self.end(CloseReason::TimedOut(waited), State::Closed);
        } else if runs_out && self.lane().is_none() {
            self.sender.on_set_up_timeout(); // set-up packet and data leave again together (ResTP §3.5.5)
        }
    }
}
