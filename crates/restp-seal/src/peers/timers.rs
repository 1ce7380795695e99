//! When to look after something: one time for each.

use restp_base::time::Time;
use std::collections::{BTreeMap, BTreeSet};

pub(crate) struct Timers<K> {
    of: BTreeMap<K, Time>,
    in_order: BTreeSet<(Time, K)>,
}

impl<K> Default for Timers<K> {
    fn default() -> Self {
        Timers {
            of: BTreeMap::new(),
            in_order: BTreeSet::new(),
        }
    }
}

impl<K: Ord + Copy> Timers<K> {
    /// The timer of `key` ends at `at`, or never.
    pub(crate) fn set(&mut self, key: K, at: Option<Time>) {
        let before = match at {
            Some(at) => self.of.insert(key, at),
            None => self.of.remove(&key),
        };
        if let Some(before) = before {
            self.in_order.remove(&(before, key));
        }
        self.in_order.extend(at.map(|at| (at, key)));
    }

    /// The timer of `key` ends at `at`, if it has none.
    pub(crate) fn begin(&mut self, key: K, at: Time) {
        if !self.of.contains_key(&key) {
            self.set(key, Some(at));
        }
    }

    /// When the next timer ends.
    pub(crate) fn next(&self) -> Option<Time> {
        self.in_order.first().map(|(at, _)| *at)
    }

    /// One whose timer has ended; each is told once.
    pub(crate) fn pop_due(&mut self, now: Time) -> Option<K> {
        let (_, key) = self.in_order.first().copied().filter(|(at, _)| *at <= now)?;
        self.set(key, None);
        Some(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_one_timer_which_ends_once() {
        let at = Time::from_nanos;
        let mut timers = Timers::default();
        timers.set(1, Some(at(30)));
        timers.set(2, Some(at(20)));
        timers.set(1, Some(at(10)));
        timers.set(3, Some(at(5)));
        timers.set(3, None);
        assert_eq!(timers.next(), Some(at(10)));
        assert_eq!(timers.pop_due(at(9)), None);
        assert_eq!(
            [timers.pop_due(at(40)), timers.pop_due(at(40))],
            [Some(1), Some(2)]
        );
        assert_eq!((timers.pop_due(at(40)), timers.next()), (None, None));
        timers.set(1, Some(at(50)));
        assert_eq!(timers.next(), Some(at(50)), "it can be set again");
    }
}
