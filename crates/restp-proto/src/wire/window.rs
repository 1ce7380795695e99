//! Flow control (ResTP §3.1.3): a 16-bit window and 16 pad bits. Present if and only if FC is not 0.
//!
//! The window counts segments, starting with the one named in the acknowledgement field, that the sender of
//! the PDU will accept. It is used only with ACK or SYN; there is no scaling (OP-25).

use super::Header;
use super::base::Base;
use super::cursor::{Reader, Writer};
use super::error::{EmitError, ParseError, agree};

#[inline]
pub(super) fn announced(base: &Base) -> bool {
    base.services.flow_control != 0
}

#[inline]
pub(super) fn parse(reader: &mut Reader<'_>) -> Result<u16, ParseError> {
    let &[high, low, _, _] = reader.take("the window (one word)")?;
    Ok(u16::from_be_bytes([high, low]))
}

#[inline]
pub(super) fn check(header: &Header, base: &Base) -> Result<(), EmitError> {
    agree(
        "the window",
        header.window.is_some(),
        announced(base),
        "FC is not 0",
    )
}

#[inline]
pub(super) fn emit(window: u16, out: &mut Writer<'_>) {
    out.word(u32::from(window) << 16);
}
