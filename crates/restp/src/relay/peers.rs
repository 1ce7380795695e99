//! Who reaches one host through a relay: a port towards the host for each, and who makes room for another.

use super::server::lock;
use crate::socket::ReplySocket;
use restp_base::machine::PathAddress;
use restp_base::sources::Sources;
use restp_base::time::{Duration, Time};
use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use tokio::task::JoinSet;

/// Peers of one host at once.
pub(super) const MOST_PEERS: usize = 64;

/// Peers of one source (an IPv4 address, an IPv6 /64) that keep their places when all are taken.
const MOST_KEPT_OF_A_SOURCE: usize = 16;

/// A peer is kept for so long after the host has said so: an idle connection sends a keep-alive every 75 s, and one may be lost.
const KEPT: Duration = Duration::from_secs(180);

/// A peer that sent nothing for so long has to begin again: an outage that the relay sees as silence may last as long.
const PEER_EXPIRES: Duration = Duration::from_secs(600);

/// Datagrams of a peer that wait until the host has spoken to its port.
const MOST_WAITING: usize = 4;

/// Their bytes: datagrams of set-up are smaller than a packet, and everybody may send what waits.
const MOST_WAITING_BYTES: usize = 8 << 10;

/// A host that was silent for so long may have lost the way to a port: translators forget (RFC 4787 §4.3).
const OPEN_AGAIN: Duration = Duration::from_secs(20);

/// The peers of one host.
#[derive(Default)]
pub(super) struct Peers {
    /// By where each is, and which address of the relay it asks.
    peers: BTreeMap<PathAddress, Peer>,
    /// Peers of each source.
    sources: Sources,
}

/// Who reaches a host through the relay.
pub(super) struct Peer {
    pub link: Arc<Link>,
    heard: Time,
    pub said: u32,
    pub said_at: Time,
    pub opened_at: Option<Time>,
    _answers: JoinSet<()>,
}

impl Peer {
    /// One that was heard just now, and the task that carries what the host sends to it.
    pub fn new(now: Time, link: Arc<Link>, answers: JoinSet<()>) -> Self {
        Peer {
            link,
            heard: now,
            said: 0,
            said_at: now,
            opened_at: None,
            _answers: answers,
        }
    }
}

impl Peers {
    /// The peer on the path `from`, who was just heard.
    pub fn heard(&mut self, now: Time, from: &PathAddress) -> Option<&mut Peer> {
        let peer = self.peers.get_mut(from)?;
        peer.heard = now;
        Some(peer)
    }

    /// Is there no place for one more, whoever it is?
    pub fn is_full(&self, now: Time) -> bool {
        self.peers.len() >= MOST_PEERS && self.first_to_leave(now).is_none()
    }

    /// One more, if there is a place.
    pub fn enter(&mut self, now: Time, from: PathAddress, peer: Peer) {
        if self.peers.len() >= MOST_PEERS {
            let Some(first) = self.first_to_leave(now) else {
                return;
            };
            self.peers.remove(&first);
            self.sources.leave(first.remote.ip());
        }
        self.sources.enter(from.remote.ip());
        self.peers.insert(from, peer);
    }

    /// Forgets those that were not heard.
    pub fn expire(&mut self, now: Time) {
        let silent = (self.peers).extract_if(.., |_, peer| now.since(peer.heard) >= PEER_EXPIRES);
        silent.for_each(|(from, _)| self.sources.leave(from.remote.ip()));
    }

    /// Who makes room for one more: of those that the host does not keep, first who was not answered, then those of the source with
    /// most, then who was silent longest. Where it keeps all, those of a source that has more than its share.
    fn first_to_leave(&self, now: Time) -> Option<PathAddress> {
        let (kept, others): (Vec<_>, Vec<_>) =
            (self.peers.iter()).partition(|(_, peer)| peer.link.is_kept(now));
        let first = others.into_iter().min_by_key(|(from, peer)| {
            let count = self.sources.count(from.remote.ip());
            (peer.link.is_answered(), Reverse(count), peer.heard)
        });
        let has_too_many =
            |(from, _): &(&PathAddress, &Peer)| self.sources.count(from.remote.ip()) > MOST_KEPT_OF_A_SOURCE;
        let first = first.or_else(|| {
            let greedy = kept.into_iter().filter(has_too_many);
            greedy.min_by_key(|(_, peer)| peer.heard)
        });
        first.map(|(from, _)| *from)
    }
}

/// The port of one peer, towards the host.
pub(super) struct Link {
    pub socket: ReplySocket,
    /// The host has sent something back.
    answered: AtomicBool,
    state: Mutex<LinkState>,
}

#[derive(Default)]
struct LinkState {
    /// Where the host has spoken from: its translator may have another port for each of ours.
    host: Option<(PathAddress, Time)>,
    /// When the host said that the peer has proved itself.
    kept: Option<Time>,
    /// What came before the host spoke.
    waiting: VecDeque<Vec<u8>>,
}

impl Link {
    pub fn new(socket: ReplySocket) -> Self {
        Link {
            socket,
            answered: AtomicBool::new(false),
            state: Mutex::default(),
        }
    }

