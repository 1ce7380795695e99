//! Sequence number (ResTP §3.1.6): 32 bits. Present by itself if and only if ARQ = 0, SEQ = 1 and ACK = 0;
//! with ACK it is the first half of the ARQ pair. SEQ: FEC, ordering, congestion or flow control needs
//! packet numbers although ARQ is off (OP-14).

use super::Header;
use super::arq;
use super::base::Base;
use super::cursor::{Reader, Writer};
use super::error::{EmitError, ParseError, agree};

#[inline]
pub(super) fn announced(base: &Base) -> bool {
    base.services.numbered() && !arq::announced(base)
}

#[inline]
pub(super) fn parse(reader: &mut Reader<'_>) -> Result<u32, ParseError> {
    reader.word("the sequence number (one word)")
}

#[inline]
pub(super) fn check(header: &Header, base: &Base) -> Result<(), EmitError> {
    let numbered = announced(base) || arq::announced(base);
    let rule = "ARQ, FEC, ordering, congestion or flow control is on";
    agree("the sequence number", header.sequence.is_some(), numbered, rule)
}

#[inline]
pub(super) fn emit(sequence: u32, out: &mut Writer<'_>) {
    out.word(sequence);
}
