//! What an acknowledgement in bytes says of segments (RFC 9293 §3.4), in whatever detail was agreed on.

use super::nak::Nak;
use super::options::Options;
use restp_base::sequence::expand;
use restp_services::ack::{AckReport, Detail};
use restp_services::framing::Boundaries;

/// An acknowledgement in segments, with what its options say in the `detail` agreed on and in segments of `unit`
/// bytes: of a partly covered segment nothing is believed. `None` when it speaks of a byte that was never sent.
pub(crate) fn report(
    sent: &Boundaries,
    acknowledgement: u32,
    options: &Options,
    detail: Detail,
    unit: u64,
) -> Option<AckReport> {
    let byte = expand(sent.first_byte(), acknowledgement);
    if byte > sent.next_byte() {
        return None;
    }
    let late = byte < sent.first_byte();
    let mut report = AckReport::pointer(if late {
        sent.first_segment() - 1
    } else {
        sent.ended_by(byte)
    });
    match detail {
        Detail::Pointer => {}
        Detail::Sack { .. } => {
            for (left, right) in &options.sack {
                let block = expand(byte, *left)..expand(byte, *right);
                report.received.extend(sent.covered(block)?);
            }
        }
        Detail::Nak => {
            if let Some(nak) = options.nak {
                add_gap(sent, &mut report, expand(byte, nak.first), nak, unit)?;
            }
        }
        Detail::Snack => {
            let ranges = options.snack.as_ref().map(|snack| snack.ranges(byte, unit));
            for run in ranges.iter().flat_map(|ranges| &ranges.received) {
                report.received.extend(sent.covered(run.clone())?);
            }
            for hole in ranges.iter().flat_map(|ranges| &ranges.missing) {
                report.missing.extend(sent.covered(hole.clone())?);
            }
        }
    }
    Some(report)
}

/// A gap from byte `first` on, and what it proves of its neighbours (TC §3.2.2, observation 1). It ends in the last of
/// its `unit`s; where exactly is certain when just one segment ends there.
fn add_gap(sent: &Boundaries, report: &mut AckReport, first: u64, nak: Nak, unit: u64) -> Option<()> {
    let end = first + u64::from(nak.segments) * unit;
    if nak.segments == 0 || end <= sent.first_byte() {
        return Some(());
    }
    let last = end - unit;
    if last >= sent.next_byte() {
        return None;
    }
    let segments = sent.ended_by(first)..sent.ended_by(last) + 1;
    let certain = sent.ended_by(end) == segments.end;
    let before = segments.start.wrapping_sub(1);
    if first > sent.first_byte() && sent.start_of(segments.start) == Some(first) && before > report.cumulative
    {
        report.received.push(before..segments.start);
    }
    if certain && end < sent.next_byte() {
        report.received.push(segments.end..segments.end + 1);
    }
    report.missing.push(segments);
    Some(())
}

#[cfg(test)]
#[allow(clippy::single_range_in_vec_init, reason = "a report may hold one range")]
mod tests {
    use super::*;
    use crate::tcp::snack::Snack;
    use std::ops::Range;

    /// Segments 5, 6, 7, 8 of 100, 100, 50 and 1 (FIN) bytes that begin at byte 1000.
    fn sent() -> Boundaries {
        let mut sent = Boundaries::new(5, 1000);
        [100, 100, 50, 1].into_iter().for_each(|n| sent.push(n));
        sent
    }

    #[test]
    fn a_pointer_names_the_segment_that_its_byte_lies_in() {
        let pointer = |sent: &Boundaries, ack| {
            report(sent, ack, &Options::default(), Detail::Pointer, 100).map(|report| report.cumulative)
        };
        let mut sent = sent();
        let pointers: Vec<_> = [999, 1000, 1099, 1100, 1250, 1251, 1252]
            .map(|ack| pointer(&sent, ack))
            .into();
        assert_eq!(
            pointers,
            [Some(4), Some(5), Some(5), Some(6), Some(8), Some(9), None]
        );
        sent.release_below(7);
        assert_eq!(pointer(&sent, 1250), Some(8));
    }

    #[test]
    fn a_block_counts_for_the_segments_it_covers_whole() {
        let received = |block| {
            let options = Options {
                sack: [block].into_iter().collect(),
                ..Options::default()
            };
            let report = super::report(&sent(), 1000, &options, Detail::Sack { max_blocks: 4 }, 100);
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
            let report = super::report(&sent(), 1000, &options, Detail::Nak, 100)?;
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
            let report = super::report(&sent(), 1000, &options, Detail::Snack, 100)?;
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
