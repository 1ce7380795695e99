//! From the machine to the network: with a session sealed in one step, otherwise in or behind a request for one.

use crate::keys::KEY_BYTES;
use crate::machine::Sealed;
use crate::noise::{Handshake, Known, Pattern};
use crate::packet::{self, ConnectionId, OVERHEAD, Packet, Request as Payload};
use crate::peers::{Id, Owner, Request};
use crate::schedule::Suite;
use crate::session::Sealer;
use restp_base::machine::{Datagram, Head, Machine, PathAddress};
use restp_base::time::{Duration, Time};

/// A session not heard for so long may have ended at the other side: what opens a flow asks for a new one.
const STALE: Duration = Duration::from_secs(5);

/// A peer that is not heard for so long is asked for a new session beside what is sent: it may have forgotten the one there is,
/// and where nothing is acknowledged no other sign would come. Less than what a peer remembers.
const SILENT: Duration = Duration::from_secs(60);

/// Requests in flight to one peer; each path that is tried has one.
const MAX_REQUESTS: usize = 16;

/// Datagrams that wait for a session, in one request.
const MAX_HELD: usize = 64;

/// First wait before a request that nothing else repeats is sent again, and how often it is.
pub(crate) const REPEAT: Duration = Duration::from_secs(1);
const MAX_REPEATS: u32 = 5;

/// An answer and a packet share a datagram up to this size; larger ones would not pass where full segments just do.
const MAX_SHARED: usize = 1_280;

impl<M: Machine> Sealed<M> {
    /// Seals what the machine has just written into `scratch`. False when there is nothing to send now.
    pub(crate) fn dispatch(&mut self, now: Time, out: &mut Datagram) -> bool {
        let Some(route) = self.peers.routes.get_mut(&self.scratch.path.remote) else {
            self.stats.unsent += 1;
            return false;
        };
        let id = route.peer;
        if let Some(claim) = &mut route.claim
            && !claim.take(self.scratch.len() + OVERHEAD)
        {
            self.stats.withheld += 1;
            return false;
        }
        let Some(peer) = self.peers.peers.get(&id) else {
            return false;
        };
        let session = peer
            .session
            .and_then(|id| Some((id, self.peers.sessions.get(&id)?)));
        let Some((session, state)) = session else {
            return self.request(now, id, out);
        };
        let stale = peer.opened_here && now.since(state.heard) > STALE;
        if stale && (self.config.request)(&self.scratch).is_some() {
            return self.request(now, id, out);
        }
        if peer.opened_here && now.since(state.heard.max(state.asked)) > SILENT {
            self.ask_anew(now, id, session);
        }
        if let Some(knocking) = self.peers.deaf_knocker(id) {
            let mut copy = Datagram::empty();
            if self.seal(knocking, &mut copy) {
                self.queue.push_back(copy);
            }
        }
        self.seal(session, out)
    }

    /// Asks for a session beside the one there is; once more, when nobody has answered that.
    fn ask_anew(&mut self, now: Time, id: Id, session: Id) {
        if let Some(session) = self.peers.sessions.get_mut(&session) {
            session.asked = now;
        }
        let path = self.scratch.path;
        let asked = |request: &Request| request.path == path && request.is_repeated_here();
        let before = self
            .peers
            .peers
            .get(&id)
            .and_then(|peer| peer.requests.iter().position(asked));
        let index = before.or_else(|| self.begin_request(id, path, Vec::new(), None));
        let peer = self.peers.peers.get_mut(&id);
        let request = index.and_then(|index| peer?.requests.get_mut(index));
        if let Some(request) = request {
            request.begin_again();
            self.queue.push_back(datagram(path, &request.bytes));
            self.peers.set_alarm(id, Some(now + REPEAT));
        }
    }

    /// Seals `scratch` in `session`, with the answer before it as long as the peer may not have that.
    fn seal(&mut self, session: Id, out: &mut Datagram) -> bool {
        let Some(session) = self.peers.sessions.get_mut(&session) else {
            return false;
        };
        begin(out, self.scratch.path, &self.scratch);
        if let Some(unfinished) = &mut session.unfinished {
            let total = unfinished.answer.len() + self.scratch.len() + OVERHEAD;
            let allowance = &mut unfinished.allowance;
            if !allowance.as_mut().is_none_or(|allowance| allowance.take(total)) {
                self.stats.withheld += 1;
                return false;
            }
            out.head.extend_from_slice(&unfinished.answer);
            if total > MAX_SHARED {
                let mut second = Datagram::empty();
                begin(&mut second, self.scratch.path, &self.scratch);
                if session.sealer.seal(&self.scratch, &mut second.head).is_some() {
                    self.queue.push_back(second);
                }
                return true;
            }
        }
        session.sealer.seal(&self.scratch, &mut out.head).is_some()
    }

