//! Whom datagrams go to and come from. An address belongs to one peer at a time, and another one gets it only when that
//! peer has left: nobody puts packets into the flows of others by writing their address on an envelope.

mod addresses;
mod capacity;
mod flows;
mod half_open;
mod handshakes;
mod routes;
mod session;
mod sessions;
mod timers;

pub(crate) use addresses::{Visit, Visitor};
pub(crate) use capacity::Limits;
pub(crate) use handshakes::{ClientHandshake, ClientHandshakes, FIRST_PROBE, REPEAT, Waiting};
pub(crate) use routes::NoRoute;
pub(crate) use session::{Asking, FirstFlight, FlightHash, PeerId, Session, Unfinished, Unsealed, datagram};

use crate::keys::PublicKey;
use crate::known_hosts::Fault;
use crate::packet::{ConnectionId, DataHeader};
use crate::path_room::PathRoom;
use capacity::FORGOTTEN;
use flows::Flows;
use restp_base::flow::FlowId;
use restp_base::time::Time;
use routes::Routes;
use session::WORN;
use sessions::Sessions;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use timers::Timers;

/// A host we talk to.
#[derive(Default)]
struct Peer {
    /// Its name; none until it has told it.
    key: Option<PublicKey>,
    /// What leaves is sealed with it: the last in which it has proved its key.
    session: Option<ConnectionId>,
    /// The one before it, for packets on their way.
    previous: Option<ConnectionId>,
    /// A handshake it began, or somebody who says that he is it. Only a packet in it makes it the session; until then it serves
    /// a client that has none.
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
    flows: Flows,
    routes: Routes,
    /// Peers with flows that lost an address, and which.
    displaced: Vec<(PeerId, SocketAddr)>,
    sessions: Sessions,
    room: PathRoom,
    /// Handshakes begun here, and when to look after them.
    pub(crate) handshakes: ClientHandshakes,
    pub(crate) timers: Timers<PeerId>,
    /// When a session sends a challenge again.
    pub(crate) challenges: Timers<ConnectionId>,
}

/// Peers and their keys.
impl Peers {
    pub(crate) fn new(limits: Limits) -> Self {
        Peers {
            limits,
            peers: BTreeMap::new(),
            last: 0,
            flows: Flows::default(),
            routes: Routes::default(),
            displaced: Vec::new(),
            sessions: Sessions::default(),
            room: PathRoom::new(limits.sessions),
            handshakes: ClientHandshakes::default(),
            timers: Timers::default(),
            challenges: Timers::default(),
        }
    }

