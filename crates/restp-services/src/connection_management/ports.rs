//! The ports of connections. Those of connections opened here are tried one after the other (RFC 6335 §6, RFC 6056 §3.3).

use std::ops::RangeInclusive;

/// Ports of connections opened here.
pub const EPHEMERAL: RangeInclusive<u16> = 49_152..=65_535;

/// The two ports of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ports {
    /// On this side.
    pub local: u16,
    /// On the peer's.
    pub remote: u16,
}

/// The port that is tried next.
#[derive(Debug)]
pub struct LocalPorts(u16);

impl LocalPorts {
    /// `first` is tried first.
    pub fn new(first: u16) -> Self {
        LocalPorts(first)
    }

    /// The same somewhere in the range, as `drawn`.
    pub fn anywhere(drawn: u64) -> Self {
        LocalPorts(EPHEMERAL.start() + (drawn % EPHEMERAL.len() as u64) as u16)
    }

    /// The next port that is free, if any is.
    pub fn find(&mut self, is_free: impl Fn(u16) -> bool) -> Option<u16> {
        EPHEMERAL.map(|_| self.turn()).find(|port| is_free(*port))
    }

    fn turn(&mut self) -> u16 {
        let port = self.0;
        self.0 = port.checked_add(1).unwrap_or(*EPHEMERAL.start());
        port
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_port_is_tried_once_from_wherever_it_begins() {
        for drawn in [0, 1, 16_383, u64::MAX] {
            let mut ports = LocalPorts::anywhere(drawn);
            assert_eq!(ports.find(|_| false), None);
            let mut all: Vec<u16> = EPHEMERAL.filter_map(|_| ports.find(|_| true)).collect();
            all.sort_unstable();
            assert!(EPHEMERAL.eq(all));
        }
    }
}
