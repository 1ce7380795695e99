//! A second socket at the port of another one, for datagrams that begin otherwise: what comes for one of them takes no room in the
//! buffer of the other, however much it is. The kernel tells them apart (Linux, `SO_REUSEPORT` with a program of classic BPF).
//!
//! The first socket is bound without that permission, so that a port that another program has is still noticed.

use super::Socket;
use std::io;
use std::ops::RangeInclusive;

#[cfg(target_os = "linux")]
impl Socket {
    /// Permits another socket of this program's user at the same port. A system that does not is asked again by [`Socket::beside`].
    pub(crate) fn permit_beside(&self) {
        let _ = socket2::SockRef::from(&self.io).set_reuse_port(true);
    }

    /// A socket at this one's port that gets what begins with one of `first_bytes`, as long as it lives.
    ///
    /// # Errors
    /// When the system does not permit it, such as where another user has bound this one.
    pub(crate) fn beside(&self, first_bytes: &RangeInclusive<u8>) -> io::Result<Self> {
        let raw = Self::unbound(self.local)?;
        raw.set_reuse_port(true)?;
        let bound = socket2::SockRef::from(&self.io);
        if self.local.is_ipv6() {
            raw.set_only_v6(bound.only_v6()?)?;
        }
        if let Some(device) = bound.device()? {
            raw.bind_device(Some(&device))?;
        }
        raw.bind(&self.local.into())?;
        let beside = Self::of(raw)?;
        steer(&beside.io, first_bytes)?;
        Ok(beside)
    }
}

/// Of two sockets at one port, in the order in which they were bound, the second gets what begins with one of `first_bytes`, and the
/// first all else, the empty datagram included.
#[cfg(target_os = "linux")]
fn steer(second: &tokio::net::UdpSocket, first_bytes: &RangeInclusive<u8>) -> io::Result<()> {
    use super::bpf::{JUMP_IF_NOT_LESS, LOAD_BYTE, RETURN, Step};
    use nix::libc::{sock_filter, sock_fprog};
    use nix::sys::socket::{setsockopt, sockopt::AttachReusePortCbpf};
    let (first, behind) = (*first_bytes.start(), u32::from(*first_bytes.end()) + 1);
    // The program sees a datagram from its payload on.
    let steps = [
        Step(LOAD_BYTE, 0, 0, 0),
        Step(JUMP_IF_NOT_LESS, 0, 2, first.into()),
        Step(JUMP_IF_NOT_LESS, 1, 0, behind),
        Step(RETURN, 0, 0, 1),
        Step(RETURN, 0, 0, 0),
    ];
    let mut filter = steps.map(|Step(code, jt, jf, k)| sock_filter { code, jt, jf, k });
    let program = sock_fprog {
        len: filter.len() as u16,
        filter: filter.as_mut_ptr(), // the kernel copies it
    };
    Ok(setsockopt(second, AttachReusePortCbpf, &program)?)
}

#[cfg(not(target_os = "linux"))]
impl Socket {
    pub(crate) fn permit_beside(&self) {}

    pub(crate) fn beside(&self, _: &RangeInclusive<u8>) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

#[cfg(target_os = "linux")]
#[cfg(test)]
mod tests {
    use super::*;
    use std::net::SocketAddr;

    /// First bytes of what comes to `socket` before a datagram that begins with `last`.
    async fn until(socket: &Socket, last: u8) -> Vec<u8> {
        let mut seen = Vec::new();
        loop {
            let mut buffer = [0; 8];
            let received =
                tokio::time::timeout(std::time::Duration::from_secs(10), socket.io.recv(&mut buffer));
            let length = received.await.expect("it comes").unwrap();
            if length > 0 && buffer[0] == last {
                return seen;
            }
            seen.push(if length > 0 { buffer[0] } else { 0 });
        }
    }

    #[tokio::test]
    async fn the_kernel_gives_each_socket_what_begins_as_its_own() {
        for local in ["127.0.0.1:0", "0.0.0.0:0", "[::1]:0", "[::]:0"] {
            let Ok(first) = Socket::bind(local.parse().unwrap(), None) else {
                assert!(local.starts_with('['), "a host without IPv6");
                continue;
            };
            first.permit_beside();
            let second = first.beside(&(0x10..=0x1F)).unwrap();
            assert_eq!(first.local(), second.local());
            let peer = std::net::UdpSocket::bind(local).unwrap();
            let host = if local.contains(':') && local.starts_with('[') {
                "::1"
            } else {
                "127.0.0.1"
            };
            let to = SocketAddr::new(host.parse().unwrap(), first.local().port());
            for byte in [0x0F, 0x10, 0x13, 0x1F, 0x20, 0xC0] {
                peer.send_to(&[byte; 3], to).unwrap();
            }
            peer.send_to(&[], to).unwrap();
            peer.send_to(&[0xFF], to).unwrap();
            assert_eq!(until(&second, 0x1F).await, [0x10, 0x13], "{local}");
            assert_eq!(until(&first, 0xFF).await, [0x0F, 0x20, 0xC0, 0], "{local}");
            drop(second);
            peer.send_to(&[0x11], to).unwrap();
            peer.send_to(&[0xFF], to).unwrap();
            assert_eq!(
                until(&first, 0xFF).await,
                [0x11],
                "all is of the first again, {local}"
            );
        }
    }

    #[tokio::test]
    async fn a_port_that_is_shared_is_taken_for_everybody_else() {
        let first = Socket::bind("127.0.0.1:0".parse().unwrap(), None).unwrap();
        assert!(
            first.beside(&(0x10..=0x1F)).is_err(),
            "not before it is permitted"
        );
        first.permit_beside();
        let _second = first.beside(&(0x10..=0x1F)).unwrap();
        assert!(Socket::bind(first.local(), None).is_err());
    }
}
