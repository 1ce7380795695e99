//! What a server gives a client for its next visit: proof of its address (ResTP §3.5.5, OP-30), a resumption ticket
//! (`resumption.rs`), and the right to send early data, which is accepted once (OP-34; RFC 8446 §8). A server remembers the
//! first flights of one epoch. When it remembers as many as it can it begins the next epoch, and flights of the one before
//! are no longer early: no flight is accepted twice, however long an attacker kept it, in bounded memory and without a clock.

use crate::entropy::Entropy;
use crate::keys::PublicKey;
use crate::resumption::{Opened, Period, Resumption, ResumptionTicket, TicketIssuer};
use restp_base::time::Time;
use restp_services::connection_management::{Cookie, CookieLength, CookieMint, CookieParameters};
use std::collections::BTreeSet;
use std::fmt;
use std::net::IpAddr;

/// Bytes of a proof of an address.
pub const ADDRESS_TOKEN_BYTES: usize = 16;
/// A keyed hash of the client's address (RFC 9000 §8.1.1); zeros stand for none.
pub type AddressToken = [u8; ADDRESS_TOKEN_BYTES];
/// Bytes that name an epoch.
pub const EPOCH_BYTES: usize = 8;
/// Which first flights a server remembers; zeros stand for none.
pub type Epoch = [u8; EPOCH_BYTES];

/// First flights remembered in one epoch, about 50 bytes each.
const REMEMBERED: usize = 16_384;

/// For the next session with the same server.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Token {
    /// When it was issued, in the server's own count.
    pub epoch: Epoch,
    /// Proof of the address it was issued to.
    pub address: AddressToken,
    /// Takes the place of a full handshake.
    pub resumption: Option<Resumption>,
}

impl fmt::Debug for Token {
    /// Without the proof of the address: who has it speaks from there.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Token(epoch {:02x?})", self.epoch)
    }
}

/// Issues tokens and verifies its own.
pub(crate) struct TokenIssuer {
    mint: CookieMint,
    tickets: TicketIssuer,
    epoch: Epoch,
    flights: BTreeSet<[u8; 32]>,
}

impl TokenIssuer {
    pub(crate) fn new(entropy: &mut Entropy) -> Self {
        let parameters = CookieParameters {
            key: entropy.array(),
            length: CookieLength::Sixteen,
            ..CookieParameters::default()
        };
        TokenIssuer {
            mint: CookieMint::new(parameters),
            epoch: entropy.array(),
            flights: BTreeSet::new(),
            tickets: TicketIssuer::new(entropy),
        }
    }

    /// A token for `client` at `address`; `since` as in [`TicketIssuer::issue`].
    pub(crate) fn issue(
        &mut self,
        now: Time,
        address: IpAddr,
        client: PublicKey,
        since: Option<Period>,
        entropy: &mut Entropy,
    ) -> Token {
        Token {
            epoch: self.epoch,
            address: self.address_token(now, address),
            resumption: self.tickets.issue(now, client, since, entropy),
        }
    }

    /// Proof that who shows it receives at `address`.
    pub(crate) fn address_token(&self, now: Time, address: IpAddr) -> AddressToken {
        let mut token = [0; ADDRESS_TOKEN_BYTES];
        token.copy_from_slice(self.mint.mint(now, address).as_bytes());
        token
    }

    /// What a resumption ticket of an earlier token says.
    pub(crate) fn open(
        &mut self,
        now: Time,
        ticket: &ResumptionTicket,
        entropy: &mut Entropy,
    ) -> Option<Opened> {
        self.tickets.open(now, ticket, entropy)
    }

    /// Does `token` prove `address`?
    pub(crate) fn proves(&self, now: Time, address: IpAddr, token: &AddressToken) -> bool {
        Cookie::new(token).is_some_and(|cookie| self.mint.verify(now, address, &cookie))
    }

    /// Is early data of the flight with the ephemeral key `flight` accepted? To be asked once per flight.
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
        let mut issuer = TokenIssuer::new(&mut entropy);
        let (here, there) = (IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 0, 2]));
        let client = PublicKey([7; 32]);
        let token = issuer.issue(Time::ZERO, here, client, None, &mut entropy);
        assert!(issuer.proves(Time::ZERO, here, &token.address));
        assert!(!issuer.proves(Time::ZERO, there, &token.address));
        assert!(!issuer.proves(Time::ZERO, here, &[0; 16]));
        let flight = |n: usize| {
            let mut flight = [0; 32];
            flight[..8].copy_from_slice(&n.to_be_bytes());
            flight
        };
        for n in 0..REMEMBERED {
            assert!(issuer.admits(&token.epoch, flight(n), &mut entropy), "{n}");
            assert!(!issuer.admits(&token.epoch, flight(n), &mut entropy), "{n}");
        }
        let next = issuer.issue(Time::ZERO, here, client, None, &mut entropy);
        assert_ne!(next.epoch, token.epoch);
        assert!(issuer.flights.len() < REMEMBERED);
    }
}
