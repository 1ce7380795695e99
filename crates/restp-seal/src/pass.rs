//! What a host gives a peer for the next time: proof of its address (ResTP §3.5.5, OP-30), and the right to early data,
//! which is taken once (OP-34; RFC 8446 §8). A host remembers the first flights of one epoch. When it remembers as many
//! as it can it begins the next epoch, and flights of the one before are no longer early: no flight is taken twice,
//! however long it was kept, in bounded memory and without a clock.

use crate::entropy::Entropy;
use restp_base::time::Time;
use restp_services::connection_management::{Cookie, CookieLength, CookieMint, CookieParameters};
use std::collections::BTreeSet;
use std::fmt;
use std::net::IpAddr;

/// Bytes of a proof of an address.
pub const TOKEN_BYTES: usize = 16;
/// A keyed hash of the peer's address; zeros stand for none.
pub type Token = [u8; TOKEN_BYTES];
/// Bytes that name an epoch.
pub const EPOCH_BYTES: usize = 8;
/// Which first flights a host remembers; zeros stand for none.
pub type Epoch = [u8; EPOCH_BYTES];

/// First flights remembered in one epoch, about 50 bytes each.
const REMEMBERED: usize = 16_384;

/// For the next session with the same host.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Pass {
    /// When it was given, in the host's own count.
    pub epoch: Epoch,
    /// Proof of the address it was given to.
    pub token: Token,
}

impl fmt::Debug for Pass {
    /// Without the token: who has it speaks from the address it was given to.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pass(epoch {:02x?})", self.epoch)
    }
}

/// Gives passes and knows its own again.
pub(crate) struct PassOffice {
    mint: CookieMint,
    epoch: Epoch,
    flights: BTreeSet<[u8; 32]>,
}

impl PassOffice {
    pub(crate) fn new(entropy: &mut Entropy) -> Self {
        let parameters = CookieParameters {
            key: entropy.array(),
            length: CookieLength::Sixteen,
            ..CookieParameters::default()
        };
        PassOffice {
            mint: CookieMint::new(parameters),
            epoch: entropy.array(),
            flights: BTreeSet::new(),
        }
    }

    /// A pass for `peer`.
    pub(crate) fn pass(&self, now: Time, peer: IpAddr) -> Pass {
        let mut token = [0; TOKEN_BYTES];
        token.copy_from_slice(self.mint.mint(now, peer).as_bytes());
        Pass {
            epoch: self.epoch,
            token,
        }
    }

    /// Has `peer` received a pass at its address before?
    pub(crate) fn proves(&self, now: Time, peer: IpAddr, token: &Token) -> bool {
        Cookie::new(token).is_some_and(|cookie| self.mint.verify(now, peer, &cookie))
    }

    /// Is early data of the flight whose one-time key is `flight` to be taken? Asked once per flight.
    pub(crate) fn admits(&mut self, epoch: &Epoch, flight: [u8; 32], entropy: &mut Entropy) -> bool {
        if *epoch != self.epoch || !self.flights.insert(flight) {
            return false;
        }
        if self.flights.len() >= REMEMBERED {
            self.epoch = entropy.array();
            self.flights.clear();
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_of_its_address_and_a_flight_is_taken_once_even_when_memory_ends() {
        let mut entropy = Entropy::new([1; 32]);
        let mut office = PassOffice::new(&mut entropy);
        let (here, there) = (IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 0, 2]));
        let pass = office.pass(Time::ZERO, here);
        assert!(office.proves(Time::ZERO, here, &pass.token));
        assert!(!office.proves(Time::ZERO, there, &pass.token));
        assert!(!office.proves(Time::ZERO, here, &[0; 16]));
        let flight = |n: usize| {
            let mut flight = [0; 32];
            flight[..8].copy_from_slice(&n.to_be_bytes());
            flight
        };
        for n in 0..REMEMBERED {
            assert!(office.admits(&pass.epoch, flight(n), &mut entropy), "{n}");
            assert!(!office.admits(&pass.epoch, flight(n), &mut entropy), "{n}");
        }
        assert_ne!(office.pass(Time::ZERO, here).epoch, pass.epoch);
        assert!(office.flights.len() < REMEMBERED);
    }
}
