//! Addresses of a simulated network, and the places in it that they belong to.

use restp_base::machine::PathAddress;
use restp_sim::HostId;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// Address number `index` of the network: 10.x.y.z, counted from 10.0.0.1. Protocols run directly over IPv4, so
/// there is no port.
pub fn address_of(index: usize) -> SocketAddr {
    let [_, x, y, z] = (index as u32 + 1).to_be_bytes();
    SocketAddr::from((Ipv4Addr::new(10, x, y, z), 0))
}

/// The number of this address.
pub fn index_of(address: SocketAddr) -> Option<usize> {
    let IpAddr::V4(v4) = address.ip() else { return None };
    let [10, x, y, z] = v4.octets() else { return None };
    (u32::from_be_bytes([0, x, y, z]) as usize).checked_sub(1)
}

/// Where datagrams leave and arrive. Each path of each flow has two places of its own, from which its packets take its links; an
/// address has one place, or several where a machine serves several flows.
#[derive(Debug, Default)]
pub struct Directory {
    /// Of each address, by its number: where it is, as far as no flow says otherwise.
    places: Vec<HostId>,
    /// Of addresses that flows share: the places of each path, both ways.
    paths: BTreeMap<PathAddress, (HostId, HostId)>,
}

impl Directory {
    /// The next address is at `place`.
    pub fn add(&mut self, place: HostId) -> SocketAddr {
        self.places.push(place);
        address_of(self.places.len() - 1)
    }

    /// What goes along `path` leaves at the first of `places` and arrives at the second, and the other way round.
    pub fn join(&mut self, path: PathAddress, places: (HostId, HostId)) {
        self.paths.insert(path, places);
        self.paths.insert(path.reversed(), (places.1, places.0));
    }

    /// Where a datagram along `path` leaves, and where it arrives. `None` for an address of nobody.
    pub fn places(&self, path: PathAddress) -> Option<(HostId, HostId)> {
        if !self.paths.is_empty()
            && let Some(places) = self.paths.get(&path)
        {
            return Some(*places);
        }
        let of = |address| {
            index_of(address)
                .and_then(|index| self.places.get(index))
                .copied()
        };
        of(path.local).zip(of(path.remote))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_numbers() {
        assert_eq!(address_of(0).to_string(), "10.0.0.1:0");
        assert_eq!(address_of(8191).to_string(), "10.0.32.0:0");
        for index in [0, 1, 255, 256, 8191] {
            assert_eq!(index_of(address_of(index)), Some(index));
        }
        assert_eq!(index_of(SocketAddr::from((Ipv4Addr::new(10, 0, 0, 0), 0))), None);
        assert_eq!(
            index_of(SocketAddr::from((Ipv4Addr::new(192, 168, 0, 1), 0))),
            None
        );
    }
}
