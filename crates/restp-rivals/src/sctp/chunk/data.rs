//! DATA (RFC 9260 §3.3.1): one message, or a fragment of one.

use super::{ChunkError, u16_at, u32_at};
use bytes::Bytes;
use restp_base::machine::Head;

/// Bytes before the payload, those of the chunk's own header included.
pub const DATA_HEADER_BYTES: usize = 16;

/// Bits of the flags.
const LAST: u8 = 0b0001;
const FIRST: u8 = 0b0010;
const UNORDERED: u8 = 0b0100;
const IMMEDIATE: u8 = 0b1000;

/// What a DATA chunk says of its payload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fragment {
    /// Transmission sequence number.
    pub tsn: u32,
    /// Stream identifier.
    pub stream: u16,
    /// Number of the message within its stream.
    pub ssn: u16,
    /// What the payload is for the applications; nothing here looks at it.
    pub protocol: u32,
    /// The message begins here (B).
    pub is_first: bool,
    /// The message ends here (E).
    pub is_last: bool,
    /// The message need not wait for those before it (U).
    pub is_unordered: bool,
    /// The receiver shall acknowledge at once (I, RFC 7053).
    pub asks_at_once: bool,
}

/// A DATA chunk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Data {
    /// What is said of the payload.
    pub fragment: Fragment,
    /// One byte at least, where nobody breaks the rules (RFC 9260 §3.3.1).
    pub payload: Bytes,
}

impl Fragment {
    /// The flags and the bytes between the chunk's length and its payload.
    pub(super) fn parse(flags: u8, value: &[u8]) -> Result<Fragment, ChunkError> {
        Ok(Fragment {
            tsn: u32_at(value, 0)?,
            stream: u16_at(value, 4)?,
            ssn: u16_at(value, 6)?,
            protocol: u32_at(value, 8)?,
            is_first: flags & FIRST != 0,
            is_last: flags & LAST != 0,
            is_unordered: flags & UNORDERED != 0,
            asks_at_once: flags & IMMEDIATE != 0,
        })
    }

    pub(super) fn flags(&self) -> u8 {
        let bit = |set: bool, bit: u8| if set { bit } else { 0 };
        bit(self.is_first, FIRST)
            | bit(self.is_last, LAST)
            | bit(self.is_unordered, UNORDERED)
            | bit(self.asks_at_once, IMMEDIATE)
    }

    pub(super) fn emit(&self, out: &mut Head) {
        out.extend_from_slice(&self.tsn.to_be_bytes());
        out.extend_from_slice(&self.stream.to_be_bytes());
        out.extend_from_slice(&self.ssn.to_be_bytes());
        out.extend_from_slice(&self.protocol.to_be_bytes());
    }
}
