//! How much of something each source holds, so that none takes the share of others. Who has one IPv6 address has its /64
//! (RFC 4291 §2.5.4), and so counts once.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};

/// A count for each source, as many entries as there are counted things at most.
#[derive(Clone, Debug, Default)]
pub struct Sources(BTreeMap<IpAddr, usize>);

impl Sources {
    /// Of the source that `address` belongs to.
    pub fn count(&self, address: IpAddr) -> usize {
        self.0.get(&source(address)).copied().unwrap_or(0)
    }

    /// One more.
    pub fn enter(&mut self, address: IpAddr) {
        *self.0.entry(source(address)).or_default() += 1;
    }

    /// One less.
    pub fn leave(&mut self, address: IpAddr) {
        let source = source(address);
        match self.0.get_mut(&source) {
            Some(count) if *count > 1 => *count -= 1,
            _ => drop(self.0.remove(&source)),
        }
    }
}

fn source(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => address.into(),
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_counted_by_prefix_and_forgotten() {
        let mut sources = Sources::default();
        let address = |text: &str| text.parse::<IpAddr>().unwrap();
        for text in ["2001:db8::1", "2001:db8::2", "192.0.2.1", "::ffff:192.0.2.1"] {
            sources.enter(address(text));
        }
        assert_eq!(sources.count(address("2001:db8::3")), 2);
        assert_eq!(sources.count(address("192.0.2.1")), 2);
        assert_eq!(sources.count(address("2001:db8:0:1::1")), 0);
        for text in [
            "2001:db8::9",
            "2001:db8::8",
            "192.0.2.1",
            "192.0.2.1",
            "192.0.2.1",
        ] {
            sources.leave(address(text));
        }
        assert!(sources.0.is_empty());
    }
}
