//! States of a connection and the moves between them (RFC 9293 §3.3.2). `Established` stands for every state in which
//! data may flow in either direction: which direction has ended is the release's knowledge.

use super::Connection;
use restp_base::flow::CloseReason;
use restp_base::time::Time;
use restp_services::connection_management::{Handshake, Notice, TIME_WAIT};

/// Where a connection stands.
#[derive(Clone, Debug)]
pub(super) enum State {
    /// Our SYN is out.
    SynSent(Handshake),
    /// The peer's SYN is here, our answer is out.
    SynReceived(Handshake),
    /// Data may flow.
    Established,
    /// Both directions are over; retransmissions of the peer's FIN are still answered.
    TimeWait { until: Time },
    /// Broken off here; the RST has to leave.
    Resetting,
    /// Nothing is left to do.
    Closed,
}

impl PartialEq for State {
    fn eq(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }
}

impl State {
    /// The application has been told that the connection is over.
    pub(super) fn is_over(&self) -> bool {
        matches!(self, State::TimeWait { .. } | State::Resetting | State::Closed)
    }
}

impl Connection {
    /// The exchange is complete. Unless a packet of it was retransmitted, it took one round trip.
    pub(super) fn establish(&mut self, now: Time) {
        let (State::SynSent(handshake) | State::SynReceived(handshake)) = &self.state else {
            return;
        };
        let took = now.since(self.opened_at);
        let retransmitted = handshake.is_retransmitted();
        self.stats.handshake = Some(took);
        self.state = State::Established;
        self.sender
            .establish(now, (!retransmitted).then_some(took), retransmitted);
        if !self.trusts() {
            self.notices.push_back(Notice::established(self.opened_here)); // else it knows already
        }
    }

    /// Both directions may be over: linger or close.
    pub(super) fn conclude(&mut self, now: Time) {
        if self.state == State::Established && self.release.is_complete() {
            let next = if self.release.must_linger() {
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
        if !self.is_unknown_to_application() {
            self.notices.push_back(Notice::Closed(reason));
        }
        self.sender.stop();
    }

    /// Both directions are over, and retransmissions of the peer have been waited for.
    pub(super) fn check_wait(&mut self, now: Time) {
        if matches!(self.state, State::TimeWait { until } if until <= now) {
            self.state = State::Closed;
        }
    }

    /// The peer still retransmits: the wait begins again.
    pub(super) fn wait_again(&mut self, now: Time) {
        if let State::TimeWait { until } = &mut self.state {
            *until = now + TIME_WAIT;
        }
    }

    /// The peer asks for our set-up segment again.
    pub(super) fn retransmit_set_up(&mut self) {
        if let State::SynReceived(handshake) = &mut self.state {
            handshake.retransmit();
        }
    }

    /// A set-up segment is to leave.
    pub(super) fn take_set_up(&mut self) -> bool {
        match &mut self.state {
            State::SynSent(handshake) | State::SynReceived(handshake) => handshake.take_due(),
            _ => false,
        }
    }

    /// The RST leaves, and with it everything is done.
    pub(super) fn take_reset(&mut self) {
        self.state = State::Closed;
    }

    /// The timer of a set-up packet may have run out.
    pub(super) fn check_handshake(&mut self, now: Time) {
        let (State::SynSent(handshake) | State::SynReceived(handshake)) = &mut self.state else {
            return;
        };
        if !handshake.expire(now) {
            let waited = now.since(self.opened_at);
            self.end(CloseReason::TimedOut(waited), State::Closed);
        }
    }
}
