//! From the machine to the network: sealed at once where there is a session, otherwise in or behind a request for one.

use super::Sealed;
use crate::packet::{ConnectionId, OVERHEAD};
use crate::peers::{FIRST_PROBE, NoRoute, PeerId, REPEAT, Unsealed};
use restp_base::machine::{Datagram, Machine, PathAddress, Request};
use restp_base::time::{Duration, Time};

/// A session not heard for so long may have ended at the other side: what opens a flow asks for a new one.
const STALE: Duration = Duration::from_secs(5);

impl<M: Machine> Sealed<M> {
    /// Seals what the machine has written. False when `out` has nothing to send; something may be in the queue.
    pub(super) fn dispatch(&mut self, now: Time, plain: &Datagram, out: &mut Datagram) -> bool {
        let peer = match self.peers.send_to(plain.path.remote, plain.len() + OVERHEAD) {
            Ok(peer) => peer,
            Err(NoRoute::Unknown) => {
                self.stats.unsent += 1;
                return false;
            }
            Err(NoRoute::Withheld) => {
                self.stats.withheld += 1;
                return false;
            }
        };
        let Some(session) = self.peers.session_of(peer) else {
            return self.request(now, peer, plain, out);
        };
        let (id, stale, asks) = (session.id(), session.silence(now) > STALE, session.asks(now));
        let opened_here = self.peers.is_opened_here(peer);
        if stale && self.may_ask(opened_here, plain) {
            return self.request(now, peer, plain, out);
        }
        if asks && opened_here {
            self.ask_anew(now, peer, plain.path);
        }
        if let Some(pending) = self.peers.pending_session(peer).map(|session| session.id()) {
            self.send_copy(now, &pending, plain);
        }
        self.seal(now, &id, plain, out)
    }

    /// The same in a session beside that one, whose client may have lost the other; where its answer goes with it all of it has to
    /// keep to the limit.
    fn send_copy(&mut self, now: Time, pending: &ConnectionId, plain: &Datagram) {
        let Some(session) = self.peers.session_mut(pending) else {
            return;
        };
        let (peer, bytes) = (session.peer(), session.sealed_bytes(plain));
        if !self.peers.may_send_to(plain.path.remote, bytes) {
            self.stats.withheld += 1;
            return;
        }
        let (mut copy, place) = (Datagram::empty(), self.queue.len());
        if self.seal(now, pending, plain, &mut copy) {
            self.peers.charge(peer, plain.path.remote, plain.len() + OVERHEAD);
            self.queue.insert(place, copy); // the answer goes ahead of a packet that does not fit behind it
        }
    }

    /// May a session be asked for with `plain`? A host that came as a client is asked where a flow to it begins here.
    fn may_ask(&self, opened_here: bool, plain: &Datagram) -> bool {
        let asked = (self.config.request)(plain);
        asked == Some(Request::Flow) || asked.is_some() && opened_here
    }

    /// Seals `plain` in session `id`.
    pub(super) fn seal(
        &mut self,
        now: Time,
        id: &ConnectionId,
        plain: &Datagram,
        out: &mut Datagram,
    ) -> bool {
        let Some(session) = self.peers.session_mut(id) else {
            return false;
        };
        let peer = session.peer();
        match session.seal(now, plain, out) {
            Ok(second) => {
                // The packet is counted; an answer before it is not yet.
                let sent = out.len() + second.as_ref().map_or(0, Datagram::len);
                let answer = sent.saturating_sub(plain.len() + OVERHEAD);
                self.peers.charge(peer, plain.path.remote, answer);
                self.queue.extend(second);
            }
            Err(Unsealed::Withheld) => {
                self.stats.withheld += 1;
                return false;
            }
            Err(Unsealed::Exhausted) => return false,
        }
        true
    }

    /// Asks for a session beside the one there is; once more, when nobody has answered that.
    pub(super) fn ask_anew(&mut self, now: Time, peer: PeerId, path: PathAddress) {
        let handshakes = &self.peers.handshakes;
        let name = handshakes.find(peer, |one| one.path == path && one.is_repeated_here());
        let Some(handshake) = self.handshake(name, peer, path, Vec::new()) else {
            return;
        };
        handshake.begin_again();
        let request = handshake.request();
        self.queue.push_back(request);
        self.peers.timers.set(peer, Some(now + REPEAT));
    }

    /// Sends `plain` in a request for a session, or behind one, or keeps it until there is one.
    fn request(&mut self, now: Time, peer: PeerId, plain: &Datagram, out: &mut Datagram) -> bool {
        let path = plain.path;
        if (self.config.request)(plain).is_none() {
            self.send_behind_request(now, peer, plain);
            return false;
        }
        self.hosts.forgive(path.remote);
        let pdu = plain.to_vec();
        let name = (self.peers.handshakes).find(peer, |one| one.path == path && one.pdu == pdu);
        let Some(handshake) = self.handshake(name, peer, path, pdu) else {
            return false;
        };
        handshake.write(plain, out);
        self.peers.timers.begin(peer, now + FIRST_PROBE);
        true
    }

    /// Sends `plain` as early data behind a request for a session, and keeps it lest the peer refuses that.
    fn send_behind_request(&mut self, now: Time, peer: PeerId, plain: &Datagram) {
        let path = plain.path;
        if self.hosts.fault(path.remote).is_some() {
            return; // a farewell to a host that is not talked to
        }
        let name = (self.peers.handshakes).find(peer, |one| one.path == path);
        let Some(handshake) = self.handshake(name, peer, path, Vec::new()) else {
            return;
        };
        // Nobody has answered for long, and something is sent all the same: what waited is old.
        let mut unsent = 0;
        if handshake.is_exhausted() {
            unsent += handshake.begin_again();
        }
        let first = !handshake.holds();
        unsent += usize::from(!handshake.hold(plain));
        let early = handshake.seal_early(plain);
        // The request goes before the first of it, again if it has left already: either may be lost.
        let request = first.then(|| {
            let mut request = Datagram::empty();
            handshake.write(plain, &mut request);
            request.segment = None; // that goes behind it
            request
        });
        if first {
            self.peers.timers.set(peer, Some(now + REPEAT));
        }
        self.queue.extend(request.into_iter().chain(early));
        self.stats.unsent += unsent as u64;
    }
}
