//! Whom datagrams go to and come from. An address belongs to one peer at a time, and another one gets it only when that
//! peer has left: nobody puts packets into the flows of others by writing their address on an envelope.

mod addresses;
mod capacity;
mod half_open;
mod handshakes;
mod routes;
mod session;
mod sessions;
mod timers;

pub(crate) use capacity::Limits;
pub(crate) use handshakes::{ClientHandshake, ClientHandshakes, REPEAT, Waiting};
pub(crate) use routes::NoRoute;
pub(crate) use session::{FirstFlight, FlightHash, PeerId, Session, Unfinished, Unsealed, datagram};

use crate::keys::PublicKey;
use crate::known_hosts::Fault;
use crate::limits::AmplificationLimit;
use crate::packet::{ConnectionId, DataHeader};
use capacity::FORGOTTEN;
use restp_base::flow::FlowId;
use restp_base::time::Time;
use routes::Routes;
use sessions::Sessions;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use timers::Timers;

/// A host we talk to.
#[derive(Default)]
struct Peer {
    /// Its name; none until it has told it.
    key: Option<PublicKey>,
    /// What leaves is sealed with it.
    session: Option<ConnectionId>,
    /// A handshake it began, or somebody who recorded one plays again: answered beside the session there is, which only a
    /// packet of the new one replaces.
    pending: Option<ConnectionId>,
    /// This side spoke first: its addresses are those it was told.
    opened_here: bool,
    /// Why it cannot be talked to, unless an answer shows that this was a lie.
    suspicion: Option<Fault>,
    /// Sessions it has, finished or not, and flows.
    sessions: usize,
    flows: usize,
}

/// All of them.
pub(crate) struct Peers {
    limits: Limits,
    peers: BTreeMap<PeerId, Peer>,
    last: PeerId,
    flows: BTreeMap<FlowId, PeerId>,
    routes: Routes,
    sessions: Sessions,
    /// Handshakes begun here, and when to look after them.
    pub(crate) handshakes: ClientHandshakes,
    pub(crate) timers: Timers,
}

/// Peers and their keys.
impl Peers {
    pub(crate) fn new(limits: Limits) -> Self {
        Peers {
            limits,
            peers: BTreeMap::new(),
            last: 0,
            flows: BTreeMap::new(),
            routes: Routes::default(),
            sessions: Sessions::default(),
            handshakes: ClientHandshakes::default(),
            timers: Timers::default(),
        }
    }

    fn meet(&mut self, key: Option<PublicKey>, opened_here: bool) -> PeerId {
        self.last += 1;
        let peer = Peer {
            key,
            opened_here,
            ..Peer::default()
        };
        self.peers.insert(self.last, peer);
        self.last
    }

    /// A new peer at `remote`, to be talked to; `key` is the one it must have.
    pub(crate) fn meet_server(&mut self, key: Option<PublicKey>, remote: SocketAddr) -> PeerId {
        let peer = self.meet(key, true);
        self.assign(remote, peer, None);
        peer
    }

    /// The client `key`, who asked in `length` bytes from `remote`, and `proved` that it is there.
    pub(crate) fn meet_client(
        &mut self,
        key: PublicKey,
        remote: SocketAddr,
        proved: bool,
        length: usize,
    ) -> PeerId {
        let owner = self.routes.owner(remote);
        let known = owner.filter(|owner| self.key(*owner) == Some(key));
        let peer = known.unwrap_or_else(|| self.meet(Some(key), false));
        if proved {
            self.assign(remote, peer, None);
        } else if known.is_none() {
            self.assign(remote, peer, Some(AmplificationLimit::after(length)));
        }
        peer
    }

    pub(crate) fn key(&self, peer: PeerId) -> Option<PublicKey> {
        self.peers.get(&peer)?.key
    }

    /// The key of `peer`, once it has proved it.
    pub(crate) fn proved_key(&self, peer: PeerId) -> Option<PublicKey> {
        let peer = self.peers.get(&peer)?;
        peer.key.filter(|_| peer.session.is_some())
    }

    pub(crate) fn is_opened_here(&self, peer: PeerId) -> bool {
        self.peers.get(&peer).is_some_and(|peer| peer.opened_here)
    }

    /// `peer` has proved that it has `key`: who said that it has another one lied.
    pub(crate) fn identify(&mut self, id: PeerId, key: PublicKey) {
        if let Some(peer) = self.peers.get_mut(&id) {
            (peer.key, peer.suspicion) = (Some(key), None);
        }
        self.timers.set(id, None);
    }

    /// Somebody says that `peer` has the key `told`. It is suspected until `until`, unless it has shown who it is.
    pub(crate) fn suspect(&mut self, id: PeerId, told: PublicKey, until: Time) {
        let Some(peer) = self.peers.get_mut(&id) else {
            return;
        };
        let expected = peer.key.filter(|expected| *expected != told);
        if let Some(expected) = expected.filter(|_| peer.suspicion.is_none() && peer.session.is_none()) {
            peer.suspicion = Some(Fault::OtherKey { expected, told });
            self.timers.set(id, Some(until));
        }
    }

    pub(crate) fn suspicion(&self, peer: PeerId) -> Option<Fault> {
        self.peers.get(&peer)?.suspicion
    }

