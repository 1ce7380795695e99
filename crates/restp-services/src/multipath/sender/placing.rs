//! Which path takes what next: data that went to a silent path first, then new data (ResTP §3.3.2, §3.5.10; OP-54, OP-55).

use super::{DataSender, Reinjection};
use crate::multipath::paths::Candidates;
use crate::multipath::{Path, Paths};
use crate::path_management::PathMode;
use crate::scheduling::{Candidate, Copy, Placement, Queue, Redundant, Schedule, Scheduling, lead_segments};
use restp_base::machine::PathAddress;
use restp_base::time::Time;

/// A segment to be placed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Next {
    pub(super) segment: u64,
    pub(super) bytes: u64,
    /// The path that the application chose for it.
    path: Option<PathAddress>,
}

impl DataSender {
    /// Gives the next segment to the path, or paths, that shall carry it.
    pub(in crate::multipath) fn place<P: Path>(&mut self, now: Time, paths: &mut Paths<P>) -> Placement {
        match self.parameters.reinjection {
            Reinjection::OnTimeout => self.place_in_turn(now, paths),
            Reinjection::Early => loop {
                if let Some(chosen) = self.place_early(now, paths) {
                    return chosen;
                }
            },
        }
    }

    /// What a timeout has put in doubt leaves once on each path, before anything new.
    fn place_in_turn<P: Path>(&mut self, now: Time, paths: &mut Paths<P>) -> Placement {
        while let Some(segment) = self.again.first().copied() {
            let Some(payload) = self.buffer.get(segment).cloned() else {
                self.again.remove(&segment);
                continue;
            };
            let bytes = payload.len() as u64;
            let mut candidates = self.candidates(now, bytes, paths);
            if candidates.is_empty() {
                return Placement::new(); // it waits for a path that works
            }
            candidates.retain(|candidate| !self.assignments.is_on(segment, candidate.path));
            if candidates.is_empty() {
                self.again.remove(&segment); // those that work have it already
                continue;
            }
            let chosen = self.choose(now, bytes, &candidates, paths);
            if !chosen.is_empty() {
                self.again.remove(&segment);
                self.reinjected = (self.reinjected.0 + 1, self.reinjected.1 + bytes);
                self.give(now, segment, &payload, &chosen, true, paths);
            }
            return chosen;
        }
        let next = self.next_new(paths);
        let candidates = self.candidates(now, next.map_or(1, |next| next.bytes), paths);
        for candidate in &candidates {
            paths.set_backlog(candidate.path, next.is_some());
        }
        let Some(next) = next else {
            return Placement::new();
        };
        let chosen = self.choose(now, next.bytes, &candidates, paths);
        if !chosen.is_empty() {
            let payload = self.take_next(next.bytes as usize);
            self.give(now, next.segment, &payload, &chosen, false, paths);
        }
        chosen
    }

    /// A faster path brings what a slower one would bring late, and a slow one takes what is needed later. None when
    /// what comes next needs no second copy after all: what comes behind it is to be placed.
    fn place_early<P: Path>(&mut self, now: Time, paths: &mut Paths<P>) -> Option<Placement> {
        let next = self.next_again(paths).or_else(|| self.next_new(paths));
        if let Some(next) = next
            && next.segment < self.next
            && self.urgent
            && self.assignments.is_given(next.segment)
        {
            let chosen = self.reinject_first(now, next.segment, paths);
            if !chosen.is_empty() {
                return Some(chosen);
            }
        }
        let redundant = self.parameters.scheduling == Some(Scheduling::Redundant);
        if next.is_none() && !self.assignments.is_watched() && !redundant {
            paths.clear_backlog();
            return Some(Placement::new());
        }
        let bytes = next.map_or_else(|| self.segment_bytes(paths) as u64, |next| next.bytes);
        let candidates = self.candidates(now, bytes, paths);
        if self.parameters.paths != PathMode::HotStandby {
            let chosen = self.retransmit_elsewhere(now, &candidates, next.is_none(), paths);
            if !chosen.is_empty() {
                return Some(chosen);
            }
        }
        if redundant && let Some(path) = self.catch_up(now, &candidates, paths) {
            return Some(Placement::from_slice(&[path]));
        }
        let chosen = next.map(|next| self.choose_for(now, next, &candidates, paths));
        let chosen = chosen.unwrap_or_default();
        if let ([path], Some(next)) = (chosen.as_slice(), next) {
            let fate = |copy: Copy| paths[copy.path].sender().fate(copy.number);
            if self
                .assignments
                .is_covered(now, next.segment, *path, &candidates, fate)
            {
                self.again.remove(&next.segment);
                return None;
            }
        }
        for candidate in &candidates {
            // A path that gets nothing although it has room is not limited by its window.
            let starves = next.is_none() || (chosen.is_empty() && candidate.has_room);
            paths.set_backlog(candidate.path, !starves);
        }
        if let Some(next) = next.filter(|_| !chosen.is_empty()) {
            self.send(now, next, &chosen, &candidates, paths);
        }
        Some(chosen)
    }

