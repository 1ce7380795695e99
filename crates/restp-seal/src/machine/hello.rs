//! Requests of peers: what may be heard at all, who asks, and what is answered. Everything here comes from anybody; nothing
//! is kept, and nothing computed with, before the limits have said so.

use super::Sealed;
use crate::config::Clients;
use crate::keys::PublicKey;
use crate::limits::AmplificationLimit;
use crate::noise::{Handshake, Pattern};
use crate::packet::{self, ConnectionId, Grant, Hello, Request as Payload};
use crate::peers::{Asking, FirstFlight, FlightHash, Session, Unfinished, Visit, Visitor, datagram};
use crate::resumption::Period;
use crate::schedule::Suite;
use crate::token::EPOCH_BYTES;
use aws_lc_rs::digest::{Context, SHA256};
use bytes::Bytes;
use restp_base::machine::{Datagram, Machine, PathAddress};
use restp_base::time::Time;
use std::net::IpAddr;

/// A request on its way through this host.
struct Arrival<'a> {
    path: PathAddress,
    /// Of the datagram.
    length: usize,
    hello: &'a Hello<'a>,
    hash: FlightHash,
    /// Its token proves its address.
    proved: bool,
}

/// A request that may be answered.
struct Request {
    handshake: Handshake,
    /// Whose it is.
    key: PublicKey,
    /// Which key sealed the ticket it came with.
    since: Option<Period>,
    asked: Payload,
    pdu: Bytes,
}

impl<M: Machine> Sealed<M> {
    pub(super) fn on_hello(&mut self, now: Time, path: PathAddress, length: usize, hello: &Hello<'_>) {
        // Of all but the token: a request that was changed on its way is not the one that comes after it.
        let hash = digest(&hello.from, hello.message);
        if let Some(id) = self.peers.session_of_flight(&hash) {
            self.stats.repeated_requests += 1;
            return self.on_retransmitted(now, id, path, length);
        }
        let proved = self.issuer.proves(now, path.remote, &hello.token);
        let arrival = Arrival {
            path,
            length,
            hello,
            hash,
            proved,
        };
        if let Some(asking) = self.on_request(now, &arrival) {
            self.answer(now, &arrival, asking);
        }
    }

    /// Who asks for what, if it may be heard. What cannot be is answered here, in fewer bytes and from no memory.
    fn on_request(&mut self, now: Time, arrival: &Arrival<'_>) -> Option<Request> {
        let Arrival { path, hello, .. } = *arrival;
        self.peers.expire(now);
        if !self.config.serves && !self.is_of_a_server(hello.pattern, path) {
            self.stats.unserved += 1;
            return None;
        }
        let source = path.remote.ip();
        let crowded = self.peers.is_crowded(source, arrival.proved);
        if arrival.proved && (crowded || self.failures.are_too_many(now, source)) {
            self.stats.crowded += 1;
            return None;
        }
        let (issuer, entropy) = (&mut self.issuer, &mut self.entropy);
        let opened = hello.ticket.map(|ticket| issuer.open(now, &ticket, entropy));
        if opened == Some(None) {
            self.stats.stale_tickets += 1;
            return self.say_to(path, &packet::stale(&hello.from));
        }
        let ticket = opened.flatten();
        let busy = crowded || self.peers.is_busy();
        if !arrival.proved && (busy || !self.affords(now, hello.pattern)) {
            self.stats.retries += 1;
            return self.say_retry(now, path, hello);
        }
        if !self.peers.make_room(now) {
            self.stats.overflowed += 1;
            return None;
        }
        self.stats.computed += 1;
        self.stats.computed_unproved += u64::from(!arrival.proved);
        let prologue = packet::prologue(hello.pattern, &hello.from);
        let (own, secret) = (&self.config.secret, ticket.as_ref().map(|ticket| &*ticket.secret));
        let mut handshake = Handshake::responder(hello.pattern, own, secret, &prologue, &mut self.entropy)?;
        let Some(payload) = handshake.read(hello.message) else {
            return self.on_unreadable(now, arrival);
        };
        let key = (ticket.as_ref().map(|ticket| ticket.client)).or_else(|| handshake.remote());
        let (Some(key), Some((asked, pdu))) = (key, Payload::parse(hello.pattern, &payload)) else {
            self.stats.malformed += 1;
            return None;
        };
        // With IX the client has not yet proved that the key is its own. Its first packet will: until then the session that the
        // owner of the key has goes on beside the new one.
        if !self.peers.may_take(now, &key, path.remote) {
            self.stats.misplaced += 1;
            return None;
        }
        if !self.config.serves && self.peers.expected_at(path.remote) != Some(key) {
            self.stats.unserved += 1;
            return None;
        }
        Some(Request {
            handshake,
            key,
            since: ticket.map(|ticket| ticket.period),
            asked,
            pdu: Bytes::copy_from_slice(pdu),
        })
    }

