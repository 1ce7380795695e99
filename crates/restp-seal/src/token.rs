//! What a server gives a client for its next visit: proof of its address for two minutes, a resumption ticket
//! (`resumption.rs`), and the right to send early data, which is accepted once (OP-34; RFC 8446 §8). A server remembers the
//! first flights of one epoch. When it remembers as many as it can it begins the next epoch, and flights of the one before
//! are no longer early: no flight is accepted twice, however long an attacker kept it, in bounded memory and without a clock.

use crate::entropy::Entropy;
use crate::gate::{Gate, TAG_BYTES, period};
use crate::keys::PublicKey;
use crate::resumption::{Opened, Period, Resumption, ResumptionTicket, TicketIssuer};
use crate::secret::Secret;
use aws_lc_rs::constant_time::verify_slices_are_equal;
use restp_base::sources::Sources;
use restp_base::time::Time;
use siphasher::sip128::{Hasher128, SipHasher24};
use std::collections::BTreeMap;
use std::fmt;
use std::hash::Hasher;
use std::net::{IpAddr, SocketAddr};

/// Bytes of a proof of an address.
pub const ADDRESS_TOKEN_BYTES: usize = 16;
/// Keyed hashes of the client's address (RFC 9000 §8.1.1), the tag for the gate first; zeros stand for none.
pub type AddressToken = [u8; ADDRESS_TOKEN_BYTES];
/// Bytes that name an epoch.
pub const EPOCH_BYTES: usize = 8;
/// Which first flights a server remembers; zeros stand for none.
pub type Epoch = [u8; EPOCH_BYTES];

/// First flights remembered in one epoch, about 50 bytes each.
const REMEMBERED: usize = 16_384;
/// Those of one client, and of one source, at most: its early data waits for the session from there on, and that of others goes on.
const REMEMBERED_OF_ONE: usize = REMEMBERED / 16;

/// For the next session with the same server.
#[derive(Clone, Default, PartialEq, Eq)]
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
    /// Of proofs of addresses.
    key: Secret<16>,
    gate: Gate,
    tickets: TicketIssuer,
    epoch: Epoch,
    /// By their one-time keys; true where their early data is taken.
    flights: BTreeMap<(PublicKey, [u8; 32]), bool>,
    /// Whose they are.
    clients: BTreeMap<PublicKey, usize>,
    sources: Sources,
}

impl TokenIssuer {
    pub(crate) fn new(entropy: &mut Entropy) -> Self {
        let key: Secret<16> = entropy.secret();
        TokenIssuer {
            gate: Gate::new(key.clone()),
            key,
            clients: BTreeMap::new(),
            sources: Sources::default(),
            epoch: entropy.array(),
            flights: BTreeMap::new(),
            tickets: TicketIssuer::new(entropy),
        }
    }

    /// A token for `client`, which proves no address; `since` as in [`TicketIssuer::issue`]. The same answer goes wherever its request
    /// comes from: a copy may be ahead, from an address that is not the client's, and who has left an address must not be able to
    /// renew its proof.
    pub(crate) fn issue(
        &mut self,
        now: Time,
        client: PublicKey,
        since: Option<Period>,
        entropy: &mut Entropy,
    ) -> Token {
        Token {
            epoch: self.epoch,
            address: AddressToken::default(),
            resumption: self.tickets.issue(now, client, since, entropy),
        }
    }

    /// Proof that who shows it within a minute or two receives at `address`.
    pub(crate) fn address_token(&self, now: Time, address: SocketAddr) -> AddressToken {
        self.token_of(period(now), address)
    }

    /// What the sockets of this host tell proofs by.
    pub(crate) fn gate(&self) -> &Gate {
        &self.gate
    }

