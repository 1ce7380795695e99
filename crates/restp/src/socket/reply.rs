//! A socket whose answers leave from the address that was asked. Where a host has several the kernel would choose one, and an
//! answer from another address than was asked is none (RFC 1122 §4.1.3.5).

use super::families;
use restp_base::machine::PathAddress;
use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use tokio::net::UdpSocket;

/// Single datagrams at one port.
#[derive(Debug)]
pub struct ReplySocket {
    io: UdpSocket,
    local: SocketAddr,
}

impl ReplySocket {
    /// Binds `address`. `[::]` stands for the addresses of both families, where the system has it so.
    ///
    /// # Errors
    /// When the address is in use, not local or not allowed, or outside of a runtime with I/O.
    pub fn bind(address: SocketAddr) -> io::Result<Self> {
        let domain = socket2::Domain::for_address(address);
        let raw = socket2::Socket::new(domain, socket2::Type::DGRAM, Some(socket2::Protocol::UDP))?;
        raw.set_nonblocking(true)?;
        if address.ip() == Ipv6Addr::UNSPECIFIED {
            let _ = raw.set_only_v6(false); // else it is of one family
        }
        raw.bind(&address.into())?;
        let io = UdpSocket::from_std(raw.into())?;
        let local = io.local_addr()?;
        if local.ip().is_unspecified() {
            system::tell_where(&io, local)?;
        }
        Ok(ReplySocket { io, local })
    }

    /// The bound address, with the port the system chose.
    pub fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// Waits for a datagram.
    ///
    /// # Errors
    /// What the system reports: as a rule of something that was sent before.
    pub async fn readable(&self) -> io::Result<()> {
        self.io.readable().await
    }

    /// The next datagram, how long it is, and its path: it came to the path's local address. What finds no room is cut off.
    ///
    /// # Errors
    /// As for [`ReplySocket::readable`].
    pub async fn receive(&self, buffer: &mut [u8]) -> io::Result<(usize, PathAddress)> {
        loop {
            match self.try_receive(buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.readable().await?,
                received => return received,
            }
        }
    }

    /// The same without waiting.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] when there is none, and as for [`ReplySocket::readable`].
    pub fn try_receive(&self, buffer: &mut [u8]) -> io::Result<(usize, PathAddress)> {
        let (bytes, from, to) = system::receive(&self.io, buffer)?;
        let ip = to.unwrap_or(self.local.ip()).to_canonical();
        let local = SocketAddr::new(ip, self.local.port());
        let remote = families::named(from);
        Ok((bytes, PathAddress { local, remote }))
    }

    /// Sends a datagram on `path`, from its local address; where that says no address the routing table chooses.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] when there is no room, and what the system refuses.
    pub fn try_send(&self, datagram: &[u8], path: &PathAddress) -> io::Result<usize> {
        let to = families::address_for(self.local, path.remote);
        let is_needed = self.local.ip().is_unspecified() && !path.local.ip().is_unspecified();
        let from = families::ip_for(self.local, path.local.ip());
        system::send(&self.io, datagram, is_needed.then_some(from), to)
    }

    /// The same, when there is room.
    ///
    /// # Errors
    /// What the system refuses.
    pub async fn send(&self, datagram: &[u8], path: &PathAddress) -> io::Result<usize> {
        loop {
            match self.try_send(datagram, path) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.io.writable().await?,
                sent => return sent,
            }
        }
    }
}

/// Linux says where a datagram was sent to, and lets it be chosen where one is sent from.
#[cfg(target_os = "linux")]
mod system {
    use super::{IpAddr, SocketAddr, UdpSocket, io};
    use nix::libc::{in_addr, in_pktinfo, in6_addr, in6_pktinfo};
    use nix::sys::socket::{
        ControlMessage, ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, sendmsg, setsockopt, sockopt,
    };
    use std::io::{IoSlice, IoSliceMut};
    use std::net::{Ipv4Addr, Ipv6Addr};
    use std::os::fd::AsRawFd;
    use tokio::io::Interest;

    /// Datagrams are to come with the address that they were sent to.
    pub fn tell_where(socket: &UdpSocket, local: SocketAddr) -> io::Result<()> {
        match local {
            SocketAddr::V4(_) => setsockopt(socket, sockopt::Ipv4PacketInfo, &true)?,
            SocketAddr::V6(_) => {
                setsockopt(socket, sockopt::Ipv6RecvPacketInfo, &true)?;
                let _ = setsockopt(socket, sockopt::Ipv4PacketInfo, &true); // of IPv4 peers, if it has any
            }
        }
        Ok(())
    }

    /// A datagram: its length, who sent it, and where to if the system was asked.
    pub fn receive(socket: &UdpSocket, buffer: &mut [u8]) -> io::Result<(usize, SocketAddr, Option<IpAddr>)> {
        let mut space = nix::cmsg_space!(in6_pktinfo, in_pktinfo);
        let mut parts = [IoSliceMut::new(buffer)];
        let received = socket.try_io(Interest::READABLE, || {
            let (handle, flags) = (socket.as_raw_fd(), MsgFlags::empty());
            Ok(recvmsg::<SockaddrStorage>(
                handle,
                &mut parts,
                Some(&mut space),
                flags,
            )?)
        })?;
        // Of what was sent to many hosts, the address that an answer may leave from: only the message of IPv4 knows it.
        let (mut v4, mut v6) = (None, None);
        for message in received.cmsgs().ok().into_iter().flatten() {
            match message {
                ControlMessageOwned::Ipv4PacketInfo(info) => {
                    v4 = Some(Ipv4Addr::from(info.ipi_spec_dst.s_addr.to_ne_bytes()).into());
                }
                ControlMessageOwned::Ipv6PacketInfo(info) => {
                    v6 = Some(Ipv6Addr::from(info.ipi6_addr.s6_addr))
                }
                _ => {}
            }
        }
        let to = v4.or(v6.filter(|ip| !ip.is_multicast()).map(IpAddr::V6));
        let from = received.address.as_ref().and_then(address);
        let from = from.ok_or(io::ErrorKind::InvalidData)?;
        Ok((received.bytes, from, to))
    }

