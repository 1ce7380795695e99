//! SNACK (ResTP §3.1.9), when NAK = 1; what it holds follows from the remainder R of the header, in words:
//!
//! | SAK | R | Meaning |
//! |---|---|---|
//! | any | 0 | no hole |
//! | any | 1 | one hole: Hole1 Offset 16, Hole1 Size 16, no vector |
//! | 1 | >= 2 | one hole, and R - 1 words of bit vector |
//!
//! Offset: first missing segment minus the acknowledgement number. Vector: segments from the one right after
//! Hole1, most significant bit first, 0 missing, 1 received; zeros after the last 1 carry no meaning. A
//! sender leaves the vector out when there is one hole (OP-16); a receiver accepts it all the same.

use super::codes::MAX_WORDS;
use super::cursor::{Reader, Writer};
use super::error::{Found, ParseError};
use restp_base::ranges::Ranges;
use smallvec::SmallVec;
use std::ops::Range;

/// Most words of vector that [`from_ranges`] writes: a report on 2048 segments in 256 bytes leaves room for
/// every other extension and for data. What lies beyond is reported once the pointer has moved.
pub const VECTOR_WORDS_MAX: usize = 64;

/// Holes in what the receiver has, relative to the acknowledgement number of the same PDU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snack {
    /// First missing segment of the first hole minus the acknowledgement number.
    pub offset: u16,
    /// Segments in that hole.
    pub size: u16,
    /// The segments after the hole, most significant bit first; empty for a report on one hole.
    pub vector: SmallVec<[u32; 8]>,
}

/// Reports the holes of `received` at and above `next` (RCV.NXT). `None`: there is none, or the first one
/// does not fit 16 bits (no report is better than a false one).
pub fn from_ranges(next: u64, received: &Ranges) -> Option<Snack> {
    let mut holes = received.holes(next);
    let first = holes.next()?;
    let offset = u16::try_from(first.start - next).ok()?;
    let size = u16::try_from(first.end - first.start).ok()?;
    let vector = if holes.next().is_some() {
        bits(received, first.end)
    } else {
        SmallVec::new()
    };
    Some(Snack { offset, size, vector })
}

impl Snack {
    /// The segments reported missing, in ascending order, under acknowledgement number `next`: the first
    /// hole, and each run of zeros before a one.
    pub fn missing(&self, next: u64) -> impl Iterator<Item = Range<u64>> + '_ {
        let first = next + u64::from(self.offset)..self.after(next);
        let mut ones = self.ones(next).peekable();
        let mut from = first.end;
        let later = std::iter::from_fn(move || {
            let run = ones.next()?;
            Some(std::mem::replace(&mut from, run.end)..run.start)
        });
        std::iter::once(first)
            .chain(later)
            .filter(|hole| hole.start < hole.end)
    }

    /// The segments reported received, in ascending order, under acknowledgement number `next`: the one right
    /// below the first hole, and the ones of the vector. Without a vector the hole still ends at a segment that
    /// has arrived. Further below there may be holes that a NAK of this one leaves out.
    pub fn received(&self, next: u64) -> impl Iterator<Item = Range<u64>> + '_ {
        let first = next + u64::from(self.offset);
        let below = first.saturating_sub(1).max(next)..first;
        let after = self.after(next);
        let edge = (self.vector.is_empty() && self.size > 0).then_some(after..after + 1);
        std::iter::once(below)
            .filter(|r| r.start < r.end)
            .chain(edge)
            .chain(self.ones(next))
    }

    fn after(&self, next: u64) -> u64 {
        next + u64::from(self.offset) + u64::from(self.size)
    }

    /// Runs of ones in the vector, as segment numbers.
    fn ones(&self, next: u64) -> impl Iterator<Item = Range<u64>> + '_ {
        let base = self.after(next);
        let mut at = 0;
        std::iter::from_fn(move || {
            let start = self.seek(at, 0);
            at = self.seek(start, u32::MAX);
            let number = |at: usize| base.saturating_add(at as u64);
            (start < at).then(|| number(start)..number(at))
        })
    }

    /// The first bit from `at` on that is not one of `passed`, all zeros or all ones.
    fn seek(&self, mut at: usize, passed: u32) -> usize {
        while let Some(word) = self.vector.get(at / 32) {
            let differing = (word ^ passed) << (at % 32);
            if differing != 0 {
                return at.saturating_add(differing.leading_zeros() as usize);
            }
            at = (at | 31).saturating_add(1);
        }
        at
    }

    pub(super) fn words(&self) -> usize {
        1 + self.vector.len()
    }
}

