//! Handshakes begun here, and what waits for them.

use super::session::{PeerId, address, datagram};
use crate::keys::{KEY_BYTES, PublicKey};
use crate::limits::RateLimiter;
use crate::noise::{Handshake, Pattern, Split};
use crate::packet::{self, ConnectionId, Grant, Packet};
use crate::protection::Sealer;
use crate::token::AddressToken;
use bytes::Bytes;
use restp_base::machine::{Datagram, PathAddress};
use restp_base::time::{Duration, Time};
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// Handshakes with one peer at once; each path that is tried has one.
const MAX_OF_ONE_PEER: usize = 16;

/// Datagrams that wait for a session, behind one request.
const MAX_HELD: usize = 64;

/// Packets that may overtake the answer to a request.
const MAX_OVERTAKING: usize = 32;

/// Tokens that are followed in a second, for one request: who invents them gets no more out of this host, and as long as a true
/// one comes again it is among those that are followed.
const TOKENS_PER_SECOND: u32 = 100;

/// First wait before a request that nothing else repeats is sent again, and how often it is.
pub(crate) const REPEAT: Duration = Duration::from_secs(1);
const MAX_REPEATS: u32 = 5;

/// A request that the machine repeats by and by is repeated here as well, for its first three seconds: a host in a flood lets
/// each source in for a quarter of a second at a time. All of them together are less than what may be sent at first anyway
/// (RFC 6928 §2).
pub(crate) const FIRST_PROBE: Duration = Duration::from_millis(500);
const PROBE: Duration = Duration::from_millis(200);
const MAX_PROBES: u32 = 13;

/// A handshake begun here.
pub(crate) struct ClientHandshake {
    /// Chosen here, and how the session will be addressed.
    pub(crate) name: ConnectionId,
    pub(crate) path: PathAddress,
    pub(crate) pattern: Pattern,
    pub(crate) noise: Handshake,
    /// The request: what is sent, again and again.
    pub(crate) bytes: Vec<u8>,
    /// The machine's datagram in it; empty for none.
    pub(crate) pdu: Vec<u8>,
    /// Seals early data.
    pub(crate) early: Option<Sealer>,
    pub(crate) waiting: Waiting,
}

/// What waits for the answer, and how long it has.
#[derive(Default)]
pub(crate) struct Waiting {
    /// To be sealed once there is a session: data that could not be early, or that the peer did not accept.
    held: Vec<Datagram>,
    /// So many of them have left as early data, those that wait longest.
    early: usize,
    /// Packets that overtook the answer.
    overtaking: Vec<Datagram>,
    /// Times the request was sent again by itself.
    repeats: u32,
    /// The same beside what the machine repeats.
    probes: u32,
    /// With another token.
    tokens: RateLimiter,
}

impl ClientHandshake {
    /// The request, on its way like `like`.
    pub(crate) fn write(&self, like: &Datagram, out: &mut Datagram) {
        address(out, self.path, like);
        out.head.extend_from_slice(&self.bytes);
    }

    /// The request.
    pub(crate) fn request(&self) -> Datagram {
        datagram(self.path, &self.bytes)
    }

    /// The ephemeral key of the request.
    pub(crate) fn one_time_key(&self) -> Option<[u8; KEY_BYTES]> {
        match Packet::parse(&self.bytes) {
            Some(Packet::Hello(hello)) => hello.message.first_chunk().copied(),
            _ => None,
        }
    }

    /// No timer of the machine repeats what it carries.
    pub(crate) fn is_repeated_here(&self) -> bool {
        self.pdu.is_empty()
    }

    /// As if it had not been sent before; what waited is old. How many datagrams that were.
    pub(crate) fn begin_again(&mut self) -> usize {
        (self.waiting.repeats, self.waiting.early) = (0, 0);
        std::mem::take(&mut self.waiting.held).len()
    }

    /// Has nobody answered for long?
    pub(crate) fn is_exhausted(&self) -> bool {
        self.waiting.repeats >= MAX_REPEATS
    }

    /// Counts one more repeat: the wait until the next.
    fn repeat(&mut self) -> Option<Duration> {
        if !self.is_repeated_here() {
            self.waiting.probes += 1;
            return (self.waiting.probes <= MAX_PROBES).then_some(PROBE);
        }
        if self.is_exhausted() {
            return None;
        }
        self.waiting.repeats += 1;
        Some(REPEAT * (1 << self.waiting.repeats))
    }

    /// Puts another proof of the address into the request; false when there were too many of late.
    pub(crate) fn set_token(&mut self, now: Time, token: &AddressToken) -> bool {
        let accepts = self.waiting.tokens.take(now, TOKENS_PER_SECOND);
        if accepts {
            packet::set_token(&mut self.bytes, token);
        }
        accepts
    }

    /// Does anything wait for the session?
    pub(crate) fn holds(&self) -> bool {
        !self.waiting.held.is_empty()
    }

    /// Keeps `plain` until there is a session; false when too much waits.
    pub(crate) fn hold(&mut self, plain: &Datagram) -> bool {
        let fits = self.waiting.held.len() < MAX_HELD;
        if fits {
            self.waiting.held.push(plain.clone());
        }
        fits
    }

    /// `plain` as early data.
    pub(crate) fn seal_early(&mut self, plain: &Datagram) -> Option<Datagram> {
        let mut early = Datagram::empty();
        address(&mut early, plain.path, plain);
        self.early.as_mut()?.seal(plain, &mut early.head)?;
        self.waiting.early += 1;
        Some(early)
    }

