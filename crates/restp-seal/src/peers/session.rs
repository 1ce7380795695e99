//! A session: the keys shared with a peer, where its paths are, and, until the peer has shown that it has them, the answer to
//! the handshake that it began.

use crate::limits::AmplificationLimit;
use crate::packet::{ConnectionId, DataHeader, OVERHEAD, ResetToken};
use crate::path_room::PathRoom;
use crate::protection::{Opener, Refusal, Sealer};
use crate::validation::{Control, ValidatedPaths};
use aws_lc_rs::constant_time::verify_slices_are_equal;
use bytes::Bytes;
use restp_base::machine::{Datagram, Head, PathAddress};
use restp_base::time::{Duration, Time};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// Name of a peer in its table.
pub(crate) type PeerId = u64;

/// SHA-256 of the first message of a handshake.
pub(crate) type FlightHash = [u8; 32];

/// An answer and a packet share a datagram up to this size; larger ones would not pass where full segments just do.
const MAX_SHARED: usize = 1_280;

/// Keys shared with a peer.
pub(crate) struct Session {
    peer: PeerId,
    id: ConnectionId,
    sealer: Sealer,
    opener: Opener,
    /// Where its peer began it.
    flight: Option<FirstFlight>,
    /// As long as the peer has not shown that it has the answer.
    unfinished: Option<Unfinished>,
    paths: ValidatedPaths,
    /// Last time a packet opened.
    heard: Time,
    /// Since when something was sent, and nothing heard.
    unanswered: Option<Time>,
    /// Last time that the peer was asked for another session.
    asked: Option<Time>,
    began: Time,
    /// Shows that the peer has forgotten it; none where the peer asked.
    reset: Option<ResetToken>,
    forgotten: bool,
}

/// A session in which something was sent for so long and nothing was heard is asked for anew, beside it: the peer may have
/// forgotten it (WireGuard, J. A. Donenfeld, NDSS 2017, §6.4).
pub(super) const UNANSWERED: Duration = Duration::from_secs(15);

/// Keys that are so old are replaced, by a new exchange (the same, §6.1); or after as many packets as one key seals.
pub(super) const WORN: Duration = Duration::from_secs(120);

/// A peer that has forgotten is asked once in so long.
const AGAIN: Duration = Duration::from_secs(1);

/// Addresses that one request is answered at, at most: who copies it may be ahead of who sent it, and the first packet in the
/// session tells them apart.
const MAX_ASKING: usize = 4;

/// How a peer began a session.
pub(crate) struct FirstFlight {
    pub(crate) hash: FlightHash,
    pub(crate) from: SocketAddr,
    /// How its early data is addressed, and what opens it.
    pub(crate) early: Option<(ConnectionId, Opener)>,
    /// Only who has the peer's key can have made it.
    pub(crate) authentic: bool,
    /// Where the peer has a session before this, everything goes there alone until this one is finished.
    pub(crate) beside: bool,
}

/// A handshake that a peer began and has not finished.
pub(crate) struct Unfinished {
    /// Where the request came from, the first first.
    pub(crate) asking: Vec<Asking>,
    /// Sent with every packet.
    pub(crate) answer: Vec<u8>,
    /// The machine's datagram in the request, where it may be heard.
    pub(crate) pdu: Bytes,
    /// The request proved its address.
    pub(crate) proved: bool,
    /// The peer is served when it has shown who it is.
    pub(crate) welcome: bool,
}

/// A way along which a request came.
pub(crate) struct Asking {
    pub(crate) path: PathAddress,
    /// None where it proved its address.
    pub(crate) limit: Option<AmplificationLimit>,
}

/// Why nothing was sealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unsealed {
    /// It would exceed the amplification limit.
    Withheld,
    /// The packet numbers of its path have run out.
    Exhausted,
}

