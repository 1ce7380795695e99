//! Bytes on the wire, segments inside: TCP numbers bytes (RFC 9293 §3.4), the scoreboard numbers segments. A segment
//! is immutable once numbered, so a list of where each one ends converts both ways.

use restp_base::sequence::expand;
use restp_services::ack::AckReport;
use std::collections::VecDeque;
use std::ops::Range;

/// Where the outstanding segments lie among the bytes. All byte numbers are 64-bit and unwrapped.
#[derive(Debug)]
pub(super) struct Numbers {
    /// Number of the first outstanding segment.
    first: u64,
    /// Its first byte: SND.UNA.
    start: u64,
    /// One past the last byte of each.
    ends: VecDeque<u64>,
}

impl Numbers {
    /// Nothing is outstanding; the next segment is `first`, its first byte is `start`.
    pub(super) fn new(first: u64, start: u64) -> Self {
        Numbers {
            first,
            start,
            ends: VecDeque::new(),
        }
    }
    /// SND.UNA, in bytes.
    pub(super) fn first_byte(&self) -> u64 {
        self.start
    }
    /// SND.NXT, in bytes.
    pub(super) fn next_byte(&self) -> u64 {
        self.ends.back().copied().unwrap_or(self.start)
    }
    /// Bytes of memory the list takes.
    pub(super) fn memory(&self) -> usize {
        self.ends.capacity() * size_of::<u64>()
    }
    /// The next segment takes `length` numbers: its bytes, and one for FIN.
    pub(super) fn push(&mut self, length: u64) {
        self.ends.push_back(self.next_byte() + length);
    }
    /// First byte of the outstanding segment `number`.
    pub(super) fn start_of(&self, number: u64) -> Option<u64> {
        let index = usize::try_from(number.checked_sub(self.first)?).ok()?;
        match index.checked_sub(1) {
            None => Some(self.start),
            Some(before) => self.ends.get(before).copied(),
        }
    }
    /// Segments below `number` are acknowledged.
    pub(super) fn release_below(&mut self, number: u64) {
        while self.first < number {
            let Some(end) = self.ends.pop_front() else { break };
            (self.first, self.start) = (self.first + 1, end);
        }
        if self.ends.is_empty() && self.ends.capacity() > 64 {
            self.ends = VecDeque::new();
        }
    }

    /// An acknowledgement and its SACK blocks in segments: of a partly covered segment nothing is believed. `None`
    /// when a byte is acknowledged that was never sent.
    pub(super) fn report(&self, acknowledgement: u32, blocks: &[(u32, u32)]) -> Option<AckReport> {
        let byte = expand(self.start, acknowledgement);
        if byte > self.next_byte() {
            return None;
        }
        let late = byte < self.start;
        let mut report = AckReport::pointer(if late { self.first - 1 } else { self.ended_by(byte) });
        for (left, right) in blocks {
            let (left, right) = (expand(byte, *left), expand(byte, *right));
            if right > self.next_byte() {
                return None;
            }
            let covered = self.whole_within(left..right);
            if covered.start < covered.end {
                report.received.push(covered);
            }
        }
        Some(report)
    }

    /// First segment that does not end at or before `byte`.
    fn ended_by(&self, byte: u64) -> u64 {
        self.first + self.ends.partition_point(|end| *end <= byte) as u64
    }

    /// Segments of which every byte lies in `bytes`. One begins where the one before it ends.
    fn whole_within(&self, bytes: Range<u64>) -> Range<u64> {
        let start = if bytes.start <= self.start {
            self.first
        } else {
            self.first + 1 + self.ends.partition_point(|end| *end < bytes.start) as u64
        };
        start..self.ended_by(bytes.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Segments 5, 6, 7, 8 of 100, 100, 50 and 1 (FIN) bytes that begin at byte 1000.
    fn numbers() -> Numbers {
        let mut numbers = Numbers::new(5, 1000);
        [100, 100, 50, 1].into_iter().for_each(|n| numbers.push(n));
        numbers
    }

    #[test]
    fn segments_and_bytes_convert_both_ways() {
        let mut numbers = numbers();
        let starts: Vec<_> = (4..10).map(|n| numbers.start_of(n)).collect();
        assert_eq!(
            starts,
            [None, Some(1000), Some(1100), Some(1200), Some(1250), Some(1251)]
        );
        let pointer = |numbers: &Numbers, ack| numbers.report(ack, &[]).map(|report| report.cumulative);
        let pointers: Vec<_> = [999, 1000, 1099, 1100, 1250, 1251, 1252]
            .map(|ack| pointer(&numbers, ack))
            .into();
        assert_eq!(
            pointers,
            [Some(4), Some(5), Some(5), Some(6), Some(8), Some(9), None]
        );
        numbers.release_below(7);
        assert_eq!((numbers.first_byte(), numbers.next_byte()), (1200, 1251));
        assert_eq!(numbers.start_of(7), Some(1200));
        assert_eq!(pointer(&numbers, 1250), Some(8));
    }

    #[test]
    fn a_block_counts_for_the_segments_it_covers_whole() {
        let received = |block| numbers().report(1000, &[block]).map(|report| report.received);
        let only = |block| received(block).and_then(|received| received.first().cloned());
        assert_eq!(only((1100, 1200)), Some(6..7));
        assert_eq!(only((1050, 1249)), Some(6..7));
        assert_eq!(only((1000, 1251)), Some(5..9));
        assert!(received((1101, 1199)).unwrap().is_empty());
        assert!(
            received((1200, 1100)).unwrap().is_empty(),
            "it ends before it starts"
        );
        assert_eq!(received((1200, 1252)), None, "never sent");
    }
}
