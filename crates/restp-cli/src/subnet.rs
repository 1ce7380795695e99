//! Addresses with the length of their network's prefix, such as `10.9.0.1/30`.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// An address of a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subnet {
    /// The address.
    pub address: IpAddr,
    /// How many of its bits are the network's.
    pub prefix: u8,
}

impl Subnet {
    /// All bits of an address.
    fn width(self) -> u8 {
        match self.address {
            IpAddr::V4(_) => 32,
            IpAddr::V6(_) => 128,
        }
    }

    /// The address as a number, from its highest bit on.
    fn bits(address: IpAddr) -> u128 {
        match address {
            IpAddr::V4(address) => u128::from(u32::from(address)) << 96,
            IpAddr::V6(address) => u128::from(address),
        }
    }

    fn mask(self) -> u128 {
        match self.prefix {
            0 => 0,
            prefix => u128::MAX << (128 - u32::from(prefix)),
        }
    }

    /// Is `address` in the network?
    pub fn contains(self, address: IpAddr) -> bool {
        self.address.is_ipv4() == address.is_ipv4()
            && (Self::bits(self.address) ^ Self::bits(address)) & self.mask() == 0
    }

    /// Is the address one that a host can have in the network?
    pub fn is_host(self) -> bool {
        let address = self.address;
        let special = address.is_unspecified()
            || address.is_loopback()
            || address.is_multicast()
            || address == IpAddr::V4(Ipv4Addr::BROADCAST);
        // In networks with room for more than two hosts the first address is the network's, the last one of IPv4 for all.
        let hosts = u128::MAX << (128 - u32::from(self.width())) & !self.mask();
        let own = Self::bits(address) & hosts;
        let reserved = self.prefix + 2 <= self.width() && (own == 0 || address.is_ipv4() && own == hosts);
        self.prefix > 0 && !special && !reserved
    }

    /// Has an address both are the network of?
    pub fn overlaps(self, other: Subnet) -> bool {
        self.contains(other.address) || other.contains(self.address)
    }

    /// The address of the other one of two hosts, where the network has room for two: /30, /31, /126, /127.
    pub fn other(self) -> Option<Subnet> {
        let spare = self.width() - self.prefix;
        let step = 128 - u32::from(self.width());
        let own = Self::bits(self.address) >> step;
        let other = match (spare, own & 3) {
            (1, _) => own ^ 1,
            (2, 1 | 2) => own ^ 3,
            _ => return None,
        };
        let address = match self.address {
            IpAddr::V4(_) => Ipv4Addr::from(other as u32).into(),
            IpAddr::V6(_) => Ipv6Addr::from(other).into(),
        };
        Some(Subnet {
            address,
            prefix: self.prefix,
        })
    }

    /// The networks to route for this one. A default route would stand beside the one that is there: two halves of everything win
    /// over it, and leave it as it is.
    pub fn routes(self) -> Vec<String> {
        let halves: &[&str] = match (self.prefix, self.address) {
            (0, IpAddr::V4(_)) => &["0.0.0.0/1", "128.0.0.0/1"],
            (0, IpAddr::V6(_)) => &["::/1", "8000::/1"],
            _ => return vec![self.to_string()],
        };
        halves.iter().map(|half| (*half).to_owned()).collect()
    }
}

impl FromStr for Subnet {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong =
            || format!("{text:?}: write ADDRESS/LENGTH, such as 10.9.0.1/30, 192.168.7.0/24 or fd00::1/126");
        let (address, prefix) = text.split_once('/').ok_or_else(wrong)?;
        let subnet = Subnet {
            address: address.parse().map_err(|_| wrong())?,
            prefix: prefix.parse().map_err(|_| wrong())?,
        };
        (subnet.prefix <= subnet.width())
            .then_some(subnet)
            .ok_or_else(wrong)
    }
}

impl fmt::Display for Subnet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Subnet {
        text.parse().expect(text)
    }

    #[test]
    fn a_network_knows_what_is_in_it() {
        for (network, address, inside) in [
            ("10.9.0.1/30", "10.9.0.3", true),
            ("10.9.0.1/30", "10.9.0.4", false),
            ("0.0.0.0/0", "192.0.2.1", true),
            ("0.0.0.0/0", "::1", false),
            ("192.0.2.1/32", "192.0.2.1", true),
            ("fd00::/8", "fdff::1", true),
            ("fd00::/8", "fe00::1", false),
        ] {
            assert_eq!(
                of(network).contains(address.parse().expect("an address")),
                inside,
                "{network} {address}"
            );
        }
    }

    #[test]
    fn addresses_of_hosts_are_told_from_others() {
        for text in [
            "10.9.0.1/30",
            "10.9.0.0/31",
            "10.9.0.1/32",
            "fd00::1/126",
            "fd00::3/126",
            "fd00::/127",
        ] {
            assert!(of(text).is_host(), "{text}");
        }
        for text in [
            "10.9.0.0/30",
            "10.9.0.3/30",
            "0.0.0.0/0",
            "10.9.0.1/0",
            "127.0.0.1/30",
            "224.0.0.5/30",
            "255.255.255.255/32",
            "::1/126",
            "ff02::1/126",
            "fd00::/126",
        ] {
            assert!(!of(text).is_host(), "{text}");
        }
        assert!(
            of("10.9.0.1/30").overlaps(of("10.9.0.2/24")) && of("10.9.0.2/24").overlaps(of("10.9.0.1/30"))
        );
        assert!(!of("10.9.0.1/30").overlaps(of("10.9.0.5/30")));
    }

    #[test]
    fn of_two_hosts_each_knows_the_other() {
        for (one, other) in [
            ("10.9.0.1/30", Some("10.9.0.2/30")),
            ("10.9.0.2/30", Some("10.9.0.1/30")),
            ("10.9.0.0/31", Some("10.9.0.1/31")),
            ("fd00::2/126", Some("fd00::1/126")),
            ("10.9.0.0/30", None),
            ("10.9.0.1/24", None),
        ] {
            assert_eq!(of(one).other(), other.map(of), "{one}");
        }
        assert_eq!(of("0.0.0.0/0").routes(), ["0.0.0.0/1", "128.0.0.0/1"]);
        assert_eq!(of("10.0.0.0/8").routes(), ["10.0.0.0/8"]);
    }

    #[test]
    fn what_is_no_network_is_answered_with_one() {
        for text in [
            "",
            "10.9.0.1",
            "10.9.0.1/33",
            "10.9.0/24",
            "fd00::1/129",
            "a/1",
            "10.9.0.1/x",
        ] {
            let why = text.parse::<Subnet>().expect_err(text);
            assert!(why.contains("10.9.0.1/30"), "{why}");
        }
    }
}
