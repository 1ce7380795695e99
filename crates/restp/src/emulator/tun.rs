//! TUN devices in two network namespaces as the ends of a path: whatever IP traffic the one sends to the other
//! crosses the emulated link, kernel TCP and MPTCP included.
//!
//! One read of a device is one packet on the wire, which is what makes loss and queue limits count packets.

use super::engine::Ends;
use super::line::{Line, Packet};
use super::report::PathPorts;
use super::{EmulatorError, NetConfig, PathConfig};
use crate::tun::{TunConfig, changed_sum};
use bytes::{Bytes, BytesMut};
use restp_base::machine::Ecn;
use restp_base::time::Time;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::File;
use std::io;
use std::net::Ipv4Addr;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};
use tun_rs::SyncDevice;

/// What Ethernet carries; the largest packet a device hands over.
const MTU: u16 = 1500;

/// So long that the device's own queue never drops: the emulated one is the only bottleneck.
const DEVICE_QUEUE_PACKETS: u32 = 10_000;

/// Packets read per device and round.
const READS_PER_ROUND: usize = 256;

/// The two ends of one path.
pub(super) struct TunEnds {
    devices: [SyncDevice; 2],
    names: [String; 2],
    buffer: Box<[u8]>,
}

pub(super) fn attach(config: &NetConfig, path: &PathConfig, index: usize) -> Result<Ends, EmulatorError> {
    let unattached = |missing| EmulatorError::Unattached {
        path: path.name.clone(),
        missing,
    };
    let Some(namespaces) = &config.namespaces else {
        return Err(unattached(
            "has no namespaces; write [tun] with namespaces = [\"left\", \"right\"]",
        ));
    };
    let addresses = match (path.addresses, u8::try_from(index)) {
        (Some(given), _) => given,
        (None, Ok(index)) => [1, 2].map(|end| (Ipv4Addr::new(10, 77, index, end), 24)),
        (None, Err(_)) => {
            return Err(unattached(
                "needs addresses; only the first 256 paths have a default",
            ));
        }
    };
    let device = format!("t{}", path.name);
    let open = |end: usize| {
        let namespace = &namespaces[end];
        within(namespace, || config_of(&device, addresses[end]).create()).map_err(|source| {
            EmulatorError::System {
                path: path.name.clone(),
                what: format!("cannot create TUN device \"{device}\" in namespace \"{namespace}\""),
                source,
            }
        })
    };
    let devices = [open(0)?, open(1)?];
    let names = [0, 1].map(|end| format!("{}/{device} {}", namespaces[end], addresses[end].0));
    Ok(Ends::Tun(TunEnds {
        devices,
        names,
        buffer: vec![0; 65_536].into_boxed_slice(),
    }))
}

fn config_of(name: &str, (address, prefix): (Ipv4Addr, u8)) -> TunConfig {
    TunConfig {
        name: Some(name.to_owned()),
        mtu: MTU,
        address: (address.into(), prefix),
        queue_packets: Some(DEVICE_QUEUE_PACKETS),
    }
}

/// Does `work` inside a namespace made by `ip netns add`. On a thread of its own, which ends with it: a thread
/// that could not return to its namespace would be a trap for whoever runs on it next.
fn within<T: Send>(namespace: &str, work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    if namespace.is_empty() || namespace.contains(['/', '\0']) {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "a namespace is named as in `ip netns list`",
        ));
    }
    let file = File::open(format!("/run/netns/{namespace}"))?;
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))?;
            work()
        });
        thread
            .join()
            .unwrap_or_else(|_| Err(io::Error::other("the thread inside the namespace failed")))
    })
}

impl TunEnds {
    pub(super) fn ports(&self, path: &str) -> PathPorts {
        PathPorts {
            path: path.into(),
            listen: None,
            to: None,
            devices: Some(self.names.clone()),
        }
    }

    /// What to wait for.
    pub(super) fn fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.devices.iter().map(AsFd::as_fd)
    }

    /// Takes what has arrived at both ends. Packets of any IP version; a device without packet information
    /// headers gives nothing else.
    pub(super) fn receive<T>(&mut self, now: impl Fn() -> Time, lines: &mut [Line<Option<T>>; 2])
    where
        T: Clone,
    {
        for (device, line) in self.devices.iter().zip(lines) {
            for _ in 0..READS_PER_ROUND {
                let Ok(len) = device.recv(&mut self.buffer) else {
                    break;
                };
                let packet = &self.buffer[..len];
                line.offer(
                    now(),
                    Packet {
                        bytes: Bytes::copy_from_slice(packet),
                        ecn: ecn(packet),
                        may_fragment: may_fragment(packet),
                        flow: flow(packet),
                        to: None,
                    },
                    0,
                );
            }
        }
    }

    /// Sends a packet that has come through: forward ends at the second device.
    pub(super) fn send<T>(&self, end: usize, packet: &Packet<Option<T>>) -> bool {
        let marked = (packet.ecn == Ecn::Ce && ecn(&packet.bytes) != Ecn::Ce).then(|| mark_ce(&packet.bytes));
        self.devices[end]
            .send(marked.as_ref().unwrap_or(&packet.bytes))
            .is_ok()
    }
}

/// Addresses, protocol and ports as one number (FNV-1a). Of a packet too short for them, what there is.
fn flow(packet: &[u8]) -> u64 {
    let (protocol, addresses, header) = match packet.first().map(|first| first >> 4) {
        Some(6) => (6, 8..40, 40),
        _ => (9, 12..20, usize::from(packet.first().unwrap_or(&0) & 0xf) * 4),
    };
    let part = |range: Range<usize>| packet.get(range).unwrap_or_default();
    [
        part(protocol..protocol + 1),
        part(addresses),
        part(header..header + 4),
    ]
    .into_iter()
    .flatten()
    .fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// The congestion mark in the IP header. RFC 3168 §5, RFC 8200 §7.
fn ecn(packet: &[u8]) -> Ecn {
    let bits = match *packet {
        [first, second, ..] if first >> 4 == 4 => second,
        [first, second, ..] if first >> 4 == 6 => second >> 4,
        _ => 0,
    };
    [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce][usize::from(bits & 0b11)]
}

/// IPv4 without its flag against it (RFC 791 §3.1); no router cuts IPv6.
fn may_fragment(packet: &[u8]) -> bool {
    matches!(*packet, [first, _, _, _, _, _, flags, ..] if first >> 4 == 4 && flags & 0x40 == 0)
}

/// The packet with "congestion experienced". IPv4 has a check sum over its header, which moves along; IPv6 has none.
fn mark_ce(packet: &[u8]) -> Bytes {
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
        let mut six = vec![0x60; 44];
        let first = flow(&six);
        six[43] ^= 1;
        assert_ne!(first, flow(&six));
    }

    #[test]
    fn ip_version_6_has_the_mark_in_its_traffic_class() {
        let packet = [0x60, 0b0010_0000, 0, 0];
        assert_eq!(ecn(&packet), Ecn::Ect0);
        assert_eq!(ecn(&mark_ce(&packet)), Ecn::Ce);
    }

    #[test]
    fn fragments_of_headers_do_no_harm() {
        for packet in [&[][..], &[0x45], &[0x45, 0], &[0x60], &[0xF0; 8]] {
            assert_eq!(ecn(packet), Ecn::NotEct);
            mark_ce(packet);
        }
        assert!(within("../etc", || Ok(())).is_err());
    }
}
