//! Packets of a run as a network card would have seen them: with a header of IPv4 before what the protocol sent.

use super::setting::addresses;
use crate::host::IP_HEADER_BYTES;
use crate::scenario::Plan;
use restp_base::machine::Datagram;
use restp_base::time::Time;
use restp_sim::trace::Captured;
use restp_sim::{DropReason, Way};
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

/// One packet that enters a link.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// When.
    pub at: Time,
    /// The link, by its place in [`Plan::link_names`].
    pub link: usize,
    /// Its direction.
    pub way: Way,
    /// The packet, from its IPv4 header on.
    pub packet: &'a [u8],
    /// Why the link drops it, if it does so at once.
    pub dropped: Option<DropReason>,
}

/// Takes frames, in the order of time.
pub type FrameSink = Box<dyn FnMut(&Frame<'_>) + Send>;

/// Time to live (RFC 1700).
const TTL: u8 = 64;
/// May not be cut into pieces (RFC 791 §3.1).
const DONT_FRAGMENT: u16 = 0x4000;
/// For experiments (RFC 3692): what an address of nobody sends.
const EXPERIMENT: u8 = 253;

/// Puts frames together for `sink`.
pub(super) fn framing(plan: &Plan, mut sink: FrameSink) -> impl FnMut(&Captured<'_>) + Send + 'static {
    let mut protocols = BTreeMap::new();
    for (flow, paths) in plan.flows.iter().zip(addresses(plan)) {
        let own = paths.iter().flat_map(|path| [path.local, path.remote]);
        protocols.extend(own.map(|address| (address, flow.transport.ip_protocol())));
    }
    let mut packet = Vec::new();
    move |captured| {
        let datagram = captured.datagram;
        let protocol = protocols.get(&datagram.path.local).copied();
        packet.clear();
        packet.extend(header(
            datagram,
            captured.ecn as u8,
            protocol.unwrap_or(EXPERIMENT),
        ));
        packet.extend_from_slice(&datagram.head);
        packet.extend_from_slice(&datagram.body);
        sink(&Frame {
            at: captured.at,
            link: captured.link,
            way: captured.way,
            packet: &packet,
            dropped: captured.dropped,
        });
    }
}

/// The header of RFC 791 §3.1, without options.
fn header(datagram: &Datagram, ecn: u8, protocol: u8) -> [u8; IP_HEADER_BYTES] {
    let length = u16::try_from(IP_HEADER_BYTES + datagram.len()).unwrap_or(u16::MAX);
    let flags = if datagram.may_fragment { 0 } else { DONT_FRAGMENT };
    let octets = |address: SocketAddr| match address.ip() {
        IpAddr::V4(v4) => v4.octets(),
        IpAddr::V6(_) => [0; 4],
    };
    let mut header = [0; IP_HEADER_BYTES];
    (header[0], header[1]) = (0x45, ecn);
    header[2..4].copy_from_slice(&length.to_be_bytes());
    header[6..8].copy_from_slice(&flags.to_be_bytes());
    (header[8], header[9]) = (TTL, protocol);
    header[12..16].copy_from_slice(&octets(datagram.path.local));
    header[16..20].copy_from_slice(&octets(datagram.path.remote));
    let words = header
        .chunks_exact(2)
        .map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])));
    let sum: u32 = words.sum();
    let sum = (sum & 0xffff) + (sum >> 16);
    let checksum = !((sum & 0xffff) + (sum >> 16)) as u16;
    header[10..12].copy_from_slice(&checksum.to_be_bytes());
    header
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::address_of;
    use restp_base::machine::PathAddress;

    /// The example of RFC 1071's sum: all words of a header with its check sum add up to ones.
    #[test]
    fn a_header_names_addresses_length_and_protocol_and_sums_up() {
        let datagram = Datagram {
            path: PathAddress {
                local: address_of(0),
                remote: address_of(258),
            },
            body: vec![7; 100].into(),
            ..Datagram::empty()
        };
        let header = header(&datagram, 0b10, 17);
        assert_eq!(header[..10], [0x45, 0b10, 0, 120, 0, 0, 0x40, 0, 64, 17]);
        assert_eq!(header[12..], [10, 0, 0, 1, 10, 0, 1, 3]);
        let sum: u32 = header
            .chunks(2)
            .map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1]))
            .sum();
        assert_eq!((sum & 0xffff) + (sum >> 16), 0xffff);
    }
}
