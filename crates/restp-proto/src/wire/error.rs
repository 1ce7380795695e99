//! What a codec refuses: bytes of a peer ([`ParseError`]), values of a caller ([`EmitError`]).

use std::fmt;

/// A PDU that breaks a rule of the header. The receiver drops and counts it (ResTP §3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("at byte {offset}: expected {expected}, found {found}")]
pub struct ParseError {
    /// Byte of the PDU at which the rule was broken.
    pub offset: usize,
    /// What the rule asks for.
    pub expected: &'static str,
    /// What was there.
    pub found: Found,
}

impl ParseError {
    #[cold]
    pub(super) const fn new(offset: usize, expected: &'static str, found: Found) -> Self {
        ParseError {
            offset,
            expected,
            found,
        }
    }
}

/// What a parser found in place of what it expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// The value of a field, or the bits in question.
    Value(u32),
    /// A number of 32-bit words.
    Words(usize),
    /// A number of bytes.
    Bytes(usize),
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Found::Value(value) => write!(f, "{value:#04x}"),
            Found::Words(1) => f.write_str("1 word"),
            Found::Words(count) => write!(f, "{count} words"),
            Found::Bytes(1) => f.write_str("1 byte"),
            Found::Bytes(count) => write!(f, "{count} bytes"),
        }
    }
}

/// A header that contradicts itself, so that no receiver could read it back. A fault of this program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EmitError {
    /// A flag announces an extension that has no value.
    #[error("{extension} is missing although announced: {rule}")]
    Missing {
        /// The extension without a value.
        extension: &'static str,
        /// What announces it.
        rule: &'static str,
    },
    /// An extension has a value that no flag announces.
    #[error("{extension} is present although not announced: {rule}")]
    Unannounced {
        /// The extension with a value.
        extension: &'static str,
        /// What would announce it.
        rule: &'static str,
    },
    /// A field has a value that its place on the wire or another field forbids.
    #[error("{field} is {found}: {rule}")]
    Forbidden {
        /// The field.
        field: &'static str,
        /// Its value.
        found: u32,
        /// What is allowed.
        rule: &'static str,
    },
    /// The header is longer than its length field can say.
    #[error(
        "the header has {words} words, HLX and HL count 255 at most: report fewer blocks or a shorter bit vector"
    )]
    TooLong {
        /// Words the header would have.
        words: usize,
    },
}

/// Checks that a value is there exactly when it is announced.
#[inline]
pub(super) fn agree(
    extension: &'static str,
    present: bool,
    announced: bool,
    rule: &'static str,
) -> Result<(), EmitError> {
    if present == announced {
        Ok(())
    } else {
        Err(disagreement(extension, present, rule))
    }
}

#[cold]
fn disagreement(extension: &'static str, present: bool, rule: &'static str) -> EmitError {
    if present {
        EmitError::Unannounced { extension, rule }
    } else {
        EmitError::Missing { extension, rule }
    }
}
