//! All sessions, and what finds them.

use super::half_open::HalfOpen;
use super::session::{FlightHash, Session};
use crate::packet::ConnectionId;
use restp_base::sources::Sources;
use restp_base::time::Time;
use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr};

#[derive(Default)]
pub(super) struct Sessions {
    by_id: BTreeMap<ConnectionId, Session>,
    by_flight: BTreeMap<FlightHash, ConnectionId>,
    by_early: BTreeMap<(ConnectionId, SocketAddr), ConnectionId>,
    half_open: HalfOpen,
    /// Whose the sessions are that peers began, finished or not.
    sources: Sources,
    /// Finished ones, those looked at longest ago first.
    finished: VecDeque<ConnectionId>,
}

impl Sessions {
    pub(super) fn len(&self) -> usize {
        self.by_id.len()
    }

    pub(super) fn half_open(&self) -> &HalfOpen {
        &self.half_open
    }

    /// Those that the source began to which `address` belongs.
    pub(super) fn of_source(&self, address: IpAddr) -> usize {
        self.sources.count(address)
    }

    pub(super) fn get(&self, id: &ConnectionId) -> Option<&Session> {
        self.by_id.get(id)
    }

    pub(super) fn get_mut(&mut self, id: &ConnectionId) -> Option<&mut Session> {
        self.by_id.get_mut(id)
    }

    #[cfg(test)]
    pub(super) fn all_mut(&mut self) -> impl Iterator<Item = &mut Session> {
        self.by_id.values_mut()
    }

    /// The one that began with this message.
    pub(super) fn of_flight(&self, hash: &FlightHash) -> Option<ConnectionId> {
        self.by_flight.get(hash).copied()
    }

    /// The one whose early data is addressed so and comes from `remote`.
    pub(super) fn of_early(&self, to: ConnectionId, remote: SocketAddr) -> Option<ConnectionId> {
        self.by_early.get(&(to, remote)).copied()
    }

    pub(super) fn insert(&mut self, now: Time, session: Session) {
        let id = session.id();
        if let Some(flight) = session.flight() {
            self.by_flight.insert(flight.hash, id);
            self.sources.enter(flight.from.ip());
            if let Some((to, _)) = flight.early {
                self.by_early.insert((to, flight.from), id);
            }
        }
        if let Some(unfinished) = session.unfinished() {
            (self.half_open).enter(now, id, unfinished.source(), unfinished.proved);
        } else {
            self.finished.push_back(id);
        }
        self.by_id.insert(id, session);
    }

    /// The peer of `id` has shown that it has the answer: where that came to it, if that is certain.
    pub(super) fn finish(&mut self, id: &ConnectionId) -> Option<SocketAddr> {
        let unfinished = self.by_id.get_mut(id).and_then(Session::finish)?;
        (self.half_open).leave(id, unfinished.source(), unfinished.proved);
        self.finished.push_back(*id);
        unfinished.answered()
    }

    pub(super) fn remove(&mut self, id: &ConnectionId) -> Option<Session> {
        let session = self.by_id.remove(id)?;
        if let Some(unfinished) = session.unfinished() {
            (self.half_open).leave(id, unfinished.source(), unfinished.proved);
        }
        if let Some(flight) = session.flight() {
            self.by_flight.remove(&flight.hash);
            self.sources.leave(flight.from.ip());
            if let Some((to, _)) = flight.early {
                self.by_early.remove(&(to, flight.from));
            }
        }
        Some(session)
    }

    /// Finished ones.
    pub(super) fn finished(&self) -> usize {
        self.finished.len()
    }

    /// The finished one that was looked at longest ago. It is to be removed, or [`Sessions::look_later`] at it.
    pub(super) fn pop_finished(&mut self) -> Option<ConnectionId> {
        self.finished.pop_front()
    }

    pub(super) fn look_later(&mut self, id: ConnectionId) {
        self.finished.push_back(id);
    }
}
