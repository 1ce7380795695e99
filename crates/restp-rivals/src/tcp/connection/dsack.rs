//! Duplicates are named (DSACK, RFC 2883): the receiver puts what has arrived twice into the first block of the next
//! acknowledgement, once; the sender learns from it which of its retransmissions were needless.

use crate::tcp::options::Options;
use restp_base::sequence::expand;
use std::collections::VecDeque;
use std::ops::Range;

/// Retransmissions that may still be named: about as many as are in a large window.
const MOST_AWAITED: usize = 4_096;

/// What one end knows of duplicates.
#[derive(Debug, Default)]
pub(super) struct Duplicates {
    /// Bytes that have arrived once more and are not named yet.
    arrived: Option<Range<u64>>,
    /// What left again, oldest first: its bytes, and the segment.
    retransmitted: VecDeque<(Range<u64>, u64)>,
}

impl Duplicates {
    /// These bytes had arrived before. Of several before an acknowledgement the last one is named, as in Linux, unless it
    /// goes on where they end.
    pub(super) fn on_arrival(&mut self, bytes: Range<u64>) {
        if bytes.is_empty() {
            return;
        }
        match &mut self.arrived {
            Some(known) if known.end == bytes.start => known.end = bytes.end,
            arrived => *arrived = Some(bytes),
        }
    }
    /// What the next acknowledgement is to name.
    pub(super) fn arrived(&self) -> Option<Range<u64>> {
        self.arrived.clone()
    }
    /// It has been named.
    pub(super) fn on_named(&mut self) {
        self.arrived = None;
    }

    /// These bytes, the segment `number`, leave again. A FIN alone has none, so nobody names it.
    pub(super) fn on_retransmitted(&mut self, bytes: Range<u64>, number: u64) {
        if bytes.is_empty() {
            return;
        }
        if self.retransmitted.len() >= MOST_AWAITED {
            self.retransmitted.pop_front();
        }
        self.retransmitted.push_back((bytes, number));
    }

    /// The segments that the options of an acknowledgement of `pointer` name as arrived twice; an empty range for none. A
    /// segment is named when all of its bytes are.
    pub(super) fn named(&self, options: &Options, pointer: u64) -> Range<u64> {
        let Some(block) = duplicate_block(options, pointer) else {
            return 0..0;
        };
        let is_named = |bytes: &Range<u64>| block.start <= bytes.start && bytes.end <= block.end;
        let named = self.retransmitted.iter().filter(|(bytes, _)| is_named(bytes));
        named.fold(0..0, |span, (_, number)| match span.is_empty() {
            true => *number..number + 1,
            false => span.start.min(*number)..span.end.max(number + 1),
        })
    }

    /// Bytes of memory it takes.
    pub(super) fn memory(&self) -> usize {
        self.retransmitted.capacity() * size_of::<(Range<u64>, u64)>()
    }
}

/// The first block, where it names bytes that have arrived before: below the pointer, or within the second block
/// (RFC 2883 §4).
fn duplicate_block(options: &Options, pointer: u64) -> Option<Range<u64>> {
    let mut blocks = options
        .sack
        .iter()
        .map(|(left, right)| expand(pointer, *left)..expand(pointer, *right));
    let first = blocks.next().filter(|first| !first.is_empty())?;
    let within = |second: Range<u64>| second.start <= first.start && first.end <= second.end;
    (first.end <= pointer || blocks.next().is_some_and(within)).then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use restp_base::sequence::ORIGIN;

    fn options(blocks: &[(u32, u32)]) -> Options {
        Options {
            sack: blocks.iter().copied().collect(),
            ..Options::default()
        }
    }

    #[track_caller]
    fn names(acknowledgement: u32, blocks: &[(u32, u32)], expected: Option<(u64, u64)>) {
        let expected = expected.map(|(left, right)| ORIGIN + left..ORIGIN + right);
        let pointer = ORIGIN + u64::from(acknowledgement);
        assert_eq!(duplicate_block(&options(blocks), pointer), expected);
    }

    /// RFC 2883 §4.1.1 to §4.2.2, with the RFC's own numbers.
    #[test]
    fn acknowledgements_of_the_rfc() {
        names(4000, &[(3000, 3500)], Some((3000, 3500)));
        names(4000, &[(3000, 3500), (4500, 5000)], Some((3000, 3500)));
        names(4000, &[(5000, 5500), (4500, 6000)], Some((5000, 5500)));
        names(1500, &[(500, 1000), (2000, 2500)], Some((500, 1000)));
    }

    #[test]
    fn blocks_of_news_name_no_duplicate() {
        names(4000, &[(4500, 5000)], None);
        names(4000, &[(4500, 5000), (5500, 6000)], None);
        names(4000, &[(4500, 6000), (5000, 5500)], None);
        names(4000, &[(3500, 3000)], None);
        names(4000, &[], None);
    }

    #[test]
    fn segments_are_named_whole() {
        let mut duplicates = Duplicates::default();
        for number in [7, 8, 10] {
            let start = ORIGIN + 100 * number;
            duplicates.on_retransmitted(start..start + 100, number);
        }
        let named = |left, right| duplicates.named(&options(&[(left, right)]), ORIGIN + 2000);
        assert_eq!(named(700, 800), 7..8);
        assert_eq!(named(700, 900), 7..9);
        assert_eq!(named(701, 900), 8..9);
        assert_eq!(named(701, 799), 0..0);
        assert_eq!(named(100, 200), 0..0, "it never left again");
        duplicates.on_retransmitted(ORIGIN + 1100..ORIGIN + 1100, 11);
        let named = duplicates.named(&options(&[(1000, 1100)]), ORIGIN + 2000);
        assert_eq!(named, 10..11, "a FIN behind it has no bytes");
    }

    #[test]
    fn neighbours_are_named_together_and_memory_is_bounded() {
        let mut duplicates = Duplicates::default();
        duplicates.on_arrival(10..20);
        duplicates.on_arrival(20..30);
        duplicates.on_arrival(30..30);
        assert_eq!(duplicates.arrived(), Some(10..30));
        duplicates.on_arrival(50..60);
        assert_eq!(duplicates.arrived(), Some(50..60));
        duplicates.on_named();
        assert_eq!(duplicates.arrived(), None);
        for number in 0..10_000 {
            duplicates.on_retransmitted(number..number + 1, number);
        }
        assert_eq!(duplicates.retransmitted.len(), MOST_AWAITED);
    }
}
