//! Whom datagrams go to and come from. An address belongs to one peer at a time, and another one gets it only when that
//! peer has left: nobody puts packets into the flows of others by writing their address on an envelope.

use crate::gate::Allowance;
use crate::keys::PublicKey;
use crate::machine::Fault;
use crate::noise::{Handshake, Pattern};
use crate::packet::ConnectionId;
use crate::session::{Opener, Sealer};
use crate::validation::Homes;
use bytes::Bytes;
use restp_base::flow::FlowId;
use restp_base::machine::{Datagram, PathAddress};
use restp_base::sources::Sources;
use restp_base::time::{Duration, Time};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::{IpAddr, SocketAddr};

/// A session that was not heard for so long makes room for others, and leaves its addresses to them.
pub(crate) const IDLE: Duration = Duration::from_secs(60);

/// A handshake that a peer began and did not finish is forgotten: longer than its repeats take (OP-32).
const UNFINISHED: Duration = Duration::from_secs(200);

/// A session that was not heard for so long, and that no flow needs, is forgotten even where there is room: hosts that come
/// and go would fill the table otherwise.
const FORGOTTEN: Duration = Duration::from_secs(300);

/// Sessions looked at when there is another one.
const LOOKS: usize = 16;

/// Addresses of one peer at most: one for each path, and some that changed.
const MAX_ADDRESSES: usize = 32;

/// Name of a peer or a session in its table.
pub(crate) type Id = u64;

/// A host we talk to.
#[derive(Default)]
pub(crate) struct Peer {
    /// Its name; none until it has told it.
    pub(crate) key: Option<PublicKey>,
    /// What leaves is sealed with it.
    pub(crate) session: Option<Id>,
    /// A handshake it began, or somebody who recorded one plays again: answered beside the session there is, which only a
    /// packet of the new one replaces.
    knocking: Option<Id>,
    /// Handshakes begun here.
    pub(crate) requests: Vec<Request>,
    /// This side spoke first: its addresses are those it was told.
    pub(crate) opened_here: bool,
    /// Why it cannot be talked to, unless an answer shows that this was a lie.
    pub(crate) suspicion: Option<Fault>,
    /// When to look after requests or suspicion.
    pub(crate) alarm: Option<Time>,
    pub(crate) addresses: Vec<SocketAddr>,
    /// Sessions it has, finished or not, and flows.
    sessions: usize,
    flows: usize,
}

/// A handshake begun here.
pub(crate) struct Request {
    pub(crate) id: ConnectionId,
    pub(crate) path: PathAddress,
    pub(crate) pattern: Pattern,
    pub(crate) handshake: Handshake,
    /// What is sent, again and again.
    pub(crate) bytes: Vec<u8>,
    /// The machine's datagram in it; empty for none.
    pub(crate) pdu: Vec<u8>,
    /// Seals early data.
    pub(crate) early: Option<Sealer>,
    /// What is to be sealed once there is a session: data that could not be early, or was not taken.
    pub(crate) held: Vec<Datagram>,
    /// Packets that overtook the answer.
    pub(crate) waiting: Vec<Datagram>,
    /// Times it was sent again by itself, or with another token.
    pub(crate) repeats: u32,
    pub(crate) tokens: u32,
}

impl Request {
    /// No timer of the machine repeats what it carries.
    pub(crate) fn is_repeated_here(&self) -> bool {
        self.pdu.is_empty()
    }

    /// As if it had not been sent before.
    pub(crate) fn begin_again(&mut self) {
        (self.repeats, self.tokens) = (0, 0);
        self.held.clear();
    }
}

/// Keys shared with a peer.
pub(crate) struct Session {
    pub(crate) peer: Id,
    /// Where its peer began it from; none where it was begun here.
    pub(crate) source: Option<IpAddr>,
    pub(crate) id: ConnectionId,
    pub(crate) sealer: Sealer,
    pub(crate) opener: Opener,
    /// Opens early data.
    pub(crate) early: Option<Opener>,
    /// As long as the peer has not shown that it has the answer.
    pub(crate) unfinished: Option<Unfinished>,
    /// Where the peer's paths are.
    pub(crate) homes: Homes,
    /// Last time a packet opened.
    pub(crate) heard: Time,
    /// Last time that it was asked for anew because nothing was heard.
    pub(crate) asked: Time,
    /// Hash of its first message, where the peer began it.
    pub(crate) flight: Option<[u8; 32]>,
    /// How early data is addressed, and where it comes from.
    pub(crate) early_id: Option<(ConnectionId, SocketAddr)>,
    /// Its peer said that it has one before this, where it hears everything until this one is finished.
    pub(crate) beside: bool,
}

