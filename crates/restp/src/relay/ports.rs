//! Which ports a relay gives. A host that asks again gets the port that it had, also from a relay that has started again: what leads to
//! it stays true.

use crate::rendezvous::wire::RegistrationId;
use crate::socket::ReplySocket;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicU16, Ordering};

/// So many ports are tried before there is none: for a host, which asks seldom, and for a peer, which costs one datagram.
const HOST_TRIES: u32 = 128;
const PEER_TRIES: u32 = 16;
/// Odd, so that all numbers come before one comes again, and near the golden section, so that they lie far from each other (Knuth,
/// volume 3, §6.4).
const SPREAD: u16 = 40_503;

/// The ports of one address, within bounds that a firewall may know.
#[derive(Debug)]
pub(super) struct Ports {
    ip: IpAddr,
    first: u16,
    count: u32,
    /// The next one that a peer may get.
    next: AtomicU16,
}

impl Ports {
    /// `begin` is any number: of several relays each begins elsewhere.
    pub(super) fn new(ip: IpAddr, range: &RangeInclusive<u16>, begin: u16) -> Self {
        let (first, last) = (*range.start(), *range.end());
        Ports {
            ip,
            first,
            count: u32::from(last.saturating_sub(first)) + 1,
            next: AtomicU16::new(begin),
        }
    }

    /// The first quarter, where no peers are: hosts are fewer.
    fn of_hosts(&self) -> u32 {
        self.count.div_ceil(4)
    }

    /// For the host `id`: the same one as a rule, or else the next that is free, in the first quarter to begin with.
    pub(super) fn for_host(&self, id: &RegistrationId) -> io::Result<ReplySocket> {
        let [a, b, c, d, ..] = *id;
        let begin = u32::from_be_bytes([a, b, c, d]) % self.of_hosts();
        self.open((0..self.count.min(HOST_TRIES)).map(|more| (begin + more) % self.count))
    }

    /// For the next peer of any host.
    pub(super) fn for_peer(&self) -> io::Result<ReplySocket> {
        let upper = self.count - self.of_hosts();
        // Ports that are taken lie together: each try is elsewhere.
        let place = |place: u32| match upper {
            ..=PEER_TRIES => place,
            _ => {
                let next = self.next.fetch_add(1, Ordering::Relaxed);
                (u32::from(next.wrapping_mul(SPREAD)) * upper) >> u16::BITS
            }
        };
        self.open((0..upper.min(PEER_TRIES)).map(|more| self.count - upper + place(more)))
    }

    /// The first of these, counted from the first of all, that is free.
    fn open(&self, mut places: impl Iterator<Item = u32>) -> io::Result<ReplySocket> {
        let port = |place| SocketAddr::new(self.ip, self.first + place as u16);
        places
            .find_map(|place| ReplySocket::bind(port(place)).ok())
            .ok_or_else(|| io::ErrorKind::AddrInUse.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    const AT: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 23));

    fn port(opened: &io::Result<ReplySocket>) -> u16 {
        opened.as_ref().expect("free").local_addr().port()
    }

    #[tokio::test]
    async fn a_host_has_the_same_port_again_unless_somebody_has_it() {
        let (before, after) = (
            Ports::new(AT, &(20_000..=20_999), 0),
            Ports::new(AT, &(20_000..=20_999), 0),
        );
        let first = before.for_host(&[9; 16]);
        let given = port(&first);
        assert!((20_000..20_250).contains(&given));
        assert_eq!(port(&after.for_host(&[9; 16])), given + 1, "it is taken");
        drop(first);
        assert_eq!(port(&after.for_host(&[9; 16])), given);
        assert_ne!(port(&after.for_host(&[8; 16])), given);
    }

    #[tokio::test]
    async fn ports_are_within_their_bounds_and_come_to_an_end() {
        let ports = Ports::new(AT, &(21_000..=21_004), 0);
        let peers: Vec<_> = (0..3).map(|_| ports.for_peer()).collect();
        assert!(peers.iter().all(|peer| port(peer) >= 21_002));
        assert!(ports.for_peer().is_err(), "the first quarter is for hosts");
        let hosts: Vec<_> = (0..2).map(|n| ports.for_host(&[n; 16])).collect();
        let mut all: Vec<_> = hosts.iter().chain(&peers).map(port).collect();
        all.sort_unstable();
        assert_eq!(all, [21_000, 21_001, 21_002, 21_003, 21_004]);
        assert!(ports.for_peer().is_err() && ports.for_host(&[7; 16]).is_err());
    }

    #[tokio::test]
    async fn one_port_is_enough_for_one_host_at_the_end_of_all_ports() {
        let ports = Ports::new(AT, &(u16::MAX..=u16::MAX), 0);
        let host = ports.for_host(&[7; 16]);
        assert_eq!(port(&host), u16::MAX);
        assert!(ports.for_peer().is_err());
    }
}
