//! States of an association and the moves between them (RFC 9260 §4). `Established` stands for SHUTDOWN-PENDING as well: what
//! the application wants is kept apart.

use super::Association;
use crate::sctp::chunk::Cause;
use bytes::Bytes;
use restp_base::flow::CloseReason;
use restp_base::time::Time;
use restp_services::connection_management::{Handshake, Notice};

/// So many times the longest timeout a peer may go on sending after SHUTDOWN (T5-shutdown-guard, RFC 9260 §9.2).
const SHUTDOWN_GUARD: u64 = 5;

/// Where an association stands.
#[derive(Clone, Debug)]
pub(super) enum State {
    /// Our INIT is out.
    CookieWait(Handshake),
    /// The peer's cookie is on its way back.
    CookieEchoed(Handshake, Bytes),
    /// Data may flow.
    Established,
    /// Everything of ours has arrived; our SHUTDOWN is out.
    ShutdownSent(Handshake),
    /// The peer sends nothing more; what is left of ours still does.
    ShutdownReceived,
    /// Everything of ours has arrived; our SHUTDOWN ACK is out.
    ShutdownAckSent(Handshake),
    /// Broken off here; ABORT has to leave, and to say why.
    Aborting(Option<Cause>),
    /// Over for the application; SHUTDOWN COMPLETE has to leave.
    Completing,
    /// Nothing is left to do.
    Closed,
}

impl State {
    /// The application has been told that it is over.
    pub fn is_over(&self) -> bool {
        matches!(self, State::Aborting(_) | State::Completing | State::Closed)
    }
    /// May data leave?
    pub fn sends_data(&self) -> bool {
        matches!(self, State::Established | State::ShutdownReceived)
    }
    /// May data come?
    pub fn takes_data(&self) -> bool {
        matches!(self, State::Established | State::ShutdownSent(_))
    }
    /// The set-up is not complete.
    pub fn is_opening(&self) -> bool {
        matches!(self, State::CookieWait(_) | State::CookieEchoed(..))
    }

    /// The timer of INIT, COOKIE ECHO, SHUTDOWN or SHUTDOWN ACK.
    pub fn timer(&self) -> Option<&Handshake> {
        match self {
            State::CookieWait(timer)
            | State::CookieEchoed(timer, _)
            | State::ShutdownSent(timer)
            | State::ShutdownAckSent(timer) => Some(timer),
            _ => None,
        }
    }
    pub fn timer_mut(&mut self) -> Option<&mut Handshake> {
        match self {
            State::CookieWait(timer)
            | State::CookieEchoed(timer, _)
            | State::ShutdownSent(timer)
            | State::ShutdownAckSent(timer) => Some(timer),
            _ => None,
        }
    }
}

impl Association {
    /// Everything of ours may have arrived, and somebody wants to end.
    pub(super) fn conclude(&mut self, now: Time) {
        if !self.sender.is_drained() || !self.sender.has_nothing_queued() {
            return;
        }
        let timer = || Handshake::start(now, self.parameters.handshake);
        match self.state {
            State::Established if self.finishing => {
                self.state = State::ShutdownSent(timer());
                self.shutdown_until = Some(now + self.parameters.rto.ceiling * SHUTDOWN_GUARD);
            }
            State::ShutdownReceived => self.state = State::ShutdownAckSent(timer()),
            _ => {}
        }
    }

    /// Data have come, and SHUTDOWN has left already: it leaves again, and is waited for anew, as the peer lives and has more to send
    /// (RFC 9260 §9.2). False: it has not.
    pub(super) fn retransmit_shutdown_for_data(&mut self, now: Time) -> bool {
        let is_ending = matches!(self.state, State::ShutdownSent(_));
        if is_ending {
            self.state = State::ShutdownSent(Handshake::start(now, self.parameters.handshake));
        }
        is_ending
    }

    /// The peer has everything and sends nothing more (RFC 9260 §9.2).
    pub(super) fn on_shutdown(&mut self, now: Time) {
        match &mut self.state {
            State::Established => {
                self.state = State::ShutdownReceived;
                self.tell_reader();
            }
            // Both have begun: each answers the other.
            State::ShutdownSent(_) => {
                self.state = State::ShutdownAckSent(Handshake::start(now, self.parameters.handshake));
                self.tell_reader();
            }
            State::ShutdownAckSent(timer) => timer.retransmit(),
            _ => {}
        }
    }

    pub(super) fn on_shutdown_ack(&mut self) {
        if matches!(self.state, State::ShutdownSent(_) | State::ShutdownAckSent(_)) {
            self.end(CloseReason::Finished, State::Completing);
        }
    }

    pub(super) fn on_shutdown_complete(&mut self) {
        if matches!(self.state, State::ShutdownAckSent(_)) {
            self.end(CloseReason::Finished, State::Closed);
        }
    }

    /// Ends the association for the application; what the protocol still has to do is in `next`.
    pub(super) fn end(&mut self, reason: CloseReason, next: State) {
        if self.state.is_over() {
            return;
        }
        let is_known = self.opened_here || self.stats.handshake.is_some();
        self.state = next;
        self.tell_reader();
        if is_known {
            self.notices.push_back(Notice::Closed(reason));
        }
        self.sender.stop();
    }

    /// The reader may find data, or the end.
    pub(super) fn tell_reader(&mut self) {
        let ended = self.peer_has_ended();
        if self.receiver.has_news(ended) {
            self.notices.push_back(Notice::Readable);
        }
    }

    /// Nothing more will come.
    pub(super) fn peer_has_ended(&self) -> bool {
        self.state.is_over() || matches!(self.state, State::ShutdownReceived | State::ShutdownAckSent(_))
    }
}
