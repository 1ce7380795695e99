//! Duplicate filter for early data (OP-34, RFC 7413 §6.1): a copy of a first flight that comes when its connection is
//! gone must not be delivered again. It remembers the last flights accepted, so protection ends where memory does: an
//! application opts in to early data only when it can bear a request twice.

use super::Cookie;
use restp_base::secret::Hidden;
use siphasher::sip::SipHasher24;
use std::collections::{BTreeSet, VecDeque};
use std::hash::Hasher;

/// Flights remembered, about 50 bytes each: several minutes at 50 new connections per second.
const REMEMBERED: usize = 16_384;

/// What tells one first flight from another. The address is in the cookie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flight {
    /// Proof of the client's address.
    pub cookie: Cookie,
    /// The client's initial number.
    pub isn: u32,
    /// The client's and the server's port.
    pub ports: (u16, u16),
}

/// The last first flights, by a keyed hash so that nobody can make two that look the same.
#[derive(Clone, Debug)]
pub struct ReplayFilter {
    key: Hidden<[u8; 16]>,
    seen: BTreeSet<u64>,
    order: VecDeque<u64>,
}

impl ReplayFilter {
    /// A filter that has seen nothing.
    pub fn new(key: [u8; 16]) -> Self {
        ReplayFilter {
            key: Hidden(key),
            seen: BTreeSet::new(),
            order: VecDeque::new(),
        }
    }

    /// Remembers `flight`; `false` when it was here before.
    #[must_use]
    pub fn admit(&mut self, flight: Flight) -> bool {
        let mark = self.mark(flight);
        if !self.seen.insert(mark) {
            return false;
        }
        if self.order.len() >= REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.seen.remove(&oldest);
        }
        self.order.push_back(mark);
        true
    }

    fn mark(&self, flight: Flight) -> u64 {
        let mut hasher = SipHasher24::new_with_key(&self.key.0);
        hasher.write(&flight.isn.to_be_bytes());
        hasher.write(&flight.ports.0.to_be_bytes());
        hasher.write(&flight.ports.1.to_be_bytes());
        hasher.write(flight.cookie.as_bytes());
        hasher.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flight(isn: u32) -> Flight {
        Flight {
            cookie: Cookie::new(&[1; 8]).expect("a cookie"),
            isn,
            ports: (50_000, 80),
        }
    }

    #[test]
    fn a_flight_is_admitted_once_and_each_of_its_marks_counts() {
        let mut filter = ReplayFilter::new([7; 16]);
        assert!(filter.admit(flight(1)));
        assert!(!filter.admit(flight(1)));
        assert!(filter.admit(flight(2)));
        let mut other = flight(1);
        other.ports = (50_001, 80);
        assert!(filter.admit(other));
        other = flight(1);
        other.cookie = Cookie::new(&[2; 8]).expect("a cookie");
        assert!(filter.admit(other));
    }

    #[test]
    fn memory_is_bounded_and_the_oldest_is_forgotten() {
        let mut filter = ReplayFilter::new([7; 16]);
        for isn in 0..=REMEMBERED as u32 {
            assert!(filter.admit(flight(isn)));
        }
        assert_eq!((filter.seen.len(), filter.order.len()), (REMEMBERED, REMEMBERED));
        assert!(!filter.admit(flight(1)) && filter.admit(flight(0)));
    }
}
