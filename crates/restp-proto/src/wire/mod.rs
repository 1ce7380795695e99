//! The wire: one header, one parse, one emit (ResTP §3.1, §3.2).
//!
//! Extensions carry no type or length of their own. Flags of the base PDU announce them, they come in a fixed
//! order, and at most one of them varies in size: it takes what the others leave over.
//!
//! | Order | Extension | Words | File |
//! |---|---|---|---|
//! | 1 | base | 3 | `base` |
//! | 1a | CRC | 1, or 2 when there is payload | `crc` |
//! | 1b | flow control | 1 | `window` |
//! | 2 | cookie | 1 to 4, remainder | `cookie` |
//! | 3 | MP_CAPABLE or MP_JOIN | 3 to 5 | `mp`, `mp_capable`, `mp_join` |
//! | 4 | DSS | 1 + A + 2M + C | `dss` |
//! | 5a | FEC word | 1 | `fec` |
//! | 5b | ARQ pair | 2 | `arq` |
//! | 5c | sequence number | 1 | `sequence` |
//! | 6 | SACK or SNACK | remainder | [`sack`], [`snack`] |
//!
//! HARQ is 5a followed by 5b (OP-13). Residual rule, R = words left after the extensions of fixed size:
//!
//! | Case | R |
//! |---|---|
//! | cookie announced | 1..4, the cookie; no SACK or SNACK in the same PDU |
//! | SAK = 1, NAK = 0 | even, R/2 SACK blocks; 0 = no hole |
//! | NAK = 1, SAK = 0 | 0 = no hole, 1 = one hole |
//! | NAK = 1, SAK = 1 | 0 = no hole, else one word of hole and R - 1 words of vector |
//! | SAK = NAK = 0 | 0 |

pub mod codes;
pub mod sack;
pub mod snack;

mod arq;
mod base;
mod cookie;
mod crc;
mod cursor;
mod describe;
mod dss;
mod era;
mod error;
mod fec;
mod mp;
mod mp_capable;
mod mp_join;
mod request;
mod sequence;
mod window;

pub use self::crc::{Integrity, verify, verify_header, verify_payload};
pub use base::Services;
pub use codes::{ErrorControl, Flags, Framing, Order, Paths, Scheduler, Setup};
pub use describe::{Field, describe};
pub use dss::{Dss, Mapping};
pub use era::{EraMessage, EraVerb};
pub use error::{EmitError, Found, ParseError};
pub use fec::Fec;
pub use mp::MpSetup;
pub use mp_capable::{Key, Keys, MpCapable};
pub use mp_join::MpJoin;
pub use request::bare_request;
pub use restp_services::connection_management::Cookie;
pub use sack::Blocks;
pub use snack::Snack;

use base::Base;
use cursor::{Reader, Writer};
use restp_base::machine::Head;
use restp_services::ack::AckRatio;

/// A ResTP header. HL, HLX, MPX and the DSS bit follow from what is in it; the other flags announce
/// extensions, and [`Header::emit`] refuses a header whose flags and extensions disagree.
///
/// The codes of the CRC extension are no part of the value: `emit` computes them, and a receiver checks them
/// on the bytes ([`verify`]) so that it can count what failed (OP-24).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// ECN and TCP bits of this packet.
    pub flags: Flags,
    /// The services of the association; ENC and, on a SNACK connection, SAK belong to this packet.
    pub services: Services,
    /// CKI: cookie request or response.
    pub cookie_exchange: bool,
    /// The payload is none: it asks whether the path carries a packet of this size, or says so (RFC 8899 §4.1).
    pub probe: bool,
    /// Beside SYN: its sender knows eras. Otherwise: the packet's era is of an odd number (docs/adr/0007).
    pub era: bool,
    /// The payload is no data, but a message about eras.
    pub about_eras: bool,
    /// How often the peer is to acknowledge (RFC 5690); it may not heed it.
    pub ack_ratio: AckRatio,
    /// Segments rebuilt from encoded packets so far, 0..=7: the count wraps. Said beside an acknowledgement.
    pub repaired: u8,
    /// Paths in use, 1..=15; in multipath set-up packets the ordinal of the subflow (OP-20).
    pub k: u8,
    /// Source port.
    pub source: u16,
    /// Destination port.
    pub destination: u16,
    /// Window in segments; there if and only if FC is not 0.
    pub window: Option<u16>,
    /// Multipath set-up extension; decides MPX.
    pub mp: Option<MpSetup>,
    /// Mapping and connection-level ACK; decides the DSS bit.
    pub dss: Option<Dss>,
    /// FEC word; there if and only if FEC is set, and SYN, ENC or ACK.
    pub fec: Option<Fec>,
    /// Sequence number; there if and only if ARQ is set or [`Services::numbered`].
    pub sequence: Option<u32>,
    /// RCV.NXT; there if and only if there is a sequence number and ACK is set.
    pub acknowledgement: Option<u32>,
    /// The extension of variable size.
    pub tail: Tail,
}

