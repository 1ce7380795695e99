//! ARQ pair (ResTP §3.1.7): Sequence Number 32, Acknowledgement Number 32 = RCV.NXT. Present if and only if
//! ARQ = 1, or ARQ = 0, SEQ = 1 and ACK = 1 (OP-14): mandatory with ARQ under every ACK technique, and
//! before SACK or SNACK. The acknowledgement number is 0 when ACK = 0.

use super::Header;
use super::base::Base;
use super::codes::{ErrorControl, Flags};
use super::cursor::{Reader, Writer};
use super::error::{EmitError, ParseError, agree};

#[inline]
pub(super) fn announced(base: &Base) -> bool {
    base.services.error.has(ErrorControl::ARQ) || base.flags.has(Flags::ACK) && base.services.numbered()
}

/// Reads both numbers; the second is not valid when ACK = 0.
#[inline]
pub(super) fn parse(reader: &mut Reader<'_>, ack: bool) -> Result<(u32, Option<u32>), ParseError> {
    let &[a, b, c, d, e, f, g, h] = reader.take("the ARQ pair (2 words)")?;
    let acknowledgement = u32::from_be_bytes([e, f, g, h]);
    Ok((u32::from_be_bytes([a, b, c, d]), ack.then_some(acknowledgement)))
}

#[inline]
pub(super) fn check(header: &Header, base: &Base) -> Result<(), EmitError> {
    let valid = announced(base) && base.flags.has(Flags::ACK);
    let rule = "ACK is set, and ARQ or a service that needs numbers is on";
    agree(
        "the acknowledgement number",
        header.acknowledgement.is_some(),
        valid,
        rule,
    )
}

#[inline]
pub(super) fn emit(sequence: u32, acknowledgement: Option<u32>, out: &mut Writer<'_>) {
    out.word(sequence);
    out.word(acknowledgement.unwrap_or(0));
}