    /// Sends `scratch` in a request for a session, or behind one, or keeps it until there is one.
    fn request(&mut self, now: Time, id: Id, out: &mut Datagram) -> bool {
        let path = self.scratch.path;
        let harmless = (self.config.request)(&self.scratch).is_some();
        if harmless {
            self.faults.remove(&path.remote);
        } else if self.faults.contains_key(&path.remote) {
            return false; // a farewell to a host that is not talked to
        }
        let pdu = if harmless {
            self.scratch.to_vec()
        } else {
            Vec::new()
        };
        let Some(peer) = self.peers.peers.get(&id) else {
            return false;
        };
        let same = |request: &Request| request.path == path && (!harmless || request.pdu == pdu);
        let found = peer.requests.iter().rposition(same);
        let index = match found {
            Some(index) => index,
            None => match self.begin_request(id, path, pdu, None) {
                Some(index) => index,
                None => return false,
            },
        };
        let Some(request) = self
            .peers
            .peers
            .get_mut(&id)
            .and_then(|peer| peer.requests.get_mut(index))
        else {
            return false;
        };
        if harmless {
            begin(out, path, &self.scratch);
            out.head.extend_from_slice(&request.bytes);
            return true;
        }
        // Nobody has answered for long, and something is sent all the same: what waited is old.
        if request.repeats >= MAX_REPEATS {
            self.stats.unsent += request.held.len() as u64;
            request.begin_again();
        }
        // Early data, unless the peer refuses it; then it is sent again.
        let first = request.held.is_empty();
        if request.held.len() < MAX_HELD {
            request.held.push(self.scratch.clone());
        } else {
            self.stats.unsent += 1;
        }
        let mut early = Datagram::empty();
        begin(&mut early, path, &self.scratch);
        let sealed = (request.early.as_mut()).and_then(|sealer| sealer.seal(&self.scratch, &mut early.head));
        if sealed.is_some() {
            self.queue.push_back(early);
        }
        // The request goes before the first of it, again if it has left already: either may be lost.
        if first {
            begin(out, path, &self.scratch);
            out.head.extend_from_slice(&request.bytes);
            self.peers.set_alarm(id, Some(now + REPEAT));
            return true;
        }
        match self.queue.pop_front() {
            Some(datagram) => {
                *out = datagram;
                true
            }
            None => false,
        }
    }

    /// Begins a handshake whose first message carries `pdu`, in the place of the one with the one-time key `instead_of`.
    fn begin_request(
        &mut self,
        id: Id,
        path: PathAddress,
        pdu: Vec<u8>,
        instead_of: Option<[u8; KEY_BYTES]>,
    ) -> Option<usize> {
        let peer = self.peers.peers.get_mut(&id)?;
        let pass = peer.key.and_then(|key| self.passes.get(&key).copied());
        let resumption = pass
            .and_then(|pass| pass.resumption)
            .filter(|resumption| resumption.client == self.own);
        let present = peer.session.and_then(|session| self.peers.sessions.get(&session));
        let present = present.map(|session| session.sealer.to());
        let known = match (&peer.key, &resumption) {
            (None, _) => Known::Nothing,
            (Some(key), None) => Known::Key(key),
            (Some(_), Some(resumption)) => Known::Secret(&resumption.secret),
        };
        let pattern = known.pattern();
        let name: ConnectionId = self.entropy.array();
        let secret: Option<[u8; 32]> = (pattern != Pattern::Ix).then(|| self.entropy.array());
        let prologue = packet::prologue(pattern, &name);
        let mut handshake = Handshake::initiator(&self.config.secret, known, &prologue, &mut self.entropy)?;
        let payload = Payload {
            fast_aes: self.config.fast_aes,
            epoch: pass.unwrap_or_default().epoch,
            early_secret: secret,
            instead_of,
            beside: secret.and(present),
        };
        let mut bytes = packet::hello_header(pattern, &name, &pass.unwrap_or_default().token);
        if let Some(resumption) = &resumption {
            bytes.extend_from_slice(&resumption.ticket);
        }
        handshake.write(&payload.emit(&pdu), &mut bytes)?;
        let early = secret
            .filter(|_| pass.is_some() && instead_of.is_none())
            .map(|secret| Sealer::new(Suite::ChaCha20Poly1305, secret, name, true));
        if peer.requests.len() >= MAX_REQUESTS {
            let oldest = peer.requests.remove(0);
            self.peers.by_id.remove(&oldest.id);
        }
        self.peers.by_id.insert(name, Owner::Request(id));
        peer.requests.push(Request {
            id: name,
            path,
            pattern,
            handshake,
            bytes,
            pdu,
            early,
            held: Vec::new(),
            waiting: Vec::new(),
            repeats: 0,
            tokens: 0,
        });
        Some(peer.requests.len() - 1)
    }

