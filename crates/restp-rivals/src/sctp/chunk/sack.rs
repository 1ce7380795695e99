//! SACK (RFC 9260 §3.3.4): what has arrived, relative to the cumulative TSN. The low two bits of its flags carry the count of
//! delayed acknowledgements of CMT (CMT §2.5), which RFC 9260 leaves at zero.

use super::{ChunkError, u16_at, u32_at};
use restp_base::machine::Head;
use smallvec::SmallVec;

/// Bytes before the blocks, without the chunk's own header.
const FIXED_BYTES: usize = 12;
/// Blocks that fit beside IP and common header into 1500 bytes.
pub const MOST_BLOCKS: usize = (1500 - 20 - 12 - 4 - FIXED_BYTES) / 4;
/// The count's bits of the flags. Those at the other end are where the stacks of BSD have it (usrsctp): they are written as well, and read
/// where the low ones are zero.
const ARRIVALS: u8 = 0b11;
const BSD_SHIFT: u32 = 6;

/// A SACK chunk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sack {
    /// Cumulative TSN ack: the last number before the first one missing.
    pub cumulative: u32,
    /// Advertised receiver window credit: bytes of buffer that are free.
    pub window: u32,
    /// Gap ack blocks: first and last offset from the cumulative number, in increasing order.
    pub blocks: SmallVec<[(u16, u16); 4]>,
    /// Numbers that arrived again.
    pub duplicates: SmallVec<[u32; 2]>,
    /// DATA packets since the last SACK, up to 3; 0: not told.
    pub arrivals: u8,
}

impl Sack {
    pub(super) fn parse(flags: u8, value: &[u8]) -> Result<Sack, ChunkError> {
        let (blocks, duplicates) = (u16_at(value, 8)?, u16_at(value, 10)?);
        let (blocks, duplicates) = (usize::from(blocks), usize::from(duplicates));
        let expected = FIXED_BYTES + 4 * blocks + 4 * duplicates;
        if value.len() < expected {
            let found = value.len();
            return Err(ChunkError::Short { expected, found });
        }
        let mut sack = Sack {
            cumulative: u32_at(value, 0)?,
            window: u32_at(value, 4)?,
            arrivals: match flags & ARRIVALS {
                0 => flags >> BSD_SHIFT,
                arrivals => arrivals,
            },
            ..Sack::default()
        };
        let mut below = 1;
        for block in 0..blocks {
            let at = FIXED_BYTES + 4 * block;
            let (start, end) = (u16_at(value, at)?, u16_at(value, at + 2)?);
            // Offset 1 is the number that the cumulative one says is missing. Neighbours that touch, some stacks send.
            if start <= below || end < start {
                return Err(ChunkError::Block { start, end });
            }
            below = end;
            sack.blocks.push((start, end));
        }
        for duplicate in 0..duplicates {
            let at = FIXED_BYTES + 4 * blocks + 4 * duplicate;
            sack.duplicates.push(u32_at(value, at)?);
        }
        Ok(sack)
    }

    pub(super) fn flags(&self) -> u8 {
        let arrivals = self.arrivals & ARRIVALS;
        arrivals | arrivals << BSD_SHIFT
    }

    pub(super) fn emit(&self, out: &mut Head) {
        out.extend_from_slice(&self.cumulative.to_be_bytes());
        out.extend_from_slice(&self.window.to_be_bytes());
        out.extend_from_slice(&(self.blocks.len() as u16).to_be_bytes());
        out.extend_from_slice(&(self.duplicates.len() as u16).to_be_bytes());
        for (start, end) in &self.blocks {
            out.extend_from_slice(&start.to_be_bytes());
            out.extend_from_slice(&end.to_be_bytes());
        }
        for duplicate in &self.duplicates {
            out.extend_from_slice(&duplicate.to_be_bytes());
        }
    }
}