    /// The tag, and behind it SipHash-2-4 with 128 bits (J.-P. Aumasson, D. J. Bernstein, 2012) without its first bytes: nobody
    /// makes one without the key.
    fn token_of(&self, period: u64, address: SocketAddr) -> AddressToken {
        let mut hash = SipHasher24::new_with_key(&self.key);
        hash.write(&period.to_be_bytes());
        match address.ip().to_canonical() {
            IpAddr::V4(ip) => hash.write(&ip.octets()),
            IpAddr::V6(ip) => hash.write(&ip.octets()),
        }
        hash.write(&address.port().to_be_bytes());
        let mut token = hash.finish128().as_bytes();
        token[..TAG_BYTES].copy_from_slice(&self.gate.tag(period, address));
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
    pub(crate) fn proves(&self, now: Time, address: SocketAddr, token: &AddressToken) -> bool {
        let present = period(now);
        let is = |period| verify_slices_are_equal(&self.token_of(period, address), token).is_ok();
        is(present) || present > 0 && is(present - 1)
    }

    /// Is early data of the flight with the ephemeral key `flight` accepted, which `client` sent from `source`? To be asked once
    /// per flight.
    pub(crate) fn admits(
        &mut self,
        epoch: &Epoch,
        flight: [u8; 32],
        whose: (PublicKey, IpAddr),
        entropy: &mut Entropy,
    ) -> bool {
        self.remember(epoch, flight, true, whose, entropy)
    }

    /// Another request comes in the place of `flight`, whose early data is not accepted from now on. True when it is already.
    pub(crate) fn strike(
        &mut self,
        epoch: &Epoch,
        flight: [u8; 32],
        whose: (PublicKey, IpAddr),
        entropy: &mut Entropy,
    ) -> bool {
        let taken = self.flights.get(&(whose.0, flight)).copied();
        taken.unwrap_or_else(|| {
            self.remember(epoch, flight, false, whose, entropy);
            false
        })
    }

    /// Is it new that the early data of `flight` is `taken`, or not? False where there is no room for that.
    fn remember(
        &mut self,
        epoch: &Epoch,
        flight: [u8; 32],
        taken: bool,
        (client, source): (PublicKey, IpAddr),
        entropy: &mut Entropy,
    ) -> bool {
        let share = self.clients.get(&client).copied().unwrap_or(0);
        let crowded = share.max(self.sources.count(source)) >= REMEMBERED_OF_ONE;
        if *epoch != self.epoch || crowded || self.flights.contains_key(&(client, flight)) {
            return false;
        }
        self.flights.insert((client, flight), taken);
        *self.clients.entry(client).or_default() += 1;
        self.sources.enter(source);
        if self.flights.len() >= REMEMBERED {
            self.epoch = entropy.array();
            self.flights.clear();
            self.clients.clear();
            self.sources = Sources::default();
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use restp_base::time::Duration;

    #[test]
    fn a_token_is_of_its_address_and_a_flight_is_taken_once_even_when_memory_ends() {
        let mut entropy = Entropy::new(&[1; 32]);
        let mut issuer = TokenIssuer::new(&mut entropy);
        let at = |host: u8, port: u16| SocketAddr::from(([10, 0, 0, host], port));
        let client = PublicKey([7; 32]);
        let token = issuer.issue(Time::ZERO, client, None, &mut entropy);
        assert!(!issuer.proves(Time::ZERO, at(1, 5), &token.address));
        let proof = issuer.address_token(Time::ZERO, at(1, 5));
        assert!(issuer.proves(Time::ZERO, at(1, 5), &proof));
        assert!(!issuer.proves(Time::ZERO, at(2, 5), &proof));
        assert!(!issuer.proves(Time::ZERO, at(1, 6), &proof));
        assert!(!issuer.proves(Time::ZERO, at(1, 5), &[0; 16]));
        for n in 0..REMEMBERED {
            assert!(
                issuer.admits(&token.epoch, flight(n), of(n % 100), &mut entropy),
                "{n}"
            );
            let again = (of(n % 100).0, of(n % 99).1);
            assert!(
                !issuer.admits(&token.epoch, flight(n), again, &mut entropy),
                "{n}"
            );
        }
        let next = issuer.issue(Time::ZERO, client, None, &mut entropy);
        assert_ne!(next.epoch, token.epoch);
        assert!(issuer.flights.len() < REMEMBERED);
    }

    #[test]
    fn a_flight_is_struck_by_its_own_client_alone() {
        let mut entropy = Entropy::new(&[1; 32]);
        let mut issuer = TokenIssuer::new(&mut entropy);
        let epoch = issuer.epoch;
        assert!(!issuer.strike(&epoch, flight(1), of(66), &mut entropy), "not his");
        assert!(issuer.admits(&epoch, flight(1), of(1), &mut entropy));
        assert!(!issuer.strike(&epoch, flight(1), of(67), &mut entropy), "nor his");
        assert!(issuer.strike(&epoch, flight(1), of(1), &mut entropy));
        assert!(!issuer.strike(&epoch, flight(2), of(1), &mut entropy));
        assert!(!issuer.admits(&epoch, flight(2), of(1), &mut entropy));
    }

    fn flight(n: usize) -> [u8; 32] {
        let mut flight = [0; 32];
        flight[..8].copy_from_slice(&n.to_be_bytes());
        flight
    }

    /// The client and the source called `n`.
    fn of(n: usize) -> (PublicKey, IpAddr) {
        (PublicKey([n as u8; 32]), IpAddr::from([10, 0, 1, n as u8]))
    }

    #[test]
    fn the_flights_of_one_client_or_one_source_leave_room_to_others() {
        for (same_key, same_source) in [(true, true), (true, false), (false, true)] {
            let mut entropy = Entropy::new(&[1; 32]);
            let mut issuer = TokenIssuer::new(&mut entropy);
            let epoch = issuer.epoch;
            let mut taken = 0;
            for n in 0..2 * REMEMBERED {
                let mut key = [1; 32];
                key[..8].copy_from_slice(&n.to_be_bytes());
                let key = PublicKey(if same_key { [1; 32] } else { key });
                let [.., a, b, c] = n.to_be_bytes();
                let source = IpAddr::from(if same_source { [10, 0, 0, 1] } else { [11, a, b, c] });
                taken += usize::from(issuer.admits(&epoch, flight(n), (key, source), &mut entropy));
            }
            assert_eq!((taken, issuer.epoch), (REMEMBERED_OF_ONE, epoch));
            assert!(
                issuer.admits(&epoch, [255; 32], of(2), &mut entropy),
                "of somebody else"
            );
        }
    }

    #[test]
    fn a_proof_of_an_address_lasts_two_minutes_at_most() {
        let mut entropy = Entropy::new(&[1; 32]);
        let issuer = TokenIssuer::new(&mut entropy);
        let here = SocketAddr::from(([10, 0, 0, 1], 5));
        let at = |seconds| Time::ZERO + Duration::from_secs(seconds);
        for begin in [0, 59, 60, 3_600] {
            let token = issuer.address_token(at(begin), here);
            assert!(issuer.proves(at(begin), here, &token) && issuer.proves(at(begin + 60), here, &token));
            assert!(!issuer.proves(at(begin + 120), here, &token), "{begin}");
        }
    }
}
