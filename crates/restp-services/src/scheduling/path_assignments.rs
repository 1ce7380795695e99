//! Where each outstanding segment of the association is, and which of them another path should retransmit.
//!
//! The lowest number outstanding holds up everything after it. On its own path a slow path repairs it slowly, and when
//! the shared window is shut, or nothing more is to be sent, a faster path idles meanwhile. It then carries a copy
//! (opportunistic retransmission, Raiciu and others, NSDI 2012 §4.2). A number is copied once; a copy that comes too late
//! costs one segment.

use super::Candidate;
use super::lead::SLOW;
use restp_base::time::Time;
use smallvec::SmallVec;
use std::collections::VecDeque;

/// One segment on one path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copy {
    /// Ordinal of the path.
    pub path: usize,
    /// The path's own number for it.
    pub number: u64,
}

/// A segment of the association that was given to a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathAssignment {
    /// Who carries it.
    pub copies: SmallVec<[Copy; 2]>,
    /// When it was given to the last of them.
    pub at: Time,
    /// It is not to be retransmitted elsewhere: it was, or the application chose its path.
    pub settled: bool,
}

/// The record of outstanding segments, by number.
#[derive(Debug)]
pub struct PathAssignments {
    first: u64,
    list: VecDeque<PathAssignment>,
    /// Everything below needs no copy, or has one.
    seen: u64,
    /// Per path: it has everything below, or need not have it. For [`owed`](PathAssignments::owed).
    owed_from: SmallVec<[u64; 4]>,
}

/// What became of a copy on its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// On its way, as far as the path knows.
    Open,
    /// Declared lost, even if its path retransmits it by now.
    Lost,
    /// It has arrived.
    Arrived,
}

/// Numbers looked at per call: slow paths have one of several.
const LOOK_AHEAD: usize = 32;

impl PathAssignments {
    /// Nothing is outstanding; the first number will be `first`.
    pub fn new(first: u64) -> Self {
        PathAssignments {
            first,
            list: VecDeque::new(),
            seen: first,
            owed_from: SmallVec::new(),
        }
    }

    /// `number` was given to a path, for the first time or after others have failed.
    pub fn record(&mut self, number: u64, assignment: PathAssignment) {
        while self.first + (self.list.len() as u64) < number {
            // It leads: those before it are given later, or carry no data.
            self.list.push_back(PathAssignment {
                copies: SmallVec::new(),
                at: assignment.at,
                settled: true,
            });
        }
        let index = (number - self.first) as usize;
        match self.list.get_mut(index) {
            Some(known) => *known = assignment,
            None => self.list.push_back(assignment),
        }
    }

    /// `number` has a further copy.
    pub fn add_copy(&mut self, number: u64, now: Time, copy: Copy) {
        let index = number.checked_sub(self.first);
        let assignment = index.and_then(|index| self.list.get_mut(index as usize));
        if let Some(assignment) = assignment {
            assignment.copies.push(copy);
            (assignment.at, assignment.settled) = (now, true);
        }
    }

    fn get(&self, number: u64) -> Option<&PathAssignment> {
        self.list.get(number.checked_sub(self.first)? as usize)
    }

    /// Some path carries `number`.
    pub fn is_given(&self, number: u64) -> bool {
        self.get(number)
            .is_some_and(|assignment| !assignment.copies.is_empty())
    }

    /// `path` carries `number`, and retransmits it where it is lost.
    pub fn is_on(&self, number: u64, path: usize) -> bool {
        let assignment = self.get(number);
        assignment.is_some_and(|assignment| assignment.copies.iter().any(|copy| copy.path == path))
    }

    /// A copy of `number` has arrived, as far as its path knows.
    pub fn has_arrived(&self, number: u64, mut fate: impl FnMut(Copy) -> Fate) -> bool {
        let assignment = self.get(number);
        assignment.is_some_and(|assignment| assignment.copies.iter().any(|copy| fate(*copy) == Fate::Arrived))
    }

