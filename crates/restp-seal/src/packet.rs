//! The bytes of sealed datagrams (`docs/protocol/sealed.md`). The first has its high bit set, which no PDU of version 0
//! has: plain and sealed traffic cannot be taken for each other.

use crate::gate::TOKEN_AT;
use crate::keys::{KEY_BYTES, PublicKey};
pub use crate::noise::Pattern;
use crate::resumption::{Resumption, ResumptionTicket, SHARED_BYTES, TICKET_BYTES};
use crate::schedule::{Suite, TAG_BYTES};
use crate::secret::Secret;
use crate::token::{ADDRESS_TOKEN_BYTES, AddressToken, EPOCH_BYTES, Epoch, Token};
use zeroize::Zeroizing;

/// Set in the first byte of everything that is sealed.
pub const SEALED: u8 = 0x80;

/// What begins lower may be a stranger's: part of a handshake, or not sealed at all. From here on it belongs to a session, or
/// says so.
pub const FIRST_OF_A_SESSION: u8 = DATA;

const HELLO_IK: u8 = 0x80;
const HELLO_IX: u8 = 0x81;
const ANSWER: u8 = 0x82;
const RETRY: u8 = 0x83;
const FOREIGN: u8 = 0x84;
const HELLO_RESUMED: u8 = 0x85;
const STALE: u8 = 0x86;
const RESET: u8 = 0x87;
/// Packets: the low four bits say which path.
const DATA: u8 = 0xC0;
/// In a packet's first byte: sealed with the keys of early data.
const EARLY: u8 = 0x20;

/// Names a connection for the host that chose it.
pub type ConnectionId = [u8; CID_BYTES];
/// Its length: nobody guesses it.
pub const CID_BYTES: usize = 8;

/// Shows that a host has forgotten a session, and not somebody else says so.
pub type ResetToken = [u8; RESET_TOKEN_BYTES];
/// Its length.
pub const RESET_TOKEN_BYTES: usize = 16;

/// Bytes of a packet's number.
const NUMBER_BYTES: usize = 6;
/// The first number there is none for.
pub const NUMBERS: u64 = 1 << (8 * NUMBER_BYTES);

/// Bytes before what is encrypted.
pub const DATA_HEADER: usize = 1 + CID_BYTES + NUMBER_BYTES;
/// What sealing adds to a datagram.
pub const OVERHEAD: usize = DATA_HEADER + TAG_BYTES;

const HELLO_HEADER: usize = TOKEN_AT + ADDRESS_TOKEN_BYTES;

/// A sealed datagram, or one of two in it.
#[derive(Debug, PartialEq, Eq)]
pub enum Packet<'a> {
    /// Asks for a session.
    Hello(Hello<'a>),
    /// Gives one. `rest` is what follows the message, a packet or nothing, once the length of the message is known.
    Answer {
        /// Chosen by the host that asked.
        to: ConnectionId,
        /// The second message, and what follows it.
        rest: &'a [u8],
    },
    /// Asks to come again with a proof of the address.
    Retry {
        /// Chosen by the host that asked.
        to: ConnectionId,
        /// The proof.
        token: AddressToken,
    },
    /// Says that the request was for another key than this host's.
    Foreign {
        /// Chosen by the host that asked.
        to: ConnectionId,
        /// This host's key, as far as one may believe it.
        key: PublicKey,
    },
    /// Says that the ticket of the request does not open here, or no more.
    Stale {
        /// Chosen by the host that asked.
        to: ConnectionId,
    },
    /// Says that the session is not known any more (RFC 9000 §10.3).
    Reset {
        /// How it was addressed: chosen by the host that says so.
        of: ConnectionId,
        /// Who has it was told in the second message, or can compute it.
        token: ResetToken,
    },
    /// Carries a datagram of the machine.
    Data(DataHeader),
}

/// A request for a session.
#[derive(Debug, PartialEq, Eq)]
pub struct Hello<'a> {
    /// Which handshake.
    pub pattern: Pattern,
    /// How the asking host wants to be addressed.
    pub from: ConnectionId,
    /// Proof of its address; zeros for none.
    pub token: AddressToken,
    /// With [`Pattern::Resumed`]: what was given for the secret that begins the handshake.
    pub ticket: Option<ResumptionTicket>,
    /// The first message.
    pub message: &'a [u8],
}

/// The part of a packet that can be read by all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DataHeader {
    /// Chosen by its receiver; for early data by its sender.
    pub to: ConnectionId,
    /// Sealed before the session stood.
    pub early: bool,
    /// Which path of the session.
    pub space: u8,
    /// Which packet of the path.
    pub number: u64,
}

