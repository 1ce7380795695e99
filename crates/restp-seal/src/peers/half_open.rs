//! Handshakes that peers began and did not finish, in the order they began, and how many of them each source holds.

use crate::packet::ConnectionId;
use restp_base::sources::Sources;
use restp_base::time::Time;
use std::collections::VecDeque;
use std::net::IpAddr;

#[derive(Default)]
pub(super) struct HalfOpen {
    began: VecDeque<(Time, ConnectionId)>,
    /// Sources that have proved their address are counted apart from others, so that nobody fills the share of an address he
    /// writes on his envelopes.
    proved: Sources,
    unproved: Sources,
}

impl HalfOpen {
    pub(super) fn len(&self) -> usize {
        self.began.len()
    }

    /// Those of the source that `address` belongs to.
    pub(super) fn of(&self, address: IpAddr, proved: bool) -> usize {
        if proved { &self.proved } else { &self.unproved }.count(address)
    }

    pub(super) fn oldest(&self) -> Option<(Time, ConnectionId)> {
        self.began.front().copied()
    }

    pub(super) fn enter(&mut self, now: Time, id: ConnectionId, source: IpAddr, proved: bool) {
        self.began.push_back((now, id));
        self.sources(proved).enter(source);
    }

    pub(super) fn leave(&mut self, id: &ConnectionId, source: IpAddr, proved: bool) {
        if let Some(place) = self.began.iter().position(|(_, other)| other == id) {
            self.began.remove(place);
            self.sources(proved).leave(source);
        }
    }

    fn sources(&mut self, proved: bool) -> &mut Sources {
        if proved {
            &mut self.proved
        } else {
            &mut self.unproved
        }
    }
}
