//! Resumption tickets (as RFC 5077 and RFC 8446 §4.6.1): after a full handshake the next one is cheaper. The ticket names
//! the client to the server that issued it, and the secret that goes with it takes the place of both static keys. The server
//! keeps nothing but its ticket keys: a new one every 12 h, and the one before it still opens. A ticket that replaces another
//! is sealed with the key of that one, so that no chain of tickets outlives the proof of the client's key by more than 24 h.

use crate::entropy::Entropy;
use crate::keys::{KEY_BYTES, PublicKey};
use crate::schedule::{TAG_BYTES, expand};
use crate::secret::Secret;
use aws_lc_rs::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use restp_base::time::{Duration, Time};
use std::fmt;

/// Bytes of a ticket: nonce, and the client's key sealed.
pub const TICKET_BYTES: usize = NONCE_LEN + KEY_BYTES + TAG_BYTES;
/// Opaque to all but the server that issued it.
pub type ResumptionTicket = [u8; TICKET_BYTES];

/// Bytes of the secret that goes with a ticket.
pub const SHARED_BYTES: usize = 32;

/// Time between two keys, as of the secrets of cookies and tokens.
const ROTATION: Duration = Duration::from_secs(12 * 3600);

/// Lets a client come back to the server that issued it.
#[derive(Clone, PartialEq, Eq)]
pub struct Resumption {
    /// The client it was issued to.
    pub client: PublicKey,
    /// Shown to the host.
    pub ticket: ResumptionTicket,
    /// Never shown.
    pub secret: Secret<SHARED_BYTES>,
}

impl fmt::Debug for Resumption {
    /// Without the secret, nor the ticket that finds it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Resumption({})", self.client)
    }
}

/// Which key sealed a ticket.
pub(crate) type Period = u64;

/// What a ticket says.
#[derive(PartialEq, Eq)]
#[cfg_attr(test, derive(Debug))] // no secret in logs
pub(crate) struct Opened {
    pub(crate) client: PublicKey,
    pub(crate) secret: Secret<SHARED_BYTES>,
    pub(crate) period: Period,
}

/// Issues tickets and opens its own.
pub(crate) struct TicketIssuer {
    present: TicketKey,
    previous: Option<TicketKey>,
}

struct TicketKey {
    period: Period,
    secret: Secret,
    key: Option<LessSafeKey>,
}

impl TicketIssuer {
    pub(crate) fn new(entropy: &mut Entropy) -> Self {
        TicketIssuer {
            present: TicketKey::new(0, entropy),
            previous: None,
        }
    }

    /// A ticket for `client`, in the place of one that was sealed in `since`, or of a proof of its key.
    pub(crate) fn issue(
        &mut self,
        now: Time,
        client: PublicKey,
        since: Option<Period>,
        entropy: &mut Entropy,
    ) -> Option<Resumption> {
        self.rotate(now, entropy);
        let previous = self.previous.as_ref();
        let key = previous
            .filter(|key| Some(key.period) == since)
            .unwrap_or(&self.present);
        let ticket = key.seal(&client, entropy.array())?;
        Some(Resumption {
            client,
            secret: key.shared(&ticket),
            ticket,
        })
    }

    /// What `ticket` says, if it was issued here and not too long ago.
    pub(crate) fn open(
        &mut self,
        now: Time,
        ticket: &ResumptionTicket,
        entropy: &mut Entropy,
    ) -> Option<Opened> {
        self.rotate(now, entropy);
        let keys = [Some(&self.present), self.previous.as_ref()];
        keys.into_iter().flatten().find_map(|key| {
            Some(Opened {
                client: key.open(ticket)?,
                secret: key.shared(ticket),
                period: key.period,
            })
        })
    }

    /// A new key in each period; what is older than the one before is forgotten.
    fn rotate(&mut self, now: Time, entropy: &mut Entropy) {
        let period = now.as_nanos() / ROTATION.as_nanos();
        if period > self.present.period {
            let before = std::mem::replace(&mut self.present, TicketKey::new(period, entropy));
            self.previous = (before.period + 1 == period).then_some(before);
        }
    }
}

impl TicketKey {
    fn new(period: Period, entropy: &mut Entropy) -> Self {
        let secret = entropy.secret();
        let mut key = Secret::<32>::blank();
        expand(&secret, "ticket", &[], &mut *key);
        let key = UnboundKey::new(&CHACHA20_POLY1305, &key[..])
            .ok()
            .map(LessSafeKey::new);
        TicketKey { period, secret, key }
    }

