//! Ordered, disjoint, half-open ranges of numbers: which segments have arrived, which were reported.

use std::collections::VecDeque;
use std::ops::Range;

/// A set of numbers kept as ranges in ascending order; neighbours are merged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ranges(VecDeque<Range<u64>>);

impl Ranges {
    /// The empty set.
    pub const fn new() -> Self {
        Ranges(VecDeque::new())
    }
    /// True when nothing is in the set.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
    /// How many ranges there are: the memory this set takes.
    pub fn len(&self) -> usize {
        self.0.len()
    }
    /// The ranges in ascending order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Range<u64>> + ExactSizeIterator {
        self.0.iter()
    }
    /// The lowest range.
    pub fn first(&self) -> Option<&Range<u64>> {
        self.0.front()
    }
    /// The highest range.
    pub fn last(&self) -> Option<&Range<u64>> {
        self.0.back()
    }
    /// True when `number` is in the set.
    pub fn contains(&self, number: u64) -> bool {
        self.covering(number).is_some()
    }
    /// The range that holds `number`.
    pub fn covering(&self, number: u64) -> Option<&Range<u64>> {
        let at = self.0.partition_point(|r| r.end <= number);
        self.0.get(at).filter(|r| r.start <= number)
    }
    /// The first range that starts above `number`.
    pub fn above(&self, number: u64) -> Option<&Range<u64>> {
        // Mostly asked about the highest number there is.
        if self.0.back()?.start <= number {
            return None;
        }
        self.0.get(self.0.partition_point(|r| r.start <= number))
    }
    /// Numbers in the set.
    pub fn total(&self) -> u64 {
        self.0.iter().map(|r| r.end - r.start).sum()
    }

    /// Adds `range`; returns how many of its numbers were new.
    pub fn insert(&mut self, range: Range<u64>) -> u64 {
        if range.start >= range.end {
            return 0;
        }
        // Arrivals mostly extend the highest range or open one above it.
        match self.0.back_mut() {
            Some(last) if range.start == last.end => {
                last.end = range.end;
                return range.end - range.start;
            }
            Some(last) if range.start > last.end => {
                let added = range.end - range.start;
                self.0.push_back(range);
                return added;
            }
            None => {
                let added = range.end - range.start;
                self.0.push_back(range);
                return added;
            }
            Some(_) => {}
        }
        let from = self.0.partition_point(|r| r.end < range.start);
        let to = self.0.partition_point(|r| r.start <= range.end);
        if from == to {
            let added = range.end - range.start;
            self.0.insert(from, range);
            return added;
        }
        let merged = range.start.min(self.0[from].start)..range.end.max(self.0[to - 1].end);
        let before: u64 = self.0.range(from..to).map(|r| r.end - r.start).sum();
        let added = merged.end - merged.start - before;
        self.0[from] = merged;
        self.0.drain(from + 1..to);
        added
    }

    /// Removes every number below `floor`.
    pub fn remove_below(&mut self, floor: u64) {
        while let Some(first) = self.0.front_mut() {
            if first.end <= floor {
                self.0.pop_front();
            } else {
                first.start = first.start.max(floor);
                return;
            }
        }
    }

    /// The gaps from `floor` up to the highest number in the set, in ascending order.
    pub fn holes(&self, floor: u64) -> impl Iterator<Item = Range<u64>> + '_ {
        let mut next = floor;
        self.0.iter().filter_map(move |r| {
            let hole = next..r.start;
            next = next.max(r.end);
            (hole.start < hole.end).then_some(hole)
        })
    }

    /// Empties the set and gives its memory back.
    pub fn clear(&mut self) {
        self.0 = VecDeque::new();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Stream;
    use std::collections::BTreeSet;

    #[test]
    fn neighbours_merge_and_holes_show() {
        let mut set = Ranges::new();
        assert_eq!(set.insert(14..15), 1);
        assert_eq!(set.insert(17..18), 1);
        assert_eq!(set.insert(15..16), 1);
        assert_eq!(set.holes(10).collect::<Vec<_>>(), [10..14, 16..17]);
        assert_eq!(set.insert(10..20), 7);
        assert_eq!(set.len(), 1);
        set.remove_below(12);
        assert_eq!(set.first(), Some(&(12..20)));
    }

    #[test]
    fn agrees_with_a_plain_set_under_random_operations() {
        let mut stream = Stream::named(1, "ranges");
        for _ in 0..200 {
            let (mut set, mut model) = (Ranges::new(), BTreeSet::new());
            for _ in 0..60 {
                let start = stream.below(60);
                if stream.chance(0.9) {
                    let end = start + stream.below(6);
                    let added = (start..end).filter(|n| model.insert(*n)).count() as u64;
                    assert_eq!(set.insert(start..end), added);
                } else {
                    model = model.split_off(&start);
                    set.remove_below(start);
                }
                assert_eq!(set.total(), model.len() as u64);
                assert!((0..70).all(|n| set.contains(n) == model.contains(&n)));
                assert!(set.iter().zip(set.iter().skip(1)).all(|(a, b)| a.end < b.start));
            }
        }
    }
}
