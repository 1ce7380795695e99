//! TUN devices in two network namespaces as the ends of a path: whatever IP traffic the one sends to the other
//! crosses the emulated link, kernel TCP and MPTCP included.
//!
//! One read of a device is one packet on the wire, which is what makes loss and queue limits count packets.

use super::engine::Ends;
use super::line::{Line, Packet};
use super::report::PathPorts;
use super::{EmulatorError, NetConfig, PathConfig};
use crate::packet::{ecn, flow, mark_ce, may_fragment};
use crate::tun::TunConfig;
use bytes::Bytes;
use restp_base::machine::Ecn;
use restp_base::time::Time;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::File;
use std::io;
use std::net::Ipv4Addr;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_a_way_to_another_file_is_none_of_a_namespace() {
        assert!(within("../etc", || Ok(())).is_err());
    }
}
