//! What comes back for a handshake begun here: an answer completes it; anybody may say anything else.

use super::Sealed;
use crate::keys::PublicKey;
use crate::known_hosts::Fault;
use crate::noise::Pattern;
use crate::packet::{self, ConnectionId, Packet, ResetToken};
use crate::peers::{Session, datagram};
use crate::token::AddressToken;
use bytes::Bytes;
use restp_base::machine::{Datagram, Input, Machine, PathAddress};
use restp_base::time::Time;

/// Unknown sessions that are spoken of in a second.
const RESETS_PER_SECOND: u32 = 100;

impl<M: Machine> Sealed<M> {
    pub(super) fn on_answer(&mut self, now: Time, datagram: &mut Datagram, to: ConnectionId, rest: &[u8]) {
        if self.peers.session_mut(&to).is_some() {
            // A repeated answer: what is behind it may be new.
            return self.behind_answer(now, datagram, rest);
        }
        let Some(peer) = self.peers.handshakes.peer(&to) else {
            self.stats.unknown += 1;
            return;
        };
        let known = self.peers.key(peer);
        let handshake = self.peers.handshakes.get_mut(&to);
        let answer = handshake.and_then(|handshake| handshake.read_answer(rest, &self.own, known));
        let Some((grant, key, follower)) = answer else {
            self.stats.forged += 1;
            return;
        };
        self.peers.identify(peer, key);
        self.peers.on_heard_from(peer, datagram.path.remote);
        let handshake = self.peers.handshakes.remove(&to);
        if !grant.welcome {
            return self.give_up(now, peer, Fault::Unwelcome);
        }
        let Some(mut handshake) = handshake else {
            return;
        };
        let (path, pdu) = (handshake.path, std::mem::take(&mut handshake.pdu));
        let Some((split, held, overtaking)) = handshake.end(grant.early) else {
            return;
        };
        self.hosts.keep_token(key, grant.token);
        let sealer = self
            .sealer(grant.suite, split.to_responder, grant.from)
            .begun_on(path);
        let opener = self.opener(grant.suite, split.to_initiator);
        let session = Session::new(now, peer, to, sealer, opener).ended_by(grant.reset);
        let had_forgotten = self.peers.insert(now, session);
        if had_forgotten {
            // Whether it still knows the flows is worth a packet of each now.
            let local = path.local;
            self.inner.handle(now, Input::PathNotice { local, up: true });
        }
        if follower.is_empty() && !pdu.is_empty() {
            // The server has not heard it, because it does not know yet whose it is: this says so.
            let request = Datagram {
                path,
                body: pdu.into(),
                ..Datagram::empty()
            };
            self.release(now, &to, &[request]);
        }
        self.release(now, &to, &held);
        let follower = datagram.body.slice(datagram.body.len() - follower.len()..);
        for mut overtaking in overtaking {
            self.on_datagram(now, &mut overtaking);
        }
        self.follow(now, datagram, follower);
    }

    /// The packet behind an answer that was here before, of whichever pattern it was.
    fn behind_answer(&mut self, now: Time, datagram: &mut Datagram, rest: &[u8]) {
        let before = datagram.body.len() - rest.len();
        // One of a resumed session is as long as one of IK.
        for pattern in [Pattern::Ik, Pattern::Ix] {
            let place = before + packet::answer_message_bytes(pattern);
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

    /// Seals `held` in session `id`, for later.
    fn release(&mut self, now: Time, id: &ConnectionId, held: &[Datagram]) {
        for plain in held {
            let mut out = Datagram::empty();
            if self.seal(now, id, plain, &mut out) {
                self.queue.push_back(out);
            }
        }
    }

    /// The server wants the request again, with a proof of this host's address.
    pub(super) fn on_retry(&mut self, now: Time, to: ConnectionId, token: AddressToken) {
        let Some(handshake) = self.peers.handshakes.get_mut(&to) else {
            self.stats.unknown += 1;
            return;
        };
        if handshake.set_token(now, &token) {
            self.queue.push_back(handshake.request());
        }
    }

    /// Somebody says that the host asked for has the key `told`. Anybody can, so it ends nothing: it is the reason to tell when
    /// no answer comes.
    pub(super) fn on_foreign(&mut self, to: ConnectionId, told: PublicKey) {
        match self.peers.handshakes.peer(&to) {
            Some(peer) => self.peers.suspect(peer, told),
            None => self.stats.unknown += 1,
        }
    }

    /// Somebody says along `path` that the session which it calls `of` is not known there any more.
    pub(super) fn on_reset(&mut self, now: Time, path: PathAddress, of: &ConnectionId, token: &ResetToken) {
        let Some((peer, session)) = self.peers.session_called(path.remote, of) else {
            self.stats.unknown += 1;
            return;
        };
        if session.on_reset(now, token) {
            self.stats.resets += 1;
            // It has started again, and its ticket keys are others.
            if let Some(key) = self.peers.key(peer) {
                self.hosts.forget_ticket(key);
            }
            self.ask_anew(now, peer, path);
        }
    }

    /// Says to who spoke along `path` that the session called `of` is not known here; so often at most.
    pub(super) fn say_unknown(&mut self, now: Time, path: PathAddress, of: &ConnectionId) {
        if self.config.serves && self.resets_said.take(now, RESETS_PER_SECOND) {
            let token = self.resets.token(of);
            self.queue.push_back(datagram(path, &packet::reset(of, &token)));
        }
    }

    /// Somebody says that the ticket of a request does not open: another takes its place, with the keys of both hosts. A lie
    /// costs what a lost packet costs, and the handshake is no weaker.
    pub(super) fn on_stale(&mut self, to: ConnectionId) {
        let Some(peer) = self.peers.handshakes.peer(&to) else {
            self.stats.unknown += 1;
            return;
        };
        let handshake = self.peers.handshakes.get_mut(&to);
        if handshake.is_none_or(|handshake| handshake.pattern != Pattern::Resumed) {
            return;
        }
        let Some(mut before) = self.peers.handshakes.remove(&to) else {
            return;
        };
        self.stats.refused_tickets += 1;
        if let Some(key) = self.peers.key(peer) {
            self.hosts.forget_ticket(key);
        }
        // The early data behind it may wait on the way: it must not be accepted when it has come another way.
        let instead_of = before.one_time_key().filter(|_| before.holds());
        let pdu = std::mem::take(&mut before.pdu);
        if let Some(handshake) = self.begin_handshake(peer, before.path, pdu, instead_of) {
            handshake.replace(before);
            let request = handshake.request();
            self.queue.push_back(request);
        }
    }
}