    /// Somebody says that the ticket of a request does not open: another takes its place, with the keys of both hosts. A lie
    /// costs what a lost packet costs, and the handshake is no weaker.
    pub(crate) fn on_stale(&mut self, to: ConnectionId) {
        let Some(Owner::Request(id)) = self.peers.by_id.get(&to).copied() else {
            self.stats.unknown += 1;
            return;
        };
        let Some(peer) = self.peers.peers.get_mut(&id) else {
            return;
        };
        let with_ticket = |request: &Request| request.id == to && request.pattern == Pattern::Resumed;
        let Some(place) = peer.requests.iter().position(with_ticket) else {
            return;
        };
        let before = peer.requests.remove(place);
        self.peers.by_id.remove(&to);
        self.stats.refused_tickets += 1;
        if let Some(pass) = peer.key.and_then(|key| self.passes.get_mut(&key)) {
            pass.resumption = None;
        }
        // The early data behind it may wait on the way: it must not be taken when it has come another way.
        let one_time_key = match Packet::parse(&before.bytes) {
            Some(Packet::Hello(hello)) => hello.message.first_chunk().copied(),
            _ => None,
        };
        let instead_of = one_time_key.filter(|_| !before.held.is_empty());
        let Some(index) = self.begin_request(id, before.path, before.pdu, instead_of) else {
            return;
        };
        let peer = self.peers.peers.get_mut(&id);
        if let Some(request) = peer.and_then(|peer| peer.requests.get_mut(index)) {
            (request.held, request.repeats) = (before.held, before.repeats);
            self.queue.push_back(datagram(request.path, &request.bytes));
        }
    }

    /// Repeats requests that nothing else repeats, and ends the patience with a peer that is not who it should be.
    pub(crate) fn on_alarm(&mut self, now: Time, id: Id) {
        let Some(peer) = self.peers.peers.get_mut(&id) else {
            return;
        };
        if let Some(fault) = peer.suspicion {
            return self.give_up(now, id, fault);
        }
        let mut again = None;
        for request in peer
            .requests
            .iter_mut()
            .filter(|request| request.is_repeated_here())
        {
            if request.repeats < MAX_REPEATS {
                request.repeats += 1;
                again = again.max(Some(REPEAT * (1 << request.repeats)));
                self.queue.push_back(datagram(request.path, &request.bytes));
            }
        }
        self.peers.set_alarm(id, again.map(|wait| now + wait));
    }

    /// Seals `held` in `session`, for later.
    pub(crate) fn release_held(&mut self, session: Id, held: Vec<Datagram>) {
        for inner in held {
            self.scratch = inner;
            let mut out = Datagram::empty();
            if self.seal(session, &mut out) {
                self.queue.push_back(out);
            }
        }
    }

    /// Sends the answer of `session` by itself.
    pub(crate) fn send_answer(&mut self, session: Id) {
        let session = self.peers.sessions.get_mut(&session);
        let Some(unfinished) = session.and_then(|session| session.unfinished.as_mut()) else {
            return;
        };
        let allowance = &mut unfinished.allowance;
        if !(allowance.as_mut()).is_none_or(|allowance| allowance.take(unfinished.answer.len())) {
            self.stats.withheld += 1;
            return;
        }
        self.queue
            .push_back(datagram(unfinished.path, &unfinished.answer));
    }
}

/// An empty datagram on `path`, to be treated on its way like `inner`; its buffer is used again.
fn begin(out: &mut Datagram, path: PathAddress, inner: &Datagram) {
    (out.path, out.ecn, out.may_fragment) = (path, inner.ecn, inner.may_fragment);
    out.head.clear();
    out.body = bytes::Bytes::new();
}

/// A datagram of these bytes.
pub(crate) fn datagram(path: PathAddress, bytes: &[u8]) -> Datagram {
    Datagram {
        path,
        head: Head::from_slice(bytes),
        ..Datagram::empty()
    }
}
