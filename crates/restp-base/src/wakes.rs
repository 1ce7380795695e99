//! Who is woken when, in the order of time. The first is kept apart from the others: most owners have one alone, whose
//! time moves with every packet.

use crate::time::Time;
use std::collections::BTreeSet;

/// Times at which somebody of kind `K` is woken. Of one time the least comes first.
#[derive(Clone, Debug)]
pub struct Wakes<K> {
    first: Option<(Time, K)>,
    later: BTreeSet<(Time, K)>,
}

impl<K> Default for Wakes<K> {
    fn default() -> Self {
        Wakes {
            first: None,
            later: BTreeSet::new(),
        }
    }
}

impl<K: Copy + Ord> Wakes<K> {
    /// Who is woken next, and when.
    pub fn first(&self) -> Option<(Time, K)> {
        self.first
    }

    /// Wakes `who` at `at`.
    pub fn insert(&mut self, at: Time, who: K) {
        let wake = (at, who);
        match self.first {
            Some(first) if first == wake => {}
            Some(first) if first < wake => drop(self.later.insert(wake)),
            first => {
                self.later.extend(first);
                self.first = Some(wake);
            }
        }
    }

    /// Does not wake `who` at `at`.
    pub fn remove(&mut self, at: Time, who: K) {
        let wake = (at, who);
        if self.first == Some(wake) {
            self.first = self.later.pop_first();
        } else {
            self.later.remove(&wake);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Stream;

    #[test]
    fn agrees_with_a_sorted_set_under_random_changes() {
        let (mut wakes, mut set) = (Wakes::default(), BTreeSet::new());
        let mut random = Stream::named(1, "wakes");
        for _ in 0..5000 {
            let (at, who) = (Time::from_nanos(random.below(5)), random.below(3));
            if random.chance(0.5) {
                wakes.insert(at, who);
                set.insert((at, who));
            } else {
                wakes.remove(at, who);
                set.remove(&(at, who));
            }
            assert_eq!(wakes.first(), set.first().copied());
        }
    }
}
