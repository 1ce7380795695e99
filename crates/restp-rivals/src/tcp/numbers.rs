//! Bytes on the wire, segments inside: TCP numbers bytes (RFC 9293 §3.4), the scoreboard numbers segments. A segment
//! is immutable once numbered, so a list of where each one ends converts both ways.

use super::nak::Nak;
use super::options::Options;
use restp_base::sequence::expand;
use restp_services::ack::{AckReport, Detail};
use std::collections::VecDeque;
use std::ops::Range;

/// Where the outstanding segments lie among the bytes. All byte numbers are 64-bit and unwrapped.
#[derive(Debug)]
pub(crate) struct Numbers {
    /// Number of the first outstanding segment.
    first: u64,
    /// Its first byte: SND.UNA.
    start: u64,
    /// One past the last byte of each.
    ends: VecDeque<u64>,
}

impl Numbers {
    /// Nothing is outstanding; the next segment is `first`, its first byte is `start`.
    pub(crate) fn new(first: u64, start: u64) -> Self {
        Numbers {
            first,
            start,
            ends: VecDeque::new(),
        }
    }
    /// SND.UNA, in bytes.
    pub(crate) fn first_byte(&self) -> u64 {
        self.start
    }
    /// SND.NXT, in bytes.
    pub(crate) fn next_byte(&self) -> u64 {
        self.ends.back().copied().unwrap_or(self.start)
    }
    /// Bytes of memory the list takes.
    pub(crate) fn memory(&self) -> usize {
        self.ends.capacity() * size_of::<u64>()
    }
    /// The next segment takes `length` numbers: its bytes, and one for FIN.
    pub(crate) fn push(&mut self, length: u64) {
        self.ends.push_back(self.next_byte() + length);
    }
    /// First byte of the outstanding segment `number`.
    pub(crate) fn start_of(&self, number: u64) -> Option<u64> {
        let index = usize::try_from(number.checked_sub(self.first)?).ok()?;
        match index.checked_sub(1) {
            None => Some(self.start),
            Some(before) => self.ends.get(before).copied(),
        }
    }
    /// Segments below `number` are acknowledged.
    pub(crate) fn release_below(&mut self, number: u64) {
        while self.first < number {
            let Some(end) = self.ends.pop_front() else { break };
            (self.first, self.start) = (self.first + 1, end);
        }
        if self.ends.is_empty() && self.ends.capacity() > 64 {
            self.ends = VecDeque::new();
        }
    }

    /// An acknowledgement in segments, with what its options say in the `detail` agreed on and in segments of `unit`
    /// bytes: of a partly covered segment nothing is believed. `None` when it speaks of a byte that was never sent.
    pub(crate) fn report(
        &self,
        acknowledgement: u32,
        options: &Options,
        detail: Detail,
        unit: u64,
    ) -> Option<AckReport> {
        let byte = expand(self.start, acknowledgement);
        if byte > self.next_byte() {
            return None;
        }
        let late = byte < self.start;
        let mut report = AckReport::pointer(if late { self.first - 1 } else { self.ended_by(byte) });
        match detail {
            Detail::Pointer => {}
            Detail::Sack { .. } => {
                for (left, right) in &options.sack {
                    let block = expand(byte, *left)..expand(byte, *right);
                    report.received.extend(self.covered(block)?);
                }
            }
            Detail::Nak => {
                if let Some(nak) = options.nak {
                    self.add_gap(&mut report, expand(byte, nak.first), nak, unit)?;
                }
            }
            Detail::Snack => {
                let said = options.snack.as_ref().map(|snack| snack.said(byte, unit));
                for run in said.iter().flat_map(|said| &said.received) {
                    report.received.extend(self.covered(run.clone())?);
                }
                for hole in said.iter().flat_map(|said| &said.missing) {
                    report.missing.extend(self.covered(hole.clone())?);
                }
            }
        }
        Some(report)
    }