impl Packet<'_> {
    /// Reads the fixed parts. `None` when it is none of these.
    pub fn parse(bytes: &[u8]) -> Option<Packet<'_>> {
        let kind = *bytes.first()?;
        let to: ConnectionId = bytes.get(1..1 + CID_BYTES)?.try_into().ok()?;
        let rest = &bytes[1 + CID_BYTES..];
        if kind & DATA == DATA && kind & 0x10 == 0 {
            let digits = rest.get(..NUMBER_BYTES)?;
            let number = digits.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte));
            let whole = bytes.len() >= OVERHEAD;
            return whole.then_some(Packet::Data(DataHeader {
                to,
                early: kind & EARLY != 0,
                space: kind & 0x0F,
                number,
            }));
        }
        match kind {
            HELLO_IK | HELLO_IX | HELLO_RESUMED => {
                let (token, rest) = rest.split_first_chunk()?;
                let (pattern, ticket, message) = match kind {
                    HELLO_IK => (Pattern::Ik, None, rest),
                    HELLO_IX => (Pattern::Ix, None, rest),
                    _ => {
                        let (ticket, message) = rest.split_first_chunk()?;
                        (Pattern::Resumed, Some(*ticket), message)
                    }
                };
                let whole = message.len() >= pattern.first_overhead() + Request::bytes(pattern);
                whole.then_some(Packet::Hello(Hello {
                    pattern,
                    from: to,
                    token: *token,
                    ticket,
                    message,
                }))
            }
            ANSWER => Some(Packet::Answer { to, rest }),
            RETRY => Some(Packet::Retry {
                to,
                token: rest.try_into().ok()?,
            }),
            FOREIGN => Some(Packet::Foreign {
                to,
                key: PublicKey(rest.try_into().ok()?),
            }),
            STALE => rest.is_empty().then_some(Packet::Stale { to }),
            RESET => Some(Packet::Reset {
                of: to,
                token: rest.try_into().ok()?,
            }),
            _ => None,
        }
    }
}

impl DataHeader {
    /// The bytes, which the tag covers.
    pub fn emit(&self) -> [u8; DATA_HEADER] {
        let mut bytes = [0; DATA_HEADER];
        bytes[0] = DATA | if self.early { EARLY } else { 0 } | self.space;
        bytes[1..1 + CID_BYTES].copy_from_slice(&self.to);
        bytes[1 + CID_BYTES..].copy_from_slice(&self.number.to_be_bytes()[8 - NUMBER_BYTES..]);
        bytes
    }
}

/// What both ends mix into a handshake before its first message, so that nobody changes the header around it.
pub fn prologue(pattern: Pattern, from: &ConnectionId) -> Vec<u8> {
    [b"ResTP seal 1", &[kind(pattern)][..], from].concat()
}

const fn kind(pattern: Pattern) -> u8 {
    match pattern {
        Pattern::Ik => HELLO_IK,
        Pattern::Ix => HELLO_IX,
        Pattern::Resumed => HELLO_RESUMED,
    }
}

/// The header of a request; a ticket with [`Pattern::Resumed`], and the first message follow.
pub fn hello_header(pattern: Pattern, from: &ConnectionId, token: &AddressToken) -> Vec<u8> {
    [&[kind(pattern)][..], from, token].concat()
}

/// Puts another proof of the address into a request.
pub fn set_token(hello: &mut [u8], token: &AddressToken) {
    if let Some(place) = hello.get_mut(TOKEN_AT..HELLO_HEADER) {
        place.copy_from_slice(token);
    }
}

/// The header of an answer; the second message follows.
pub fn answer_header(to: &ConnectionId) -> Vec<u8> {
    [&[ANSWER][..], to].concat()
}

/// A request to come again.
pub fn retry(to: &ConnectionId, token: &AddressToken) -> Vec<u8> {
    [&[RETRY][..], to, token].concat()
}

/// A request was for another key than `key`.
pub fn foreign(to: &ConnectionId, key: &PublicKey) -> Vec<u8> {
    [&[FOREIGN][..], to, &key.0].concat()
}

/// The ticket of a request does not open.
pub fn stale(to: &ConnectionId) -> Vec<u8> {
    [&[STALE][..], to].concat()
}

/// The session `of` is not known here any more. Shorter than any packet, so that two hosts do not answer each other.
pub fn reset(of: &ConnectionId, token: &ResetToken) -> Vec<u8> {
    [&[RESET][..], of, token].concat()
}

/// Bytes of the message in an answer.
pub const fn answer_message_bytes(pattern: Pattern) -> usize {
    pattern.second_overhead() + Grant::BYTES
}

