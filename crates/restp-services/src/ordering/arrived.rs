//! What has arrived beyond RCV.NXT, and where the latest arrivals lie: the order in which SACK names blocks
//! (RFC 2018 §4, TC §2.2.2).

use restp_base::ranges::Ranges;
use std::ops::Range;

/// So many blocks are kept in the order of their latest arrivals: as many as any report may name.
const MOST_RECENT: usize = 32;

/// Ranges of numbers, and a number in each of those that grew last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Arrived {
    ranges: Ranges,
    /// The latest first; no two in the same range.
    recent: Vec<u64>,
}

impl Arrived {
    /// The ranges in ascending order.
    pub fn ranges(&self) -> &Ranges {
        &self.ranges
    }

    /// Takes what has just come, and returns how many numbers of it are new. Its block is named first, although nothing of
    /// it may be new: it is what the report answers.
    pub fn insert(&mut self, range: Range<u64>) -> u64 {
        let number = range.start;
        let new = self.ranges.insert(range);
        if let (Some(block), Some(first)) = (self.ranges.covering(number), self.ranges.first()) {
            self.recent
                .retain(|known| *known >= first.start && !block.contains(known));
            self.recent.truncate(MOST_RECENT - 1);
            self.recent.insert(0, number);
        }
        new
    }

    /// Takes `range` out: it was discarded, and has to come again.
    pub fn remove(&mut self, range: &Range<u64>) {
        self.ranges.remove(range);
        self.recent.retain(|known| !range.contains(known));
    }

    /// Forgets what lies below `floor`; once nothing is left, the memory as well.
    pub fn remove_below(&mut self, floor: u64) {
        self.ranges.remove_below(floor);
        if self.ranges.is_empty() {
            *self = Arrived::default();
        }
    }

    /// In which order a report names the ranges: that of the latest arrival first; then those that grew before 32
    /// others, from the highest down.
    pub fn latest_first(&self) -> impl Iterator<Item = &Range<u64>> {
        let latest = self
            .recent
            .iter()
            .filter_map(|number| self.ranges.covering(*number));
        let is_old = |range: &&Range<u64>| !self.recent.iter().any(|number| range.contains(number));
        latest.chain(self.ranges.iter().rev().filter(is_old))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrived(numbers: impl IntoIterator<Item = u64>) -> Arrived {
        let mut arrived = Arrived::default();
        for number in numbers {
            arrived.insert(number..number + 1);
        }
        arrived
    }

    fn order(arrived: &Arrived) -> Vec<Range<u64>> {
        arrived.latest_first().cloned().collect()
    }

    #[test]
    fn blocks_are_named_as_they_grew_and_each_once() {
        let mut arrived = arrived([14, 20, 17, 15, 21]);
        assert_eq!(order(&arrived), [20..22, 14..16, 17..18]);
        assert_eq!(arrived.insert(14..15), 0);
        assert_eq!(
            order(&arrived),
            [14..16, 20..22, 17..18],
            "a duplicate is answered too"
        );
        arrived.insert(16..17);
        assert_eq!(order(&arrived), [14..18, 20..22], "two have become one");
    }

    /// What two paths fill by turns keeps no third block from its place.
    #[test]
    fn two_blocks_that_grow_by_turns_take_two_places() {
        let mut arrived = arrived([50]);
        for step in 0..100 {
            arrived.insert(100 + step..101 + step);
            arrived.insert(300 + step..301 + step);
        }
        assert_eq!(order(&arrived), [300..400, 100..200, 50..51]);
    }

    #[test]
    fn a_block_that_grew_before_as_many_others_as_are_kept_comes_after_them_from_the_top() {
        let numbers = (0..40).map(|step| 200 - 2 * step);
        let arrived = arrived(numbers);
        let named = order(&arrived);
        assert_eq!(named[0], 122..123);
        assert_eq!(named[MOST_RECENT - 1], 184..185);
        assert_eq!(named[MOST_RECENT..][..2], [200..201, 198..199]);
        assert_eq!(named.len(), 40);
    }

    #[test]
    fn what_has_been_read_or_discarded_is_not_named_and_keeps_no_place() {
        let mut arrived = arrived([14, 20, 17]);
        arrived.remove(&(17..18));
        assert_eq!(order(&arrived), [20..21, 14..15]);
        arrived.remove_below(16);
        assert!(arrived.latest_first().eq([&(20..21)]));
        arrived.remove_below(30);
        assert_eq!(arrived, Arrived::default());
    }
}
