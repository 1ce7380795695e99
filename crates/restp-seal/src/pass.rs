//! What a host gives a peer for the next time: proof of its address (ResTP §3.5.5, OP-30), and the right to early data,
//! which is taken once (OP-34; RFC 8446 §8). A host remembers the first flights of one epoch. When it remembers as many
//! as it can it begins the next epoch, and flights of the one before are no longer early: no flight is taken twice,
//! however long it was kept, in bounded memory and without a clock. With it goes a ticket (`ticket.rs`).

use crate::entropy::Entropy;
use crate::keys::PublicKey;
use crate::ticket::{Opened, Period, Resumption, Ticket, TicketOffice};
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
    /// Takes the place of a full handshake.
    pub resumption: Option<Resumption>,
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
    tickets: TicketOffice,
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
            tickets: TicketOffice::new(entropy),
        }
    }

    /// A pass for `client` at `address`; `since` as in [`TicketOffice::give`].
    pub(crate) fn pass(
        &mut self,
        now: Time,
        address: IpAddr,
        client: PublicKey,
        since: Option<Period>,
        entropy: &mut Entropy,
    ) -> Pass {
        Pass {
            epoch: self.epoch,
            token: self.token(now, address),
            resumption: self.tickets.give(now, client, since, entropy),
        }
    }

    /// Proof of its address for `peer`.
    pub(crate) fn token(&self, now: Time, peer: IpAddr) -> Token {
        let mut token = [0; TOKEN_BYTES];
        token.copy_from_slice(self.mint.mint(now, peer).as_bytes());
        token
    }

    /// What a ticket of an earlier pass says.
    pub(crate) fn open(&mut self, now: Time, ticket: &Ticket, entropy: &mut Entropy) -> Option<Opened> {
        self.tickets.open(now, ticket, entropy)
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
        let client = PublicKey([7; 32]);
        let pass = office.pass(Time::ZERO, here, client, None, &mut entropy);
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
        let next = office.pass(Time::ZERO, here, client, None, &mut entropy);
        assert_ne!(next.epoch, pass.epoch);
        assert!(office.flights.len() < REMEMBERED);
    }
}