    /// Sends from the address `from`, or the one that the routing table chooses.
    pub fn send(
        socket: &UdpSocket,
        datagram: &[u8],
        from: Option<IpAddr>,
        to: SocketAddr,
    ) -> io::Result<usize> {
        let (parts, to, flags) = (
            [IoSlice::new(datagram)],
            SockaddrStorage::from(to),
            MsgFlags::empty(),
        );
        let send = |said: &[ControlMessage<'_>]| {
            let send = || Ok(sendmsg(socket.as_raw_fd(), &parts, said, flags, Some(&to))?);
            socket.try_io(Interest::WRITABLE, send)
        };
        match from {
            None => send(&[]),
            Some(IpAddr::V4(from)) => send(&[ControlMessage::Ipv4PacketInfo(&in_pktinfo {
                ipi_ifindex: 0,
                ipi_spec_dst: in_addr {
                    s_addr: u32::from_ne_bytes(from.octets()),
                },
                ipi_addr: in_addr { s_addr: 0 },
            })]),
            Some(IpAddr::V6(from)) => send(&[ControlMessage::Ipv6PacketInfo(&in6_pktinfo {
                ipi6_ifindex: 0,
                ipi6_addr: in6_addr {
                    s6_addr: from.octets(),
                },
            })]),
        }
    }

    fn address(found: &SockaddrStorage) -> Option<SocketAddr> {
        let v4 = found.as_sockaddr_in().map(|v4| SocketAddr::V4((*v4).into()));
        let v6 = || found.as_sockaddr_in6().map(|v6| SocketAddr::V6((*v6).into()));
        v4.or_else(v6)
    }
}

/// Elsewhere the routing table chooses.
#[cfg(not(target_os = "linux"))]
mod system {
    use super::{IpAddr, SocketAddr, UdpSocket, io};

    pub fn tell_where(_: &UdpSocket, _: SocketAddr) -> io::Result<()> {
        Ok(())
    }

    pub fn receive(socket: &UdpSocket, buffer: &mut [u8]) -> io::Result<(usize, SocketAddr, Option<IpAddr>)> {
        let (bytes, from) = socket.try_recv_from(buffer)?;
        Ok((bytes, from, None))
    }

    pub fn send(socket: &UdpSocket, datagram: &[u8], _: Option<IpAddr>, to: SocketAddr) -> io::Result<usize> {
        socket.try_send_to(datagram, to)
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    #![allow(clippy::unwrap_used, reason = "in a test a failed unwrap is a failed test")]

    use super::*;

    async fn asks(at: &ReplySocket, client: &str, ip: &str) {
        let client = UdpSocket::bind(client).await.unwrap();
        let asked = SocketAddr::new(ip.parse().unwrap(), at.local_addr().port());
        client.send_to(b"where?", asked).await.unwrap();
        let mut buffer = [0; 16];
        let (bytes, path) = at.receive(&mut buffer).await.unwrap();
        assert_eq!(&buffer[..bytes], b"where?");
        assert_eq!(
            path,
            PathAddress {
                local: asked,
                remote: client.local_addr().unwrap()
            }
        );
        at.send(b"here", &path).await.unwrap();
        let (bytes, from) = client.recv_from(&mut buffer).await.unwrap();
        assert_eq!((&buffer[..bytes], from), (&b"here"[..], asked));
    }

    /// From the address that was asked nobody could answer.
    async fn asks_all(at: &ReplySocket) {
        let client = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        client.set_broadcast(true).unwrap();
        let all = SocketAddr::from(([127, 255, 255, 255], at.local_addr().port()));
        client.send_to(b"anybody?", all).await.unwrap();
        let (_, path) = at.receive(&mut [0; 16]).await.unwrap();
        assert!(path.local != all);
        at.send(b"here", &path).await.unwrap();
        let (_, from) = client.recv_from(&mut [0; 16]).await.unwrap();
        assert_eq!(from, path.local);
    }

    /// The routing table would have it leave from 127.0.0.1.
    #[tokio::test]
    async fn an_answer_leaves_from_the_address_that_was_asked() {
        let everywhere = ReplySocket::bind(([0, 0, 0, 0], 0).into()).unwrap();
        asks(&everywhere, "127.0.0.1:0", "127.0.0.7").await;
        asks(&everywhere, "127.0.0.1:0", "127.0.0.1").await;
        asks_all(&everywhere).await;
        let one = ReplySocket::bind(([127, 0, 0, 7], 0).into()).unwrap();
        asks(&one, "127.0.0.1:0", "127.0.0.7").await;
        assert!(one.try_receive(&mut [0; 1]).is_err(), "there is no more");
    }

    #[tokio::test]
    async fn a_socket_of_both_families_answers_in_both() {
        let Ok(everywhere) = ReplySocket::bind("[::]:0".parse().unwrap()) else {
            return println!("SKIPPED: no IPv6 here");
        };
        asks(&everywhere, "127.0.0.1:0", "127.0.0.7").await;
        asks_all(&everywhere).await;
        if UdpSocket::bind("[::1]:0").await.is_ok() {
            asks(&everywhere, "[::1]:0", "::1").await;
        }
    }
}