/// A handshake that a peer began.
pub(crate) struct Unfinished {
    pub(crate) path: PathAddress,
    /// Sent with every packet.
    pub(crate) answer: Vec<u8>,
    /// The machine's datagram in the request.
    pub(crate) pdu: Bytes,
    /// Its address was proved by the request.
    pub(crate) proved: bool,
    /// What is sent there is weighed.
    pub(crate) allowance: Option<Allowance>,
}

/// Whom an address belongs to.
pub(crate) struct Route {
    pub(crate) peer: Id,
    /// It only said so, in a request for a path, and has not answered: what is sent there is weighed, and whoever else comes
    /// from there gets it.
    pub(crate) claim: Option<Allowance>,
}

impl Route {
    /// Has `peer` shown that it is there?
    pub(crate) fn is_home_of(&self, peer: Id) -> bool {
        self.peer == peer && self.claim.is_none()
    }
}

/// What a connection id stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    Session(Id),
    /// A request of this peer.
    Request(Id),
}

/// All of them.
#[derive(Default)]
pub(crate) struct Peers {
    pub(crate) peers: BTreeMap<Id, Peer>,
    pub(crate) sessions: BTreeMap<Id, Session>,
    pub(crate) by_id: BTreeMap<ConnectionId, Owner>,
    pub(crate) by_flight: BTreeMap<[u8; 32], Id>,
    pub(crate) by_early: BTreeMap<(ConnectionId, SocketAddr), Id>,
    pub(crate) routes: BTreeMap<SocketAddr, Route>,
    pub(crate) flows: BTreeMap<FlowId, Id>,
    pub(crate) alarms: BTreeSet<(Time, Id)>,
    /// In the order they began.
    unfinished: VecDeque<(Time, Id)>,
    /// Whose they are: of addresses that were proved, and of others, so that nobody fills the share of an address he writes on
    /// his envelopes.
    proved: Sources,
    unproved: Sources,
    /// Whose the sessions are, finished or not.
    holders: Sources,
    /// Finished sessions, those looked at longest ago first.
    finished: VecDeque<Id>,
    next: Id,
}

impl Peers {
    fn name(&mut self) -> Id {
        self.next += 1;
        self.next
    }

    /// A new peer.
    pub(crate) fn meet(&mut self, key: Option<PublicKey>, opened_here: bool) -> Id {
        let id = self.name();
        let peer = Peer {
            key,
            opened_here,
            ..Peer::default()
        };
        self.peers.insert(id, peer);
        id
    }

    /// Datagrams for `remote` go to `peer` from now on.
    pub(crate) fn route(&mut self, remote: SocketAddr, peer: Id) {
        self.enter_route(remote, Route { peer, claim: None });
    }

    /// The same, for what `peer` says of itself in a request of `length` bytes for a path.
    pub(crate) fn claim(&mut self, remote: SocketAddr, peer: Id, length: usize) {
        let claim = Some(Allowance::after(length));
        self.enter_route(remote, Route { peer, claim });
    }

    fn enter_route(&mut self, remote: SocketAddr, route: Route) {
        let peer = route.peer;
        let before = self.routes.insert(remote, route).map(|route| route.peer);
        if before == Some(peer) {
            return;
        }
        if let Some(before) = before.and_then(|id| self.peers.get_mut(&id)) {
            before.addresses.retain(|address| *address != remote);
        }
        if let Some(peer) = self.peers.get_mut(&peer) {
            peer.addresses.push(remote);
            if peer.addresses.len() > MAX_ADDRESSES {
                let oldest = peer.addresses.remove(0);
                self.routes.remove(&oldest);
            }
        }
        if let Some(before) = before {
            self.forget_if_idle(before);
        }
    }

    /// Who has `remote`.
    pub(crate) fn at(&self, remote: SocketAddr) -> Option<Id> {
        self.routes.get(&remote).map(|route| route.peer)
    }

