//! The paths of one connection, by their ordinals, and what is asked of all of them (ResTP §3.3; OP-54).

use super::Path;
use crate::connection_management::Notice;
use crate::scheduling::{Candidate, Scheduling};
use restp_base::flow::PathState;
use restp_base::time::Time;
use smallvec::SmallVec;
use std::ops::{Index, IndexMut};

/// Paths that data may use now.
pub(super) type Candidates = SmallVec<[Candidate; 4]>;

/// The paths of one connection.
#[derive(Debug)]
pub struct Paths<P> {
    list: Vec<P>,
    /// What the application was last told of each.
    told: Vec<Option<PathState>>,
    /// Whose turn it is to be asked for a packet.
    turn: usize,
    /// Their congestion controls look at each other.
    coupled: bool,
}

impl<P> Index<usize> for Paths<P> {
    type Output = P;
    fn index(&self, ordinal: usize) -> &P {
        &self.list[ordinal]
    }
}

impl<P> IndexMut<usize> for Paths<P> {
    fn index_mut(&mut self, ordinal: usize) -> &mut P {
        &mut self.list[ordinal]
    }
}

impl<P: Path> Paths<P> {
    pub(super) fn new(coupled: bool) -> Self {
        Paths {
            list: Vec::new(),
            told: Vec::new(),
            turn: 0,
            coupled,
        }
    }

    /// How many ordinals are given.
    pub fn len(&self) -> usize {
        self.list.len()
    }
    /// There is none yet.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }
    /// All of them, in their order.
    pub fn iter(&self) -> std::slice::Iter<'_, P> {
        self.list.iter()
    }
    /// The same, to be changed.
    pub fn iter_mut(&mut self) -> std::slice::IterMut<'_, P> {
        self.list.iter_mut()
    }
    /// The path with this ordinal.
    pub fn get_mut(&mut self, ordinal: usize) -> Option<&mut P> {
        self.list.get_mut(ordinal)
    }

    /// The path gets the ordinal, which is the next or that of a path that is gone.
    pub fn put(&mut self, ordinal: usize, path: P) {
        if ordinal < self.list.len() {
            (self.list[ordinal], self.told[ordinal]) = (path, None);
        } else {
            self.list.push(path);
            self.told.push(None);
        }
    }

    /// Moves a path out; the ordinals after it mean nothing any more.
    pub(super) fn take(&mut self, ordinal: usize) -> P {
        self.told.swap_remove(ordinal);
        self.list.swap_remove(ordinal)
    }

    pub(super) fn turn(&self) -> usize {
        self.turn
    }
    pub(super) fn set_turn(&mut self, ordinal: usize) {
        self.turn = ordinal;
    }

    /// What the application is to be told of a path: it came up, or changed since.
    pub(super) fn tell(&mut self, ordinal: usize, state: PathState) -> Option<Notice> {
        let told = &mut self.told[ordinal];
        let news = *told != Some(state) && (told.is_some() || state == PathState::Up);
        news.then(|| {
            *told = Some(state);
            Notice::Path(self.list[ordinal].address(), state)
        })
    }

    /// The path that works best, no backup if that can be, then with the least round-trip time.
    pub fn best(&self) -> Option<usize> {
        let rank = |(ordinal, path): (usize, &P)| {
            let standing = path.standing()?;
            Some((standing, path.sender().smoothed_rtt(), ordinal))
        };
        let best = self.iter().enumerate().filter_map(rank).min();
        best.map(|(.., ordinal)| ordinal)
    }

    /// Is there a path beside `ordinal` that works, be it a backup?
    pub fn works_beside(&self, ordinal: usize) -> bool {
        let works = |path: &P| matches!(path.standing(), Some((0, _)));
        let mut others = self.iter().enumerate().filter(|(other, _)| *other != ordinal);
        others.any(|(_, path)| works(path))
    }

    /// The path `ordinal` learns of the others, where its congestion control looks at them: those that carry data, or
    /// could (RFC 6356 §3).
    pub fn introduce(&mut self, ordinal: usize) {
        if !self.coupled {
            return;
        }
        let mut siblings = std::mem::take(self.list[ordinal].sender_mut().siblings());
        siblings.clear();
        let others = self
            .list
            .iter()
            .enumerate()
            .filter(|(other, _)| *other != ordinal);
        let carry = others.filter(|(_, path)| path.standing() == Some((0, false)));
        siblings.extend(carry.filter_map(|(_, path)| path.sender().as_sibling()));
        *self.list[ordinal].sender_mut().siblings() = siblings;
    }

    /// Every path that a segment of `bytes` may use, with room for it or without.
    pub(super) fn candidates(
        &mut self,
        now: Time,
        bytes: u64,
        scheduling: Option<&Scheduling>,
    ) -> Candidates {
        let copies = scheduling == Some(&Scheduling::Redundant);
        let Some(best) = self.list.iter().filter_map(|path| path.rank(copies)).min() else {
            return Candidates::new();
        };
        let all = self.list.iter_mut().enumerate();
        let usable = all.filter(|(_, path)| path.rank(copies) == Some(best));
        usable
            .map(|(ordinal, path)| {
                let has_room = path.takes(now, bytes);
                let weight = scheduling.map_or(1, |shares| shares.weight(path.share(ordinal)));
                path.sender()
                    .candidate(ordinal, weight, has_room, P::UNMEASURED_RTT)
            })
            .collect()
    }
}