/// Payload of the first message; a PDU may follow.
#[derive(Debug, PartialEq, Eq)]
pub struct Request {
    /// This processor has instructions for AES.
    pub fast_aes: bool,
    /// Of the token, for early data.
    pub epoch: Epoch,
    /// Early data is sealed with it. Only where the payload is secret.
    pub early_secret: Option<Secret>,
    /// The one-time key of a request whose place this one takes, with early data that must not be taken any more.
    /// Only with [`Pattern::Ik`].
    pub instead_of: Option<[u8; KEY_BYTES]>,
    /// The server's name for a session that the client has, and keeps while it asks for another. Only where the payload is
    /// secret.
    pub beside: Option<ConnectionId>,
}

/// Flags of a [`Request`].
const FAST_AES: u8 = 1;
const INSTEAD: u8 = 2;
const BESIDE: u8 = 4;

impl Request {
    /// Length without the PDU.
    pub const fn bytes(pattern: Pattern) -> usize {
        match pattern {
            Pattern::Ik | Pattern::Resumed => 1 + EPOCH_BYTES + 32,
            Pattern::Ix => 1 + EPOCH_BYTES,
        }
    }

    /// The payload.
    pub fn emit(&self, pdu: &[u8]) -> Zeroizing<Vec<u8>> {
        let flag = |set: bool, flag: u8| if set { flag } else { 0 };
        let flags = flag(self.fast_aes, FAST_AES)
            | flag(self.instead_of.is_some(), INSTEAD)
            | flag(self.beside.is_some(), BESIDE);
        // All at once: a buffer that grew would leave a copy behind.
        let most = Self::bytes(Pattern::Ik) + KEY_BYTES + CID_BYTES + pdu.len();
        let mut bytes = Zeroizing::new(Vec::with_capacity(most));
        bytes.push(flags);
        bytes.extend(self.epoch);
        bytes.extend(self.early_secret.iter().flat_map(|secret| secret.iter()));
        bytes.extend(self.instead_of.iter().flatten());
        bytes.extend(self.beside.iter().flatten());
        bytes.extend(pdu);
        bytes
    }

    /// The payload's meaning, and the PDU.
    pub fn parse(pattern: Pattern, payload: &[u8]) -> Option<(Request, &[u8])> {
        let ([flags], rest) = payload.split_first_chunk()?;
        let (epoch, rest) = rest.split_first_chunk()?;
        let secret = pattern != Pattern::Ix;
        let (early_secret, rest) = part(rest, secret)?;
        let (instead_of, rest) = part(rest, pattern == Pattern::Ik && flags & INSTEAD != 0)?;
        let (beside, pdu) = part(rest, secret && flags & BESIDE != 0)?;
        let request = Request {
            fast_aes: flags & FAST_AES != 0,
            epoch: *epoch,
            early_secret: early_secret.map(Secret::from),
            instead_of,
            beside,
        };
        Some((request, pdu))
    }
}

/// The next `N` bytes, if `there` are such.
fn part<const N: usize>(bytes: &[u8], there: bool) -> Option<(Option<[u8; N]>, &[u8])> {
    if !there {
        return Some((None, bytes));
    }
    let (part, rest) = bytes.split_first_chunk()?;
    Some((Some(*part), rest))
}

/// Payload of the second message.
#[derive(Debug, PartialEq, Eq)]
pub struct Grant {
    /// This host serves the one that asked.
    pub welcome: bool,
    /// Its early data is taken.
    pub early: bool,
    /// Cipher of the session.
    pub suite: Suite,
    /// How the answering host wants to be addressed.
    pub from: ConnectionId,
    /// What shows that it has forgotten that.
    pub reset: ResetToken,
    /// For the next time.
    pub token: Token,
}

impl Grant {
    /// Length of the payload.
    pub const BYTES: usize =
        2 + CID_BYTES + RESET_TOKEN_BYTES + EPOCH_BYTES + ADDRESS_TOKEN_BYTES + TICKET_BYTES + SHARED_BYTES;

    /// The payload.
    pub fn emit(&self) -> Zeroizing<Vec<u8>> {
        let flags = u8::from(self.welcome) | u8::from(self.early) << 1;
        let head = [flags, self.suite as u8];
        let (no_ticket, no_secret) = ([0; TICKET_BYTES], [0; SHARED_BYTES]);
        let (ticket, secret) = match &self.token.resumption {
            Some(resumption) => (&resumption.ticket, &*resumption.secret),
            None => (&no_ticket, &no_secret),
        };
        let token = &self.token;
        let all = [
            &head[..],
            &self.from,
            &self.reset,
            &token.epoch,
            &token.address,
            ticket,
            secret,
        ];
        Zeroizing::new(all.concat())
    }