impl Session {
    /// A session with `peer`, which the peer addresses as `id`. Its handshake began here.
    pub(crate) fn new(now: Time, peer: PeerId, id: ConnectionId, sealer: Sealer, opener: Opener) -> Self {
        Session {
            peer,
            id,
            sealer,
            opener,
            flight: None,
            unfinished: None,
            paths: ValidatedPaths::default(),
            heard: now,
            unanswered: None,
            asked: None,
            began: now,
            reset: None,
            forgotten: false,
        }
    }

    /// The same, where the peer shows with `token` when it has forgotten it.
    pub(crate) fn ended_by(mut self, token: ResetToken) -> Self {
        self.reset = Some(token);
        self
    }

    /// The same, where the peer began the handshake with `flight`.
    pub(crate) fn begun_by_peer(mut self, flight: FirstFlight, unfinished: Unfinished) -> Self {
        self.paths = ValidatedPaths::at(flight.from);
        self.flight = Some(flight);
        self.unfinished = Some(unfinished);
        self
    }

    pub(crate) fn peer(&self) -> PeerId {
        self.peer
    }

    /// How the peer addresses it.
    pub(crate) fn id(&self) -> ConnectionId {
        self.id
    }

    /// How its peer is addressed.
    pub(crate) fn to(&self) -> ConnectionId {
        self.sealer.to()
    }

    pub(crate) fn flight(&self) -> Option<&FirstFlight> {
        self.flight.as_ref()
    }

    pub(crate) fn unfinished(&self) -> Option<&Unfinished> {
        self.unfinished.as_ref()
    }

    pub(crate) fn is_finished(&self) -> bool {
        self.unfinished.is_none()
    }

    /// Is its peer told that it is not served?
    pub(crate) fn is_unwelcome(&self) -> bool {
        self.unfinished
            .as_ref()
            .is_some_and(|unfinished| !unfinished.welcome)
    }

    #[cfg(test)]
    pub(super) fn take_from_list(&mut self) {
        self.unfinished.iter_mut().for_each(|one| one.welcome = false);
    }

    /// Does everything go in another session until this one is finished?
    pub(crate) fn is_beside(&self) -> bool {
        self.flight.as_ref().is_some_and(|flight| flight.beside)
    }

    /// Can only who has the peer's key have asked for it?
    pub(crate) fn is_authentic(&self) -> bool {
        self.flight.as_ref().is_some_and(|flight| flight.authentic)
    }

    /// The peer has shown that it has the answer.
    pub(super) fn finish(&mut self) -> Option<Unfinished> {
        self.unfinished.take()
    }

    /// Time since a packet opened.
    pub(crate) fn silence(&self, now: Time) -> Duration {
        now.since(self.heard)
    }

    /// Time since it began.
    pub(crate) fn age(&self, now: Time) -> Duration {
        now.since(self.began)
    }

    /// Is it time to ask the peer for another session: because its keys have served long enough, or because what is sent has not
    /// been answered for long? Yes once in each [`UNANSWERED`].
    pub(crate) fn asks(&mut self, now: Time) -> bool {
        let silent = (self.unanswered).is_some_and(|since| now.since(since) >= UNANSWERED);
        let worn = self.age(now) >= WORN || self.sealer.is_worn();
        let asks = (silent || worn) && self.was_not_asked_for(now, UNANSWERED);
        if asks {
            self.asked = Some(now);
        }
        asks
    }

    fn was_not_asked_for(&self, now: Time, span: Duration) -> bool {
        self.asked.is_none_or(|asked| now.since(asked) >= span)
    }

    /// Somebody shows `token`. Is it the one that only the peer can, and time to ask it for another session?
    pub(crate) fn on_reset(&mut self, now: Time, token: &ResetToken) -> bool {
        let is_right = |own: ResetToken| verify_slices_are_equal(&own, token).is_ok();
        let asks = self.reset.is_some_and(is_right) && self.was_not_asked_for(now, AGAIN);
        if asks {
            (self.asked, self.forgotten) = (Some(now), true);
        }
        asks
    }

    /// Has the peer said that it has forgotten it?
    pub(crate) fn is_forgotten(&self) -> bool {
        self.forgotten
    }