    /// Takes over what waits for `other`, which this one replaces.
    pub(crate) fn replace(&mut self, other: ClientHandshake) {
        let Waiting {
            held, early, repeats, ..
        } = other.waiting;
        (self.waiting.held, self.waiting.early, self.waiting.repeats) = (held, early, repeats);
    }

    /// Reads the answer at the begin of `rest` for the client `own`: what it grants, the key that the peer has proved, and
    /// what follows the answer. `known` is the key that it must be, if one is known.
    pub(crate) fn read_answer<'a>(
        &mut self,
        rest: &'a [u8],
        own: &PublicKey,
        known: Option<PublicKey>,
    ) -> Option<(Grant, PublicKey, &'a [u8])> {
        let (message, follower) = rest.split_at_checked(packet::answer_message_bytes(self.pattern))?;
        let payload = self.noise.read(message)?;
        // Who opens a ticket is who issued it.
        let told = match self.pattern {
            Pattern::Resumed => known,
            Pattern::Ik | Pattern::Ix => self.noise.remote(),
        };
        // Two requests without a key may race; both answers must come from one host.
        let key = told.filter(|told| known.is_none_or(|known| known == *told))?;
        Some((Grant::parse(&payload, own)?, key, follower))
    }

    /// After the answer: the secrets of the session, what is to be sealed with them, and what they open. Where early data is
    /// `taken` it does not leave again.
    pub(crate) fn end(self, taken: bool) -> Option<(Split, Vec<Datagram>, Vec<Datagram>)> {
        let Waiting {
            mut held,
            overtaking,
            early,
            ..
        } = self.waiting;
        if taken {
            held.drain(..early.min(held.len()));
        }
        Some((self.noise.split()?, held, overtaking))
    }
}

/// Those with all peers.
#[derive(Default)]
pub(crate) struct ClientHandshakes {
    peers: BTreeMap<ConnectionId, PeerId>,
    /// Oldest first.
    of: BTreeMap<PeerId, Vec<ClientHandshake>>,
}

impl ClientHandshakes {
    /// Takes one more with `peer`; the oldest makes room.
    pub(crate) fn insert(&mut self, peer: PeerId, handshake: ClientHandshake) -> &mut ClientHandshake {
        self.peers.insert(handshake.name, peer);
        let all = self.of.entry(peer).or_default();
        if all.len() >= MAX_OF_ONE_PEER {
            self.peers.remove(&all.remove(0).name);
        }
        let place = all.len();
        all.push(handshake);
        &mut all[place]
    }

    /// Whom the one called `name` is with.
    pub(crate) fn peer(&self, name: &ConnectionId) -> Option<PeerId> {
        self.peers.get(name).copied()
    }

    /// Was the one called `name` begun with the host at `remote`?
    pub(crate) fn is_asked(&self, name: &ConnectionId, remote: SocketAddr) -> bool {
        let all = self.peers.get(name).and_then(|peer| self.of.get(peer));
        let mut all = all.into_iter().flatten();
        all.any(|handshake| handshake.name == *name && handshake.path.remote == remote)
    }

    pub(crate) fn get_mut(&mut self, name: &ConnectionId) -> Option<&mut ClientHandshake> {
        let all = self.of.get_mut(self.peers.get(name)?)?;
        all.iter_mut().find(|handshake| handshake.name == *name)
    }

    /// The last one with `peer` that is `wanted`.
    pub(crate) fn find(
        &self,
        peer: PeerId,
        wanted: impl Fn(&ClientHandshake) -> bool,
    ) -> Option<ConnectionId> {
        let mut all = self.of.get(&peer)?.iter();
        all.rfind(|handshake| wanted(handshake))
            .map(|handshake| handshake.name)
    }

    /// Ends the one called `name`.
    pub(crate) fn remove(&mut self, name: &ConnectionId) -> Option<ClientHandshake> {
        let peer = self.peers.remove(name)?;
        let all = self.of.get_mut(&peer)?;
        let place = all.iter().position(|handshake| handshake.name == *name)?;
        Some(all.remove(place))
    }

    /// Ends those with `peer`.
    pub(crate) fn forget(&mut self, peer: PeerId) {
        for handshake in self.of.remove(&peer).unwrap_or_default() {
            self.peers.remove(&handshake.name);
        }
    }

    /// Keeps a packet that overtook the answer of the handshake `name`; false when there is none, or too much waits.
    pub(crate) fn keep(&mut self, name: &ConnectionId, datagram: &Datagram) -> bool {
        let overtaking = self.get_mut(name).map(|one| &mut one.waiting.overtaking);
        let Some(overtaking) = overtaking.filter(|overtaking| overtaking.len() < MAX_OVERTAKING) else {
            return false;
        };
        overtaking.push(Datagram {
            body: Bytes::copy_from_slice(&datagram.body), // it would keep its neighbours in memory
            ..datagram.clone()
        });
        true
    }

    /// Requests to `peer` that are to be sent again now, and the wait until the next time.
    pub(crate) fn repeat(&mut self, peer: PeerId) -> (Vec<Datagram>, Option<Duration>) {
        let mut requests = Vec::new();
        let mut wait = None;
        for handshake in self.of.get_mut(&peer).into_iter().flatten() {
            if let Some(next) = handshake.repeat() {
                wait = wait.max(Some(next));
                requests.push(handshake.request());
            }
        }
        (requests, wait)
    }
}