/// Bits of `received` from segment `base` on, up to the last 1 or the limit.
fn bits(received: &Ranges, base: u64) -> SmallVec<[u32; 8]> {
    let end = received
        .last()
        .map_or(base, |last| last.end)
        .min(base + 32 * VECTOR_WORDS_MAX as u64);
    let mut vector = SmallVec::from_elem(0u32, (end - base).div_ceil(32) as usize);
    let mut rest = base..end;
    while let Some(run) = received.first_within(&rest) {
        set(&mut vector, run.start - base, run.end - base);
        rest.start = run.end;
    }
    vector
}

/// Sets the bits from `start` up to, but not including, `end`.
fn set(vector: &mut [u32], start: u64, end: u64) {
    for word in start / 32..end.div_ceil(32) {
        let above = u32::MAX >> start.saturating_sub(32 * word);
        let below = u32::MAX << (32 * (word + 1)).saturating_sub(end);
        vector[word as usize] |= above & below;
    }
}

/// Reads all words that are left; there is at least one.
pub(super) fn parse(reader: &mut Reader<'_>, vector_allowed: bool) -> Result<Snack, ParseError> {
    let left = reader.words_left();
    if left > 1 && !vector_allowed {
        let rule = "one word of NAK, or SAK for a bit vector";
        return Err(ParseError::new(reader.offset(), rule, Found::Words(left)));
    }
    let hole = reader.word("the hole (one word)")?;
    let words = reader.words(reader.words_left(), "the bit vector")?.as_chunks().0;
    let mut vector = SmallVec::from_elem(0, words.len().min(MAX_WORDS));
    for (bits, word) in vector.iter_mut().zip(words) {
        *bits = u32::from_be_bytes(*word);
    }
    Ok(Snack {
        offset: (hole >> 16) as u16,
        size: hole as u16,
        vector,
    })
}

pub(super) fn emit(snack: &Snack, out: &mut Writer<'_>) {
    out.word(u32::from(snack.offset) << 16 | u32::from(snack.size));
    snack.vector.iter().for_each(|word| out.word(*word));
}

#[cfg(test)]
mod tests {
    use super::*;
    use restp_base::random::Stream;

    #[test]
    fn a_vector_forced_on_for_one_hole_means_the_same_hole() {
        for (vector, received) in [(0x8000_0000, 14..15), (0xC000_0000, 14..16)] {
            let snack = Snack {
                offset: 0,
                size: 4,
                vector: SmallVec::from_slice(&[vector]),
            };
            assert!(snack.missing(10).eq(Some(10..14)));
            assert!(snack.received(10).eq(Some(received)));
        }
    }

    #[test]
    fn a_report_read_back_is_the_receive_state_up_to_its_limit() {
        let mut stream = Stream::named(1, "snack");
        for round in 0..500 {
            let next = 10_000;
            let mut state = Ranges::new();
            for _ in 0..=stream.below(40) {
                let start = next + 1 + stream.below(if round % 2 == 0 { 80 } else { 6000 });
                state.insert(start..start + 1 + stream.below(5));
            }
            let snack = from_ranges(next, &state).unwrap();
            let holes: Vec<_> = state.holes(next).collect();
            if holes.len() == 1 {
                assert!(snack.vector.is_empty());
                assert_eq!(snack.missing(next).collect::<Vec<_>>(), holes);
                continue;
            }
            let limit = holes[0].end + 32 * VECTOR_WORDS_MAX as u64;
            let expected: Vec<_> = state
                .iter()
                .map(|r| r.start..r.end.min(limit))
                .filter(|r| r.start < r.end)
                .collect();
            assert_eq!(snack.received(next).collect::<Vec<_>>(), expected);
            for hole in snack.missing(next) {
                assert!(holes.contains(&hole));
            }
        }
    }

    #[test]
    fn no_hole_and_a_hole_too_wide_for_the_field_give_no_report() {
        let mut state = Ranges::new();
        assert_eq!(from_ranges(10, &state), None);
        state.insert(100_000..100_001);
        assert_eq!(from_ranges(10, &state), None);
    }
}
