//! The SNACK option (TC §2.2.4, CCSDS 714.0-B-2 §3.3.4): the first hole and a bit vector of what follows, in blocks of
//! one maximum segment from the acknowledgement number on. A block is received when all its bytes are.

use restp_base::ranges::Ranges;
use smallvec::SmallVec;
use std::ops::Range;

/// Kind, length, Hole1 Offset 16, Hole1 Size 16, vector; the length is 6 and the bytes of the vector.
pub(super) const KIND: u8 = 21;
pub(super) const FIXED_BYTES: usize = 6;

/// Holes relative to the acknowledgement number of the same segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snack {
    /// Blocks before the first hole.
    pub offset: u16,
    /// Blocks in it.
    pub size: u16,
    /// The blocks after it, most significant bit first: 1 received, 0 missing; zeros after the last 1 mean nothing.
    pub vector: SmallVec<[u8; 8]>,
}

/// Bytes by what a report says of them.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct SnackRanges {
    /// Received.
    pub received: Vec<Range<u64>>,
    /// Missing.
    pub missing: Vec<Range<u64>>,
}

impl Snack {
    /// What has arrived beyond `next`, in blocks of `unit` bytes and at most `room` bytes of option. `None`: no whole
    /// block has arrived, or the first hole does not fit 16 bits or the room (no report is better than a false one).
    pub fn of(next: u64, received: &Ranges, unit: u64, room: usize) -> Option<Self> {
        let mut blocks = Ranges::new();
        for range in received.iter().filter(|range| range.start >= next) {
            let start = (range.start - next).div_ceil(unit);
            blocks.insert(start..((range.end - next) / unit).max(start));
        }
        let first = blocks.first()?;
        let size = u16::try_from(first.start).ok()?;
        let space = room.checked_sub(FIXED_BYTES)?;
        let base = first.start;
        let mut vector = SmallVec::new();
        if blocks.len() > 1 {
            let bits = blocks
                .last()
                .map_or(0, |last| last.end - base)
                .min(8 * space as u64);
            vector.resize(bits.div_ceil(8) as usize, 0u8);
            let ones = blocks
                .iter()
                .flat_map(|range| range.clone())
                .map(|block| block - base);
            ones.take_while(|bit| *bit < bits)
                .for_each(|bit| vector[(bit / 8) as usize] |= 0x80 >> (bit % 8));
        }
        Some(Snack {
            offset: 0,
            size,
            vector,
        })
    }

    /// Bytes reported received and missing, under acknowledgement number `next`. What bounds a hole has arrived.
    pub fn ranges(&self, next: u64, unit: u64) -> SnackRanges {
        let at = |block: u64| next + block * unit;
        let hole = u64::from(self.offset)..u64::from(self.offset) + u64::from(self.size);
        let bits = self.vector.len() as u64 * 8;
        let one = |bit: &u64| self.vector[(*bit / 8) as usize] & (0x80 >> (*bit % 8)) != 0;
        let mut blocks = Ranges::new();
        (0..bits).filter(one).for_each(|bit| {
            blocks.insert(hole.end + bit..hole.end + bit + 1);
        });
        if self.vector.is_empty() && self.size > 0 {
            blocks.insert(hole.end..hole.end + 1);
        }
        let mut ranges = SnackRanges::default();
        if !hole.is_empty() {
            ranges.missing.push(at(hole.start)..at(hole.end));
        }
        let later = blocks.holes(hole.end).map(|hole| at(hole.start)..at(hole.end));
        ranges.missing.extend(later);
        if hole.start > 0 {
            blocks.insert(hole.start - 1..hole.start);
        }
        ranges.received = blocks.iter().map(|run| at(run.start)..at(run.end)).collect();
        ranges
    }

    /// Bytes of the option.
    pub fn bytes(&self) -> usize {
        FIXED_BYTES + self.vector.len()
    }

    pub(super) fn parse(value: &[u8]) -> Option<Self> {
        let (fixed, vector) = value.split_first_chunk::<4>()?;
        let [a, b, c, d] = *fixed;
        Some(Snack {
            offset: u16::from_be_bytes([a, b]),
            size: u16::from_be_bytes([c, d]),
            vector: SmallVec::from_slice(vector),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use restp_base::random::Stream;

    const MSS: u64 = 1460;

    fn arrived(segments: &[u64]) -> Ranges {
        let mut received = Ranges::new();
        segments.iter().for_each(|segment| {
            received.insert(segment * MSS..(segment + 1) * MSS);
        });
        received
    }

    /// Segments 0 to 5 of 1460 bytes, of which 1, 3 and 4 are lost (TC §2.2.5).
    #[test]
    fn the_worked_example_and_its_reading() {
        let one = Snack::of(MSS, &arrived(&[2]), MSS, 40).expect("a report");
        assert_eq!((one.offset, one.size, one.vector.len()), (0, 1, 0));
        let two = Snack::of(MSS, &arrived(&[2, 5]), MSS, 40).expect("a report");
        assert_eq!((two.offset, two.size, &two.vector[..]), (0, 1, &[0x90][..]));
        let ranges = two.ranges(MSS, MSS);
        assert_eq!(ranges.missing, [1460..2920, 4380..7300]);
        assert_eq!(ranges.received, [2920..4380, 7300..8760]);
    }

    /// What three isolated chunks cost (TC §4.1): 24 bytes of SACK edges, one byte of vector.
    #[test]
    fn one_byte_of_vector_shows_up_to_four_isolated_chunks() {
        for count in [3, 4] {
            let chunks: Vec<u64> = (0..count).map(|n| 2 + 2 * n).collect();
            let snack = Snack::of(MSS, &arrived(&chunks), MSS, 40).expect("a report");
            assert_eq!(snack.bytes(), FIXED_BYTES + 1);
        }
    }

    #[test]
    fn only_whole_blocks_count_and_a_lone_tail_gives_no_report() {
        let mut received = Ranges::new();
        received.insert(2 * MSS..2 * MSS + 100);
        assert_eq!(Snack::of(MSS, &received, MSS, 40), None);
        received.insert(2 * MSS + 100..4 * MSS - 1);
        let snack = Snack::of(MSS, &received, MSS, 40).expect("a report");
        assert_eq!(snack.ranges(MSS, MSS).received.first(), Some(&(2920..4380)));
    }

    #[test]
    fn what_is_read_back_is_true_whatever_arrived_and_however_little_room_there_is() {
        let mut chance = Stream::named(5, "snack option");
        for _ in 0..500 {
            let next = 1000 + chance.below(1000);
            let mut received = Ranges::new();
            for _ in 0..=chance.below(20) {
                let start = next + 1 + chance.below(4000);
                received.insert(start..start + 1 + chance.below(300));
            }
            let room = FIXED_BYTES + chance.below(34) as usize;
            let Some(snack) = Snack::of(next, &received, 100, room) else {
                continue;
            };
            assert!(snack.bytes() <= room);
            let ranges = snack.ranges(next, 100);
            for run in &ranges.received {
                assert!(
                    received
                        .covering(run.start)
                        .is_some_and(|held| held.end >= run.end)
                );
            }
            for hole in &ranges.missing {
                let blocks = (hole.start..hole.end).step_by(100);
                blocks.for_each(|block| assert!((block..block + 100).any(|byte| !received.contains(byte))));
            }
        }
    }
}
