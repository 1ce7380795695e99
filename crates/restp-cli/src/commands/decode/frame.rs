//! Payloads of captured frames, through the link and network layers that captures have: of UDP, or directly of IPv4, as
//! simulated ResTP travels.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

/// One datagram. Without UDP its ports are zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram<'a> {
    pub from: SocketAddr,
    pub to: SocketAddr,
    pub payload: &'a [u8],
}

const NULL: u16 = 0;
const ETHERNET: u16 = 1;
const RAW: u16 = 101;
const LINUX_COOKED: u16 = 113;
const IPV4: u16 = 228;
const IPV6: u16 = 229;
const LINUX_COOKED_2: u16 = 276;

const ETHERTYPE_VLAN: [u8; 2] = [0x81, 0x00];
const PROTOCOL_UDP: u8 = 17;
/// For experiments (RFC 3692).
const PROTOCOL_EXPERIMENT: u8 = 253;

/// The datagram in a frame; `None` when there is no whole one, or the link type is none of those above.
pub fn datagram(link: u16, frame: &[u8]) -> Option<Datagram<'_>> {
    let packet = match link {
        NULL => frame.get(4..)?,
        RAW | IPV4 | IPV6 => frame,
        ETHERNET if frame.get(12..14)? == ETHERTYPE_VLAN => frame.get(18..)?,
        ETHERNET => frame.get(14..)?,
        LINUX_COOKED => frame.get(16..)?,
        LINUX_COOKED_2 => frame.get(20..)?,
        _ => return None,
    };
    match packet.first()? >> 4 {
        4 => ipv4(packet),
        6 => ipv6(packet),
        _ => None,
    }
}

fn ipv4(packet: &[u8]) -> Option<Datagram<'_>> {
    let header = 4 * usize::from(packet[0] & 0x0f);
    let total = usize::from(short(packet, 2)?);
    let fragment = short(packet, 6)? & 0x3fff != 0;
    if header < 20 || fragment {
        return None;
    }
    let address = |at: usize| Some(Ipv4Addr::from(*packet.get(at..)?.first_chunk::<4>()?));
    // Offloaded to the network card, the length was not known yet.
    let segment = packet.get(header..).map(|rest| match total.checked_sub(header) {
        Some(length) => &rest[..length.min(rest.len())],
        None => rest,
    })?;
    let ends = |ports: (u16, u16)| Some(((address(12)?, ports.0).into(), (address(16)?, ports.1).into()));
    match packet[9] {
        PROTOCOL_UDP => udp(segment, ends),
        PROTOCOL_EXPERIMENT => {
            let (from, to) = ends((0, 0))?;
            let payload = segment;
            Some(Datagram { from, to, payload })
        }
        _ => None,
    }
}

fn ipv6(packet: &[u8]) -> Option<Datagram<'_>> {
    if *packet.get(6)? != PROTOCOL_UDP {
        return None;
    }
    let address = |at: usize| Some(Ipv6Addr::from(*packet.get(at..)?.first_chunk::<16>()?));
    udp(packet.get(40..)?, |ports| {
        Some(((address(8)?, ports.0).into(), (address(24)?, ports.1).into()))
    })
}

fn udp(
    segment: &[u8],
    addresses: impl FnOnce((u16, u16)) -> Option<(SocketAddr, SocketAddr)>,
) -> Option<Datagram<'_>> {
    let (from, to) = addresses((short(segment, 0)?, short(segment, 2)?))?;
    let length = usize::from(short(segment, 4)?);
    let payload = segment.get(8..length.max(8))?;
    Some(Datagram { from, to, payload })
}

fn short(bytes: &[u8], at: usize) -> Option<u16> {
    bytes
        .get(at..)?
        .first_chunk()
        .map(|pair| u16::from_be_bytes(*pair))
}

#[cfg(test)]
mod tests {
    use super::*;

    const UDP4: &[u8] = &[
        0x45, 0, 0, 31, 0, 0, 0x40, 0, 64, 17, 0, 0, 127, 0, 0, 1, 127, 0, 0, 2, 0, 7, 0, 9, 0, 11, 0, 0,
        b'a', b'b', b'c', 0, 0,
    ];

    #[test]
    fn a_datagram_is_found_below_every_link_layer() {
        for (link, prefix) in [
            (RAW, 0),
            (NULL, 4),
            (ETHERNET, 14),
            (LINUX_COOKED, 16),
            (LINUX_COOKED_2, 20),
        ] {
            let frame = [&vec![0; prefix][..], UDP4].concat();
            let found = datagram(link, &frame).expect("a datagram");
            assert_eq!(found.payload, b"abc");
            assert_eq!(found.from, "127.0.0.1:7".parse().expect("an address"));
            assert_eq!(found.to, "127.0.0.2:9".parse().expect("an address"));
        }
        assert_eq!(datagram(147, UDP4), None);
    }

    #[test]
    fn what_simulated_restp_is_in_needs_no_ports() {
        let mut packet = UDP4.to_vec();
        packet[9] = 253;
        let found = datagram(IPV4, &packet).expect("a datagram");
        assert_eq!(found.payload, &UDP4[20..31]);
        assert_eq!(found.to, "127.0.0.2:0".parse().expect("an address"));
    }

    #[test]
    fn ipv6_as_well() {
        let mut packet = vec![0x60, 0, 0, 0, 0, 10, 17, 64];
        packet.extend_from_slice(&[0; 32]);
        packet.extend_from_slice(&[0, 1, 0, 2, 0, 10, 0, 0, 5, 6]);
        let found = datagram(RAW, &packet).expect("a datagram");
        assert_eq!((found.payload, found.from.port()), (&[5, 6][..], 1));
    }

    #[test]
    fn cut_and_foreign_packets_are_none() {
        for cut in 0..31 {
            assert_eq!(datagram(RAW, &UDP4[..cut]), None, "{cut}");
        }
        let mut tcp = UDP4.to_vec();
        tcp[9] = 6;
        assert_eq!(datagram(RAW, &tcp), None);
        let mut fragment = UDP4.to_vec();
        fragment[7] = 1;
        assert_eq!(datagram(RAW, &fragment), None);
    }
}
