//! IP packets as a router sees them: which flow they belong to, and their congestion mark.

use bytes::{Bytes, BytesMut};
use restp_base::machine::Ecn;
use std::ops::Range;

/// Protocols whose header begins with the ports, or with a number of the peer's in their place: TCP, UDP, DCCP, ESP, SCTP, UDP-Lite.
const WITH_PORTS: [u8; 6] = [6, 17, 33, 50, 132, 136];

/// Addresses, protocol and ports as one number (FNV-1a). Of a packet too short for them, what there is. Fragments of a packet are one
/// flow, so ports do not count: only the first one has them. Neither do bytes that change within a flow, such as the check sum of a ping.
pub fn flow(packet: &[u8]) -> u64 {
    let part = |range: Range<usize>| packet.get(range).unwrap_or_default();
    let (protocol, addresses, header, is_fragment) = match packet.first().map_or(0, |first| first >> 4) {
        // A fragment has a header of its own before the next one (RFC 8200 §4.5), whose number is in the place of the protocol's.
        6 => (part(6..7), part(8..40), 40, false),
        _ => (
            part(9..10),
            part(12..20),
            usize::from(packet.first().unwrap_or(&0) & 0xf) * 4,
            matches!(*part(6..8), [flags, offset] if flags & 0x3f != 0 || offset != 0),
        ),
    };
    let has_ports = !is_fragment && protocol.iter().any(|number| WITH_PORTS.contains(number));
    let ports = if has_ports { part(header..header + 4) } else { &[] };
    [protocol, addresses, ports]
        .into_iter()
        .flatten()
        .fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        })
}

/// The congestion mark in the IP header. RFC 3168 §5, RFC 8200 §7.
pub fn ecn(packet: &[u8]) -> Ecn {
    let bits = match *packet {
        [first, second, ..] if first >> 4 == 4 => second,
        [first, second, ..] if first >> 4 == 6 => second >> 4,
        _ => 0,
    };
    [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce][usize::from(bits & 0b11)]
}

/// IPv4 without its flag against it (RFC 791 §3.1); no router cuts IPv6.
pub fn may_fragment(packet: &[u8]) -> bool {
    matches!(*packet, [first, _, _, _, _, _, flags, ..] if first >> 4 == 4 && flags & 0x40 == 0)
}

/// The packet with "congestion experienced". IPv4 has a check sum over its header, which moves along; IPv6 has none.
pub fn mark_ce(packet: &[u8]) -> Bytes {
    let mut packet = BytesMut::from(packet);
    match packet.first().map(|first| first >> 4) {
        Some(4) if packet.len() >= 20 => {
            let word = |packet: &[u8], at: usize| u16::from_be_bytes([packet[at], packet[at + 1]]);
            let before = word(&packet, 0);
            packet[1] |= 0b11;
            let sum = changed_sum(word(&packet, 10), before, word(&packet, 0));
            packet[10..12].copy_from_slice(&sum.to_be_bytes());
        }
        Some(6) if packet.len() >= 2 => packet[1] |= 0b11 << 4,
        _ => {}
    }
    packet.freeze()
}

