//! What the kernel's refusal of a datagram says about its path.

use std::io;

/// What became of a datagram that the kernel did not take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Lost, as in any queue (ENOBUFS) or as too long for the device (EMSGSIZE): the protocol retransmits it, slows down, or asks
    /// how long a packet may be.
    Loss,
    /// Nothing like it leaves on this path now: no route, forbidden, device down or gone, address gone. Another path may carry it.
    Refusal,
}

impl Fault {
    /// What `error` of a send means.
    pub(crate) fn of(error: &io::Error) -> Fault {
        use io::ErrorKind as Kind;
        match error.kind() {
            Kind::PermissionDenied // EPERM of a packet filter, EACCES of a broadcast address
            | Kind::NetworkUnreachable
            | Kind::HostUnreachable
            | Kind::NetworkDown
            | Kind::AddrNotAvailable
            | Kind::InvalidInput // what Linux says when the source address has gone
            | Kind::NotConnected => Fault::Refusal,
            _ if is_refusal(error) => Fault::Refusal,
            _ => Fault::Loss,
        }
    }
}

/// Errors that have no kind of their own.
#[cfg(unix)]
fn is_refusal(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let errno = Errno::from_io_error(error);
    errno.is_some_and(|errno| matches!(errno, Errno::NODEV | Errno::NXIO | Errno::HOSTDOWN))
}

#[cfg(not(unix))]
fn is_refusal(_: &io::Error) -> bool {
    false
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use rustix::io::Errno;

    #[test]
    fn what_another_path_may_carry_is_told_from_what_any_queue_may_lose() {
        for (errno, fault) in [
            (Errno::PERM, Fault::Refusal),
            (Errno::ACCESS, Fault::Refusal),
            (Errno::NETUNREACH, Fault::Refusal),
            (Errno::HOSTUNREACH, Fault::Refusal),
            (Errno::NETDOWN, Fault::Refusal),
            (Errno::ADDRNOTAVAIL, Fault::Refusal),
            (Errno::INVAL, Fault::Refusal),
            (Errno::NODEV, Fault::Refusal),
            (Errno::MSGSIZE, Fault::Loss),
            (Errno::NOBUFS, Fault::Loss),
            (Errno::NOMEM, Fault::Loss),
        ] {
            assert_eq!(Fault::of(&errno.into()), fault, "{errno:?}");
        }
    }
}