    /// Nothing is gained by giving `number` to the path `chosen` now: it has it, or a copy elsewhere, whose answer is not
    /// due yet on an empty path, will be there before.
    pub fn is_covered(
        &self,
        now: Time,
        number: u64,
        chosen: usize,
        paths: &[Candidate],
        mut fate: impl FnMut(Copy) -> Fate,
    ) -> bool {
        let of = |path: usize| paths.iter().find(|candidate| candidate.path == path);
        let (Some(assignment), Some(chosen)) = (self.get(number), of(chosen)) else {
            return false;
        };
        assignment.copies.iter().any(|copy| {
            let comes_first = |carrier: &Candidate| {
                let arrives = assignment.at + carrier.smoothed_rtt / 2;
                now < assignment.at + carrier.min_rtt && arrives <= now + chosen.smoothed_rtt / 2
            };
            let elsewhere = of(copy.path).is_some_and(comes_first) && fate(*copy) == Fate::Open;
            copy.path == chosen.path || elsewhere
        })
    }

    /// The lowest number that `path` shall carry, too, because every path shall carry all: another path has it, it has not
    /// arrived, and its path is not the application's choice, nor the one that is left of several.
    pub fn owed(&mut self, path: usize, mut fate: impl FnMut(Copy) -> Fate) -> Option<u64> {
        while self.owed_from.len() <= path {
            self.owed_from.push(self.first);
        }
        let mut number = self.owed_from[path].max(self.first);
        let mut is_owed = |assignment: &PathAssignment| {
            let chosen = assignment.settled && assignment.copies.len() == 1;
            let had = |copy: &Copy| copy.path == path || fate(*copy) == Fate::Arrived;
            !chosen && !assignment.copies.is_empty() && !assignment.copies.iter().any(had)
        };
        while self.get(number).is_some_and(|assignment| !is_owed(assignment)) {
            number += 1;
        }
        self.owed_from[path] = number;
        self.get(number).map(|_| number)
    }

    /// What became of `number` on its path is not to be believed.
    pub fn forget(&mut self, number: u64) {
        let index = number.checked_sub(self.first);
        if let Some(assignment) = index.and_then(|index| self.list.get_mut(index as usize)) {
            assignment.copies.clear();
        }
    }

    /// `path` does not carry `number`: it never left there.
    pub fn forget_copy(&mut self, number: u64, path: usize) {
        let index = number.checked_sub(self.first);
        if let Some(assignment) = index.and_then(|index| self.list.get_mut(index as usize)) {
            assignment.copies.retain(|copy| copy.path != path);
        }
    }

    /// The path has ended: what it carried is carried by nobody.
    pub fn forget_path(&mut self, path: usize) {
        for assignment in &mut self.list {
            assignment.copies.retain(|copy| copy.path != path);
        }
        if let Some(from) = self.owed_from.get_mut(path) {
            *from = self.first; // whoever gets its ordinal next has nothing
        }
    }

    /// The peer has everything below `number`.
    pub fn release_below(&mut self, number: u64) {
        let count = number.saturating_sub(self.first).min(self.list.len() as u64);
        self.list.drain(..count as usize);
        self.first = self.first.max(number);
        self.seen = self.seen.max(number);
        if self.list.is_empty() && self.list.capacity() > 64 {
            self.list = VecDeque::new();
        }
    }

    /// Something outstanding may still be worth a copy.
    pub fn is_watched(&self) -> bool {
        self.seen < self.first + self.list.len() as u64
    }

    /// Bytes of memory the record takes.
    pub fn memory(&self) -> usize {
        self.list.capacity() * size_of::<PathAssignment>()
    }