    /// The first message is not for this host's key, or not genuine.
    fn on_unreadable<T>(&mut self, now: Time, arrival: &Arrival<'_>) -> Option<T> {
        let Arrival { path, hello, .. } = *arrival;
        if arrival.proved {
            self.failures.note(path.remote.ip());
        }
        match hello.pattern {
            // Who serves nobody tells its key to nobody either.
            _ if !self.config.serves => {
                self.stats.unserved += 1;
                None
            }
            Pattern::Ik => {
                self.stats.for_others += 1;
                // Its key is told to nobody who may be invented.
                if !arrival.proved {
                    return self.say_retry(now, path, hello);
                }
                self.say_to(path, &packet::foreign(&hello.from, &self.own))
            }
            Pattern::Ix => {
                self.stats.forged += 1;
                None
            }
            // To a client that lost the secret of its ticket, too, nothing else would ever be said.
            Pattern::Resumed => {
                self.stats.forged += 1;
                self.say_to(path, &packet::stale(&hello.from))
            }
        }
    }

    /// May this be a request of a host that this one talks to, which has lost the session? It would know the key.
    fn is_of_a_server(&self, pattern: Pattern, path: PathAddress) -> bool {
        pattern == Pattern::Ik && self.peers.expected_at(path.remote).is_some()
    }

    /// Asks who asked along `path` to prove that it receives there.
    fn say_retry<T>(&mut self, now: Time, path: PathAddress, hello: &Hello<'_>) -> Option<T> {
        let token = self.issuer.address_token(now, path.remote);
        self.say_to(path, &packet::retry(&hello.from, &token))
    }

    /// Says `bytes` to who asked along `path`, and nothing more comes of it.
    fn say_to<T>(&mut self, path: PathAddress, bytes: &[u8]) -> Option<T> {
        self.queue.push_back(datagram(path, bytes));
        None
    }

    /// Is there time for one more handshake with an address that proves nothing?
    fn affords(&mut self, now: Time, pattern: Pattern) -> bool {
        match pattern {
            Pattern::Ik | Pattern::Ix => (self.unproved).take(now, self.config.max_unproved_per_second),
            Pattern::Resumed => {
                (self.unproved_resumed).take(now, self.config.max_unproved_resumed_per_second)
            }
        }
    }

    /// Answers who asks, and serves it if it is welcome.
    fn answer(&mut self, now: Time, arrival: &Arrival<'_>, mut asking: Request) {
        let Arrival { path, hello, .. } = *arrival;
        let (welcome, listed) = match &self.config.clients {
            Clients::All => (true, false),
            Clients::Only(keys) => (keys.contains(&asking.key), true),
        };
        // Anybody may say a key: whether it is on the list shows in nothing that comes back before it is proved.
        let hides = listed && hello.pattern == Pattern::Ix;
        let visitor = Visitor {
            remote: path.remote,
            length: arrival.length,
            proved: arrival.proved,
            key: asking.key,
            authentic: hello.pattern != Pattern::Ix,
            beside: asking.asked.beside,
        };
        let visit = (welcome || hides).then(|| self.peers.visited_by(&visitor));
        let at_once = !hides && visit.as_ref().is_some_and(|visit| visit.at_once);
        self.stats.unwelcome += u64::from(!welcome);
        if !welcome && arrival.proved {
            self.failures.note(path.remote.ip());
        }
        let grant = self.grant(now, path, hello, &asking, (welcome, at_once));
        let mut answer = packet::answer_header(&hello.from);
        let written = asking.handshake.write(&grant.emit(), &mut answer);
        let Some(split) = written.and_then(|()| asking.handshake.split()) else {
            return self.on_weak_key(arrival, visit);
        };
        let Some(Visit { peer, goes_on, .. }) = visit else {
            self.queue.push_back(datagram(path, &answer));
            return;
        };
        self.stats.resumed += u64::from(asking.since.is_some());
        let opens_early = grant.early && asking.asked.instead_of.is_none();
        let early_secret = asking.asked.early_secret.take().filter(|_| opens_early);
        let opener = |secret| self.opener(Suite::ChaCha20Poly1305, secret);
        let flight = FirstFlight {
            hash: arrival.hash,
            from: path.remote,
            early: early_secret.map(|secret| (hello.from, opener(secret))),
            authentic: visitor.authentic,
            beside: goes_on || !at_once,
        };
        let limit = (!arrival.proved).then(|| AmplificationLimit::after(arrival.length));
        let unfinished = Unfinished {
            asking: vec![Asking { path, limit }],
            answer,
            pdu: if at_once { asking.pdu } else { Bytes::new() },
            proved: arrival.proved,
            welcome,
        };
        let pdu = unfinished.pdu.clone();
        let sealer = self.sealer(grant.suite, split.to_initiator, hello.from);
        let opener = self.opener(grant.suite, split.to_responder);
        let session = Session::new(now, peer, grant.from, sealer, opener).begun_by_peer(flight, unfinished);
        self.peers.insert(now, session);
        self.admit(now, grant.from, path, pdu);
    }