    /// Gives `next`, or a later segment, to `chosen`.
    fn send<P: Path>(
        &mut self,
        now: Time,
        next: Next,
        chosen: &Placement,
        candidates: &[Candidate],
        paths: &mut Paths<P>,
    ) {
        let segment = match chosen.as_slice() {
            [path] if next.path.is_none() => self.lead(next, *path, candidates, paths),
            _ => next.segment,
        };
        let payload = if segment < self.next {
            if segment == next.segment {
                self.again.remove(&segment); // one that leads is sent again, unless it arrives before its turn
            }
            self.buffer.get(segment).cloned().unwrap_or_default()
        } else {
            let most = chosen
                .iter()
                .map(|path| paths[*path].largest_segment_bytes())
                .min();
            let most = most.unwrap_or(self.parameters.segment_bytes) as usize;
            self.take_next(most.min(next.bytes as usize))
        };
        self.give(now, segment, &payload, chosen, next.path.is_some(), paths);
    }

    /// The segment that `path` takes: the next one, or a later one if it is slow. What it leaves out is numbered and waits.
    fn lead<P: Path>(&mut self, next: Next, path: usize, candidates: &[Candidate], paths: &Paths<P>) -> u64 {
        let segment_bytes = self.segment_bytes(paths);
        let chosen = candidates.iter().find(|candidate| candidate.path == path);
        let lead = chosen.map_or(0, |chosen| {
            lead_segments(chosen, candidates, segment_bytes as u64)
        });
        if lead == 0 || !self.affinity.is_empty() {
            return next.segment;
        }
        let wanted = next.segment + lead;
        while self.next <= wanted && !self.queue.is_empty() && self.window.allows(self.next_data()) {
            self.again.insert(self.next);
            self.take_next(segment_bytes);
        }
        let free = |segment: &&u64| !self.assignments.is_given(**segment);
        let later = self.again.range(wanted..).find(free);
        let sooner = || self.again.range(..wanted).rev().find(free);
        later.or_else(sooner).copied().unwrap_or(next.segment)
    }

    /// Every path carries every segment: one that had no room when others took theirs takes it now.
    fn catch_up<P: Path>(
        &mut self,
        now: Time,
        candidates: &[Candidate],
        paths: &mut Paths<P>,
    ) -> Option<usize> {
        let mut owed = |candidate: &Candidate| {
            let fate = |copy: Copy| paths[copy.path].sender().fate(copy.number);
            Some((candidate.path, self.assignments.owed(candidate.path, fate)?))
        };
        let mut open = Redundant::in_time(candidates).filter(|path| path.has_room);
        let (path, segment) = open.find_map(&mut owed)?;
        let payload = self.buffer.get(segment).cloned()?;
        paths.set_backlog(path, true);
        self.give(now, segment, &payload, &[path], true, paths);
        Some(path)
    }

    /// The next segment of new data; none: there is none, or the peer does not take it yet.
    pub(super) fn next_new<P: Path>(&mut self, paths: &Paths<P>) -> Option<Next> {
        if self.queue.is_empty() {
            return None;
        }
        let waiting = self.queue.bytes().min(self.segment_bytes(paths));
        let (bytes, path) = self.affinity.next(waiting);
        let last = match &self.boundaries {
            None => self.next,
            Some(boundaries) => boundaries.next_byte() + (bytes as u64).saturating_sub(1),
        };
        let open = self.window.allows(last);
        self.stalls += u64::from(!open && !self.stalled);
        self.stalled = !open;
        open.then_some(Next {
            segment: self.next,
            bytes: bytes as u64,
            path,
        })
    }

    /// There is new data, and the peer takes it.
    pub(super) fn may_number(&self) -> bool {
        !self.queue.is_empty() && self.window.allows(self.next_data())
    }

    /// The segment `number` waits to be placed again.
    pub(super) fn again(&self, segment: u64, bytes: u64) -> Next {
        Next {
            segment,
            bytes,
            path: None,
        }
    }

    fn candidates<P: Path>(&self, now: Time, bytes: u64, paths: &mut Paths<P>) -> Candidates {
        paths.candidates(now, bytes, self.parameters.scheduling.as_ref())
    }

    /// Payload bytes of a new segment: any of the paths may have to carry it.
    fn segment_bytes<P: Path>(&self, paths: &Paths<P>) -> usize {
        paths.segment_bytes().unwrap_or(self.parameters.segment_bytes) as usize
    }

    /// The paths that take a segment: the one the application chose while data may use it, or those of the scheduler.
    fn choose_for<P: Path>(
        &mut self,
        now: Time,
        next: Next,
        candidates: &[Candidate],
        paths: &Paths<P>,
    ) -> Placement {
        let is_chosen = |path: &&Candidate| Some(paths[path.path].address()) == next.path;
        match candidates.iter().find(is_chosen) {
            Some(chosen) => chosen.has_room.then_some(chosen.path).into_iter().collect(),
            None => self.choose(now, next.bytes, candidates, paths),
        }
    }

    fn choose<P: Path>(
        &mut self,
        now: Time,
        bytes: u64,
        candidates: &[Candidate],
        paths: &Paths<P>,
    ) -> Placement {
        let left = self.window.edge().saturating_sub(self.next_data());
        let (window_segments, acknowledged_bytes) = match &self.boundaries {
            None => {
                let segments = self.first - self.parameters.first;
                (left, segments * u64::from(self.parameters.segment_bytes))
            }
            Some(boundaries) => {
                let segment = self.segment_bytes(paths) as u64;
                (left / segment, boundaries.first_byte() - self.parameters.first)
            }
        };
        let queue = Queue {
            segment_bytes: bytes,
            queued_bytes: self.queue.bytes() as u64,
            window_segments,
            outstanding_segments: self.next - self.first,
            acknowledged_bytes,
            stalls: self.stalls,
            now,
        };
        self.scheduler.choose(candidates, &queue)
    }
}