    /// The number that a faster path should retransmit now, and that path. `idle`: nothing else can be sent. `fate` tells what
    /// a path knows of a copy.
    pub fn to_retransmit(
        &mut self,
        now: Time,
        paths: &[Candidate],
        idle: bool,
        mut fate: impl FnMut(Copy) -> Fate,
    ) -> Option<(u64, usize)> {
        let by_speed = |path: &&Candidate| (path.smoothed_rtt, path.path);
        let fastest = paths.iter().min_by_key(by_speed)?;
        let free = paths.iter().filter(|path| path.has_room).min_by_key(by_speed)?;
        for _ in 0..LOOK_AHEAD {
            let assignment = self.list.get((self.seen - self.first) as usize)?;
            let slower = |copy: &Copy| {
                let carrier = paths.iter().find(|path| path.path == copy.path);
                carrier.filter(|carrier| carrier.smoothed_rtt > fastest.smoothed_rtt)
            };
            let copy = match assignment.copies.as_slice() {
                [] => return None, // not given yet
                [copy] if !assignment.settled => *copy,
                _ => {
                    self.seen += 1;
                    continue;
                }
            };
            let fate = fate(copy);
            let Some(carrier) = slower(&copy).filter(|_| fate != Fate::Arrived) else {
                self.seen += 1;
                continue;
            };
            if free.smoothed_rtt >= carrier.smoothed_rtt {
                // The faster ones are full, for now. A path that is not much slower has repaired its losses before they are free.
                if carrier.smoothed_rtt > fastest.smoothed_rtt * SLOW {
                    return None;
                }
                self.seen += 1;
                continue;
            }
            // Half of a round trip more than expected: a queue that the path makes for itself is no lateness.
            let expected = assignment.at + carrier.smoothed_rtt * 3 / 2;
            let overdue = expected + carrier.rtt_variation * 4 < now;
            // Not for a path that is only slowed down for the moment: its queue is in front of both.
            let sooner = idle && now + free.smoothed_rtt < assignment.at + carrier.min_rtt;
            if fate == Fate::Lost || overdue || sooner {
                let number = self.seen;
                self.seen += 1;
                return Some((number, free.path));
            }
            return None; // and nothing after it is more urgent
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::super::candidate;
    use super::*;
    use restp_base::time::Duration;

    fn at(ms: u64) -> Time {
        Time::ZERO + Duration::from_millis(ms)
    }

    /// Number 10 on the fast path, 11 and 12 on the slow one, given at 0 ms.
    fn three() -> PathAssignments {
        let mut assignments = PathAssignments::new(10);
        for (number, path) in [(10, 0), (11, 1), (12, 1)] {
            let copies = SmallVec::from_slice(&[Copy { path, number }]);
            let assignment = PathAssignment {
                copies,
                at: at(0),
                settled: false,
            };
            assignments.record(number, assignment);
        }
        assignments
    }

    fn paths(fast_has_room: bool) -> [Candidate; 2] {
        [candidate(0, 20, fast_has_room), candidate(1, 100, true)]
    }

    #[test]
    fn what_a_slower_path_lost_or_is_late_with_is_retransmitted_once() {
        let ask = |assignments: &mut PathAssignments, ms, idle, fate| {
            assignments.to_retransmit(at(ms), &paths(true), idle, |_| fate)
        };
        assert_eq!(ask(&mut three(), 150, false, Fate::Open), None, "not late yet");
        assert_eq!(ask(&mut three(), 151, false, Fate::Open), Some((11, 0)));
        assert_eq!(ask(&mut three(), 50, false, Fate::Lost), Some((11, 0)));
        assert_eq!(ask(&mut three(), 200, false, Fate::Arrived), None);
        let mut assignments = three();
        assert_eq!(ask(&mut assignments, 151, false, Fate::Open), Some((11, 0)));
        assert_eq!(ask(&mut assignments, 151, false, Fate::Open), Some((12, 0)));
        assert_eq!(ask(&mut assignments, 151, false, Fate::Open), None);
    }

    /// Numbers were passed over for good when only the path that carried them had room: what it lost then held up the
    /// reader until it had retransmitted it itself.
    #[test]
    fn what_waits_for_a_full_path_is_not_forgotten() {
        let mut assignments = three();
        let lost = |copy: Copy| if copy.path == 1 { Fate::Lost } else { Fate::Arrived };
        assert_eq!(
            assignments.to_retransmit(at(50), &paths(false), false, lost),
            None
        );
        assert_eq!(
            assignments.to_retransmit(at(60), &paths(true), false, lost),
            Some((11, 0))
        );
    }

    #[test]
    fn an_idle_path_retransmits_what_it_would_bring_sooner() {
        let ask = |ms, paths: &[Candidate]| three().to_retransmit(at(ms), paths, true, |_| Fate::Open);
        assert_eq!(ask(79, &paths(true)), Some((11, 0)));
        assert_eq!(ask(80, &paths(true)), None, "the answers would come together");
        assert_eq!(ask(0, &paths(false)), None, "only slower paths have room");
    }

    /// The slow path got 11 at 0 ms and brings it at 50 ms; its answer is due at 100 ms.
    #[test]
    fn a_copy_on_its_way_covers_until_its_answer_is_due() {
        let covered = |ms, path, fate| three().is_covered(at(ms), 11, path, &paths(true), |_| fate);
        assert!(!covered(39, 0, Fate::Open), "the fast path is sooner");
        assert!(covered(40, 0, Fate::Open) && covered(99, 0, Fate::Open));
        assert!(!covered(100, 0, Fate::Open) && !covered(40, 0, Fate::Lost));
        assert!(covered(0, 1, Fate::Open), "it has it");
        let mut assignments = three();
        assignments.forget_path(1);
        assert!(assignments.is_given(10) && !assignments.is_given(11));
    }

    #[test]
    fn a_path_owes_what_another_carries_and_has_not_delivered() {
        let mut assignments = three();
        let arrived = |number| {
            move |copy: Copy| {
                if copy.number == number {
                    Fate::Arrived
                } else {
                    Fate::Open
                }
            }
        };
        let open = |_| Fate::Open;
        assert_eq!(assignments.owed(0, open), Some(11), "10 it has");
        assert_eq!(assignments.owed(0, open), Some(11), "until it is given");
        assignments.add_copy(11, at(5), Copy { path: 0, number: 20 });
        assert_eq!(assignments.owed(0, arrived(12)), None);
        assert_eq!(assignments.owed(1, open), Some(10));
        assert_eq!(
            assignments.owed(2, arrived(10)),
            Some(11),
            "two paths carry it, and the third owes it"
        );
        let record = |assignments: &mut PathAssignments, number, settled, paths: &[usize]| {
            let copies = paths.iter().map(|path| Copy { path: *path, number });
            let assignment = PathAssignment {
                copies: copies.collect(),
                at: at(5),
                settled,
            };
            assignments.record(number, assignment);
        };
        record(&mut assignments, 13, true, &[1]); // the application chose its path
        record(&mut assignments, 15, false, &[1]); // and 14 carries nothing
        assert_eq!(assignments.owed(0, open), Some(15));
        assignments.forget_path(0); // 10 nobody carries now, and 11 stays with the path that is left
        assert_eq!(
            assignments.owed(0, open),
            Some(12),
            "whoever gets the ordinal next has nothing"
        );
        assignments.release_below(13);
        assert_eq!(assignments.owed(0, open), Some(15));
    }

    #[test]
    fn what_is_acknowledged_or_chosen_by_the_application_is_left_alone() {
        let mut assignments = three();
        assignments.release_below(12);
        let late = assignments.to_retransmit(at(500), &paths(true), false, |copy| {
            assert_eq!(copy.number, 12);
            Fate::Open
        });
        assert_eq!(late, Some((12, 0)));
        assignments.release_below(20);
        assert_eq!(
            assignments.to_retransmit(at(500), &paths(true), true, |_| Fate::Lost),
            None
        );
        assignments.record(
            22,
            PathAssignment {
                copies: SmallVec::from_slice(&[Copy { path: 1, number: 30 }]),
                at: at(500),
                settled: true,
            },
        );
        assert_eq!(
            assignments.to_retransmit(at(900), &paths(true), true, |_| Fate::Lost),
            None
        );
    }
}