    /// The key of a request leads to no secret, as one of low order (RFC 7748 §6.1): nothing stays of who made it.
    fn on_weak_key(&mut self, arrival: &Arrival<'_>, visit: Option<Visit>) {
        self.stats.forged += 1;
        if arrival.proved {
            self.failures.note(arrival.path.remote.ip());
        }
        if let Some(visit) = visit {
            self.peers.forget_if_idle(visit.peer);
        }
    }

    /// What who asks is granted, if it is `welcome`; early data only where it may be heard `at_once`.
    fn grant(
        &mut self,
        now: Time,
        path: PathAddress,
        hello: &Hello<'_>,
        asking: &Request,
        (welcome, at_once): (bool, bool),
    ) -> Grant {
        let whose = (asking.key, path.remote.ip());
        let heard = at_once || asking.asked.instead_of.is_some();
        let early = welcome && self.accepts_early(&asking.asked, hello, whose) && heard;
        let from = self.entropy.array();
        let suite = if asking.asked.fast_aes && self.config.fast_aes {
            Suite::Aes128Gcm
        } else {
            Suite::ChaCha20Poly1305
        };
        let token = (self.issuer).issue(now, asking.key, asking.since, &mut self.entropy);
        Grant {
            welcome,
            early,
            suite,
            reset: self.resets.token(&from),
            from,
            token,
        }
    }

    /// Is early data accepted that goes with a request? One that takes the place of another asks whether that of the other is:
    /// if not it never will be, and what had been sent comes again behind the answer.
    fn accepts_early(&mut self, asked: &Payload, hello: &Hello<'_>, whose: (PublicKey, IpAddr)) -> bool {
        let Some(one_time_key) = hello.message.first_chunk().copied() else {
            return false;
        };
        if asked.early_secret.is_none() || asked.epoch == [0; EPOCH_BYTES] {
            return false;
        }
        let entropy = &mut self.entropy;
        if let Some(before) = asked.instead_of {
            return self.issuer.strike(&asked.epoch, before, whose, entropy);
        }
        let admitted = self.issuer.admits(&asked.epoch, one_time_key, whose, entropy);
        let counter = if admitted {
            &mut self.stats.early
        } else {
            &mut self.stats.early_refused
        };
        *counter += 1;
        admitted
    }

    /// The request that began session `id` came again: what it carried is handed on again, which does no harm as long as nobody
    /// else is there by now.
    fn on_retransmitted(&mut self, now: Time, id: ConnectionId, path: PathAddress, length: usize) {
        let Some(session) = self.peers.session_mut(&id) else {
            return;
        };
        let (peer, authentic) = (session.peer(), session.is_authentic());
        let pdu = session.on_retransmitted(path, length);
        self.peers.ask(&id);
        if let Some(pdu) = pdu {
            let is_there = self.peers.credit(peer, path.remote, length);
            let may_be_heard = is_there && (authentic || self.peers.proved_key(peer).is_none());
            self.admit(now, id, path, if may_be_heard { pdu } else { Bytes::new() });
        }
    }

    /// Hands over what a request carried, if that may be accepted twice. The answer goes with what follows from that, or alone
    /// where nothing does or it leaves in another session.
    fn admit(&mut self, now: Time, id: ConnectionId, path: PathAddress, pdu: Bytes) {
        let session = self.peers.session_mut(&id);
        if let Some(session) = session.filter(|session| pdu.is_empty() || session.is_beside()) {
            let peer = session.peer();
            match session.answer(path) {
                Ok(answer) => {
                    let length = answer.as_ref().map_or(0, Datagram::len);
                    self.peers.charge(peer, path.remote, length);
                    self.queue.extend(answer);
                }
                Err(_) => self.stats.withheld += 1,
            }
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
            self.hand_over(now, &id, &mut inner);
        } else {
            self.stats.unsafe_requests += 1;
        }
    }
}

/// SHA-256 of a first message and of how the answer to it is to be addressed.
fn digest(from: &ConnectionId, message: &[u8]) -> FlightHash {
    let mut context = Context::new(&SHA256);
    context.update(from);
    context.update(message);
    let mut bytes = [0; 32];
    bytes.copy_from_slice(context.finish().as_ref());
    bytes
}
