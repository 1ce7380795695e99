//! May the network cut into pieces what a socket sends? As a rule not: whoever asks how long a packet may be must not have
//! the question cut (RFC 8899 §3, and the library that sends says so to the kernel). What is too long for a path that has
//! become narrower may.

use std::sync::atomic::{AtomicBool, Ordering};

/// Whether what a socket sends may be cut. What asks how long a packet may be is rare, and so are changes.
#[derive(Debug, Default)]
pub(super) struct Fragments(AtomicBool);

impl Fragments {
    /// What `socket` sends from now on may be cut, or may not.
    pub(super) fn allow(&self, socket: &tokio::net::UdpSocket, allowed: bool) {
        if self.0.swap(allowed, Ordering::Relaxed) != allowed {
            set(socket, allowed);
        }
    }
}

/// A kernel that refuses drops what is too long, as it did before.
#[cfg(target_os = "linux")]
fn set(socket: &tokio::net::UdpSocket, allowed: bool) {
    use nix::sys::socket::{setsockopt, sockopt::Ipv6DontFrag};
    use rustix::net::sockopt::{self, Ipv4PathMtuDiscovery as V4, Ipv6PathMtuDiscovery as V6};
    let (v4, v6) = if allowed {
        (V4::DONT, V6::DONT)
    } else {
        (V4::PROBE, V6::PROBE)
    };
    let _ = sockopt::set_ip_mtu_discover(socket, v4); // on a socket of IPv6 too: it may reach IPv4 peers
    let _ = sockopt::set_ipv6_mtu_discover(socket, v6);
    // Where this is set the other one says nothing.
    let _ = setsockopt(socket, Ipv6DontFrag, &!allowed);
}

#[cfg(not(target_os = "linux"))]
fn set(_: &tokio::net::UdpSocket, _: bool) {}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use rustix::net::sockopt::{Ipv4PathMtuDiscovery as V4, ip_mtu_discover};

    /// As the library that sends makes them: what may not be cut does not leave, on either family.
    #[tokio::test]
    async fn what_is_too_long_for_the_path_leaves_if_it_may_be_cut() {
        for local in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(socket) = tokio::net::UdpSocket::bind(local).await else {
                continue; // no IPv6 here
            };
            quinn_udp::UdpSocketState::new((&socket).into()).unwrap();
            let remote = socket.local_addr().unwrap();
            let fragments = Fragments::default();
            // The loopback interface takes no more than 65,536 bytes with headers in one piece.
            let longest = vec![0; 65_507];
            let is_too_long = remote.is_ipv6();
            for allowed in [true, false, true] {
                fragments.allow(&socket, allowed);
                let sent = socket.send_to(&longest, remote).await;
                assert_eq!(
                    sent.is_ok(),
                    allowed || !is_too_long,
                    "{local} {allowed}: {sent:?}"
                );
            }
        }
    }

    #[tokio::test]
    async fn the_permission_is_that_of_what_leaves() {
        let socket = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let fragments = Fragments::default();
        for allowed in [true, false, true, true] {
            fragments.allow(&socket, allowed);
            let expected = if allowed { V4::DONT } else { V4::PROBE };
            assert_eq!(ip_mtu_discover(&socket).unwrap(), expected);
        }
    }
}