    #[cfg(test)]
    pub(crate) fn count(&self) -> usize {
        self.peers.len()
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

    /// A new peer at `remote`, to be talked to; `key` is the one it must have. Whoever was there has to leave.
    pub(crate) fn meet_server(&mut self, key: Option<PublicKey>, remote: SocketAddr) -> PeerId {
        let peer = self.meet(key, true);
        if let Some(before) = self.routes.owner(remote) {
            self.handshakes.forget(before);
            self.timers.set(before, None);
            if let Some(before) = self.peers.get_mut(&before) {
                before.opened_here = false;
            }
        }
        self.assign(remote, peer, None);
        peer
    }

    /// A new client, whose key `key` is as far as it says.
    fn meet_client(&mut self, key: PublicKey) -> PeerId {
        self.meet(Some(key), false)
    }

    pub(crate) fn key(&self, peer: PeerId) -> Option<PublicKey> {
        self.peers.get(&peer)?.key
    }

    /// The peer of session `id` as a number that it has under any address and in any session: half of its key.
    pub(crate) fn number_of(&self, id: &ConnectionId) -> u128 {
        let key = self.sessions.get(id).and_then(|session| self.key(session.peer()));
        let half = key.as_ref().and_then(|key| key.0.first_chunk());
        half.map_or(0, |half| u128::from_be_bytes(*half))
    }

    /// The key of `peer`, once it has proved it.
    pub(crate) fn proved_key(&self, peer: PeerId) -> Option<PublicKey> {
        let peer = self.peers.get(&peer)?;
        peer.key.filter(|_| peer.session.is_some())
    }

    /// The key that the host at `remote` has or must have, if it is one that this side spoke to first.
    pub(crate) fn expected_at(&self, remote: SocketAddr) -> Option<PublicKey> {
        let owner = self.peers.get(&self.routes.owner(remote)?)?;
        owner.key.filter(|_| owner.opened_here)
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

    /// Somebody says that `peer` has the key `told`: it is suspected until it shows who it is.
    pub(crate) fn suspect(&mut self, id: PeerId, told: PublicKey) {
        let Some(peer) = self.peers.get_mut(&id) else {
            return;
        };
        let expected = peer.key.filter(|expected| *expected != told);
        if let Some(expected) = expected.filter(|_| peer.suspicion.is_none() && peer.session.is_none()) {
            peer.suspicion = Some(Fault::OtherKey { expected, told });
        }
    }

    /// What the host that `flow` was opened to is suspected of, and its addresses.
    pub(crate) fn suspicion(&self, flow: FlowId) -> Option<(Fault, &[SocketAddr])> {
        let peer = self.flows.peer(flow)?;
        Some((self.peers.get(&peer)?.suspicion?, self.routes.of(peer)))
    }

    /// What the host at `remote` is suspected of.
    pub(crate) fn suspicion_at(&self, remote: SocketAddr) -> Option<Fault> {
        self.peers.get(&self.routes.owner(remote)?)?.suspicion
    }

    /// Ends what there is with `peer`, which cannot be talked to: its addresses and its flows.
    pub(crate) fn give_up(&mut self, id: PeerId) -> (Vec<SocketAddr>, Vec<FlowId>) {
        if let Some(peer) = self.peers.get_mut(&id) {
            (peer.suspicion, peer.session) = (None, None);
        }
        self.handshakes.forget(id);
        self.timers.set(id, None);
        (self.routes.of(id).to_vec(), self.flows.of(id).collect())
    }

    /// Forgets a peer that nothing refers to.
    pub(crate) fn forget_if_idle(&mut self, id: PeerId) {
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
        self.flows.enter(flow, peer);
        if let Some(peer) = self.peers.get_mut(&peer) {
            peer.flows += 1;
        }
    }

    /// `flow` began with what came in session `id`. Has its peer proved there who it is?
    pub(crate) fn enter_from(&mut self, flow: FlowId, id: &ConnectionId) -> bool {
        let Some(session) = self.sessions.get(id) else {
            return false;
        };
        let (peer, finished) = (session.peer(), session.is_finished());
        let from = session.flight().filter(|flight| flight.authentic);
        let from = from.map(|flight| flight.from);
        self.enter(flow, peer);
        if !finished && let Some(key) = self.key(peer) {
            self.flows.doubt(flow, *id, key, from);
        }
        finished
    }

    /// `flow` is over. Was it one of a peer that had not proved who it is?
    pub(crate) fn leave(&mut self, flow: FlowId) -> bool {
        let Some((id, doubted)) = self.flows.leave(flow) else {
            return false;
        };
        if let Some(peer) = self.peers.get_mut(&id) {
            peer.flows -= 1;
        }
        self.forget_if_idle(id);
        doubted
    }

    pub(crate) fn of_flow(&self, flow: FlowId) -> Option<PeerId> {
        self.flows.peer(flow)
    }

    /// The key of the host at the other end of `flow`, once it has proved it in the session that the flow began in.
    pub(crate) fn flow_key(&self, flow: FlowId) -> Option<PublicKey> {
        let peer = self.flows.peer(flow).filter(|_| !self.flows.is_doubted(flow))?;
        self.proved_key(peer)
    }

    /// Flows whose peer has lost an address to another, and which: what is sent there is heard by that one.
    pub(crate) fn take_displaced(&mut self) -> Vec<(FlowId, SocketAddr)> {
        let mut all = Vec::new();
        for (peer, remote) in std::mem::take(&mut self.displaced) {
            all.extend(self.flows.of(peer).map(|flow| (flow, remote)));
        }
        all
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

    /// Session `id`, and the room for paths of all.
    pub(crate) fn opening(&mut self, id: &ConnectionId) -> Option<(&mut Session, &mut PathRoom)> {
        Some((self.sessions.get_mut(id)?, &mut self.room))
    }

    /// The session that began with this message.
    pub(crate) fn session_of_flight(&self, hash: &FlightHash) -> Option<ConnectionId> {
        self.sessions.of_flight(hash)
    }

    /// The session that datagrams for `peer` are sealed in: one in which it has proved its key. A client that has none yet is
    /// answered where it asks.
    pub(crate) fn session_of(&mut self, peer: PeerId) -> Option<&mut Session> {
        let peer = self.peers.get(&peer)?;
        let asking = peer.pending.filter(|_| !peer.opened_here);
        self.sessions.get_mut(&peer.session.or(asking)?)
    }

    /// The session that `peer` asks for beside the one there is, if it may hear nothing there: all that is sent goes in both.
    pub(crate) fn pending_session(&mut self, peer: PeerId) -> Option<&mut Session> {
        let peer = self.peers.get(&peer)?;
        let id = peer.pending.filter(|_| peer.session.is_some())?;
        self.sessions.get_mut(&id).filter(|session| !session.is_beside())
    }

    /// Is there a session of `peer` called `id`, finished?
    pub(crate) fn has(&self, peer: PeerId, id: &ConnectionId) -> bool {
        let session = self.sessions.get(id);
        session.is_some_and(|session| session.peer() == peer && session.is_finished())
    }

    /// Takes a session. One that its peer has not finished takes nobody's place. Had the peer forgotten the one before?
    pub(crate) fn insert(&mut self, now: Time, session: Session) -> bool {
        let (id, owner, finished) = (session.id(), session.peer(), session.is_finished());
        if let Some(peer) = self.peers.get_mut(&owner) {
            peer.sessions += 1;
        }
        self.sessions.insert(now, session);
        if !finished {
            self.ask(&id);
        }
        let before = finished.then(|| self.replace(now, owner, id)).flatten();
        self.forget(now, FORGOTTEN);
        before
            .and_then(|id| self.sessions.get(&id))
            .is_some_and(Session::is_forgotten)
    }

    /// The peer of session `id`, which is not finished, asks for it now: it is answered there. What anybody can have invented
    /// does not take the place of what only the peer can have made.
    pub(crate) fn ask(&mut self, id: &ConnectionId) {
        let Some(session) = self.sessions.get(id).filter(|session| !session.is_finished()) else {
            return;
        };
        let (owner, authentic) = (session.peer(), session.is_authentic());
        let pending = self
            .peers
            .get(&owner)
            .and_then(|peer| self.sessions.get(&peer.pending?));
        let stays = !authentic && pending.is_some_and(Session::is_authentic);
        if let Some(peer) = self.peers.get_mut(&owner).filter(|_| !stays) {
            peer.pending = Some(*id);
        }
    }

    /// What leaves for `peer` is sealed in session `id` from now on. The one before is kept for what is on its way, and the one
    /// before that goes when it is old, and its keys with it. The one before is returned.
    fn replace(&mut self, now: Time, peer: PeerId, id: ConnectionId) -> Option<ConnectionId> {
        let peer = self.peers.get_mut(&peer)?;
        let before = peer.session.replace(id).filter(|before| *before != id)?;
        let older = peer.previous.replace(before);
        let is_old = |id: &ConnectionId| self.sessions.get(id).is_some_and(|one| one.age(now) >= WORN);
        if let Some(older) = older.filter(is_old) {
            self.remove(&older);
        }
        Some(before)
    }

    /// The session in which the host at `remote`, which calls it `of`, was spoken to of late.
    pub(crate) fn session_called(
        &mut self,
        remote: SocketAddr,
        of: &ConnectionId,
    ) -> Option<(PeerId, &mut Session)> {
        let owner = self.routes.owner(remote)?;
        let peer = self.peers.get(&owner)?;
        let called = |id: &ConnectionId| self.sessions.get(id).is_some_and(|one| one.to() == *of);
        let id = peer.session.filter(called)?;
        Some((owner, self.sessions.get_mut(&id)?))
    }

    /// The peer of session `id` has shown from `remote` that it has the answer, and so its key. Flows of which that was not certain.
    pub(crate) fn finish(&mut self, now: Time, id: &ConnectionId, remote: SocketAddr) -> Vec<FlowId> {
        let address = self.sessions.finish(id);
        let Some(owner) = self.sessions.get(id).map(Session::peer) else {
            return Vec::new();
        };
        if let Some(peer) = self.peers.get_mut(&owner) {
            peer.pending = peer.pending.filter(|pending| pending != id);
        }
        self.replace(now, owner, *id);
        let free = |address: &SocketAddr| {
            let other = self.routes.owner(*address).filter(|other| *other != owner);
            other.is_none() || self.routes.is_claimed(*address)
        };
        if let Some(address) = address.filter(free) {
            self.assign(address, owner, None);
            self.on_heard_from(owner, address);
        }
        let mut certain = self.flows.believe(id);
        certain.extend(self.believe(owner, remote));
        certain
    }

    /// `peer` says something from `remote` in a session that is finished. Flows of which it was not certain that they are its own: what
    /// they began with came from that address, which nobody had proved then, and which is known to be that of the peer now.
    pub(crate) fn believe(&mut self, peer: PeerId, remote: SocketAddr) -> Vec<FlowId> {
        let is_there = self.routes.owner(remote) == Some(peer) && !self.routes.is_claimed(remote);
        if !is_there || !self.flows.has_authentic() {
            return Vec::new();
        }
        let key = self.proved_key(peer);
        let certain = key.map_or_else(Vec::new, |key| self.flows.believe_authentic(key, remote));
        for flow in &certain {
            if self.flows.peer(*flow) != Some(peer) {
                self.enter(*flow, peer);
            }
        }
        certain
    }

    /// As if no client that has a session to finish were on the list.
    #[cfg(test)]
    pub(crate) fn take_from_list(&mut self) {
        self.sessions.all_mut().for_each(Session::take_from_list);
    }

    /// Ends session `id`.
    pub(crate) fn remove(&mut self, id: &ConnectionId) {
        let Some(session) = self.sessions.remove(id) else {
            return;
        };
        self.challenges.set(*id, None);
        self.room.leave(*id, session.source(), session.further_paths());
        if let Some(peer) = self.peers.get_mut(&session.peer()) {
            peer.sessions -= 1;
            peer.session = peer.session.filter(|other| other != id);
            peer.previous = peer.previous.filter(|other| other != id);
            peer.pending = peer.pending.filter(|other| other != id);
        }
        self.forget_if_idle(session.peer());
    }
}