/// An Internet check sum after one of its 16-bit words has changed (RFC 1624 (3)).
pub fn changed_sum(sum: u16, before: u16, after: u16) -> u16 {
    let mut total = u32::from(!sum) + u32::from(!before) + u32::from(after);
    while total > 0xFFFF {
        total = (total & 0xFFFF) + (total >> 16);
    }
    !(total as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The header of RFC 1071's worked example kind: version 4, ECT(0), 20 bytes, with a valid check sum.
    fn header(tos: u8) -> Vec<u8> {
        let mut header = vec![
            0x45, tos, 0, 40, 0x12, 0x34, 0x40, 0, 64, 6, 0, 0, 10, 77, 0, 1, 10, 77, 0, 2,
        ];
        let sum = !check(&header);
        header[10..12].copy_from_slice(&sum.to_be_bytes());
        header
    }
    fn check(header: &[u8]) -> u16 {
        let mut sum: u32 = header
            .chunks(2)
            .map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])))
            .sum();
        while sum > 0xFFFF {
            sum = (sum & 0xFFFF) + (sum >> 16);
        }
        sum as u16
    }

    #[test]
    fn a_marked_header_keeps_a_valid_check_sum() {
        let marked = mark_ce(&header(0b10));
        assert_eq!((ecn(&header(0b10)), ecn(&marked)), (Ecn::Ect0, Ecn::Ce));
        assert_eq!(check(&marked), 0xFFFF);
        assert_eq!(marked, header(0b11));
    }

    #[test]
    fn a_flow_is_addresses_protocol_and_ports() {
        let segment = |ports: [u8; 4], rest: u8| [&header(rest)[..], &ports, &[rest; 16]].concat();
        let one = flow(&segment([0, 1, 0, 2], 0));
        assert_eq!(one, flow(&segment([0, 1, 0, 2], 9)), "no other byte counts");
        assert_ne!(one, flow(&segment([0, 1, 0, 3], 0)));
        let mut elsewhere = segment([0, 1, 0, 2], 0);
        elsewhere[19] ^= 1;
        assert_ne!(one, flow(&elsewhere));
        let mut other_protocol = segment([0, 1, 0, 2], 0);
        other_protocol[9] = 17;
        assert_ne!(one, flow(&other_protocol));
        let mut six = vec![0x60; 44];
        six[6] = 17;
        for (at, counts) in [
            (43, true),
            (40, true),
            (39, true),
            (8, true),
            (6, true),
            (7, false),
            (4, false),
        ] {
            let mut other = six.clone();
            other[at] ^= 1;
            assert_eq!(flow(&six) != flow(&other), counts, "{at}");
        }
    }

    /// Each was a flow of its own, which overtakes those that stay in a fair queue: a flood of pings or of fragments left no room to others.
    #[test]
    fn fragments_of_a_packet_and_pings_are_one_flow() {
        let with = |at: usize, value: u8, rest: [u8; 4]| {
            let mut packet = [&header(0)[..], &rest].concat();
            packet[at] = value;
            packet
        };
        for (at, value) in [(6, 0x20), (6, 0x01), (7, 0xb9), (9, 1)] {
            let (one, other) = (with(at, value, [0, 1, 0, 2]), with(at, value, [9, 9, 9, 9]));
            assert_eq!(flow(&one), flow(&other), "byte {at} = {value}");
        }
        let whole = |value| (with(6, value, [0, 1, 0, 2]), with(6, value, [0, 1, 0, 3]));
        for (one, other) in [whole(0x40), whole(0)] {
            assert_ne!(flow(&one), flow(&other));
        }
        for next_header in [44, 58] {
            let mut six = vec![0x60; 48];
            six[6] = next_header;
            let first = flow(&six);
            six[42] ^= 1;
            assert_eq!(first, flow(&six));
        }
    }

    #[test]
    fn ip_version_6_has_the_mark_in_its_traffic_class() {
        let packet = [0x60, 0b0010_0000, 0, 0];
        assert_eq!(ecn(&packet), Ecn::Ect0);
        assert_eq!(ecn(&mark_ce(&packet)), Ecn::Ce);
    }

    #[test]
    fn routers_cut_ip_version_4_without_its_flag_against_it() {
        let mut packet = header(0);
        assert!(!may_fragment(&packet));
        packet[6] = 0;
        assert!(may_fragment(&packet));
        packet[0] = 0x60;
        assert!(!may_fragment(&packet) && !may_fragment(&[0x45, 0, 0, 0, 0, 0]));
    }

    #[test]
    fn a_header_that_is_cut_off_is_not_marked() {
        let cut = &header(0b10)[..19];
        assert_eq!(mark_ce(cut), cut);
        assert_eq!(mark_ce(&[0x60]), &[0x60][..]);
    }

    #[test]
    fn fragments_of_headers_do_no_harm() {
        for packet in [&[][..], &[0x45], &[0x45, 0], &[0x60], &[0xF0; 8]] {
            assert_eq!(ecn(packet), Ecn::NotEct);
            mark_ce(packet);
        }
    }
}