    /// The payload's meaning for `client`, whom it is given to.
    pub fn parse(payload: &[u8], client: &PublicKey) -> Option<Grant> {
        let ([flags, suite], rest) = payload.split_first_chunk()?;
        let (from, rest) = rest.split_first_chunk()?;
        let (reset, rest) = rest.split_first_chunk()?;
        let (epoch, rest) = rest.split_first_chunk()?;
        let (token, rest) = rest.split_first_chunk()?;
        let (ticket, secret) = rest.split_first_chunk()?;
        let resumption = Resumption {
            client: *client,
            ticket: *ticket,
            secret: Secret::from(<[u8; SHARED_BYTES]>::try_from(secret).ok()?),
        };
        Some(Grant {
            welcome: flags & 1 == 1,
            early: flags & 2 == 2,
            suite: Suite::from_code(*suite)?,
            from: *from,
            reset: *reset,
            token: Token {
                epoch: *epoch,
                address: *token,
                resumption: (*ticket != [0; TICKET_BYTES]).then_some(resumption),
            },
        })
    }
}

const _: () = assert!(TOKEN_AT == 1 + CID_BYTES, "the token follows the connection id");
const _: () = assert!(KEY_BYTES == 32, "the secrets of the library have this length");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_header_reads_back() {
        for (early, space, number) in [
            (false, 0, 0),
            (true, 15, NUMBERS - 1),
            (false, 7, 0x0102_0304_0506),
        ] {
            let header = DataHeader {
                to: *b"connect.",
                early,
                space,
                number,
            };
            let bytes = [&header.emit()[..], &[0; TAG_BYTES]].concat();
            assert_eq!(bytes[0] & SEALED, SEALED);
            assert_eq!(Packet::parse(&bytes), Some(Packet::Data(header)));
            assert_eq!(
                Packet::parse(&bytes[..bytes.len() - 1]),
                None,
                "no room for a tag"
            );
        }
    }

    #[test]
    fn requests_and_grants_read_back() {
        for (pattern, instead_of, beside) in [
            (Pattern::Ik, None, None),
            (Pattern::Ik, Some([5; 32]), None),
            (Pattern::Ik, Some([5; 32]), Some([6; 8])),
            (Pattern::Ix, None, None),
            (Pattern::Resumed, None, None),
            (Pattern::Resumed, None, Some([6; 8])),
        ] {
            let request = Request {
                fast_aes: true,
                epoch: [3; 8],
                early_secret: (pattern != Pattern::Ix).then(|| [4; 32].into()),
                instead_of,
                beside,
            };
            let payload = request.emit(b"pdu");
            let length =
                Request::bytes(pattern) + instead_of.map_or(0, |_| 32) + beside.map_or(0, |_| CID_BYTES);
            assert_eq!(payload.len(), length + 3);
            assert_eq!(
                Request::parse(pattern, &payload),
                Some((request, b"pdu".as_slice()))
            );
            assert_eq!(Request::parse(pattern, &payload[..length - 1]), None);
        }
        let client = PublicKey([8; 32]);
        let resumption = Resumption {
            client,
            ticket: [9; TICKET_BYTES],
            secret: [10; 32].into(),
        };
        for resumption in [None, Some(resumption)] {
            let grant = Grant {
                welcome: true,
                early: false,
                suite: Suite::Aes128Gcm,
                from: [5; 8],
                reset: [11; 16],
                token: Token {
                    epoch: [6; 8],
                    address: [7; 16],
                    resumption,
                },
            };
            let payload = grant.emit();
            assert_eq!(payload.len(), Grant::BYTES);
            assert_eq!(Grant::parse(&payload[1..], &client), None);
            assert_eq!(Grant::parse(&payload, &client), Some(grant));
        }
    }

    #[test]
    fn whatever_comes_is_read_or_refused() {
        let mut stream = restp_base::random::Stream::named(5, "packets");
        for _ in 0..20_000 {
            let length = stream.below(200) as usize;
            let bytes: Vec<u8> = (0..length).map(|_| stream.bits() as u8).collect();
            if let Some(packet) = Packet::parse(&bytes) {
                assert!(bytes[0] & SEALED == SEALED, "{packet:?}");
            }
        }
        assert_eq!(Packet::parse(&retry(b"connect.", &[9; 16])).map(|_| ()), Some(()));
        assert_eq!(
            Packet::parse(&foreign(b"connect.", &PublicKey([1; 32]))[..40]),
            None
        );
    }
}
