//! Ports of flows opened here: one after the other (RFC 6335 §6), and elsewhere in each life of a host, whose peers may still
//! know the flows of the last one (RFC 6056 §3.3).

use crate::config::{EndpointConfig, InitialNumbers};
use siphasher::sip::SipHasher24;
use std::ops::RangeInclusive;

const EPHEMERAL: RangeInclusive<u16> = 49_152..=65_535;

/// The port that is tried next.
#[derive(Debug)]
pub(super) struct LocalPorts(u16);

impl LocalPorts {
    pub(super) fn new(config: &EndpointConfig) -> Self {
        let drawn = match config.initial_numbers {
            InitialNumbers::Fixed(_) => 0,
            InitialNumbers::Keyed(key) => SipHasher24::new_with_key(&key).hash(b"first port"),
        };
        let first = EPHEMERAL.start() + (drawn % EPHEMERAL.len() as u64) as u16;
        LocalPorts(config.first_port.unwrap_or(first))
    }

    /// The next port that is free, if any is.
    pub(super) fn find(&mut self, is_free: impl Fn(u16) -> bool) -> Option<u16> {
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
    use crate::composition::PRESETS;

    #[test]
    fn every_port_is_tried_once_from_wherever_it_begins() {
        let composition = PRESETS[0].composition().check().unwrap();
        for numbers in [InitialNumbers::Fixed(1), InitialNumbers::Keyed([9; 16])] {
            let mut config = EndpointConfig::new(composition.clone());
            config.initial_numbers = numbers;
            let mut ports = LocalPorts::new(&config);
            assert_eq!(ports.find(|_| false), None);
            let mut all: Vec<u16> = EPHEMERAL.filter_map(|_| ports.find(|_| true)).collect();
            all.sort_unstable();
            assert!(EPHEMERAL.eq(all));
        }
    }
}
