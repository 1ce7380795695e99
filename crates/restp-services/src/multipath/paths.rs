//! The paths of one connection, by their ordinals, and what is asked of all of them (ResTP §3.3; OP-54).

use super::known::{Known, Standing};
use super::{Path, Shared};
use crate::connection_management::Notice;
use crate::scheduling::{Candidate, Scheduling};
use restp_base::flow::PathState;
use restp_base::machine::{Datagram, Wakeup};
use restp_base::time::Time;
use smallvec::SmallVec;
use std::ops::{Index, IndexMut};

/// Paths that data may use now.
pub(super) type Candidates = SmallVec<[Candidate; 8]>;

/// The paths of one connection. Whoever changes one comes through here, so what it said before is forgotten with that, and
/// a path that nobody touched is not asked again.
#[derive(Debug)]
pub struct Paths<P> {
    list: Vec<P>,
    /// What is remembered of each.
    known: Vec<Known>,
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
        self.known[ordinal].forget();
        &mut self.list[ordinal]
    }
}

impl<P: Path> Paths<P> {
    pub(super) fn new(coupled: bool) -> Self {
        Paths {
            list: Vec::new(),
            known: Vec::new(),
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
        self.forget();
        self.list.iter_mut()
    }
    /// The path with this ordinal.
    pub fn get_mut(&mut self, ordinal: usize) -> Option<&mut P> {
        self.known.get_mut(ordinal)?.forget();
        self.list.get_mut(ordinal)
    }
    /// Something has changed that every path may answer differently for.
    pub(super) fn forget(&mut self) {
        self.known.iter_mut().for_each(Known::forget);
    }

    /// The path gets the ordinal, which is the next or that of a path that is gone.
    pub fn put(&mut self, ordinal: usize, path: P) {
        if ordinal < self.list.len() {
            (self.list[ordinal], self.told[ordinal]) = (path, None);
            self.known[ordinal].forget();
        } else {
            self.list.push(path);
            self.told.push(None);
            self.known.push(Known::default());
        }
    }

    /// Moves a path out; the ordinals after it mean nothing any more.
    pub(super) fn take(&mut self, ordinal: usize) -> P {
        self.told.swap_remove(ordinal);
        self.known.swap_remove(ordinal);
        self.list.swap_remove(ordinal)
    }

    /// Writes the next packet that a path has to say for itself: the one that sent last goes on, then those behind it.
    /// Only those are asked that were touched since they last had nothing to send, or whose time has come.
    pub(super) fn poll_own(&mut self, now: Time, shared: &Shared, out: &mut Datagram) -> Option<usize> {
        let count = self.list.len();
        let mut all = (self.turn..count).chain(0..self.turn.min(count));
        let sent =
            all.find(|ordinal| self.known[*ordinal].has_turn(now) && self.poll(now, *ordinal, shared, out))?;
        self.turn = sent;
        Some(sent)
    }

    /// Writes the next packet of the path `ordinal`.
    pub(super) fn poll(&mut self, now: Time, ordinal: usize, shared: &Shared, out: &mut Datagram) -> bool {
        let sent = self[ordinal].poll_transmit(now, shared, out);
        if !sent {
            self.known[ordinal].ends_turn(now);
        }
        sent
    }

    /// Where the path stands.
    fn standing(&self, ordinal: usize) -> Option<Standing> {
        let known = self.known[ordinal].standing();
        known.unwrap_or_else(|| Standing::of(&self.list[ordinal]))
    }
    /// Where each path stands that is up, by its ordinal.
    fn standings(&self) -> impl Iterator<Item = (usize, Standing)> {
        (0..self.list.len()).filter_map(|ordinal| Some((ordinal, self.standing(ordinal)?)))
    }
    /// How many are up.
    pub(super) fn up(&self) -> usize {
        self.standings().count()
    }
    /// One is up.
    pub(super) fn any_up(&self) -> bool {
        self.standings().next().is_some()
    }

    /// The earliest deadline, and why. `judged`: silence counts.
    pub(super) fn deadline(&self, judged: bool) -> Option<(Time, Wakeup)> {
        let all = self.known.iter().zip(&self.list);
        let all = all.filter_map(|(known, path)| known.deadline().unwrap_or_else(|| path.deadline(judged)));
        all.min()
    }
    /// Nobody has anything to send: keeps every deadline until the path is touched.
    pub(super) fn keep(&mut self, judged: bool) {
        for (known, path) in self.known.iter_mut().zip(&self.list) {
            known.keep(path, judged);
        }
    }
    /// The path was touched since its deadline was kept, or that has come.
    pub fn is_due(&self, ordinal: usize, now: Time) -> bool {
        self.known[ordinal].is_due(now)
    }

    /// Data waits that would be placed on the path, were there room; it says nothing else for that.
    pub(super) fn set_backlog(&mut self, ordinal: usize, has_backlog: bool) {
        self.list[ordinal].sender_mut().set_backlog(has_backlog);
    }
    /// No data waits for any path.
    pub(super) fn clear_backlog(&mut self) {
        (0..self.list.len()).for_each(|ordinal| self.set_backlog(ordinal, false));
    }
    /// Payload bytes of a segment that any of them may have to carry; none where no path counts.
    pub(super) fn segment_bytes(&self) -> Option<u32> {
        let all = self.known.iter().zip(&self.list);
        let all =
            all.filter_map(|(known, path)| known.segment_bytes().unwrap_or_else(|| path.segment_bytes()));
        all.min()
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
        let best = self.standings().min_by_key(|(_, standing)| *standing);
        best.map(|(ordinal, _)| ordinal)
    }

    /// Is there a path beside `ordinal` that works, be it a backup?
    pub fn works_beside(&self, ordinal: usize) -> bool {
        self.standings()
            .any(|(other, standing)| other != ordinal && standing.works())
    }

    /// The path `ordinal` learns of the others, where its congestion control looks at them: those that carry data, or
    /// could (RFC 6356 §3).
    pub fn introduce(&mut self, ordinal: usize) {
        if !self.coupled {
            return;
        }
        let mut siblings = std::mem::take(self[ordinal].sender_mut().siblings());
        siblings.clear();
        let carry = self
            .standings()
            .filter(|(other, standing)| *other != ordinal && standing.carries());
        siblings.extend(carry.filter_map(|(other, _)| self.list[other].sender().as_sibling()));
        *self[ordinal].sender_mut().siblings() = siblings;
    }

    /// Every path that a segment of `bytes` may use, with room for it or without.
    pub(super) fn candidates(
        &mut self,
        now: Time,
        bytes: u64,
        scheduling: Option<&Scheduling>,
    ) -> Candidates {
        let copies = scheduling == Some(&Scheduling::Redundant);
        let all = self.known.iter_mut().zip(&self.list);
        let Some(best) = all.filter_map(|(known, path)| known.rank(path, copies)).min() else {
            return Candidates::new();
        };
        let all = self.known.iter_mut().zip(&mut self.list).enumerate();
        let usable = all.filter_map(|(ordinal, (known, path))| {
            if known.rank(path, copies) != Some(best) {
                return None;
            }
            Some(known.candidate(path, now, bytes, |path, has_room| {
                let weight = scheduling.map_or(1, |shares| shares.weight(path.share(ordinal)));
                path.sender()
                    .candidate(ordinal, weight, has_room, P::UNMEASURED_RTT)
            }))
        });
        usable.collect()
    }
}
