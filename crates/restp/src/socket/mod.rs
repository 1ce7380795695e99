//! UDP with everything the system offers for batches: segmentation offload on the way out, coalesced receives
//! on the way in, congestion marks both ways.
//!
//! | Module | Holds |
//! |---|---|
//! | `beside` | a second socket at the port of another one |
//! | `bpf` | programs for the kernel |
//! | `families` | IPv4 on a socket of IPv6 |
//! | `fault` | what an error of a send says about its path |
//! | `fragments` | whether the network may cut datagrams into pieces |
//! | `inbox` | receive buffers that become payloads without a copy |
//! | `outbox` | datagrams of one path packed into one buffer and one call |
//! | `reply` | single datagrams, whose answers leave from where they were asked |
//! | `screen` | whose turn it is while unknown peers send too much |
//!
//! Whatever the network or the kernel answers is a counted drop here, never the end of the socket.

mod beside;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod bpf;
mod families;
mod fault;
mod fragments;
mod inbox;
mod moved;
mod outbox;
mod reply;
mod screen;

pub(crate) use fault::Fault;
use fragments::Fragments;
pub(crate) use inbox::Inbox;
use moved::Moved;
pub(crate) use outbox::{Batch, Outbox};
pub use reply::ReplySocket;
pub(crate) use screen::Screen;

use quinn_udp::{EcnCodepoint, RecvMeta, Transmit, UdpSocketState};
use restp_base::machine::{Ecn, PathAddress};
use restp_base::time::Time;
use std::io::{self, IoSliceMut};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::task::{Context, Poll, ready};
use tokio::io::Interest;

/// Asked of the kernel for each direction. The default (208 KiB) holds four coalesced receives; 4 MiB hold a
/// bandwidth-delay product of 320 Mbit/s at 100 ms. The kernel grants what `net.core.rmem_max` allows.
const SOCKET_BUFFER_BYTES: usize = 4 << 20;

/// What became of datagrams at the sockets. Counters only ever grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SocketStats {
    /// Datagrams handed to the kernel.
    pub sent_datagrams: u64,
    /// Calls that handed them over; with segmentation offload one call takes many.
    pub send_calls: u64,
    /// Datagrams the kernel refused (no route, no buffer, too long, forbidden) or that no local socket could
    /// carry. To the protocol they are lost.
    pub send_drops: u64,
    /// Times the machine was told that a path refuses what is sent on it.
    pub refusals: u64,
    /// Times a send had to wait for room in the kernel's buffer.
    pub send_waits: u64,
    /// Datagrams received and handed to the protocol.
    pub received_datagrams: u64,
    /// Calls that brought them.
    pub receive_calls: u64,
    /// Datagrams not handed on: empty, from port 0, where no answer can go, or of unknown peers in a flood whose turn it is not;
    /// of these the kernel drops most before.
    pub receive_drops: u64,
    /// Errors reported by receiving.
    pub receive_errors: u64,
}

/// One UDP socket bound to one local address.
#[derive(Debug)]
pub(crate) struct Socket {
    io: tokio::net::UdpSocket,
    state: UdpSocketState,
    local: SocketAddr,
    /// Of IPv4, too.
    is_dual: bool,
    moved: Moved,
    fragments: Fragments,
}

impl Socket {
    /// Binds `address` and registers with the current tokio runtime. With a `device`, datagrams leave and arrive there
    /// whatever the routing table says, where the system permits that; otherwise its address alone decides.
    ///
    /// # Errors
    /// When the address is in use, not local or not allowed, or outside of a runtime with I/O.
    pub(crate) fn bind(address: SocketAddr, device: Option<&str>) -> io::Result<Self> {
        let raw = Self::unbound(address)?;
        #[cfg(target_os = "linux")]
        if let Some(device) = device
            && let Err(error) = raw.bind_device(Some(device.as_bytes()))
        {
            tracing::debug!(%error, device, "the address alone keeps datagrams on the device");
        }
        #[cfg(not(target_os = "linux"))]
        let _ = device;
        raw.bind(&address.into())?;
        Self::of(raw)
    }

