//! UDP ports as the ends of a path. Every client that sends to the path's port gets a socket of its own towards
//! the destination, so that answers find their way back: the last sender need not be the only one.

use super::engine::Ends;
use super::line::{Line, Packet};
use super::report::PathPorts;
use super::{EmulatorError, PathConfig};
use crate::socket::{Inbox, ecn_of};
use quinn_udp::{EcnCodepoint, Transmit, UdpSocketState};
use restp_base::time::Time;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

/// Bytes of IP (v4) and UDP headers: they occupy the link as well.
const HEADER_BYTES: usize = 28;

/// Clients told apart on one path; a further one takes the place of the one that has been silent longest.
const MAX_CLIENTS: usize = 64;

/// Receive calls per socket and round. A call brings at most sixteen messages.
const CALLS_PER_ROUND: usize = 16;

/// Asked of the kernel for each direction, as for a ResTP endpoint.
const SOCKET_BUFFER_BYTES: usize = 4 << 20;

/// The two ends of one path.
pub(super) struct UdpEnds {
    listen: Port,
    to: SocketAddr,
    clients: Vec<Arc<Client>>,
    inbox: Inbox,
}

/// Someone who sends to the path, and the socket that stands for them at the far end.
pub(super) struct Client {
    address: SocketAddr,
    port: Port,
}

struct Port {
    socket: UdpSocket,
    state: UdpSocketState,
}

pub(super) fn attach(path: &PathConfig) -> Result<Ends, EmulatorError> {
    let (Some(listen), Some(to)) = (path.listen, path.to) else {
        let missing = "has no ports; write listen = \"127.0.0.1:7001\" and to = \"127.0.0.1:7002\"";
        return Err(EmulatorError::Unattached {
            path: path.name.clone(),
            missing,
        });
    };
    if to.port() == 0 {
        let missing =
            "has no destination; port 0 stands for \"any free port\" and only makes sense in listen";
        return Err(EmulatorError::Unattached {
            path: path.name.clone(),
            missing,
        });
    }
    let what = format!("cannot listen on {listen}");
    let port = Port::bind(listen).map_err(|source| EmulatorError::System {
        path: path.name.clone(),
        what,
        source,
    })?;
    Ok(Ends::Udp(UdpEnds {
        listen: port,
        to,
        clients: Vec::new(),
        inbox: Inbox::new(),
    }))
}

impl UdpEnds {
    pub(super) fn ports(&self, path: &str) -> PathPorts {
        let listen = self.listen.socket.local_addr().ok();
        PathPorts {
            path: path.into(),
            listen,
            to: Some(self.to),
            devices: None,
        }
    }

    /// What to wait for.
    pub(super) fn fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        std::iter::once(&self.listen)
            .chain(self.clients.iter().map(|client| &client.port))
            .map(|port| port.socket.as_fd())
    }

    /// Takes what has arrived at both ends.
    pub(super) fn receive(&mut self, now: impl Fn() -> Time, lines: &mut [Line<Option<Arc<Client>>>; 2]) {
        let [forward, reverse] = lines;
        for _ in 0..CALLS_PER_ROUND {
            if self.listen.receive(&mut self.inbox).is_err() {
                break;
            }
            let arrived = now();
            // Collected, since a new client changes this value.
            for (meta, bytes) in self.inbox.messages().collect::<Vec<_>>() {
                let Some(client) = self.client(meta.addr) else {
                    continue;
                };
                offer(arrived, forward, &client, &meta, bytes);
            }
        }
        for client in &self.clients {
            for _ in 0..CALLS_PER_ROUND {
                if client.port.receive(&mut self.inbox).is_err() {
                    break;
                }
                let arrived = now();
                for (meta, bytes) in self.inbox.messages() {
                    // Only the destination has something to say here.
                    if meta.addr == self.to {
                        offer(arrived, reverse, client, &meta, bytes);
                    }
                }
            }
        }
    }

    /// Sends a packet that has come through to the destination.
    pub(super) fn send_forward(&self, packet: &Packet<Option<Arc<Client>>>) -> bool {
        packet
            .to
            .as_ref()
            .is_some_and(|client| client.port.send(packet, self.to))
    }

    /// Sends a packet that has come through back to its client.
    pub(super) fn send_reverse(&self, packet: &Packet<Option<Arc<Client>>>) -> bool {
        packet
            .to
            .as_ref()
            .is_some_and(|client| self.listen.send(packet, client.address))
    }

    /// The client of this address, moved to the end: the first of the list has been silent longest. `None` when
    /// the system has no socket for it.
    fn client(&mut self, address: SocketAddr) -> Option<Arc<Client>> {
        let known = self.clients.iter().rposition(|client| client.address == address);
        let client = match known {
            Some(last) if last + 1 == self.clients.len() => return self.clients.last().cloned(),
            Some(index) => self.clients.remove(index),
            None => {
                let any: SocketAddr = match self.to {
                    SocketAddr::V4(_) if self.to.ip().is_loopback() => (Ipv4Addr::LOCALHOST, 0).into(),
                    SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
                    SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
                };
                let port = Port::bind(any)
                    .inspect_err(|error| tracing::warn!(%error, %address, "no socket for a client"));
                if self.clients.len() >= MAX_CLIENTS {
                    self.clients.remove(0);
                }
                Arc::new(Client {
                    address,
                    port: port.ok()?,
                })
            }
        };
        self.clients.push(client.clone());
        Some(client)
    }
}

/// Coalesced datagrams are separate packets on the link.
fn offer(
    now: Time,
    line: &mut Line<Option<Arc<Client>>>,
    client: &Arc<Client>,
    meta: &quinn_udp::RecvMeta,
    mut bytes: bytes::Bytes,
) {
    loop {
        let part = bytes.split_to(meta.stride.min(bytes.len()));
        line.offer(
            now,
            Packet {
                bytes: part,
                ecn: ecn_of(meta),
                may_fragment: false, // the flag does not show here; most networks set it for UDP
                flow: u64::from(client.address.port()),
                to: Some(client.clone()),
            },
            HEADER_BYTES,
        );
        if bytes.is_empty() || meta.stride == 0 {
            return;
        }
    }
}

impl Port {
    fn bind(address: SocketAddr) -> io::Result<Self> {
        let socket = UdpSocket::bind(address)?;
        let state = UdpSocketState::new((&socket).into())?;
        // A kernel that grants less loses more under bursts, and the counters of both ends show it.
        let _ = state.set_recv_buffer_size((&socket).into(), SOCKET_BUFFER_BYTES);
        let _ = state.set_send_buffer_size((&socket).into(), SOCKET_BUFFER_BYTES);
        Ok(Port { socket, state })
    }

    fn receive(&self, inbox: &mut Inbox) -> io::Result<()> {
        inbox.fill(|slices, meta| self.state.recv((&self.socket).into(), slices, meta))
    }

    fn send(&self, packet: &Packet<Option<Arc<Client>>>, destination: SocketAddr) -> bool {
        let ecn = EcnCodepoint::from_bits(packet.ecn as u8);
        let transmit = Transmit {
            destination,
            ecn,
            contents: &packet.bytes,
            segment_size: None,
            src_ip: None,
        };
        self.state.try_send((&self.socket).into(), &transmit).is_ok()
    }
}