    pub(crate) fn paths(&mut self) -> &mut ValidatedPaths {
        &mut self.paths
    }

    /// Bytes that `plain` takes, with the answer that goes ahead of it.
    pub(crate) fn sealed_bytes(&self, plain: &Datagram) -> usize {
        let answer = self
            .unfinished
            .as_ref()
            .map_or(0, |unfinished| unfinished.answer.len());
        answer + plain.len() + OVERHEAD
    }

    /// Seals `plain` into `out`, behind the answer as long as the peer may not have that. Where the two do not fit into one
    /// datagram `out` is the answer, and the packet is returned.
    pub(crate) fn seal(
        &mut self,
        now: Time,
        plain: &Datagram,
        out: &mut Datagram,
    ) -> Result<Option<Datagram>, Unsealed> {
        self.unanswered.get_or_insert(now);
        address(out, plain.path, plain);
        let total = self.sealed_bytes(plain);
        if let Some(unfinished) = &mut self.unfinished {
            if !unfinished.may_send(plain.path, total) {
                return Err(Unsealed::Withheld);
            }
            out.head.extend_from_slice(&unfinished.answer);
            if total > MAX_SHARED {
                let mut second = Datagram::empty();
                address(&mut second, plain.path, plain);
                let sealed = self.sealer.seal(plain, &mut second.head);
                return Ok(sealed.map(|()| second));
            }
        }
        let sealed = self.sealer.seal(plain, &mut out.head);
        sealed.map(|()| None).ok_or(Unsealed::Exhausted)
    }

    /// Seals what one seal says to the other on `path`.
    pub(crate) fn seal_control(&mut self, path: PathAddress, control: Control) -> Option<Datagram> {
        let plain = Datagram {
            path,
            head: Head::from_slice(&control.emit()),
            ..Datagram::empty()
        };
        let mut sealed = Datagram {
            path,
            ..Datagram::empty()
        };
        self.sealer.seal(&plain, &mut sealed.head)?;
        Some(sealed)
    }

    /// The answer by itself, along `path`; nothing where the peer has it, an error where it may not be sent.
    pub(crate) fn answer(&mut self, path: PathAddress) -> Result<Option<Datagram>, Unsealed> {
        let Some(unfinished) = &mut self.unfinished else {
            return Ok(None);
        };
        if !unfinished.may_send(path, unfinished.answer.len()) {
            return Err(Unsealed::Withheld);
        }
        Ok(Some(datagram(path, &unfinished.answer)))
    }

    /// Paths on which its peer has been heard, but for the first.
    pub(super) fn further_paths(&self) -> usize {
        self.opener.paths().saturating_sub(1)
    }

    /// Who began it; none where that was this side.
    pub(super) fn source(&self) -> Option<IpAddr> {
        self.flight.as_ref().map(|flight| flight.from.ip())
    }

    /// Opens `sealed`, a packet that came from `remote` in a datagram of `length` bytes.
    pub(crate) fn open(
        &mut self,
        now: Time,
        header: &DataHeader,
        sealed: &[u8],
        (remote, length): (SocketAddr, usize),
        (opened, room): (&mut [u8], &mut PathRoom),
    ) -> Result<(), Refusal> {
        let id = self.id;
        if header.early {
            // A client says all of it on the path of its request, and others would be room that nobody counts.
            if header.space != 0 {
                return Err(Refusal::Forged);
            }
            let early = self.flight.as_mut().and_then(|flight| flight.early.as_mut());
            let (_, opener) = early.ok_or(Refusal::Forged)?;
            opener.open(id, header, sealed, opened, room)?;
        } else {
            let further = self.opener.paths() > 0 && !self.opener.has_path(header.space);
            let source = self.source().filter(|_| further);
            if source.is_some_and(|source| !room.is_left(source)) {
                return Err(Refusal::Crowded);
            }
            self.opener.open(id, header, sealed, opened, room)?;
            source.inspect(|source| room.enter(*source));
            self.heard = now;
            self.unanswered = None;
        }
        let Some(unfinished) = &mut self.unfinished else {
            return Ok(());
        };
        if let Some(asking) = unfinished.asking(remote) {
            asking.on_received(length);
        }
        if !header.early && unfinished.asking.len() > 1 {
            // The answer went to several places, and who got it at one of them may write any other on his envelope.
            self.paths = ValidatedPaths::default();
        }
        Ok(())
    }