    /// Ends what there is with `peer`, which cannot be talked to: its addresses and its flows.
    pub(crate) fn give_up(&mut self, id: PeerId) -> (Vec<SocketAddr>, Vec<FlowId>) {
        if let Some(peer) = self.peers.get_mut(&id) {
            (peer.suspicion, peer.session) = (None, None);
        }
        self.handshakes.forget(id);
        self.timers.set(id, None);
        let flows = self.flows.iter().filter(|(_, of)| **of == id);
        (
            self.routes.of(id).to_vec(),
            flows.map(|(flow, _)| *flow).collect(),
        )
    }

    /// Forgets a peer that nothing refers to.
    fn forget_if_idle(&mut self, id: PeerId) {
        let Some(peer) = self.peers.get(&id) else {
            return;
        };
        if peer.sessions + peer.flows == 0 && !peer.opened_here {
            self.peers.remove(&id);
            self.routes.forget(id);
            self.handshakes.forget(id);
            self.timers.set(id, None);
        }
    }
}

/// Flows.
impl Peers {
    /// `flow` is one with `peer`.
    pub(crate) fn enter(&mut self, flow: FlowId, peer: PeerId) {
        self.leave(flow);
        self.flows.insert(flow, peer);
        if let Some(peer) = self.peers.get_mut(&peer) {
            peer.flows += 1;
        }
    }

    /// `flow` is over.
    pub(crate) fn leave(&mut self, flow: FlowId) {
        let Some(id) = self.flows.remove(&flow) else {
            return;
        };
        if let Some(peer) = self.peers.get_mut(&id) {
            peer.flows -= 1;
        }
        self.forget_if_idle(id);
    }

    pub(crate) fn of_flow(&self, flow: FlowId) -> Option<PeerId> {
        self.flows.get(&flow).copied()
    }
}

/// Sessions.
impl Peers {
    pub(crate) fn session_mut(&mut self, id: &ConnectionId) -> Option<&mut Session> {
        self.sessions.get_mut(id)
    }

    /// The session that a packet with this header from `remote` is of.
    pub(crate) fn receiver(&self, header: &DataHeader, remote: SocketAddr) -> Option<ConnectionId> {
        if header.early {
            self.sessions.of_early(header.to, remote)
        } else {
            Some(header.to)
        }
    }

    /// The session that began with this message.
    pub(crate) fn session_of_flight(&self, hash: &FlightHash) -> Option<ConnectionId> {
        self.sessions.of_flight(hash)
    }

    /// The session that datagrams for `peer` are sealed in.
    pub(crate) fn session_of(&mut self, peer: PeerId) -> Option<&mut Session> {
        let id = self.peers.get(&peer)?.session?;
        self.sessions.get_mut(&id)
    }

    /// The session that `peer` asks for, if it may hear nothing where the current one goes: all that is sent goes in both.
    pub(crate) fn pending_session(&mut self, peer: PeerId) -> Option<&mut Session> {
        let id = self.peers.get(&peer)?.pending?;
        self.sessions.get_mut(&id).filter(|session| !session.is_beside())
    }

    /// Is there a session of `peer` called `id`, finished?
    pub(crate) fn has(&self, peer: PeerId, id: &ConnectionId) -> bool {
        let session = self.sessions.get(id);
        session.is_some_and(|session| session.peer() == peer && session.is_finished())
    }

    /// Takes a session, which its peer uses from now on.
    pub(crate) fn insert(&mut self, now: Time, mut session: Session) {
        let id = session.id();
        if let Some(peer) = self.peers.get_mut(&session.peer()) {
            let current = peer.session.and_then(|id| self.sessions.get(&id));
            let goes_on = current.is_some_and(Session::is_finished) && !session.is_finished();
            peer.sessions += 1;
            if goes_on {
                peer.pending = Some(id);
            } else {
                peer.session = Some(id);
            }
            // Beside a session that goes on each datagram is sent twice: to one address the limit holds for both together.
            if !goes_on && session.unfinished().is_some_and(|unfinished| unfinished.proved) {
                session.lift_limit();
            }
        }
        self.sessions.insert(now, session);
        self.forget(now, FORGOTTEN);
    }

    /// The peer of session `id` has shown that it has the answer.
    pub(crate) fn finish(&mut self, id: &ConnectionId) {
        let address = self.sessions.finish(id);
        let Some(owner) = self.sessions.get(id).map(Session::peer) else {
            return;
        };
        if let Some(peer) = self.peers.get_mut(&owner) {
            (peer.session, peer.pending) = (Some(*id), None);
        }
        // The answer went there, and came to it.
        let free = |address: &SocketAddr| {
            let other = self.routes.owner(*address).filter(|other| *other != owner);
            other.is_none() || self.routes.is_claimed(*address)
        };
        if let Some(address) = address.filter(free) {
            self.assign(address, owner, None);
        }
    }

    fn remove(&mut self, id: &ConnectionId) {
        let Some(session) = self.sessions.remove(id) else {
            return;
        };
        if let Some(peer) = self.peers.get_mut(&session.peer()) {
            peer.sessions -= 1;
            peer.session = peer.session.filter(|other| other != id);
            peer.pending = peer.pending.filter(|other| other != id);
        }
        self.forget_if_idle(session.peer());
    }
}
