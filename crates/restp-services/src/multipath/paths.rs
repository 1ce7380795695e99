//! The paths of one connection, by their ordinals, and what is asked of all of them (ResTP §3.3; OP-54).

use super::bottleneck::Bottlenecks;
use super::known::Known;
use super::survey::{Overview, Survey};
use super::{Path, Shared};
use crate::connection_management::Notice;
use crate::scheduling::{Candidate, Scheduling};
use crate::view::Sibling;
use restp_base::flow::PathState;
use restp_base::machine::{Datagram, Wakeup};
use restp_base::time::Time;
use smallvec::SmallVec;
use std::cell::RefCell;
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
    /// Where they stand.
    survey: RefCell<Survey>,
    /// The earliest deadline, before which nobody has anything to send; none where one was touched since.
    earliest: Option<Option<(Time, Wakeup)>>,
    /// What the application was last told of each.
    told: Vec<Option<PathState>>,
    /// Whose turn it is to be asked for a packet.
    turn: usize,
    /// Their congestion controls look at each other.
    coupled: bool,
    /// Which of them wait in one queue.
    bottlenecks: Bottlenecks,
}

impl<P> Index<usize> for Paths<P> {
    type Output = P;
    fn index(&self, ordinal: usize) -> &P {
        &self.list[ordinal]
    }
}

impl<P> IndexMut<usize> for Paths<P> {
    fn index_mut(&mut self, ordinal: usize) -> &mut P {
        self.touch(ordinal);
        &mut self.list[ordinal]
    }
}

impl<P> Paths<P> {
    /// The path may answer differently from now on.
    fn touch(&mut self, ordinal: usize) {
        self.known[ordinal].forget();
        self.survey.get_mut().touch(ordinal);
        self.earliest = None;
    }
    /// Something has changed that every path may answer differently for.
    pub(super) fn forget(&mut self) {
        (0..self.list.len()).for_each(|ordinal| self.touch(ordinal));
    }
}

impl<P: Path> Paths<P> {
    pub(super) fn new(coupled: bool) -> Self {
        Paths {
            list: Vec::new(),
            known: Vec::new(),
            survey: RefCell::default(),
            earliest: None,
            told: Vec::new(),
            turn: 0,
            coupled,
            bottlenecks: Bottlenecks::default(),
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
    /// All of them, for who changes nothing that a path says.
    pub(super) fn observed(&mut self) -> std::slice::IterMut<'_, P> {
        self.list.iter_mut()
    }
    /// The path with this ordinal.
    pub fn get_mut(&mut self, ordinal: usize) -> Option<&mut P> {
        (ordinal < self.list.len()).then(|| &mut self[ordinal])
    }
    /// The path gets the ordinal, which is the next or that of a path that is gone.
    pub fn put(&mut self, ordinal: usize, path: P) {
        if ordinal < self.list.len() {
            (self[ordinal], self.told[ordinal]) = (path, None);
            self.bottlenecks.forget(ordinal);
        } else {
            self.list.push(path);
            self.told.push(None);
            self.known.push(Known::default());
            self.touch(ordinal);
        }
    }

    /// Moves a path out; the ordinals after it mean nothing any more.
    pub(super) fn take(&mut self, ordinal: usize) -> P {
        self.told.swap_remove(ordinal);
        self.known.swap_remove(ordinal);
        self.bottlenecks = Bottlenecks::default();
        let path = self.list.swap_remove(ordinal);
        self.forget();
        path
    }

    /// Writes the next packet that a path has to say for itself: the one that sent last goes on, then those behind it.
    /// Only those are asked that were touched since they last had nothing to send, or whose time has come.
    pub(super) fn poll_own(&mut self, now: Time, shared: &Shared, out: &mut Datagram) -> Option<usize> {
        let waits = |earliest: Option<(Time, Wakeup)>| earliest.is_none_or(|(at, _)| at > now);
        if self.earliest.is_some_and(waits) {
            return None;
        }
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

    /// What follows from where each of them stands.
    fn overview(&self) -> Overview {
        self.survey.borrow_mut().update(&self.list).overview()
    }
    /// How many are up.
    pub(super) fn up(&self) -> usize {
        self.overview().up
    }
    /// Payload bytes of a segment that any of them may have to carry; none where no path counts.
    pub(super) fn segment_bytes(&self) -> Option<u32> {
        self.overview().segment_bytes
    }
    /// The path that works best, no backup if that can be, then with the least round-trip time.
    pub fn best(&self) -> Option<usize> {
        self.overview().best
    }

    /// The earliest deadline, and why. `judged`: silence counts.
    pub(super) fn deadline(&self, judged: bool) -> Option<(Time, Wakeup)> {
        self.earliest.unwrap_or_else(|| {
            let all = self.known.iter().zip(&self.list);
            let all =
                all.filter_map(|(known, path)| known.deadline().unwrap_or_else(|| path.deadline(judged)));
            all.min()
        })
    }
    /// Nobody has anything to send: keeps every answer until a path is touched.
    pub(super) fn keep(&mut self, judged: bool) {
        if self.earliest.is_some() {
            return;
        }
        let all = self.known.iter_mut().zip(&self.list);
        let earliest = all.filter_map(|(known, path)| known.keep(path, judged)).min();
        self.earliest = self.known.iter().all(Known::had_turn).then_some(earliest);
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

    /// What the application is to be told of a path: it came up, or changed since.
    pub(super) fn tell(&mut self, ordinal: usize, state: PathState) -> Option<Notice> {
        let told = &mut self.told[ordinal];
        let news = *told != Some(state) && (told.is_some() || state == PathState::Up);
        news.then(|| {
            *told = Some(state);
            Notice::Path(self.list[ordinal].address(), state)
        })
    }

    /// Is there a path beside `ordinal` that works, be it a backup?
    pub fn works_beside(&self, ordinal: usize) -> bool {
        let mut survey = self.survey.borrow_mut();
        let mut standings = survey.update(&self.list).standings();
        standings.any(|(other, standing)| other != ordinal && standing.works())
    }

    /// The path `ordinal` learns of the others, where its congestion control looks at them: those that carry data, or
    /// could (RFC 6356 §3), and which of them wait in the same queue.
    pub fn introduce(&mut self, now: Time, ordinal: usize) {
        if !self.coupled {
            return;
        }
        let sender = self.list[ordinal].sender();
        if let Some((latest, smoothed)) = sender.latest_rtt().zip(sender.smoothed_rtt()) {
            self.bottlenecks.on_sample(now, ordinal, latest, smoothed);
        }
        let mut siblings = std::mem::take(self[ordinal].sender_mut().siblings());
        siblings.clear();
        let standings = self.survey.get_mut().update(&self.list).standings();
        let carry = standings.filter(|(other, standing)| *other != ordinal && standing.carries());
        siblings.extend(carry.filter_map(|(other, _)| {
            Some(Sibling {
                shares_queue: self.bottlenecks.is_one(ordinal, other),
                ..self.list[other].sender().as_sibling()?
            })
        }));
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
        let mut candidates = Candidates::new();
        for (ordinal, (known, path)) in self.known.iter_mut().zip(&mut self.list).enumerate() {
            if known.rank(path, copies) == Some(best) {
                candidates.push(known.candidate(path, now, bytes, |path, has_room| {
                    self.earliest = None;
                    let weight = scheduling.map_or(1, |shares| shares.weight(path.share(ordinal)));
                    path.sender()
                        .candidate(ordinal, weight, has_room, P::UNMEASURED_RTT)
                }));
            }
        }
        candidates
    }
}