    /// The request that began it came again on `path`, with `length` bytes: what it carries and may be heard from there. None
    /// when it is finished, or asked for from too many places.
    pub(crate) fn on_retransmitted(&mut self, path: PathAddress, length: usize) -> Option<Bytes> {
        let unfinished = self.unfinished.as_mut()?;
        let place = unfinished.asking.iter().position(|asking| asking.path == path);
        if let Some(place) = place {
            unfinished.asking[place].on_received(length);
            return Some(if place == 0 {
                unfinished.pdu.clone()
            } else {
                Bytes::new()
            });
        }
        if unfinished.asking.len() >= MAX_ASKING {
            return None;
        }
        let limit = Some(AmplificationLimit::after(length));
        unfinished.asking.push(Asking { path, limit });
        Some(Bytes::new())
    }
}

impl Unfinished {
    /// Who asks from `remote`.
    fn asking(&mut self, remote: SocketAddr) -> Option<&mut Asking> {
        self.asking.iter_mut().find(|asking| asking.path.remote == remote)
    }

    /// May `bytes` with the answer be sent along `path`? Only where it was asked for: who could get it elsewhere would have the
    /// keys without being there.
    fn may_send(&mut self, path: PathAddress, bytes: usize) -> bool {
        let asking = self.asking(path.remote);
        asking.is_some_and(|asking| asking.limit.as_mut().is_none_or(|limit| limit.take(bytes)))
    }

    /// Where the answer came to the peer, if it went to one place alone.
    pub(super) fn answered(&self) -> Option<SocketAddr> {
        match &self.asking[..] {
            [asking] => Some(asking.path.remote),
            _ => None,
        }
    }

    /// Where the request came from first.
    pub(super) fn source(&self) -> IpAddr {
        self.asking
            .first()
            .map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |asking| {
                asking.path.remote.ip()
            })
    }
}

impl Asking {
    fn on_received(&mut self, length: usize) {
        if let Some(limit) = &mut self.limit {
            limit.on_received(length);
        }
    }
}

/// Makes `out` an empty datagram on `path`, to be treated on its way like `like`; its buffer is reused.
pub(crate) fn address(out: &mut Datagram, path: PathAddress, like: &Datagram) {
    (out.path, out.ecn, out.may_fragment) = (path, like.ecn, like.may_fragment);
    out.segment = like.segment;
    out.head.clear();
    out.body = Bytes::new();
}

/// A datagram of these bytes.
pub(crate) fn datagram(path: PathAddress, bytes: &[u8]) -> Datagram {
    Datagram {
        path,
        head: Head::from_slice(bytes),
        ..Datagram::empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::{PACKETS_PER_KEY, Suite};

    fn session() -> Session {
        let suite = Suite::Aes128Gcm;
        let sealer = Sealer::new(suite, [1; 32].into(), *b"to.peer.", false);
        Session::new(
            Time::ZERO,
            1,
            *b"to.here.",
            sealer,
            Opener::new(suite, [2; 32].into()),
        )
    }

    #[test]
    fn another_exchange_is_asked_for_after_as_many_packets_as_a_key_seals() {
        let mut session = session();
        let (plain, mut out) = (Datagram::empty(), Datagram::empty());
        for _ in 0..PACKETS_PER_KEY - 1 {
            assert!(session.seal(Time::ZERO, &plain, &mut out).is_ok());
        }
        assert!(!session.asks(Time::ZERO));
        assert!(session.seal(Time::ZERO, &plain, &mut out).is_ok());
        assert!(
            session.asks(Time::ZERO) && !session.asks(Time::ZERO),
            "once in a while"
        );
        assert!(session.asks(Time::ZERO + UNANSWERED));
    }
}
