//! From the network to the machine: answers complete sessions, packets are opened. Everything here comes from anybody: what
//! is not genuine is a counter, and nothing is kept for an address in proportion to what it says.

use crate::keys::PublicKey;
use crate::machine::{Fault, Sealed};
use crate::noise::Pattern;
use crate::outgoing::datagram;
use crate::packet::{self, ConnectionId, DATA_HEADER, DataHeader, Grant, Packet};
use crate::pass::Token;
use crate::peers::{Id, Owner, Session};
use crate::schedule::TAG_BYTES;
use crate::session::{Opener, Refusal, Sealer};
use crate::validation::{Control, Homes};
use bytes::Bytes;
use restp_base::machine::{Datagram, Input, Machine};
use restp_base::time::{Duration, Time};
use std::net::SocketAddr;

/// Packets that may overtake the answer to a request.
const MAX_WAITING: usize = 32;

/// New tokens accepted for one request: more come from somebody who wants to keep it going.
const MAX_TOKENS: u32 = 2;

/// Time for an answer to show that it was a lie, when somebody says that the host has another key.
const GRACE: Duration = Duration::from_secs(1);

impl<M: Machine> Sealed<M> {
    pub(crate) fn on_datagram(&mut self, now: Time, datagram: &mut Datagram) {
        if !datagram.head.is_empty() {
            datagram.body = datagram.to_vec().into();
            datagram.head.clear();
        }
        let bytes = datagram.body.clone();
        if bytes.first().is_none_or(|first| first & packet::SEALED == 0) {
            self.stats.plain += 1;
            return;
        }
        match Packet::parse(&bytes) {
            Some(Packet::Data(header)) => self.on_data(now, &header, datagram),
            Some(Packet::Hello(hello)) => self.on_hello(now, datagram.path, bytes.len(), &hello),
            Some(Packet::Answer { to, rest }) => self.on_answer(now, datagram, to, rest),
            Some(Packet::Retry { to, token }) => self.on_retry(to, token),
            Some(Packet::Foreign { to, key }) => self.on_foreign(now, to, key),
            Some(Packet::Stale { to }) => self.on_stale(to),
            None => self.stats.malformed += 1,
        }
    }

    fn on_data(&mut self, now: Time, header: &DataHeader, datagram: &mut Datagram) {
        let path = datagram.path;
        let found = match (header.early, self.peers.by_id.get(&header.to)) {
            (true, _) => self.peers.by_early.get(&(header.to, path.remote)).copied(),
            (false, Some(Owner::Session(id))) => Some(*id),
            (false, Some(Owner::Request(id))) => {
                let id = *id;
                return self.wait(id, header.to, datagram);
            }
            (false, None) => None,
        };
        let Some((id, session)) = found.and_then(|id| Some((id, self.peers.sessions.get_mut(&id)?))) else {
            self.stats.unknown += 1;
            return;
        };
        let opener = if header.early {
            session.early.as_mut()
        } else {
            Some(&mut session.opener)
        };
        let Some(opener) = opener else {
            self.stats.unknown += 1;
            return;
        };
        let sealed = &datagram.body[DATA_HEADER..];
        let mut opened = self.arena.place(sealed.len() - TAG_BYTES);
        match opener.open(header, sealed, &mut opened) {
            Ok(()) => {}
            Err(Refusal::Forged) => {
                self.stats.forged += 1;
                return;
            }
            Err(Refusal::Replayed) => {
                self.stats.replayed += 1;
                return;
            }
        }
        let (peer, length) = (session.peer, datagram.body.len());
        if !header.early {
            session.heard = now;
        }
        let unfinished = session.unfinished.as_mut();
        if let Some(allowance) = unfinished.and_then(|unfinished| unfinished.allowance.as_mut()) {
            allowance.hear(length);
        }
        let finished = !header.early && session.unfinished.is_some();
        datagram.body = opened.freeze();
        if let Some(control) = Control::parse(&datagram.body) {
            return self.on_control(now, id, datagram.path, control);
        }
        let placed = header.early || self.place(now, id, header.space, datagram);
        let remote = datagram.path.remote;
        if placed && !self.peers.hear(remote, peer, length) {
            if !self.may_use(now, peer, remote) {
                self.stats.misplaced += 1;
                return;
            }
            if header.early {
                self.peers.claim(remote, peer, length);
            } else {
                self.peers.route(remote, peer);
            }
        }
        if finished {
            self.peers.finish(id);
        }
        self.stats.opened += 1;
        if placed {
            self.inner.handle(now, Input::Datagram(datagram));
        }
    }

    /// May packets of `peer` come from `remote`?
    pub(crate) fn may_use(&self, now: Time, peer: Id, remote: SocketAddr) -> bool {
        let key = self.peers.peers.get(&peer).and_then(|peer| peer.key);
        key.is_some_and(|key| self.peers.may_use(now, Some(peer), &key, remote))
    }

