//! FEC word (ResTP §3.1.5): Type 8, Range 24. Present if and only if FEC = 1 and SYN, ENC or ACK is set
//! (OP-12), the same for quasi reliable and HARQ; in HARQ it comes before the ARQ pair (OP-13).
//!
//! Range by packet: ENC = 1, number of packets encoded in the payload, or, for Type 3, key, distance and number; ENC = 0 and ACK = 1, HARQ: loss
//! range, 0 = nothing outstanding; Type 3 without HARQ: what was rebuilt or given up lately, 0 = nothing; set-up packets 0.

use super::Header;
use super::base::Base;
use super::codes::{ErrorControl, FEC_RANGE_MAX, Flags};
use super::cursor::{Reader, Writer};
use super::error::{EmitError, ParseError, agree};

/// The FEC word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fec {
    /// FEC Type (`codes::FEC_BASIC`, `codes::FEC_INTERLEAVED`, `codes::FEC_RLC`; 0 undefined, others free).
    pub kind: u8,
    /// FEC Range, below 2^24.
    pub range: u32,
}

#[inline]
pub(super) fn announced(base: &Base) -> bool {
    base.services.error.has(ErrorControl::FEC)
        && (base.services.error.has(ErrorControl::ENC)
            || base.flags.has(Flags::SYN)
            || base.flags.has(Flags::ACK))
}

pub(super) fn parse(reader: &mut Reader<'_>) -> Result<Fec, ParseError> {
    let word = reader.word("the FEC word")?;
    Ok(Fec {
        kind: (word >> 24) as u8,
        range: word & FEC_RANGE_MAX,
    })
}

#[inline]
pub(super) fn check(header: &Header, base: &Base) -> Result<(), EmitError> {
    agree(
        "the FEC word",
        header.fec.is_some(),
        announced(base),
        "FEC is set, and SYN, ENC or ACK",
    )?;
    match header.fec {
        Some(Fec { range, .. }) if range > FEC_RANGE_MAX => Err(EmitError::Forbidden {
            field: "FEC Range",
            found: range,
            rule: "the field has 24 bits",
        }),
        _ => Ok(()),
    }
}

pub(super) fn emit(fec: &Fec, out: &mut Writer<'_>) {
    out.word(u32::from(fec.kind) << 24 | fec.range);
}