/// What the residual rule finds: at most one extension of variable size is in a PDU.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Tail {
    /// None of them; on a SACK or SNACK connection: no hole.
    #[default]
    None,
    /// There if and only if OPT and SYN are set and ACK equals CKI.
    Cookie(Cookie),
    /// Received blocks; SAK without NAK. An empty list is sent, and read back, as [`Tail::None`].
    Sack(Blocks),
    /// Holes; NAK, and SAK as well where there is a vector.
    Snack(Snack),
}

impl Header {
    /// A header of one path without flags and extensions.
    #[inline]
    pub const fn new(services: Services, source: u16, destination: u16) -> Self {
        Header {
            flags: Flags::NONE,
            services,
            cookie_exchange: false,
            probe: false,
            era: false,
            about_eras: false,
            ack_ratio: AckRatio::SCHEDULE,
            repaired: 0,
            k: 1,
            source,
            destination,
            window: None,
            mp: None,
            dss: None,
            fec: None,
            sequence: None,
            acknowledgement: None,
            tail: Tail::None,
        }
    }

    /// Bytes of the header that starts with `head`, as it says itself; none where it is cut short before that.
    pub fn length(head: &[u8]) -> Option<usize> {
        head.first_chunk::<12>().map(|base| 4 * base::words(base))
    }

    /// Reads the header at the start of `head`, which must hold all of it, of a PDU of `pdu_len` bytes.
    /// Returns it with its length in bytes; the payload follows.
    ///
    /// # Errors
    /// Any rule of the receiver broken: the PDU is to be dropped and counted.
    #[inline]
    pub fn parse(head: &[u8], pdu_len: usize) -> Result<(Header, usize), ParseError> {
        let (base, shape) = base::parse(head, pdu_len)?;
        let length = 4 * shape.words;
        let Some(bytes) = head.get(..length) else {
            return Err(ParseError::new(
                head.len(),
                "the whole header in one piece",
                Found::Bytes(head.len()),
            ));
        };
        let reader = &mut Reader::new(bytes, 4 * codes::BASE_WORDS);

        if crc::announced(&base) {
            crc::skip(reader, pdu_len > length)?;
        }
        let window = if window::announced(&base) {
            Some(window::parse(reader)?)
        } else {
            None
        };
        let with_cookie = cookie::announced(&base);
        let mut tail = Tail::None;
        if with_cookie {
            let fixed_after = mp::announced_words(shape.mpx, base.flags)
                + if shape.dss { dss::WORDS_BESIDE_COOKIE } else { 0 }
                + usize::from(fec::announced(&base))
                + number_words(&base);
            tail = Tail::Cookie(cookie::parse(reader, fixed_after)?);
        }
        let mp = if shape.mpx != 0 {
            Some(mp::parse(
                reader,
                shape.mpx,
                base.flags,
                base.services.shared_numbers,
            )?)
        } else {
            None
        };
        let dss = if shape.dss {
            Some(dss::parse(reader, with_cookie)?)
        } else {
            None
        };
        let fec = if fec::announced(&base) {
            Some(fec::parse(reader)?)
        } else {
            None
        };
        let (sequence, acknowledgement) = if arq::announced(&base) {
            let (sequence, acknowledgement) = arq::parse(reader, base.flags.has(Flags::ACK))?;
            (Some(sequence), acknowledgement)
        } else if sequence::announced(&base) {
            (Some(sequence::parse(reader)?), None)
        } else {
            (None, None)
        };
        if reader.words_left() > 0 {
            tail = parse_rest(reader, base.services.error)?;
        }
        let header = Header {
            flags: base.flags,
            services: base.services,
            cookie_exchange: base.cookie_exchange,
            probe: shape.probe,
            era: shape.era,
            about_eras: shape.about_eras,
            ack_ratio: shape.ack_ratio,
            repaired: shape.repaired,
            k: shape.k,
            source: shape.source,
            destination: shape.destination,
            window,
            mp,
            dss,
            fec,
            sequence,
            acknowledgement,
            tail,
        };
        Ok((header, length))
    }

