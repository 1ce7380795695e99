//! What both QUICs share: their parameters, a UDP header around every packet, connection identifiers without chance.

use restp_base::machine::{Datagram, Ecn, Head, PathAddress};
use restp_base::time::Duration;
use std::net::SocketAddr;

/// The port of both ends; each host has an address of its own.
pub(crate) const PORT: u16 = 9;
/// RFC 768.
pub(crate) const UDP_HEADER_BYTES: usize = 8;
/// Seed of both engines' own generators: grease, probe intervals, initial numbers. Chance in a run is the network's.
pub(crate) const SEED: [u8; 32] = [0x52; 32];
/// How long both engines wait for a sign of life, as they ship (RFC 9308 §3.2).
pub(crate) const IDLE: Duration = Duration::from_secs(30);
/// Bytes of a connection identifier, as both ship.
pub(crate) const CID_BYTES: usize = 8;

/// What can be set of a QUIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct QuicParameters {
    /// Default CUBIC, as both ship.
    pub(crate) congestion: QuicCongestion,
    /// Bytes of a full UDP payload, fixed. Default none: 1200 at first, then what discovery finds, up to 1452.
    pub(crate) datagram_bytes: Option<u16>,
    /// Default none: what the engine ships, ten datagrams of 1200 bytes.
    pub(crate) initial_window_packets: Option<u64>,
    /// Bytes that a peer may send on a stream, and on all of them, before they are read. Default none: what the engine ships, 1.25 MB for
    /// a stream, which is 100 Mbit/s at a round trip of 100 ms, and no bound for all.
    pub(crate) stream_window_bytes: Option<u32>,
    pub(crate) connection_window_bytes: Option<u32>,
    /// Bytes that are sent and not acknowledged. Default none: what the engine ships, 10 MB.
    pub(crate) send_window_bytes: Option<u32>,
}

/// Congestion controls that both have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QuicCongestion {
    Cubic,
    NewReno,
    Bbr,
}

impl QuicParameters {
    pub(crate) const DEFAULT: QuicParameters = QuicParameters {
        congestion: QuicCongestion::Cubic,
        datagram_bytes: None,
        initial_window_packets: None,
        stream_window_bytes: None,
        connection_window_bytes: None,
        send_window_bytes: None,
    };

    /// The initial window in bytes, if it is set.
    pub(crate) fn initial_window_bytes(&self) -> Option<u64> {
        let datagram = u64::from(self.datagram_bytes.unwrap_or(1200));
        Some(self.initial_window_packets? * datagram)
    }
}

/// The simulator's hosts have addresses and no ports.
pub(crate) fn with_port(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip(), PORT)
}

/// `packet` leaves as the payload of a UDP datagram without check sum, which IPv4 allows (RFC 768): QUIC has its own.
pub(crate) fn send(path: PathAddress, ecn: Ecn, packet: Vec<u8>, out: &mut Datagram) {
    let port = PORT.to_be_bytes();
    let length = ((UDP_HEADER_BYTES + packet.len()) as u16).to_be_bytes();
    out.head = Head::new();
    for field in [port, port, length, [0; 2]] {
        out.head.extend_from_slice(&field);
    }
    (out.path, out.ecn, out.may_fragment, out.body) = (path, ecn, false, packet.into());
}

/// The payload of a UDP datagram, unless its header was damaged.
pub(crate) fn payload(bytes: &[u8]) -> Option<&[u8]> {
    let (header, payload) = bytes.split_at_checked(UDP_HEADER_BYTES)?;
    let length = (bytes.len() as u16).to_be_bytes();
    let port = PORT.to_be_bytes();
    (*header == [port, port, length, [0; 2]].concat()).then_some(payload)
}

/// The identifiers of one endpoint: its own letter, then a count.
#[derive(Clone, Debug)]
pub(crate) struct Identifiers {
    letter: u8,
    count: u32,
}

impl Identifiers {
    pub(crate) fn new(letter: u8) -> Self {
        Identifiers { letter, count: 0 }
    }
    pub(crate) fn next(&mut self) -> [u8; CID_BYTES] {
        self.count += 1;
        let [a, b, c, d] = self.count.to_be_bytes();
        [self.letter, 0, 0, 0, a, b, c, d]
    }
}

/// Letters of those who name a connection: who opens it, who serves it, and what the opener first calls the server.
pub(crate) const OPENER: u8 = b'o';
pub(crate) const SERVER: u8 = b's';
pub(crate) const FIRST_NAME: [u8; CID_BYTES] = *b"first-id";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_comes_out_of_its_datagram_unless_the_header_is_damaged() {
        let mut out = Datagram::empty();
        send(PathAddress::UNSET, Ecn::Ect0, b"packet".to_vec(), &mut out);
        let mut bytes = out.to_vec();
        assert_eq!(bytes[..8], [0, 9, 0, 9, 0, 14, 0, 0]);
        assert_eq!(payload(&bytes), Some(&b"packet"[..]));
        assert_eq!(payload(&bytes[..7]), None);
        bytes[5] ^= 4;
        assert_eq!(payload(&bytes), None);
    }
}
