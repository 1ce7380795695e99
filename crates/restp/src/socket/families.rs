//! A socket of IPv6 may be one of both families (RFC 3493 §3.7). Paths name their ends as other hosts do: an IPv4 address is an IPv4
//! address there, too.

use std::net::{IpAddr, SocketAddr};

/// `address` as other hosts name it.
pub(super) fn named(address: SocketAddr) -> SocketAddr {
    match address.ip().to_canonical() {
        IpAddr::V4(ip) => (ip, address.port()).into(),
        IpAddr::V6(_) => address, // with its zone
    }
}

/// `ip` as a socket bound to `local` names it.
pub(super) fn ip_for(local: SocketAddr, ip: IpAddr) -> IpAddr {
    match ip {
        IpAddr::V4(ip) if local.is_ipv6() => ip.to_ipv6_mapped().into(),
        ip => ip,
    }
}

/// The same with a port.
pub(super) fn address_for(local: SocketAddr, address: SocketAddr) -> SocketAddr {
    match address {
        SocketAddr::V4(_) => (ip_for(local, address.ip()), address.port()).into(),
        SocketAddr::V6(_) => address,
    }
}
