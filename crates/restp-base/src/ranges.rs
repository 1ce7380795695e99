//! Ordered, disjoint, half-open ranges of numbers: which segments have arrived, which were reported.

use std::collections::VecDeque;
use std::ops::Range;

/// A set of numbers kept as ranges in ascending order; neighbours are merged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ranges {
    ranges: VecDeque<Range<u64>>,
    /// Numbers in all of them.
    total: u64,
}

impl Ranges {
    /// The empty set.
    pub const fn new() -> Self {
        Ranges {
            ranges: VecDeque::new(),
            total: 0,
        }
    }
    /// True when nothing is in the set.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }
    /// How many ranges there are.
    pub fn len(&self) -> usize {
        self.ranges.len()
    }
    /// The ranges in ascending order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Range<u64>> + ExactSizeIterator {
        self.ranges.iter()
    }
    /// The lowest range.
    pub fn first(&self) -> Option<&Range<u64>> {
        self.ranges.front()
    }
    /// The highest range.
    pub fn last(&self) -> Option<&Range<u64>> {
        self.ranges.back()
    }
    /// True when `number` is in the set.
    pub fn contains(&self, number: u64) -> bool {
        self.covering(number).is_some()
    }
    /// The range that holds `number`.
    pub fn covering(&self, number: u64) -> Option<&Range<u64>> {
        self.ranges
            .get(self.first_ending_above(number))
            .filter(|r| r.start <= number)
    }
    /// The first range that starts above `number`.
    pub fn above(&self, number: u64) -> Option<&Range<u64>> {
        // Mostly asked about the highest number there is, or about one below all others.
        if self.ranges.back()?.start <= number {
            return None;
        }
        let first = self.ranges.front().filter(|r| r.start > number);
        first.or_else(|| {
            self.ranges
                .get(self.ranges.partition_point(|r| r.start <= number))
        })
    }
    /// Numbers in the set.
    pub fn total(&self) -> u64 {
        self.total
    }
    /// The last range that ends below `number`.
    pub fn below(&self, number: u64) -> Option<&Range<u64>> {
        let above = self.ranges.partition_point(|r| r.end < number);
        self.ranges.get(above.checked_sub(1)?)
    }
    /// The lowest part of `range` that is in the set.
    pub fn first_within(&self, range: &Range<u64>) -> Option<Range<u64>> {
        let held = self.ranges.get(self.first_ending_above(range.start))?;
        let part = held.start.max(range.start)..held.end.min(range.end);
        (part.start < part.end).then_some(part)
    }
    /// The lowest part of `range` that is not in the set.
    pub fn first_missing(&self, range: &Range<u64>) -> Option<Range<u64>> {
        let mut missing = range.clone();
        let mut index = self.first_ending_above(range.start);
        while let Some(held) = self.ranges.get(index) {
            if held.start > missing.start {
                missing.end = missing.end.min(held.start);
                break;
            }
            missing.start = held.end;
            index += 1;
        }
        (missing.start < missing.end).then_some(missing)
    }

    /// Adds `range`; returns how many of its numbers were new.
    pub fn insert(&mut self, range: Range<u64>) -> u64 {
        if range.start >= range.end {
            return 0;
        }
        let mut added = range.end - range.start;
        // Arrivals mostly extend the highest range or open one above it.
        match self.ranges.back_mut() {
            Some(last) if range.start == last.end => last.end = range.end,
            Some(last) if range.start < last.end => added = self.merge(range),
            Some(_) | None => self.ranges.push_back(range),
        }
        self.total += added;
        added
    }

    /// Puts `range` among the others; returns how many of its numbers were new.
    fn merge(&mut self, range: Range<u64>) -> u64 {
        let from = self.ranges.partition_point(|r| r.end < range.start);
        let to = self.ranges.partition_point(|r| r.start <= range.end);
        if from == to {
            let added = range.end - range.start;
            self.ranges.insert(from, range);
            return added;
        }
        let merged = range.start.min(self.ranges[from].start)..range.end.max(self.ranges[to - 1].end);
        let before: u64 = self.ranges.range(from..to).map(|r| r.end - r.start).sum();
        let added = merged.end - merged.start - before;
        self.ranges[from] = merged;
        self.ranges.drain(from + 1..to);
        added
    }

    /// Takes the numbers of `range` out.
    pub fn remove(&mut self, range: &Range<u64>) {
        let from = self.first_ending_above(range.start);
        let to = self.ranges.partition_point(|r| r.start < range.end);
        if range.is_empty() || from >= to {
            return;
        }
        let kept = [
            range.end..self.ranges[to - 1].end,
            self.ranges[from].start..range.start,
        ];
        self.total -= self.ranges.drain(from..to).map(|r| r.end - r.start).sum::<u64>();
        for part in kept.into_iter().filter(|part| part.start < part.end) {
            self.total += part.end - part.start;
            self.ranges.insert(from, part);
        }
    }

    /// The parts of the set that lie in `range`, in ascending order.
    pub fn within(&self, range: &Range<u64>) -> impl Iterator<Item = Range<u64>> + '_ {
        let (start, end) = (range.start, range.end);
        let above = self.ranges.range(self.first_ending_above(start)..);
        above
            .take_while(move |part| part.start < end)
            .map(move |part| part.start.max(start)..part.end.min(end))
            .filter(|part| part.start < part.end)
    }

    /// Removes every number below `floor`.
    pub fn remove_below(&mut self, floor: u64) {
        while let Some(first) = self.ranges.front_mut() {
            let above = first.start.max(floor)..first.end;
            if above.start < above.end {
                self.total -= above.start - first.start;
                *first = above;
                return;
            }
            self.total -= first.end - first.start;
            self.ranges.pop_front();
        }
    }

    /// The gaps from `floor` up to the highest number in the set, in ascending order.
    pub fn holes(&self, floor: u64) -> impl Iterator<Item = Range<u64>> + '_ {
        let mut next = floor;
        let above = self.ranges.range(self.first_ending_above(floor)..);
        above.filter_map(move |r| {
            let hole = next..r.start;
            next = next.max(r.end);
            (hole.start < hole.end).then_some(hole)
        })
    }

    /// Empties the set and gives its memory back.
    pub fn clear(&mut self) {
        *self = Ranges::new();
    }

    /// Bytes of memory the set takes.
    pub fn memory(&self) -> usize {
        self.ranges.capacity() * size_of::<Range<u64>>()
    }

    /// Position of the first range that ends above `number`.
    fn first_ending_above(&self, number: u64) -> usize {
        match self.ranges.back() {
            None => 0,
            // Mostly asked about the highest range there is, or about what lies above it.
            Some(last) if last.start <= number => self.ranges.len() - usize::from(number < last.end),
            Some(_) => self.ranges.partition_point(|r| r.end <= number),
        }
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
    fn the_parts_within_a_range_are_cut_at_its_ends() {
        let mut set = Ranges::new();
        [10..14, 16..18, 20..30].into_iter().for_each(|part| {
            set.insert(part);
        });
        let within = |range: Range<u64>| set.within(&range).collect::<Vec<_>>();
        assert_eq!(within(12..22), [12..14, 16..18, 20..22]);
        assert_eq!(within(14..16), []);
        assert_eq!(within(0..100), [10..14, 16..18, 20..30]);
        assert_eq!(within(17..17), []);
    }

    #[test]
    fn agrees_with_a_plain_set_under_random_operations() {
        let mut stream = Stream::named(1, "ranges");
        for _ in 0..200 {
            let (mut set, mut model) = (Ranges::new(), BTreeSet::new());
            for _ in 0..60 {
                let start = stream.below(60);
                let range = start..start + stream.below(6);
                match stream.below(10) {
                    0 => {
                        model = model.split_off(&start);
                        set.remove_below(start);
                    }
                    1 => {
                        model.retain(|n| !range.contains(n));
                        set.remove(&range);
                    }
                    _ => {
                        let added = range.clone().filter(|n| model.insert(*n)).count() as u64;
                        assert_eq!(set.insert(range.clone()), added);
                    }
                }
                let run = |held: bool| {
                    let from = range.clone().find(|n| model.contains(n) == held)?;
                    let until = (from..range.end).find(|n| model.contains(n) != held);
                    Some(from..until.unwrap_or(range.end))
                };
                assert_eq!(set.first_within(&range), run(true));
                assert_eq!(set.first_missing(&range), run(false));
                assert_eq!(set.below(start), set.iter().rfind(|r| r.end < start));
                assert_eq!(set.total(), model.len() as u64);
                assert!((0..70).all(|n| set.contains(n) == model.contains(&n)));
                assert!(set.iter().zip(set.iter().skip(1)).all(|(a, b)| a.end < b.start));
            }
        }
    }
}
