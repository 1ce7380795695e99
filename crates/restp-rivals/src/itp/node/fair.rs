//! No consumer of a cache takes it from the others, whatever he asks for: what he may have open at once is as much as is left for
//! others (dynamic thresholds; Choudhury and Hahne 1998), and each has his turn when something is asked above.

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;

/// Places that sources share. One source gets half of them at most, a second one half of what is left to it, and so on.
#[derive(Debug)]
pub(super) struct Shares {
    most: usize,
    taken: usize,
    by_source: BTreeMap<IpAddr, usize>,
}

impl Shares {
    /// So many places.
    pub fn new(most: usize) -> Self {
        Shares {
            most,
            taken: 0,
            by_source: BTreeMap::new(),
        }
    }

    /// How many are taken.
    pub fn taken(&self) -> usize {
        self.taken
    }

    /// May `source` have more?
    pub fn admits(&self, source: IpAddr) -> bool {
        let has = self.by_source.get(&source).copied().unwrap_or(0);
        has < self.most.saturating_sub(self.taken)
    }

    /// Takes one for `source`, if it may have one more.
    pub fn take(&mut self, source: IpAddr) -> bool {
        let admits = self.admits(source);
        if admits {
            self.take_all(source, 1);
        }
        admits
    }

    /// Takes so `many` for `source`.
    pub fn take_all(&mut self, source: IpAddr, many: usize) {
        self.taken += many;
        *self.by_source.entry(source).or_default() += many;
    }

    /// `source` has one less.
    pub fn give_back(&mut self, source: IpAddr) {
        self.give_all_back(source, 1);
    }

    /// `source` has so `many` less, of those that it took.
    pub fn give_all_back(&mut self, source: IpAddr, many: usize) {
        let Some(has) = self.by_source.get_mut(&source) else {
            return;
        };
        self.taken -= many;
        *has -= many;
        if *has == 0 {
            self.by_source.remove(&source);
        }
    }
}

/// What waits to be asked, one of each source in turn.
#[derive(Debug)]
pub(super) struct Queue<I> {
    /// Of those for whom something waits; the first has its turn.
    turns: VecDeque<IpAddr>,
    by_source: BTreeMap<IpAddr, VecDeque<I>>,
}

impl<I: Copy> Queue<I> {
    /// An empty one.
    pub fn new() -> Self {
        Queue {
            turns: VecDeque::new(),
            by_source: BTreeMap::new(),
        }
    }

    /// The queue of `source`, which has a turn from now on.
    fn of(&mut self, source: IpAddr) -> &mut VecDeque<I> {
        self.by_source.entry(source).or_insert_with(|| {
            self.turns.push_back(source);
            VecDeque::new()
        })
    }

    /// Behind everything of `source`.
    pub fn push_back(&mut self, source: IpAddr, item: I) {
        self.of(source).push_back(item);
    }

    /// Before everything of `source`.
    pub fn push_front(&mut self, source: IpAddr, item: I) {
        self.of(source).push_front(item);
    }

    /// What has its turn.
    pub fn front(&self) -> Option<I> {
        self.by_source.get(self.turns.front()?)?.front().copied()
    }

    /// It cannot be asked now: the next source has its turn.
    pub fn rotate(&mut self) {
        if !self.turns.is_empty() {
            self.turns.rotate_left(1);
        }
    }

    /// Takes it away. Its source has its next turn after all the others.
    pub fn pop(&mut self) {
        if self.drop_front() {
            self.rotate();
        }
    }

    /// Takes it away, which is no turn. True when its source has more.
    pub fn drop_front(&mut self) -> bool {
        let Some(&source) = self.turns.front() else {
            return false;
        };
        let items = self.by_source.get_mut(&source);
        let has_more = items.is_some_and(|items| items.pop_front().is_some() && !items.is_empty());
        if !has_more {
            self.by_source.remove(&source);
            self.turns.pop_front();
        }
        has_more
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(number: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, number])
    }

    #[test]
    fn one_source_leaves_as_much_as_it_has() {
        let mut shares = Shares::new(12);
        let mut all = |source| (0..100).filter(|_| shares.take(host(source))).count();
        assert_eq!((all(1), all(1), all(2), all(3), all(4)), (6, 0, 3, 2, 1));
        for _ in 0..100 {
            shares.give_back(host(1));
        }
        assert_eq!((shares.taken, shares.by_source.len()), (6, 3));
        assert!(shares.take(host(4)) && shares.take(host(1)));
    }

    #[test]
    fn sources_take_turns_and_each_keeps_its_order() {
        let mut queue = Queue::new();
        for item in [12, 13, 14] {
            queue.push_back(host(1), item);
        }
        queue.push_back(host(2), 21);
        queue.push_front(host(1), 11);
        let mut order = Vec::new();
        while let Some(item) = queue.front() {
            order.push(item);
            queue.pop();
            if item == 12 {
                queue.push_back(host(3), 31);
            }
        }
        assert_eq!(order, [11, 21, 12, 13, 31, 14]);
        assert!(queue.turns.is_empty() && queue.by_source.is_empty());
    }
}
