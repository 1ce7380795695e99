//! Maximum segment sizes of TCP connections that cross the tunnel: a SYN that offers more than a packet of the tunnel carries is
//! changed (RFC 9293 §3.7.1). Hosts behind a router whose messages "packet too big" are filtered would hang otherwise.

use super::pieces::Pieces;
use restp::packet::changed_sum;

const TCP: u8 = 6;
const SYN: u8 = 0b10;
const TCP_HEADER_BYTES: usize = 20;
/// Options: end of list, no operation, maximum segment size.
const END: u8 = 0;
const NOTHING: u8 = 1;
const MSS: u8 = 2;

/// Lets a SYN in `packet` offer segments that fit into packets of `mtu` bytes and leave no message with room, as one segment in one and a
/// half messages would. Everything else stays as it is.
pub fn clamp(packet: &mut [u8], pieces: Pieces, mtu: u16) {
    let Some((at, headers)) = tcp(packet) else { return };
    let tcp = &mut packet[at..];
    let length = usize::from(tcp[12] >> 4) * 4;
    if tcp[13] & SYN == 0 || length > tcp.len() {
        return;
    }
    let mut option = TCP_HEADER_BYTES;
    while option + 1 < length {
        match (tcp[option], usize::from(tcp[option + 1])) {
            (END, _) => return,
            (NOTHING, _) => option += 1,
            (MSS, 4) if option + 4 <= length => {
                let offered = u16::from_be_bytes([tcp[option + 2], tcp[option + 3]]);
                let size = pieces.filling(usize::from(offered.saturating_add(headers).min(mtu)));
                return lower(tcp, option + 2, (size as u16).saturating_sub(headers));
            }
            (_, size @ 2..) => option += size,
            _ => return,
        }
    }
}

/// Where the TCP header of a whole or first packet begins, and the bytes of IP and TCP headers without options.
fn tcp(packet: &[u8]) -> Option<(usize, u16)> {
    let (at, protocol, headers) = match packet.first()? >> 4 {
        4 => {
            let fragment = u16::from_be_bytes([*packet.get(6)?, *packet.get(7)?]) & 0x1fff;
            let at = usize::from(packet[0] & 0xf) * 4;
            (at, *packet.get(9).filter(|_| fragment == 0 && at >= 20)?, 40)
        }
        6 => (40, *packet.get(6)?, 60),
        _ => return None,
    };
    (protocol == TCP && packet.len() >= at + TCP_HEADER_BYTES).then_some((at, headers))
}

fn lower(tcp: &mut [u8], at: usize, most: u16) {
    let offered = u16::from_be_bytes([tcp[at], tcp[at + 1]]);
    if offered <= most {
        return;
    }
    tcp[at..at + 2].copy_from_slice(&most.to_be_bytes());
    // At an odd place its bytes stand in the other halves of two words.
    let turned = |word: u16| {
        if at.is_multiple_of(2) {
            word
        } else {
            word.swap_bytes()
        }
    };
    let sum = u16::from_be_bytes([tcp[16], tcp[17]]);
    let sum = changed_sum(sum, turned(offered), turned(most));
    tcp[16..18].copy_from_slice(&sum.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The sum over a TCP segment without its pseudo header, which does not change.
    fn sum(tcp: &[u8]) -> u16 {
        let words = tcp
            .chunks(2)
            .map(|pair| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0)));
        let mut sum: u32 = words.sum();
        while sum > 0xFFFF {
            sum = (sum & 0xFFFF) + (sum >> 16);
        }
        sum as u16
    }

    fn syn(version: u8, options: &[u8]) -> Vec<u8> {
        let mut packet = match version {
            4 => [
                &[0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, TCP, 0, 0][..],
                &[10, 9, 0, 1, 10, 9, 0, 2],
            ]
            .concat(),
            _ => [&[0x60, 0, 0, 0, 0, 24, TCP, 64][..], &[0xfd; 32]].concat(),
        };
        packet.extend([
            0x12, 0x34, 0, 80, 0, 0, 0, 1, 0, 0, 0, 0, 0, SYN, 0xff, 0xff, 0xab, 0xcd, 0, 0,
        ]);
        let at = packet.len() - TCP_HEADER_BYTES;
        packet[at + 12] = (((TCP_HEADER_BYTES + options.len()) / 4) << 4) as u8;
        packet.extend(options);
        packet
    }

    #[test]
    fn what_does_not_fit_is_lowered_and_the_check_sum_holds() {
        for (version, mtu, options, at, expected) in [
            (4, 1340, &[MSS, 4, 5, 180, 1, 1, 1, 0][..], 2, 1300),
            (4, 8035, &[1, MSS, 4, 5, 180, 1, 1, 0], 3, 1300),
            (6, 8035, &[8, 3, 0, MSS, 4, 5, 160, 0], 5, 1280),
            (4, 8035, &[MSS, 4, 35, 0, 0, 0, 0, 0], 2, 7995),
            (4, 1340, &[MSS, 4, 35, 0, 0, 0, 0, 0], 2, 1300),
            (4, 8035, &[MSS, 4, 255, 255, 0, 0, 0, 0], 2, 7995),
            (4, 8035, &[MSS, 4, 2, 24, 0, 0, 0, 0], 2, 536),
        ] {
            let before = syn(version, options);
            let mut packet = before.clone();
            clamp(&mut packet, Pieces::of(1340), mtu);
            let head = packet.len() - options.len();
            let offered = u16::from_be_bytes([packet[head + at], packet[head + at + 1]]);
            assert_eq!(offered, expected, "{options:?}");
            let tcp = head - TCP_HEADER_BYTES;
            let (now, then) = (sum(&packet[tcp..]), sum(&before[tcp..]));
            assert!(
                now == then || [now, then] == [0, 0xFFFF] || [now, then] == [0xFFFF, 0],
                "{now:x} {then:x}"
            );
        }
    }

    #[test]
    fn other_packets_stay_as_they_are() {
        let options = [MSS, 4, 5, 180];
        let mut data = syn(4, &options);
        data[33] = 0; // no SYN
        let mut fragment = syn(4, &options);
        fragment[7] = 1;
        let mut udp = syn(4, &options);
        udp[9] = 17;
        let mut fits = syn(4, &[MSS, 4, 2, 24]);
        fits[36..38].fill(0xff); // the same sum as 0
        let mut in_its_addresses = syn(4, &options);
        in_its_addresses.drain(16..20);
        in_its_addresses[0] = 0x44; // a header of 16 bytes
        let cut_off = syn(4, &options)[..42].to_vec();
        let with_data = [&syn(4, &[NOTHING, NOTHING, MSS, 4])[..], &[0xff; 4]].concat();
        for packet in [
            data,
            fragment,
            udp,
            fits,
            in_its_addresses,
            cut_off,
            with_data,
            syn(4, &[END, 0, MSS, 4]),
            syn(4, &[9, 0, MSS, 4]),
            vec![0x45],
            vec![],
        ] {
            let mut clamped = packet.clone();
            clamp(&mut clamped, Pieces::of(1340), 1340);
            assert_eq!(clamped, packet);
        }
    }

    proptest! {
        #[test]
        fn no_packet_does_harm(mut packet in proptest::collection::vec(any::<u8>(), 0..120), version in 0_u8..3) {
            if let Some(first) = packet.first_mut() {
                *first = [0x45, 0x60, *first][usize::from(version)];
            }
            if packet.len() > 9 {
                packet[9] = TCP;
                packet[6] &= 0x60;
            }
            let length = packet.len();
            clamp(&mut packet, Pieces::of(1340), 1340);
            prop_assert_eq!(packet.len(), length);
        }
    }
}