    /// Keeps a packet that overtook the answer it belongs to.
    fn wait(&mut self, peer: Id, to: ConnectionId, datagram: &Datagram) {
        let requests = self.peers.peers.get_mut(&peer).map(|peer| &mut peer.requests);
        let request = requests.and_then(|all| all.iter_mut().find(|request| request.id == to));
        match request.filter(|request| request.waiting.len() < MAX_WAITING) {
            Some(request) => request.waiting.push(datagram.clone()),
            None => self.stats.unknown += 1,
        }
    }

    fn on_answer(&mut self, now: Time, datagram: &mut Datagram, to: ConnectionId, rest: &[u8]) {
        let found = match self.peers.by_id.get(&to) {
            Some(Owner::Request(id)) => Some(*id),
            // A repeated answer: what is behind it may be new.
            Some(Owner::Session(_)) => return self.behind_answer(now, datagram, rest),
            None => None,
        };
        let peer = found.and_then(|id| Some((id, self.peers.peers.get_mut(&id)?)));
        let Some((id, peer)) = peer else {
            self.stats.unknown += 1;
            return;
        };
        let Some(place) = peer.requests.iter().position(|request| request.id == to) else {
            return;
        };
        let request = &mut peer.requests[place];
        let length = packet::answer_bytes(request.pattern) - 1 - packet::CID_BYTES;
        let message = rest.get(..length);
        let payload = message.and_then(|message| request.handshake.read(message));
        let Some(payload) = payload else {
            self.stats.forged += 1;
            return;
        };
        // Who opens a ticket is who gave it.
        let told = match request.pattern {
            Pattern::Resumed => peer.key,
            Pattern::Ik | Pattern::Ix => request.handshake.remote(),
        };
        // Two requests without a key may race; both answers must come from one host.
        let (Some(grant), Some(key)) = (
            Grant::parse(&payload, &self.own),
            told.filter(|told| peer.key.is_none_or(|key| key == *told)),
        ) else {
            self.stats.forged += 1;
            return;
        };
        let request = peer.requests.remove(place);
        (peer.key, peer.suspicion) = (Some(key), None);
        self.peers.set_alarm(id, None);
        if !grant.welcome {
            return self.give_up(now, id, Fault::Unwelcome);
        }
        let Some(split) = request.handshake.split() else {
            return;
        };
        self.passes.insert(key, grant.pass);
        let session = Session {
            peer: id,
            source: None,
            id: to,
            sealer: Sealer::new(grant.suite, split.to_responder, grant.from, false),
            opener: Opener::new(grant.suite, split.to_initiator),
            early: None,
            unfinished: None,
            homes: Homes::default(),
            heard: now,
            asked: now,
            flight: None,
            early_id: None,
            beside: false,
        };
        let session = self.peers.insert(now, session);
        if !grant.early {
            self.release_held(session, request.held);
        }
        let follower = datagram.body.slice(datagram.body.len() - (rest.len() - length)..);
        for mut waiting in request.waiting {
            self.on_datagram(now, &mut waiting);
        }
        self.follow(now, datagram, follower);
    }

    /// The packet behind an answer that was here before, of whichever pattern it was.
    fn behind_answer(&mut self, now: Time, datagram: &mut Datagram, rest: &[u8]) {
        let before = datagram.body.len() - rest.len();
        // One of a resumed session is as long as one of IK.
        for pattern in [Pattern::Ik, Pattern::Ix] {
            let place = before + packet::answer_bytes(pattern) - 1 - packet::CID_BYTES;
            let bytes = datagram.body.get(place..).unwrap_or_default();
            let to = datagram.body.get(1..1 + packet::CID_BYTES);
            if matches!(Packet::parse(bytes), Some(Packet::Data(header)) if Some(&header.to[..]) == to) {
                let follower = datagram.body.slice(place..);
                return self.follow(now, datagram, follower);
            }
        }
    }

    fn follow(&mut self, now: Time, datagram: &mut Datagram, follower: Bytes) {
        if let Some(Packet::Data(header)) = Packet::parse(&follower) {
            datagram.body = follower;
            self.on_data(now, &header, datagram);
        }
    }

    fn on_retry(&mut self, to: ConnectionId, token: Token) {
        let Some(Owner::Request(id)) = self.peers.by_id.get(&to) else {
            self.stats.unknown += 1;
            return;
        };
        let requests = self.peers.peers.get_mut(id).map(|peer| &mut peer.requests);
        let request = requests.and_then(|all| all.iter_mut().find(|request| request.id == to));
        if let Some(request) = request.filter(|request| request.tokens < MAX_TOKENS) {
            request.tokens += 1;
            packet::set_token(&mut request.bytes, &token);
            self.queue.push_back(datagram(request.path, &request.bytes));
        }
    }

    fn on_foreign(&mut self, now: Time, to: ConnectionId, told: PublicKey) {
        let Some(Owner::Request(id)) = self.peers.by_id.get(&to).copied() else {
            self.stats.unknown += 1;
            return;
        };
        let Some(peer) = self.peers.peers.get_mut(&id) else {
            return;
        };
        let expected = peer.key.filter(|expected| *expected != told);
        if let Some(expected) = expected.filter(|_| peer.suspicion.is_none() && peer.session.is_none()) {
            peer.suspicion = Some(Fault::OtherKey { expected, told });
            self.peers.set_alarm(id, Some(now + GRACE));
        }
    }
}