    /// `length` bytes came from `remote`, and are to the credit of `peer`. False when the address is not its own.
    pub(crate) fn hear(&mut self, remote: SocketAddr, peer: Id, length: usize) -> bool {
        let Some(route) = self.routes.get_mut(&remote).filter(|route| route.peer == peer) else {
            return false;
        };
        if let Some(claim) = &mut route.claim {
            claim.hear(length);
        }
        true
    }

    /// May packets of `peer`, whose key is `key`, come from `remote`?
    pub(crate) fn may_use(&self, now: Time, peer: Option<Id>, key: &PublicKey, remote: SocketAddr) -> bool {
        let Some(Route { peer: owner, claim }) = self.routes.get(&remote) else {
            // Where this side spoke first it knows the addresses; others may move.
            return !peer
                .and_then(|id| self.peers.get(&id))
                .is_some_and(|peer| peer.opened_here);
        };
        if Some(*owner) == peer {
            return true;
        }
        let same = self
            .peers
            .get(owner)
            .is_some_and(|owner| owner.key.as_ref() == Some(key));
        same || claim.is_some() || !self.is_present(now, *owner)
    }

    /// Has `peer` flows, or was it heard of late?
    fn is_present(&self, now: Time, peer: Id) -> bool {
        let heard = |session: &Session| session.unfinished.is_none() && now.since(session.heard) < IDLE;
        let recent = (self.peers.get(&peer))
            .and_then(|peer| self.sessions.get(&peer.session?))
            .is_some_and(heard);
        let opened_here = self.peers.get(&peer).is_some_and(|peer| peer.opened_here);
        recent || opened_here || self.has_flows(peer)
    }

    fn has_flows(&self, peer: Id) -> bool {
        self.peers.get(&peer).is_some_and(|peer| peer.flows > 0)
    }

