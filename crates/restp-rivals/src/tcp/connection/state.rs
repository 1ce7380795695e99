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
    /// Both directions are over; repeats of the peer's FIN are still answered.
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
    /// The exchange is complete. Unless a packet of it was repeated, it took one round trip.
    pub(super) fn establish(&mut self, now: Time) {
        let (State::SynSent(handshake) | State::SynReceived(handshake)) = &self.state else {
            return;
        };
        let took = now.since(self.opened_at);
        let repeated = handshake.is_repeated();
        self.stats.handshake = Some(took);
        self.state = State::Established;
        self.sender.establish(now, (!repeated).then_some(took), repeated);
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
