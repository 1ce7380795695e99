//! From the network to the machine: requests are answered, answers complete sessions, packets are opened. Everything
//! here comes from anybody: what is not genuine is a counter, and nothing is kept for an address in proportion to what
//! it says.

use crate::config::Clients;
use crate::keys::PublicKey;
use crate::machine::{Fault, Sealed};
use crate::noise::{Handshake, Pattern};
use crate::outgoing::datagram;
use crate::packet::{self, ConnectionId, DATA_HEADER, DataHeader, Grant, Hello, Packet, Request as Payload};
use crate::pass::Token;
use crate::peers::{Id, Owner, Session, Unfinished};
use crate::schedule::{Suite, TAG_BYTES};
use crate::session::{Opener, Refusal, Sealer};
use crate::validation::{Control, Homes};
use bytes::{Bytes, BytesMut};
use restp_base::machine::{Datagram, Input, Machine, PathAddress};
use restp_base::time::{Duration, Time};

/// Bytes of one allocation for opened packets; the last one that is kept holds it.
const ARENA: usize = 64 << 10;

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
            Some(Packet::Hello(hello)) => self.on_hello(now, datagram, &hello),
            Some(Packet::Answer { to, rest }) => self.on_answer(now, datagram, to, rest),
            Some(Packet::Retry { to, token }) => self.on_retry(to, token),
            Some(Packet::Foreign { to, key }) => self.on_foreign(now, to, key),
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
        let mut piece = copy(&mut self.arena, &datagram.body[DATA_HEADER..]);
        match opener.open(header, &mut piece) {
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
        piece.truncate(piece.len() - TAG_BYTES);
        let peer = session.peer;
        if !header.early {
            session.heard = now;
        }
        if let Some(unfinished) = &mut session.unfinished {
            unfinished.received += datagram.body.len();
        }
        let finished = !header.early && session.unfinished.is_some();
        datagram.body = piece.freeze();
        if let Some(control) = Control::parse(&datagram.body) {
            return self.on_control(now, id, datagram.path, control);
        }
        if !header.early {
            self.place(now, id, header.space, datagram);
        }
        let path = datagram.path;
        if self.peers.routes.get(&path.remote) != Some(&peer) {
            let key = self.peers.peers.get(&peer).and_then(|peer| peer.key);
            let may = key.is_some_and(|key| self.peers.may_use(now, Some(peer), &key, path.remote));
            if !may {
                self.stats.misplaced += 1;
                return;
            }
            self.peers.route(path.remote, peer);
        }
        if finished {
            self.peers.finish(id);
        }
        self.stats.opened += 1;
        self.inner.handle(now, Input::Datagram(datagram));
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

    fn on_hello(&mut self, now: Time, datagram: &Datagram, hello: &Hello<'_>) {
        let (path, length) = (datagram.path, datagram.len());
        let Some(one_time_key) = hello.message.first_chunk::<32>().copied() else {
            return;
        };
        // Of all of it: a request that was changed on its way is not the one that comes after it.
        let flight = digest(hello.message);
        if let Some(id) = self.peers.by_flight.get(&flight).copied() {
            self.stats.repeated_requests += 1;
            return self.on_repeated(now, id, path, length);
        }
        let proved = self.office.proves(now, path.remote.ip(), &hello.token);
        let crowded = self.peers.half_open_of(path.remote.ip()) >= self.config.max_of_one_source();
        if proved && crowded {
            self.stats.crowded += 1;
            return;
        }
        let busy = crowded || self.peers.half_open() >= self.config.max_half_open / 2;
        if !proved && (busy || !self.budget.take(now, self.config.max_unproved_per_second)) {
            self.stats.retries += 1;
            let token = self.office.pass(now, path.remote.ip()).token;
            self.queue
                .push_back(reply(path, &packet::retry(&hello.from, &token)));
            return;
        }
        if !(self.peers).make_room(now, self.config.max_half_open, self.config.max_sessions) {
            self.stats.overflowed += 1;
            return;
        }
        let prologue = packet::prologue(hello.pattern, &hello.from);
        let handshake =
            Handshake::responder(hello.pattern, &self.config.secret, &prologue, &mut self.entropy);
        let Some(mut handshake) = handshake else {
            return;
        };
        let Some(payload) = handshake.read(hello.message) else {
            if hello.pattern == Pattern::Ik {
                self.stats.for_others += 1;
                self.queue
                    .push_back(reply(path, &packet::foreign(&hello.from, &self.own)));
            } else {
                self.stats.forged += 1;
            }
            return;
        };
        let (Some(key), Some((asked, pdu))) = (handshake.remote(), Payload::parse(hello.pattern, &payload))
        else {
            self.stats.malformed += 1;
            return;
        };
        // With IX the client has not yet proved that the key is its own. Its first packet will: until then the session that the
        // owner of the key has goes on beside the new one.
        if !(self.peers).may_use(now, None, &key, path.remote) {
            self.stats.misplaced += 1;
            return;
        }
        let welcome = match &self.config.clients {
            Clients::All => true,
            Clients::Only(keys) => keys.contains(&key),
        };
        let early = welcome && asked.early_secret.is_some() && asked.epoch != [0; 8] && {
            let taken = (self.office).admits(&asked.epoch, one_time_key, &mut self.entropy);
            let counter = if taken {
                &mut self.stats.early
            } else {
                &mut self.stats.early_refused
            };
            *counter += 1;
            taken
        };
        let fast = asked.fast_aes && self.config.fast_aes;
        let grant = Grant {
            welcome,
            early,
            suite: if fast {
                Suite::Aes128Gcm
            } else {
                Suite::ChaCha20Poly1305
            },
            from: self.entropy.array(),
            pass: self.office.pass(now, path.remote.ip()),
        };
        let mut answer = packet::answer_header(&hello.from);
        let written = handshake.write(&grant.emit(), &mut answer);
        let Some(split) = written.and_then(|()| handshake.split()) else {
            return;
        };
        if !welcome {
            self.stats.unwelcome += 1;
            self.queue.push_back(reply(path, &answer));
            return;
        }
        let pdu = Bytes::copy_from_slice(pdu);
        let unfinished = Unfinished {
            path,
            answer,
            pdu: pdu.clone(),
            proved,
            received: length,
            sent: 0,
        };
        let owner = self.peers.routes.get(&path.remote).copied();
        let known = owner.filter(|id| (self.peers.peers.get(id)).is_some_and(|peer| peer.key == Some(key)));
        let peer = known.unwrap_or_else(|| self.peers.meet(Some(key), false));
        self.peers.route(path.remote, peer);
        let early_secret = asked.early_secret.filter(|_| early);
        let session = Session {
            peer,
            id: grant.from,
            sealer: Sealer::new(grant.suite, split.to_initiator, hello.from, false),
            opener: Opener::new(grant.suite, split.to_responder),
            early: early_secret.map(|secret| Opener::new(Suite::ChaCha20Poly1305, secret)),
            unfinished: Some(unfinished),
            homes: Homes::at(path.remote),
            heard: now,
            flight: Some(flight),
            early_id: early.then_some((hello.from, path.remote)),
        };
        let id = self.peers.insert(now, session);
        self.admit(now, id, path, pdu);
    }

    /// The request of `id` came again: what it carried is handed on again, which does no harm.
    fn on_repeated(&mut self, now: Time, id: Id, path: PathAddress, length: usize) {
        let session = self.peers.sessions.get_mut(&id);
        let Some(unfinished) = session.and_then(|session| session.unfinished.as_mut()) else {
            return;
        };
        if unfinished.path == path {
            unfinished.received += length;
            let pdu = unfinished.pdu.clone();
            self.admit(now, id, path, pdu);
        }
    }

    /// Hands over what a request carried, if that may be taken twice.
    fn admit(&mut self, now: Time, id: Id, path: PathAddress, pdu: Bytes) {
        if pdu.is_empty() {
            return self.send_answer(id);
        }
        let mut inner = Datagram {
            path,
            body: pdu,
            ..Datagram::empty()
        };
        if (self.config.harmless)(&inner) {
            self.inner.handle(now, Input::Datagram(&mut inner));
        } else {
            self.stats.unsafe_requests += 1;
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
        let (Some(payload), told) = (payload, request.handshake.remote()) else {
            self.stats.forged += 1;
            return;
        };
        // Two requests without a key may race; both answers must come from one host.
        let (Some(grant), Some(key)) = (
            Grant::parse(&payload),
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
            id: to,
            sealer: Sealer::new(grant.suite, split.to_responder, grant.from, false),
            opener: Opener::new(grant.suite, split.to_initiator),
            early: None,
            unfinished: None,
            homes: Homes::default(),
            heard: now,
            flight: None,
            early_id: None,
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

/// SHA-256 of a first message.
fn digest(message: &[u8]) -> [u8; 32] {
    let mut bytes = [0; 32];
    bytes.copy_from_slice(ring::digest::digest(&ring::digest::SHA256, message).as_ref());
    bytes
}

/// A datagram back along `path`.
fn reply(path: PathAddress, bytes: &[u8]) -> Datagram {
    datagram(path, bytes)
}

/// `bytes` in a place of their own within the arena.
fn copy(arena: &mut BytesMut, bytes: &[u8]) -> BytesMut {
    if arena.capacity() - arena.len() < bytes.len() && !arena.try_reclaim(bytes.len()) {
        *arena = BytesMut::with_capacity(ARENA.max(bytes.len()));
    }
    arena.extend_from_slice(bytes);
    arena.split()
}
