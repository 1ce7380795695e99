//! Which segments no path has brought, as acknowledgements under the sliding window code (RFC 8681) say it: they were rebuilt, or given up. They are
//! acknowledged, and the path that carried them has lost them: taken for answers of that path they would hide its losses, and in the
//! end its death. In the FEC Range:
//!
//! ```text
//! bit 23        14 13         0
//! |Distance 10    |Before 14   |
//! ```
//!
//! Distance is the pointer and 512 less the highest such number, 0 where there is none within reach; a bit of Before says that a
//! number before it is one as well, the lowest bit the number next to it. Each acknowledgement repeats it, so some may be lost.

use std::ops::Range;

const BEFORE_BITS: u32 = 14;
/// The highest number may lie so far above the pointer: more than a decoder remembers.
const AHEAD: u64 = 512;
const MOST_DISTANCE: u64 = (1 << 10) - 1;

/// Some of the numbers that no path has brought: the highest, and those close before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Uncarried {
    highest: Option<u64>,
    before: u32,
}

impl Uncarried {
    /// `number` is rebuilt, or given up.
    pub fn insert(&mut self, number: u64) {
        let highest = self.highest.unwrap_or(number);
        if number < highest {
            self.before |= bit(highest - number);
            return;
        }
        let ahead = u32::try_from(number - highest).unwrap_or(u32::MAX);
        let shifted = u64::from(self.before).checked_shl(ahead).unwrap_or(0) as u32;
        self.before = (shifted | bit(number - highest)) & ((1 << BEFORE_BITS) - 1);
        self.highest = Some(number);
    }

    /// All of these are, of which the lowest may be too far back to be told.
    pub fn insert_all(&mut self, numbers: Range<u64>) {
        let told = numbers.end.saturating_sub(u64::from(BEFORE_BITS) + 1);
        (numbers.start.max(told)..numbers.end).for_each(|number| self.insert(number));
    }

    /// What an acknowledgement says of it beside the pointer.
    pub fn range(self, pointer: u64) -> u32 {
        let distance = self
            .highest
            .and_then(|highest| (pointer + AHEAD).checked_sub(highest));
        match distance {
            Some(distance @ 1..=MOST_DISTANCE) => (distance as u32) << BEFORE_BITS | self.before,
            _ => 0,
        }
    }
    /// The same read again.
    pub fn from_range(range: u32, pointer: u64) -> Self {
        let distance = u64::from(range >> BEFORE_BITS) & MOST_DISTANCE;
        let highest = (pointer + AHEAD).checked_sub(distance).filter(|_| distance > 0);
        Uncarried {
            highest,
            before: highest.map_or(0, |_| range & ((1 << BEFORE_BITS) - 1)),
        }
    }

    /// From the highest down.
    pub fn iter(self) -> impl Iterator<Item = u64> {
        let highest = self.highest.into_iter();
        highest.flat_map(move |highest| {
            let before = (1..=u64::from(BEFORE_BITS)).filter(move |back| self.before & bit(*back) != 0);
            std::iter::once(highest).chain(before.filter_map(move |back| highest.checked_sub(back)))
        })
    }
}

/// The bit of the number `back` before the highest; none for the highest itself, and beyond reach.
fn bit(back: u64) -> u32 {
    match back {
        1..=14 => 1 << (back - 1),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(numbers: &[u64]) -> Uncarried {
        let mut uncarried = Uncarried::default();
        numbers.iter().for_each(|number| uncarried.insert(*number));
        uncarried
    }
    fn read(uncarried: Uncarried, pointer: u64) -> Vec<u64> {
        Uncarried::from_range(uncarried.range(pointer), pointer)
            .iter()
            .collect()
    }

    #[test]
    fn the_highest_and_fourteen_before_it_are_told_in_whatever_order_they_came() {
        assert_eq!(of(&[]).range(1000), 0);
        assert_eq!(of(&[1000]).range(1000), 512 << 14);
        assert_eq!(of(&[999, 1000]).range(1002), 514 << 14 | 1);
        for order in [[990, 1000, 1004, 997], [1004, 997, 1000, 990]] {
            assert_eq!(read(of(&order), 1001), [1004, 1000, 997, 990]);
        }
        assert_eq!(read(of(&[989, 1004]), 1001), [1004], "15 before");
        assert_eq!(read(of(&[1004, 989, 1003]), 1001), [1004, 1003]);
        assert_eq!(read(of(&[1, 2, 1_000_000, 1_000_000]), 1_000_000), [1_000_000]);
    }

    #[test]
    fn of_a_long_hole_the_end_is_told() {
        let mut uncarried = of(&[90]);
        uncarried.insert_all(100..u64::MAX / 2);
        let end = u64::MAX / 2;
        assert_eq!(read(uncarried, end), (end - 15..end).rev().collect::<Vec<_>>());
        uncarried.insert_all(end..end);
        assert_eq!(read(uncarried, end).len(), 15);
    }

    #[test]
    fn what_is_far_from_the_pointer_is_not_told() {
        let uncarried = of(&[5000]);
        for (pointer, told) in [(4488, false), (4489, true), (5511, true), (5512, false)] {
            assert_eq!(!read(uncarried, pointer).is_empty(), told, "{pointer}");
        }
    }

    #[test]
    fn every_word_says_some_numbers_or_none() {
        for range in (0..1 << 24).step_by(997) {
            for pointer in [0, 3, 1 << 40] {
                let uncarried = Uncarried::from_range(range, pointer);
                assert!(uncarried.iter().count() <= 15);
                assert!(uncarried.iter().all(|number| number.abs_diff(pointer) <= 600));
            }
        }
    }
}
