//! SACK (ResTP §3.1.8): n blocks of Left Edge 32 and Right Edge 32 when SAK = 1 and NAK = 0; the remainder of
//! the header is even and gives n, 0 = no hole. **Both edges are inclusive segment numbers**, unlike TCP's;
//! equal edges are a block of one. The block that holds the newest arrival comes first (RFC 2018 §4).

use super::codes::MAX_WORDS;
use super::cursor::{Reader, Writer};
use super::error::{Found, ParseError};
use restp_base::sequence::{expand, truncate};
use restp_services::ordering::Arrived;
use smallvec::SmallVec;
use std::ops::Range;

/// Received blocks, `(left, right)`, both inclusive.
pub type Blocks = SmallVec<[(u32, u32); 4]>;

/// At most `cap` blocks of `arrived`, [latest first](Arrived::latest_first).
pub fn blocks(arrived: &Arrived, cap: usize) -> Blocks {
    arrived
        .latest_first()
        .take(cap)
        .map(|range| (truncate(range.start), truncate(range.end - 1)))
        .collect()
}

/// The half-open ranges that `blocks` name, next to the number `reference`; blocks that end before they
/// start say nothing.
pub fn ranges(blocks: &[(u32, u32)], reference: u64) -> impl Iterator<Item = Range<u64>> + '_ {
    blocks
        .iter()
        .map(move |(left, right)| expand(reference, *left)..expand(reference, *right).saturating_add(1))
        .filter(|range| range.start < range.end)
}

/// Reads all words that are left.
pub(super) fn parse(reader: &mut Reader<'_>) -> Result<Blocks, ParseError> {
    const RULE: &str = "SACK blocks of 2 words each";
    let words = reader.words_left();
    if !words.is_multiple_of(2) {
        return Err(ParseError::new(reader.offset(), RULE, Found::Words(words)));
    }
    let edges = reader.words(words, RULE)?.as_chunks().0;
    let mut blocks = Blocks::from_elem((0, 0), edges.len().min(MAX_WORDS));
    for (block, [a, b, c, d, e, f, g, h]) in blocks.iter_mut().zip(edges) {
        let (left, right) = ([*a, *b, *c, *d], [*e, *f, *g, *h]);
        *block = (u32::from_be_bytes(left), u32::from_be_bytes(right));
    }
    Ok(blocks)
}

pub(super) fn emit(blocks: &[(u32, u32)], out: &mut Writer<'_>) {
    for (left, right) in blocks {
        out.word(*left);
        out.word(*right);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_block_leads_and_the_cap_drops_the_oldest() {
        let mut arrived = Arrived::default();
        for number in [12, 14, 17, 20, 15] {
            arrived.insert(number..number + 1);
        }
        assert_eq!(blocks(&arrived, 3).to_vec(), [(14, 15), (20, 20), (17, 17)]);
        assert!(blocks(&arrived, 0).is_empty());
    }

    #[test]
    fn ranges_undo_blocks_across_a_wrap_and_ignore_reversed_ones() {
        let wrap = 2 << 32;
        let mut arrived = Arrived::default();
        arrived.insert(wrap - 2..wrap + 3);
        let sent = blocks(&arrived, 4);
        assert_eq!(sent.to_vec(), [(0xFFFF_FFFE, 2)]);
        assert!(ranges(&sent, wrap - 10).eq(Some(wrap - 2..wrap + 3)));
        assert_eq!(ranges(&[(7, 5)], wrap).count(), 0);
    }
}
