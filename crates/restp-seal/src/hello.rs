//! Requests of peers: what may be heard at all, who asks, and what is answered. Everything here comes from anybody; nothing
//! is kept, and nothing computed with, before the gate has said so.

use crate::config::Clients;
use crate::gate::Allowance;
use crate::keys::{KEY_BYTES, PublicKey};
use crate::machine::Sealed;
use crate::noise::{Handshake, Pattern};
use crate::outgoing::datagram;
use crate::packet::{self, Grant, Hello, Request as Payload};
use crate::pass::EPOCH_BYTES;
use crate::peers::{Id, Session, Unfinished};
use crate::schedule::Suite;
use crate::session::{Opener, Sealer};
use crate::ticket::Period;
use crate::validation::Homes;
use bytes::Bytes;
use restp_base::machine::{Datagram, Input, Machine, PathAddress};
use restp_base::time::Time;

/// A request that may be answered.
struct Asking {
    handshake: Handshake,
    /// Whose it is.
    key: PublicKey,
    /// Which key sealed the ticket it came with.
    since: Option<Period>,
    asked: Payload,
    pdu: Bytes,
}

impl<M: Machine> Sealed<M> {
    pub(crate) fn on_hello(&mut self, now: Time, path: PathAddress, length: usize, hello: &Hello<'_>) {
        let Some(one_time_key) = hello.message.first_chunk().copied() else {
            return;
        };
        // Of all of it: a request that was changed on its way is not the one that comes after it.
        let flight = digest(hello.message);
        if let Some(id) = self.peers.by_flight.get(&flight).copied() {
            self.stats.repeated_requests += 1;
            return self.on_repeated(now, id, path, length);
        }
        let proved = self.office.proves(now, path.remote.ip(), &hello.token);
        let Some(asking) = self.hear(now, path, hello, proved) else {
            return;
        };
        let Asking { key, asked, .. } = asking;
        let welcome = match &self.config.clients {
            Clients::All => true,
            Clients::Only(keys) => keys.contains(&key),
        };
        let early = welcome && self.takes_early(&asked, one_time_key);
        let fast = asked.fast_aes && self.config.fast_aes;
        let from = self.entropy.array();
        let grant = Grant {
            welcome,
            early,
            suite: if fast {
                Suite::Aes128Gcm
            } else {
                Suite::ChaCha20Poly1305
            },
            from,
            pass: (self.office).pass(now, path.remote.ip(), key, asking.since, &mut self.entropy),
        };
        let mut handshake = asking.handshake;
        let mut answer = packet::answer_header(&hello.from);
        let written = handshake.write(&grant.emit(), &mut answer);
        let Some(split) = written.and_then(|()| handshake.split()) else {
            return;
        };
        if !welcome {
            self.stats.unwelcome += 1;
            self.queue.push_back(datagram(path, &answer));
            return;
        }
        self.stats.resumed += u64::from(asking.since.is_some());
        let unfinished = Unfinished {
            path,
            answer,
            pdu: asking.pdu.clone(),
            proved,
            allowance: Some(Allowance::after(length)),
        };
        let owner = self.peers.at(path.remote);
        let known = owner.filter(|id| (self.peers.peers.get(id)).is_some_and(|peer| peer.key == Some(key)));
        let peer = known.unwrap_or_else(|| self.peers.meet(Some(key), false));
        if proved {
            self.peers.route(path.remote, peer);
        } else if known.is_none() {
            self.peers.claim(path.remote, peer, length);
        }
        let early_secret = asked.early_secret.filter(|_| early);
        let session = Session {
            peer,
            source: Some(path.remote.ip()),
            id: grant.from,
            sealer: Sealer::new(grant.suite, split.to_initiator, hello.from, false),
            opener: Opener::new(grant.suite, split.to_responder),
            early: early_secret.map(|secret| Opener::new(Suite::ChaCha20Poly1305, secret)),
            unfinished: Some(unfinished),
            homes: Homes::at(path.remote),
            heard: now,
            asked: now,
            flight: Some(flight),
            early_id: early.then_some((hello.from, path.remote)),
            beside: (asked.beside).is_some_and(|name| self.peers.has(peer, &name)),
        };
        let id = self.peers.insert(now, session);
        self.admit(now, id, path, asking.pdu);
    }

