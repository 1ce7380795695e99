//! Bytes on the wire, segments inside: where a protocol numbers bytes (RFC 9293 §3.4) the scoreboard still numbers segments.
//! A segment is immutable once numbered, so a list of where each one ends converts both ways.

use std::collections::VecDeque;
use std::ops::Range;

/// Where the outstanding segments lie among the bytes. All byte numbers are 64-bit and unwrapped.
#[derive(Debug)]
pub struct Boundaries {
    /// Number of the first outstanding segment.
    first: u64,
    /// Its first byte: SND.UNA.
    start: u64,
    /// One past the last byte of each.
    ends: VecDeque<u64>,
}

impl Boundaries {
    /// Nothing is outstanding; the next segment is `first`, its first byte is `start`.
    pub fn new(first: u64, start: u64) -> Self {
        Boundaries {
            first,
            start,
            ends: VecDeque::new(),
        }
    }
    /// Number of the first outstanding segment.
    pub fn first_segment(&self) -> u64 {
        self.first
    }
    /// SND.UNA, in bytes.
    pub fn first_byte(&self) -> u64 {
        self.start
    }
    /// SND.NXT, in bytes.
    pub fn next_byte(&self) -> u64 {
        self.ends.back().copied().unwrap_or(self.start)
    }
    /// Bytes of memory the list takes.
    pub fn memory(&self) -> usize {
        self.ends.capacity() * size_of::<u64>()
    }
    /// The next segment takes `length` numbers: its bytes, and one for FIN.
    pub fn push(&mut self, length: u64) {
        self.ends.push_back(self.next_byte() + length);
    }
    /// First byte of the outstanding segment `number`.
    pub fn start_of(&self, number: u64) -> Option<u64> {
        let index = usize::try_from(number.checked_sub(self.first)?).ok()?;
        match index.checked_sub(1) {
            None => Some(self.start),
            Some(before) => self.ends.get(before).copied(),
        }
    }
    /// Segments below `number` are acknowledged.
    pub fn release_below(&mut self, number: u64) {
        while self.first < number {
            let Some(end) = self.ends.pop_front() else { break };
            (self.first, self.start) = (self.first + 1, end);
        }
        if self.ends.is_empty() && self.ends.capacity() > 64 {
            self.ends = VecDeque::new();
        }
    }

    /// First segment that does not end at or before `byte`: the one `byte` lies in, while that is outstanding.
    pub fn ended_by(&self, byte: u64) -> u64 {
        self.first + self.ends.partition_point(|end| *end <= byte) as u64
    }

    /// Segments of which every byte lies in `bytes`; the outer `None` when some of those bytes were never sent.
    #[allow(clippy::option_option, reason = "nothing covered is no contradiction")]
    pub fn covered(&self, bytes: Range<u64>) -> Option<Option<Range<u64>>> {
        if bytes.end > self.next_byte() {
            return None;
        }
        // A segment begins where the one before it ends.
        let start = if bytes.start <= self.start {
            self.first
        } else {
            self.first + 1 + self.ends.partition_point(|end| *end < bytes.start) as u64
        };
        let segments = start..self.ended_by(bytes.end);
        Some((segments.start < segments.end).then_some(segments))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Segments 5, 6, 7, 8 of 100, 100, 50 and 1 (FIN) bytes that begin at byte 1000.
    fn boundaries() -> Boundaries {
        let mut boundaries = Boundaries::new(5, 1000);
        [100, 100, 50, 1].into_iter().for_each(|n| boundaries.push(n));
        boundaries
    }

    #[test]
    fn segments_and_bytes_convert_both_ways() {
        let mut boundaries = boundaries();
        let starts: Vec<_> = (4..10).map(|n| boundaries.start_of(n)).collect();
        assert_eq!(
            starts,
            [None, Some(1000), Some(1100), Some(1200), Some(1250), Some(1251)]
        );
        let ended: Vec<_> = [1000, 1099, 1100, 1250, 1251]
            .map(|byte| boundaries.ended_by(byte))
            .into();
        assert_eq!(ended, [5, 5, 6, 8, 9]);
        boundaries.release_below(7);
        assert_eq!((boundaries.first_byte(), boundaries.next_byte()), (1200, 1251));
        assert_eq!(
            (boundaries.start_of(7), boundaries.ended_by(1250)),
            (Some(1200), 8)
        );
    }

    #[test]
    fn a_segment_is_covered_when_all_its_bytes_are() {
        let covered = |bytes| boundaries().covered(bytes);
        assert_eq!(covered(1100..1200), Some(Some(6..7)));
        assert_eq!(covered(1050..1249), Some(Some(6..7)));
        assert_eq!(covered(1000..1251), Some(Some(5..9)));
        assert_eq!(covered(1101..1199), Some(None));
        assert_eq!(covered(1200..1252), None, "never sent");
    }
}
