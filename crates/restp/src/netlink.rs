//! When links, addresses or routes of this host change: the kernel's rtnetlink groups (rtnetlink(7)). A message only
//! wakes; what is true now is read anew, so that a message missed in a burst does no harm. Needs no privilege.

use std::io;

/// Changes of this host's network. Where the system tells of none, nothing is watched, which is no error of a transfer.
#[cfg(target_os = "linux")]
pub(crate) struct Changes(tokio::net::UnixDatagram);

#[cfg(target_os = "linux")]
impl Changes {
    /// From now on. Inside of a runtime with I/O.
    ///
    /// # Errors
    /// When the system, or the container, has no netlink.
    pub(crate) fn subscribe() -> io::Result<Self> {
        use rustix::net::netlink::SocketAddrNetlink;
        use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, socket_with};
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        // Protocol 0 is NETLINK_ROUTE.
        let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, None)?;
        bind(&socket, &SocketAddrNetlink::new(0, GROUPS))?;
        // Only receives without a sender's address are asked of it, which are the same for all datagram sockets.
        let socket = std::os::unix::net::UnixDatagram::from(socket);
        Ok(Changes(tokio::net::UnixDatagram::from_std(socket)?))
    }

    /// Waits for the next change, and takes all that are known by then.
    ///
    /// # Errors
    /// When the subscription is lost.
    pub(crate) async fn next(&mut self) -> io::Result<()> {
        let mut head = [0_u8; 16];
        heard(self.0.recv(&mut head).await)?;
        loop {
            match self.0.try_recv(&mut head) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                other => heard(other)?,
            }
        }
    }
}

/// A message, or the news that some were lost in a burst (ENOBUFS), which are news as well.
#[cfg(target_os = "linux")]
fn heard(received: io::Result<usize>) -> io::Result<()> {
    match received {
        Err(error) if error.raw_os_error() != Some(rustix::io::Errno::NOBUFS.raw_os_error()) => Err(error),
        Ok(_) | Err(_) => Ok(()),
    }
}

/// Links, IPv4 and IPv6 addresses, IPv4 and IPv6 routes: RTMGRP_* of linux/rtnetlink.h.
#[cfg(target_os = "linux")]
const GROUPS: u32 = 0x1 | 0x10 | 0x100 | 0x40 | 0x400;

#[cfg(not(target_os = "linux"))]
pub(crate) struct Changes;

#[cfg(not(target_os = "linux"))]
impl Changes {
    pub(crate) fn subscribe() -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }
    pub(crate) async fn next(&mut self) -> io::Result<()> {
        std::future::pending().await
    }
}