    /// Writes the header of a packet with `payload` into `out`, in place of what was there; with CRC set it
    /// computes both codes.
    ///
    /// # Errors
    /// The header contradicts itself; `out` is then left as it was.
    pub fn emit(&self, payload: &[u8], out: &mut Head) -> Result<(), EmitError> {
        let base = &self.base();
        let words = self.checked_words(base, !payload.is_empty())?;
        *out = zeros(4 * words);

        let writer = &mut Writer::new(out);
        base::emit(self, words, writer);
        if crc::announced(base) {
            writer.skip(4 * crc::words(!payload.is_empty()));
        }
        if let Some(window) = self.window {
            window::emit(window, writer);
        }
        if let Tail::Cookie(cookie) = &self.tail {
            cookie::emit(cookie, writer);
        }
        if let Some(mp) = &self.mp {
            mp::emit(mp, writer);
        }
        if let Some(dss) = &self.dss {
            dss::emit(dss, writer);
        }
        if let Some(fec) = &self.fec {
            fec::emit(fec, writer);
        }
        match self.sequence {
            Some(number) if arq::announced(base) => arq::emit(number, self.acknowledgement, writer),
            Some(number) => sequence::emit(number, writer),
            None => {}
        }
        match &self.tail {
            Tail::Sack(blocks) => sack::emit(blocks, writer),
            Tail::Snack(snack) => snack::emit(snack, writer),
            Tail::None | Tail::Cookie(_) => {}
        }
        if crc::announced(base) {
            crc::seal(out, payload);
        }
        Ok(())
    }

    /// Words of the header on the wire: what is left of a path's largest packet is for the payload.
    ///
    /// # Errors
    /// The header contradicts itself.
    pub fn words(&self, with_payload: bool) -> Result<usize, EmitError> {
        self.checked_words(&self.base(), with_payload)
    }

    #[inline(always)]
    fn base(&self) -> Base {
        Base {
            flags: self.flags,
            services: self.services,
            cookie_exchange: self.cookie_exchange,
        }
    }

    #[inline(always)]
    fn checked_words(&self, base: &Base, with_payload: bool) -> Result<usize, EmitError> {
        base::check(self)?;
        window::check(self, base)?;
        cookie::check(self, base)?;
        mp::check(self)?;
        dss::check(self, base)?;
        fec::check(self, base)?;
        arq::check(self, base)?;
        sequence::check(self, base)?;
        self.check_tail()?;
        let words = codes::BASE_WORDS
            + if crc::announced(base) {
                crc::words(with_payload)
            } else {
                0
            }
            + usize::from(self.window.is_some())
            + self.mp.as_ref().map_or(0, MpSetup::words)
            + self.dss.as_ref().map_or(0, Dss::words)
            + usize::from(self.fec.is_some())
            + number_words(base)
            + self.tail.words();
        if words > codes::MAX_WORDS {
            return Err(EmitError::TooLong { words });
        }
        Ok(words)
    }

    /// The cookie, if there is one.
    pub fn cookie(&self) -> Option<&Cookie> {
        match &self.tail {
            Tail::Cookie(cookie) => Some(cookie),
            _ => None,
        }
    }

    /// The residual rule for a sender.
    #[inline(always)]
    fn check_tail(&self) -> Result<(), EmitError> {
        let error = self.services.error;
        let (nak, sak) = (error.has(ErrorControl::NAK), error.has(ErrorControl::SAK));
        let unannounced = |extension, rule| Err(EmitError::Unannounced { extension, rule });
        match &self.tail {
            Tail::Sack(_) if nak || !sak => unannounced("SACK", "SAK is set and NAK is not"),
            Tail::Snack(_) if !nak => unannounced("SNACK", "NAK is set"),
            Tail::Snack(snack) if !sak && !snack.vector.is_empty() => {
                unannounced("the SNACK bit vector", "NAK and SAK are set")
            }
            _ => Ok(()),
        }
    }
}

impl Tail {
    #[inline(always)]
    fn words(&self) -> usize {
        match self {
            Tail::None => 0,
            Tail::Cookie(cookie) => cookie.as_bytes().len() / 4,
            Tail::Sack(blocks) => 2 * blocks.len(),
            Tail::Snack(snack) => snack.words(),
        }
    }
}

/// `length` bytes of zero, without allocation for common headers.
#[inline]
fn zeros(length: usize) -> Head {
    let inline = [0; 64];
    if length <= inline.len() {
        Head::from_buf_and_len(inline, length)
    } else {
        Head::from_elem(0, length)
    }
}

/// Words of the ARQ pair or of the bare sequence number, as announced.
#[inline(always)]
fn number_words(base: &Base) -> usize {
    match (arq::announced(base), sequence::announced(base)) {
        (true, _) => 2,
        (false, true) => 1,
        (false, false) => 0,
    }
}

/// The residual rule for words that no cookie took.
fn parse_rest(reader: &mut Reader<'_>, error: ErrorControl) -> Result<Tail, ParseError> {
    match (error.has(ErrorControl::NAK), error.has(ErrorControl::SAK)) {
        (false, true) => sack::parse(reader).map(Tail::Sack),
        (true, sak) => snack::parse(reader, sak).map(Tail::Snack),
        (false, false) => {
            let rule = "the end of the header";
            Err(ParseError::new(
                reader.offset(),
                rule,
                Found::Words(reader.words_left()),
            ))
        }
    }
}