    /// `flow` is one with `peer`.
    pub(crate) fn enter(&mut self, flow: FlowId, peer: Id) {
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

    /// Takes a session, which its peer uses from now on.
    pub(crate) fn insert(&mut self, now: Time, mut session: Session) -> Id {
        let id = self.name();
        let present = (self.peers.get(&session.peer))
            .and_then(|peer| self.sessions.get(&peer.session?))
            .is_some_and(|present| present.unfinished.is_none());
        self.by_id.insert(session.id, Owner::Session(id));
        if let Some(flight) = session.flight {
            self.by_flight.insert(flight, id);
        }
        if let Some(early) = session.early_id {
            self.by_early.insert(early, id);
        }
        if let Some(source) = session.source {
            self.holders.enter(source);
        }
        if let Some(unfinished) = &mut session.unfinished {
            self.unfinished.push_back((now, id));
            self.half_open_mut(unfinished.proved)
                .enter(unfinished.path.remote.ip());
            if !present && unfinished.proved {
                unfinished.allowance = None; // otherwise what goes to both is little
            }
        } else {
            self.finished.push_back(id);
        }
        if let Some(peer) = self.peers.get_mut(&session.peer) {
            peer.sessions += 1;
            if session.unfinished.is_some() && present {
                peer.knocking = Some(id);
            } else {
                peer.session = Some(id);
            }
        }
        self.sessions.insert(id, session);
        self.forget(now, FORGOTTEN);
        id
    }

    /// The peer has shown that it has the answer.
    pub(crate) fn finish(&mut self, id: Id) {
        self.unfinished.retain(|(_, other)| *other != id);
        self.finished.push_back(id);
        let Some(session) = self.sessions.get_mut(&id) else {
            return;
        };
        let (owner, unfinished) = (session.peer, session.unfinished.take());
        if let Some(unfinished) = unfinished {
            let address = unfinished.path.remote;
            self.half_open_mut(unfinished.proved).leave(address.ip());
            // The answer went there, and came to it.
            let free = |route: &Route| route.peer == owner || route.claim.is_some();
            if self.routes.get(&address).is_none_or(free) {
                self.route(address, owner);
            }
        }
        if let Some(peer) = self.peers.get_mut(&owner) {
            (peer.session, peer.knocking) = (Some(id), None);
        }
    }

    /// The session that `peer` knocks for, if it may hear nothing where the current one goes: everything for it is sent in both.
    pub(crate) fn deaf_knocker(&self, peer: Id) -> Option<Id> {
        let knocking = self.peers.get(&peer)?.knocking?;
        let session = self.sessions.get(&knocking)?;
        (!session.beside).then_some(knocking)
    }

    /// Is there a session of `peer` called `name`, finished?
    pub(crate) fn has(&self, peer: Id, name: &ConnectionId) -> bool {
        let Some(Owner::Session(id)) = self.by_id.get(name) else {
            return false;
        };
        let session = self.sessions.get(id);
        session.is_some_and(|session| session.peer == peer && session.unfinished.is_none())
    }

    /// Handshakes that peers began and did not finish.
    pub(crate) fn half_open(&self) -> usize {
        self.unfinished.len()
    }

    /// Those of the source that `address` belongs to, of addresses that were `proved` or of others.
    pub(crate) fn half_open_of(&self, address: IpAddr, proved: bool) -> usize {
        let sources = if proved { &self.proved } else { &self.unproved };
        sources.count(address)
    }

    fn half_open_mut(&mut self, proved: bool) -> &mut Sources {
        if proved {
            &mut self.proved
        } else {
            &mut self.unproved
        }
    }

    /// Sessions that the source began to which `address` belongs.
    pub(crate) fn sessions_of(&self, address: IpAddr) -> usize {
        self.holders.count(address)
    }

    /// Forgets handshakes that nobody will finish, and the oldest where there are `max_half_open`.
    pub(crate) fn expire(&mut self, now: Time, max_half_open: usize) {
        while let Some((began, id)) = self.unfinished.front().copied() {
            if self.unfinished.len() < max_half_open && now.since(began) < UNFINISHED {
                break;
            }
            self.unfinished.pop_front();
            self.remove(id);
        }
    }

    /// Makes room for one more session; false when all are in use.
    pub(crate) fn make_room(&mut self, now: Time, max_half_open: usize, max_sessions: usize) -> bool {
        self.expire(now, max_half_open);
        if self.sessions.len() >= max_sessions {
            self.forget(now, IDLE);
        }
        self.sessions.len() < max_sessions
    }

    /// Forgets sessions that were not heard for `silence` and are not those of a flow; it looks at some, the next time at others.
    fn forget(&mut self, now: Time, silence: Duration) {
        for _ in 0..LOOKS.min(self.finished.len()) {
            let Some(id) = self.finished.pop_front() else {
                return;
            };
            let needed = |session: &Session| {
                let peer = (self.peers.get(&session.peer)).filter(|peer| peer.session == Some(id));
                // The current one, until what knocks has been heard.
                let current = peer.is_some_and(|peer| peer.flows > 0 || peer.knocking.is_some());
                now.since(session.heard) < silence || current
            };
            if self.sessions.get(&id).is_some_and(needed) {
                self.finished.push_back(id);
            } else {
                self.remove(id);
            }
        }
    }

    fn remove(&mut self, id: Id) {
        let Some(session) = self.sessions.remove(&id) else {
            return;
        };
        self.by_id.remove(&session.id);
        if let Some(unfinished) = &session.unfinished {
            (self.half_open_mut(unfinished.proved)).leave(unfinished.path.remote.ip());
        }
        if let Some(source) = session.source {
            self.holders.leave(source);
        }
        if let Some(flight) = session.flight {
            self.by_flight.remove(&flight);
        }
        if let Some(early) = session.early_id {
            self.by_early.remove(&early);
        }
        if let Some(peer) = self.peers.get_mut(&session.peer) {
            peer.sessions -= 1;
            peer.session = peer.session.filter(|other| *other != id);
            peer.knocking = peer.knocking.filter(|other| *other != id);
        }
        self.forget_if_idle(session.peer);
    }

    /// Forgets a peer that nothing refers to.
    fn forget_if_idle(&mut self, id: Id) {
        let Some(peer) = self.peers.get(&id) else {
            return;
        };
        if peer.sessions + peer.flows == 0 && !peer.opened_here {
            for address in &peer.addresses {
                self.routes.remove(address);
            }
            self.peers.remove(&id);
        }
    }

    /// Wakes this machine for `peer` at `at`.
    pub(crate) fn set_alarm(&mut self, id: Id, at: Option<Time>) {
        if let Some(peer) = self.peers.get_mut(&id) {
            if let Some(before) = std::mem::replace(&mut peer.alarm, at) {
                self.alarms.remove(&(before, id));
            }
            if let Some(at) = at {
                self.alarms.insert((at, id));
            }
        }
    }
}