    /// Who asks for what, if it may be heard. What cannot be is answered here, in fewer bytes and from no memory.
    fn hear(&mut self, now: Time, path: PathAddress, hello: &Hello<'_>, proved: bool) -> Option<Asking> {
        let source = path.remote.ip();
        self.peers.expire(now, usize::MAX);
        let crowded = self.peers.half_open_of(source, proved) >= self.config.max_of_one_source();
        let scarce = self.peers.sessions.len() >= self.config.max_sessions / 2;
        let greedy = scarce && self.peers.sessions_of(source) >= self.config.max_sessions_of_one_source();
        if proved && (crowded || greedy) {
            self.stats.crowded += 1;
            return None;
        }
        let resumed = hello
            .ticket
            .map(|ticket| self.office.open(now, &ticket, &mut self.entropy));
        if resumed == Some(None) {
            self.stats.stale_tickets += 1;
            self.queue.push_back(datagram(path, &packet::stale(&hello.from)));
            return None;
        }
        let ticket = resumed.flatten();
        let busy = crowded || greedy || self.peers.half_open() >= self.config.max_half_open / 2;
        if !proved && (busy || !self.affords(now, hello.pattern)) {
            self.stats.retries += 1;
            let token = self.office.token(now, source);
            self.queue
                .push_back(datagram(path, &packet::retry(&hello.from, &token)));
            return None;
        }
        if !(self.peers).make_room(now, self.config.max_half_open, self.config.max_sessions) {
            self.stats.overflowed += 1;
            return None;
        }
        let prologue = packet::prologue(hello.pattern, &hello.from);
        let (own, secret) = (&self.config.secret, ticket.as_ref().map(|ticket| &ticket.secret));
        let mut handshake = Handshake::responder(hello.pattern, own, secret, &prologue, &mut self.entropy)?;
        let Some(payload) = handshake.read(hello.message) else {
            match hello.pattern {
                Pattern::Ik => {
                    self.stats.for_others += 1;
                    self.queue
                        .push_back(datagram(path, &packet::foreign(&hello.from, &self.own)));
                }
                Pattern::Ix => self.stats.forged += 1,
                // To a client that lost the secret of its ticket, too, nothing else would ever be said.
                Pattern::Resumed => {
                    self.stats.forged += 1;
                    self.queue.push_back(datagram(path, &packet::stale(&hello.from)));
                }
            }
            return None;
        };
        let client = ticket.as_ref().map(|ticket| ticket.client);
        let (Some(key), Some((asked, pdu))) = (
            client.or_else(|| handshake.remote()),
            Payload::parse(hello.pattern, &payload),
        ) else {
            self.stats.malformed += 1;
            return None;
        };
        // With IX the client has not yet proved that the key is its own. Its first packet will: until then the session that the
        // owner of the key has goes on beside the new one.
        if !(self.peers).may_use(now, None, &key, path.remote) {
            self.stats.misplaced += 1;
            return None;
        }
        Some(Asking {
            handshake,
            key,
            since: ticket.map(|ticket| ticket.period),
            asked,
            pdu: Bytes::copy_from_slice(pdu),
        })
    }

    /// Is there time for one more handshake with an address that proves nothing?
    fn affords(&mut self, now: Time, pattern: Pattern) -> bool {
        match pattern {
            Pattern::Ik | Pattern::Ix => (self.budget).take(now, self.config.max_unproved_per_second),
            Pattern::Resumed => (self.resumed_budget).take(now, self.config.max_unproved_resumed_per_second),
        }
    }

    /// Is early data to be taken that goes with a request? One that takes the place of another ends the right of that one
    /// instead: what it had sent comes again behind the answer, and never twice.
    fn takes_early(&mut self, asked: &Payload, one_time_key: [u8; KEY_BYTES]) -> bool {
        if asked.early_secret.is_none() || asked.epoch == [0; EPOCH_BYTES] {
            return false;
        }
        let flight = asked.instead_of.unwrap_or(one_time_key);
        let admitted = self.office.admits(&asked.epoch, flight, &mut self.entropy);
        if asked.instead_of.is_some() {
            return false;
        }
        let counter = if admitted {
            &mut self.stats.early
        } else {
            &mut self.stats.early_refused
        };
        *counter += 1;
        admitted
    }

    /// The request of `id` came again: what it carried is handed on again, which does no harm.
    fn on_repeated(&mut self, now: Time, id: Id, path: PathAddress, length: usize) {
        let Some(session) = self.peers.sessions.get_mut(&id) else {
            return;
        };
        let peer = session.peer;
        let Some(unfinished) = session.unfinished.as_mut().filter(|one| one.path == path) else {
            return;
        };
        if let Some(allowance) = &mut unfinished.allowance {
            allowance.hear(length);
        }
        let pdu = unfinished.pdu.clone();
        if !self.peers.hear(path.remote, peer, length) && self.may_use(now, peer, path.remote) {
            self.peers.claim(path.remote, peer, length);
        }
        self.admit(now, id, path, pdu);
    }

    /// Hands over what a request carried, if that may be taken twice. The answer goes with what follows from that, or alone
    /// where nothing does or it leaves in another session.
    fn admit(&mut self, now: Time, id: Id, path: PathAddress, pdu: Bytes) {
        let session = self.peers.sessions.get(&id);
        if pdu.is_empty() || session.is_some_and(|session| session.beside) {
            self.send_answer(id);
        }
        if pdu.is_empty() {
            return;
        }
        let mut inner = Datagram {
            path,
            body: pdu,
            ..Datagram::empty()
        };
        if (self.config.request)(&inner).is_some() {
            self.inner.handle(now, Input::Datagram(&mut inner));
        } else {
            self.stats.unsafe_requests += 1;
        }
    }
}

/// SHA-256 of a first message.
fn digest(message: &[u8]) -> [u8; 32] {
    let mut bytes = [0; 32];
    bytes.copy_from_slice(aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, message).as_ref());
    bytes
}