    /// Where a datagram goes now; it waits if nobody knows.
    pub fn way(&self, datagram: &[u8]) -> Option<PathAddress> {
        let mut state = lock(&self.state);
        let bytes: usize = state.waiting.iter().map(Vec::len).sum();
        let has_room = state.waiting.len() < MOST_WAITING && bytes + datagram.len() <= MOST_WAITING_BYTES;
        if state.host.is_none() && has_room {
            state.waiting.push_back(datagram.to_vec());
        }
        state.host.map(|(at, _)| at)
    }

    /// The host is to speak first, or again.
    pub fn asks(&self, now: Time) -> bool {
        lock(&self.state)
            .host
            .is_none_or(|(_, heard)| now.since(heard) >= OPEN_AGAIN)
    }

    /// The host has spoken from `at`: what waits for it leaves.
    pub fn bind(&self, now: Time, at: PathAddress) {
        let waiting = {
            let mut state = lock(&self.state);
            state.host = Some((at, now));
            std::mem::take(&mut state.waiting)
        };
        for datagram in waiting {
            let _ = self.socket.try_send(&datagram, &at);
        }
    }

    /// Is this where the host is?
    pub fn hears(&self, now: Time, from: PathAddress) -> bool {
        match &mut lock(&self.state).host {
            Some((at, heard)) if *at == from => {
                *heard = now;
                true
            }
            _ => false,
        }
    }

    /// The host answers the peer.
    pub fn answer(&self) {
        self.answered.store(true, Ordering::Relaxed);
    }

    fn is_answered(&self) -> bool {
        self.answered.load(Ordering::Relaxed)
    }

    /// The host says from where it is that the peer has proved itself.
    pub fn keep(&self, now: Time, from: PathAddress) {
        if self.hears(now, from) {
            lock(&self.state).kept = Some(now);
        }
    }

    fn is_kept(&self, now: Time) -> bool {
        let kept = lock(&self.state).kept;
        kept.is_some_and(|kept| now.since(kept) < KEPT)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "in a test a failed unwrap is a failed test")]

    use super::*;
    use std::net::Ipv4Addr;

    fn seconds(seconds: u64) -> Time {
        Time::ZERO + Duration::from_secs(seconds)
    }

    fn host() -> PathAddress {
        PathAddress {
            local: ([192, 0, 2, 2], 9).into(),
            remote: ([192, 0, 2, 1], 9).into(),
        }
    }

    async fn link() -> Link {
        Link::new(ReplySocket::bind((Ipv4Addr::LOCALHOST, 0).into()).unwrap())
    }

    /// Peers of these sources, each of whom the host keeps from its moment on.
    async fn kept(sources: impl Iterator<Item = (u8, Time)>) -> Peers {
        let mut peers = Peers::default();
        for (number, (source, at)) in sources.enumerate() {
            let link = Arc::new(link().await);
            link.bind(at, host());
            link.keep(at, host());
            let from = PathAddress {
                remote: ([198, 51, 100, source], 1000 + number as u16).into(),
                ..host()
            };
            peers.enter(at, from, Peer::new(at, link, JoinSet::new()));
        }
        peers
    }

    #[tokio::test]
    async fn little_waits_for_a_host_that_does_not_speak() {
        let link = link().await;
        for length in [60_000, 6000, 6000, 1000, 1000, 1] {
            assert_eq!(link.way(&vec![0x80; length]), None);
        }
        let waiting: Vec<_> = lock(&link.state).waiting.iter().map(Vec::len).collect();
        assert_eq!(waiting, [6000, 1000, 1000, 1]);
    }

    #[tokio::test]
    async fn a_peer_is_kept_from_where_the_host_is_and_for_a_while() {
        let link = link().await;
        link.keep(seconds(1), host());
        assert!(!link.is_kept(seconds(1)), "the host has not spoken");
        link.bind(seconds(2), host());
        let elsewhere = PathAddress {
            remote: ([192, 0, 2, 3], 9).into(),
            ..host()
        };
        link.keep(seconds(2), elsewhere);
        assert!(!link.is_kept(seconds(2)), "somebody else");
        link.keep(seconds(3), host());
        assert!(link.is_kept(seconds(182)) && !link.is_kept(seconds(183)));
        link.keep(seconds(182), host());
        assert!(link.is_kept(seconds(183)));
    }

    fn first(peers: &Peers, now: Time) -> Option<std::net::SocketAddr> {
        peers.first_to_leave(now).map(|path| path.remote)
    }

    #[tokio::test]
    async fn who_is_kept_makes_no_room_until_the_host_is_silent_about_it() {
        let several = (0..MOST_PEERS as u8).map(|number| (number / 8, seconds(u64::from(number))));
        let peers = kept(several).await;
        assert!(peers.is_full(seconds(100)));
        assert!(!peers.is_full(seconds(180)));
        assert_eq!(
            first(&peers, seconds(180)),
            Some(([198, 51, 100, 0], 1000).into())
        );
    }

    #[tokio::test]
    async fn a_source_keeps_its_share_of_the_places() {
        let one = |number: u8| if number < 17 { 200 } else { number / 16 };
        let peers = kept((0..MOST_PEERS as u8).map(|number| (one(number), seconds(1)))).await;
        let first = peers.first_to_leave(seconds(2)).unwrap();
        assert_eq!(first.remote.ip(), Ipv4Addr::new(198, 51, 100, 200));
    }
}