    /// One for addresses like this one.
    fn unbound(address: SocketAddr) -> io::Result<socket2::Socket> {
        let raw = socket2::Socket::new(
            socket2::Domain::for_address(address),
            socket2::Type::DGRAM,
            Some(socket2::Protocol::UDP),
        )?;
        // A kernel that grants less still works, with more loss under bursts.
        let _ = raw.set_recv_buffer_size(SOCKET_BUFFER_BYTES);
        let _ = raw.set_send_buffer_size(SOCKET_BUFFER_BYTES);
        raw.set_nonblocking(true)?;
        if address.is_ipv6() {
            raw.set_only_v6(true)?; // IPv4 has a socket of its own, which may be at the same port
        }
        Ok(raw)
    }

    /// Takes a socket that somebody else has bound, with the buffers it has.
    ///
    /// # Errors
    /// When it is none of UDP, or outside of a runtime with I/O.
    pub(crate) fn adopt(raw: socket2::Socket) -> io::Result<Self> {
        if raw.r#type()? != socket2::Type::DGRAM {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "a socket of UDP is needed",
            ));
        }
        raw.set_nonblocking(true)?;
        Self::of(raw)
    }

    fn of(raw: socket2::Socket) -> io::Result<Self> {
        let state = UdpSocketState::new((&raw).into())?;
        let is_wildcard =
            |local: Option<SocketAddr>| local.is_some_and(|local| local.ip() == Ipv6Addr::UNSPECIFIED);
        let is_dual = is_wildcard(raw.local_addr()?.as_socket()) && !raw.only_v6()?;
        let io = tokio::net::UdpSocket::from_std(raw.into())?;
        let local = io.local_addr()?;
        Ok(Socket {
            io,
            state,
            local,
            is_dual,
            moved: Moved::default(),
            fragments: Fragments::default(),
        })
    }

    /// The bound address, with the port the system chose.
    pub(crate) fn local(&self) -> SocketAddr {
        self.local
    }

    /// The same, and the wildcard of IPv4 where it is one of both families.
    pub(crate) fn bound(&self) -> impl Iterator<Item = SocketAddr> + use<> {
        let v4 = SocketAddr::from((Ipv4Addr::UNSPECIFIED, self.local.port()));
        self.is_dual.then_some(v4).into_iter().chain([self.local])
    }

    /// Is it one for addresses of the family of `ip`?
    pub(crate) fn has_family_of(&self, ip: IpAddr) -> bool {
        self.is_dual || self.local.is_ipv4() == ip.is_ipv4()
    }

    /// Can a datagram of this path leave here?
    pub(crate) fn serves(&self, path: &PathAddress) -> bool {
        self.local == path.local
            || (self.local.ip().is_unspecified()
                && self.local.port() == path.local.port()
                && self.has_family_of(path.local.ip()))
    }

    /// The address that datagrams to `remote` leave from: the bound one, or for a socket bound to the wildcard
    /// the one the routing table chooses now.
    ///
    /// # Errors
    /// When there is no route.
    pub(crate) fn source_for(&self, remote: SocketAddr) -> io::Result<SocketAddr> {
        if !self.local.ip().is_unspecified() {
            return Ok(self.local);
        }
        // Connecting a datagram socket sends nothing; it only asks the routing table.
        let anywhere: IpAddr = match remote {
            SocketAddr::V4(_) if self.is_dual => Ipv4Addr::UNSPECIFIED.into(),
            _ => self.local.ip(),
        };
        let probe = std::net::UdpSocket::bind(SocketAddr::new(anywhere, 0))?;
        probe.connect(remote)?;
        Ok(SocketAddr::new(probe.local_addr()?.ip(), self.local.port()))
    }

    /// Segments one call may carry: 1 without segmentation offload, or once the kernel or the device refused it.
    pub(crate) fn max_segments(&self) -> usize {
        self.state.max_gso_segments()
    }

    /// Sends what is left of `batch`. `Pending`: the kernel's buffer is full, the rest of the batch is kept and
    /// the task wakes when there is room.
    pub(crate) fn poll_send(
        &self,
        cx: &mut Context<'_>,
        batch: &mut Batch,
        stats: &mut SocketStats,
    ) -> Poll<()> {
        let (path, ecn, segment_bytes) = (*batch.path(), codepoint(batch.ecn()), batch.segment_bytes());
        let source = self.local.ip().is_unspecified().then(|| self.moved.source(&path));
        let src_ip = source.filter(|ip| !ip.is_unspecified()); // else the routing table chooses
        let src_ip = src_ip.map(|ip| families::ip_for(self.local, ip));
        let destination = families::address_for(self.local, path.remote);
        let mut call = |contents: &[u8], segments| {
            let segment_size = (segments > 1).then_some(segment_bytes);
            let transmit = Transmit {
                destination,
                ecn,
                contents,
                segment_size,
                src_ip,
            };
            self.io.try_io(Interest::WRITABLE, || {
                self.state.try_send((&self.io).into(), &transmit)
            })
        };
        self.fragments.allow(&self.io, batch.may_fragment());
        while batch.send(stats, || self.max_segments(), &mut call).is_pending() {
            match self.io.poll_send_ready(cx) {
                // Room appeared between the two calls.
                Poll::Ready(Ok(())) => {}
                // The runtime is ending.
                Poll::Ready(Err(_)) => stats.send_drops += batch.give_up(),
                Poll::Pending => {
                    stats.send_waits += 1;
                    return Poll::Pending;
                }
            }
        }
        Poll::Ready(())
    }

    /// Fills `inbox` with what has arrived. `Pending`: nothing has, and the task wakes when something does.
    ///
    /// # Errors
    /// What the kernel reports; the socket stays usable.
    pub(crate) fn poll_receive(&self, cx: &mut Context<'_>, inbox: &mut Inbox) -> Poll<io::Result<()>> {
        loop {
            if let Err(error) = ready!(self.io.poll_recv_ready(cx)) {
                return Poll::Ready(Err(error));
            }
            let received = inbox.fill(|slices: &mut [IoSliceMut<'_>], meta: &mut [RecvMeta]| {
                self.io.try_io(Interest::READABLE, || {
                    self.state.recv((&self.io).into(), slices, meta)
                })
            });
            match received {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
                other => return Poll::Ready(other),
            }
        }
    }

    /// Lets `screen` keep out what is too much.
    pub(crate) fn screened_by(&self, screen: &mut Screen, now: Time) {
        screen.turn(now, &self.io);
    }

    /// The path of a received message, seen from here.
    pub(crate) fn path(&self, meta: &RecvMeta) -> PathAddress {
        let port = self.local.port();
        let local = match meta.dst_ip {
            Some(ip) if self.is_dual => SocketAddr::new(ip.to_canonical(), port),
            Some(ip) if self.local.ip().is_unspecified() => {
                SocketAddr::new(families::ip_for(self.local, ip), port)
            }
            _ => self.local,
        };
        let remote = if self.is_dual {
            families::named(meta.addr)
        } else {
            meta.addr
        };
        self.moved.named(PathAddress { local, remote })
    }

    /// These paths leave from other addresses than they are named by.
    pub(crate) fn set_moved(&self, paths: Vec<(PathAddress, SocketAddr)>) {
        self.moved.set(paths);
    }
}

/// The mark a received message carried.
pub(crate) fn ecn_of(meta: &RecvMeta) -> Ecn {
    match meta.ecn {
        None => Ecn::NotEct,
        Some(EcnCodepoint::Ect0) => Ecn::Ect0,
        Some(EcnCodepoint::Ect1) => Ecn::Ect1,
        Some(EcnCodepoint::Ce) => Ecn::Ce,
    }
}

fn codepoint(ecn: Ecn) -> Option<EcnCodepoint> {
    EcnCodepoint::from_bits(ecn as u8)
}
