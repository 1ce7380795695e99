//! Cookie (ResTP §3.1.4): 4..16 bytes, a multiple of 4, not all zero, minted by the server. Present if and
//! only if OPT = 1, SYN = 1 and ACK = CKI (OP-11):
//!
//! | ACK | CKI | Packet (SYN = OPT = 1) | Cookie |
//! |---|---|---|---|
//! | 0 | 1 | cookie request | no |
//! | 1 | 1 | cookie response | yes |
//! | 0 | 0 | opportunistic SYN, or first client data packet doubling as SYN | yes |
//! | 1 | 0 | normal SYN-ACK, or first server data packet doubling as SYN-ACK | no |
//!
//! Its length is what the extensions of fixed size leave over, 1 to 4 words (ResTP §3.2 and the residual rule).

use super::base::Base;
use super::codes::{Flags, Setup};
use super::cursor::{Reader, Writer};
use super::error::{EmitError, Found, ParseError, agree};
use super::{Header, Tail};
use restp_services::connection_management::Cookie;

#[inline]
pub(super) fn announced(base: &Base) -> bool {
    base.services.setup == Setup::Opportunistic
        && base.flags.has(Flags::SYN)
        && base.flags.has(Flags::ACK) == base.cookie_exchange
}

/// Reads the cookie; `fixed_after` words of other extensions follow it.
pub(super) fn parse(reader: &mut Reader<'_>, fixed_after: usize) -> Result<Cookie, ParseError> {
    const RULE: &str = "a cookie of 1 to 4 words, not all zero";
    let at = reader.offset();
    let left = reader.words_left();
    let Some(words @ 1..=4) = left.checked_sub(fixed_after) else {
        return Err(ParseError::new(
            at,
            RULE,
            Found::Words(left.saturating_sub(fixed_after)),
        ));
    };
    Cookie::new(reader.words(words, RULE)?).ok_or(ParseError::new(at, RULE, Found::Value(0)))
}

#[inline]
pub(super) fn check(header: &Header, base: &Base) -> Result<(), EmitError> {
    let present = matches!(header.tail, Tail::Cookie(_));
    agree(
        "the cookie",
        present,
        announced(base),
        "OPT and SYN are set, and ACK equals CKI",
    )
}

pub(super) fn emit(cookie: &Cookie, out: &mut Writer<'_>) {
    out.put(cookie.as_bytes());
}
