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

/// A cookie of legal length and value.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Cookie {
    words: u8,
    bytes: [u8; 16],
}

impl Cookie {
    /// `bytes` as a cookie; `None` unless there are 4, 8, 12 or 16 and one of them is not 0.
    pub fn new(bytes: &[u8]) -> Option<Cookie> {
        let legal = matches!(bytes.len(), 4 | 8 | 12 | 16) && bytes.iter().any(|b| *b != 0);
        legal.then(|| {
            let mut padded = [0; 16];
            padded[..bytes.len()].copy_from_slice(bytes);
            Cookie {
                words: (bytes.len() / 4) as u8,
                bytes: padded,
            }
        })
    }
    /// The bytes, 4 to 16 of them.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..4 * self.words()]
    }
    pub(super) fn words(&self) -> usize {
        self.words.into()
    }
}

impl std::fmt::Debug for Cookie {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Cookie(")?;
        self.as_bytes()
            .iter()
            .try_for_each(|byte| write!(f, "{byte:02X}"))?;
        f.write_str(")")
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_has_one_to_four_words_and_is_not_zero() {
        for length in 0..20 {
            let legal = length % 4 == 0 && (4..=16).contains(&length);
            assert_eq!(Cookie::new(&vec![7; length]).is_some(), legal);
            assert_eq!(Cookie::new(&vec![0; length]), None);
        }
    }
}