    /// 2²⁹ tickets of one key, 12 000 a second, share a nonce with a chance of 2⁻³⁹.
    fn seal(&self, client: &PublicKey, nonce: [u8; NONCE_LEN]) -> Option<ResumptionTicket> {
        let mut ticket = [0; TICKET_BYTES];
        let (head, rest) = ticket.split_at_mut(NONCE_LEN);
        let (body, end) = rest.split_at_mut(KEY_BYTES);
        head.copy_from_slice(&nonce);
        body.copy_from_slice(&client.0);
        let nonce = Nonce::assume_unique_for_key(nonce);
        let tag = self
            .key
            .as_ref()?
            .seal_in_place_separate_tag(nonce, Aad::empty(), body);
        end.copy_from_slice(tag.ok()?.as_ref());
        Some(ticket)
    }

    fn open(&self, ticket: &ResumptionTicket) -> Option<PublicKey> {
        let (nonce, sealed) = ticket.split_first_chunk::<NONCE_LEN>()?;
        let mut bytes: [u8; KEY_BYTES + TAG_BYTES] = sealed.try_into().ok()?;
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let opened = self.key.as_ref()?.open_in_place(nonce, Aad::empty(), &mut bytes);
        let client = opened.ok()?;
        (&*client).try_into().ok().map(PublicKey)
    }

    /// The secret that goes with `ticket`: it need not lie in it.
    fn shared(&self, ticket: &ResumptionTicket) -> Secret<SHARED_BYTES> {
        let mut secret = Secret::blank();
        expand(&self.secret, "resume", ticket, &mut *secret);
        secret
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLIENT: PublicKey = PublicKey([7; 32]);

    fn issuer() -> (TicketIssuer, Entropy) {
        let mut entropy = Entropy::new(&[1; 32]);
        (TicketIssuer::new(&mut entropy), entropy)
    }

    fn hours(n: u64) -> Time {
        Time::ZERO + Duration::from_secs(n * 3600)
    }

    #[test]
    fn a_ticket_opens_where_it_was_given_and_says_who_came() {
        let (mut issuer, mut entropy) = issuer();
        let given = issuer.issue(Time::ZERO, CLIENT, None, &mut entropy).unwrap();
        let opened = issuer.open(Time::ZERO, &given.ticket, &mut entropy).unwrap();
        assert!(opened.client == CLIENT && opened.secret == given.secret);
        let again = issuer.issue(Time::ZERO, CLIENT, None, &mut entropy).unwrap();
        assert!(again.ticket != given.ticket && again.secret != given.secret);
        assert!(
            !given.ticket.windows(4).any(|part| part == [7; 4]),
            "the client is not told"
        );
        let mut other = TicketIssuer::new(&mut entropy);
        assert_eq!(other.open(Time::ZERO, &given.ticket, &mut entropy), None);
    }

    #[test]
    fn no_changed_bit_goes_unnoticed() {
        let (mut issuer, mut entropy) = issuer();
        let given = issuer.issue(Time::ZERO, CLIENT, None, &mut entropy).unwrap();
        for bit in 0..TICKET_BYTES * 8 {
            let mut ticket = given.ticket;
            ticket[bit / 8] ^= 0x80 >> (bit % 8);
            assert_eq!(issuer.open(Time::ZERO, &ticket, &mut entropy), None, "bit {bit}");
        }
    }

    #[test]
    fn a_chain_of_tickets_ends_with_the_key_of_the_first() {
        let (mut issuer, mut entropy) = issuer();
        let mut given = issuer.issue(hours(11), CLIENT, None, &mut entropy).unwrap();
        for hour in 12..24 {
            let opened = issuer.open(hours(hour), &given.ticket, &mut entropy).unwrap();
            assert_eq!(opened.period, 0);
            given = issuer
                .issue(hours(hour), CLIENT, Some(opened.period), &mut entropy)
                .unwrap();
        }
        assert_eq!(issuer.open(hours(24), &given.ticket, &mut entropy), None);
    }

    #[test]
    fn what_is_older_than_the_key_before_is_forgotten() {
        let (mut issuer, mut entropy) = issuer();
        let given = issuer.issue(Time::ZERO, CLIENT, None, &mut entropy).unwrap();
        assert!(issuer.open(hours(23), &given.ticket, &mut entropy).is_some());
        assert_eq!(issuer.open(hours(24), &given.ticket, &mut entropy), None);
        let (mut idle, mut entropy) = (issuer, entropy);
        let given = idle.issue(hours(24), CLIENT, None, &mut entropy).unwrap();
        assert_eq!(
            idle.open(hours(48), &given.ticket, &mut entropy),
            None,
            "nobody came in between"
        );
    }
}