    /// Segments that `bytes` cover whole; the outer `None` when some of them were never sent.
    #[allow(clippy::option_option, reason = "nothing covered is no contradiction")]
    fn covered(&self, bytes: Range<u64>) -> Option<Option<Range<u64>>> {
        if bytes.end > self.next_byte() {
            return None;
        }
        let segments = self.whole_within(bytes);
        Some((segments.start < segments.end).then_some(segments))
    }

    /// A gap from byte `first` on, and what it proves of its neighbours (TC §3.2.2, observation 1). It ends in the last of
    /// its `unit`s; where exactly is certain when just one segment ends there.
    fn add_gap(&self, report: &mut AckReport, first: u64, nak: Nak, unit: u64) -> Option<()> {
        let end = first + u64::from(nak.segments) * unit;
        if nak.segments == 0 || end <= self.start {
            return Some(());
        }
        let last = end - unit;
        if last >= self.next_byte() {
            return None;
        }
        let segments = self.ended_by(first)..self.ended_by(last) + 1;
        let certain = self.ended_by(end) == segments.end;
        let before = segments.start.wrapping_sub(1);
        if first > self.start && self.start_of(segments.start) == Some(first) && before > report.cumulative {
            report.received.push(before..segments.start);
        }
        if certain && end < self.next_byte() {
            report.received.push(segments.end..segments.end + 1);
        }
        report.missing.push(segments);
        Some(())
    }

    /// First segment that does not end at or before `byte`: the one `byte` lies in, while that is outstanding.
    pub(crate) fn ended_by(&self, byte: u64) -> u64 {
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
#[allow(clippy::single_range_in_vec_init, reason = "a report may hold one range")]
mod tests {
    use super::*;
    use crate::tcp::snack::Snack;

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
        let pointer = |numbers: &Numbers, ack| {
            numbers
                .report(ack, &Options::default(), Detail::Pointer, 100)
                .map(|report| report.cumulative)
        };
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
        let received = |block| {
            let options = Options {
                sack: [block].into_iter().collect(),
                ..Options::default()
            };
            let report = numbers().report(1000, &options, Detail::Sack { max_blocks: 4 }, 100);
            report.map(|report| report.received)
        };
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

    #[test]
    fn a_gap_is_named_by_its_segments_and_proves_its_neighbours() {
        // 1000..1100, 1100..1200, 1200..1250 and FIN at 1250.
        let report = |first, segments| {
            let options = Options {
                nak: Some(Nak { first, segments }),
                ..Options::default()
            };
            let report = numbers().report(1000, &options, Detail::Nak, 100)?;
            Some((report.missing.to_vec(), report.received.to_vec()))
        };
        let missing = |range: Range<u64>| vec![range];
        assert_eq!(report(1000, 1), Some((missing(5..6), vec![6..7])));
        assert_eq!(
            report(1100, 1),
            Some((missing(6..7), vec![7..8])),
            "5 is the pointer's"
        );
        assert_eq!(
            report(1200, 1),
            Some((missing(7..8), vec![6..7])),
            "both 7 and 8 end there"
        );
        assert_eq!(report(1000, 0), Some((vec![], vec![])));
        assert_eq!(
            report(900, 1),
            Some((vec![], vec![])),
            "below everything outstanding"
        );
        assert_eq!(report(1000, 4), None, "never sent");
    }

    #[test]
    fn blocks_of_a_snack_count_for_the_segments_they_cover() {
        let report = |offset, size, vector: &[u8]| {
            let options = Options {
                snack: Some(Snack {
                    offset,
                    size,
                    vector: vector.iter().copied().collect(),
                }),
                ..Options::default()
            };
            let report = numbers().report(1000, &options, Detail::Snack, 100)?;
            Some((report.missing.to_vec(), report.received.to_vec()))
        };
        let (first, second) = (vec![5..6], vec![6..7]);
        assert_eq!(report(0, 1, &[]), Some((first.clone(), second.clone())));
        assert_eq!(report(0, 1, &[0x80]), Some((first.clone(), second.clone())));
        assert_eq!(report(1, 1, &[0]), Some((second, first)));
        assert_eq!(report(0, 1, &[0x90]), None, "never sent");
        assert_eq!(report(u16::MAX, u16::MAX, &[0xFF; 34]), None);
    }
}
