//! Data of a path that went silent are placed on the others, before anything new (OP-54; RFC 8684 §3.3.6).
//!
//! Silence says that answers are missing, not what the peer has. The data may be lost from the first unanswered packet on;
//! or from half a round trip later on, when both directions died together and its last answers with them; or only answers
//! are lost, and what the reader waits for is new. Until the peer says on another path what it has, each of the three takes
//! its turn, so none of them waits for retransmissions that nobody needs.

use super::DataSender;
use super::placing::Next;
use crate::multipath::{Path, Paths};
use crate::scheduling::{Candidate, Copy, Placement};
use restp_base::time::Time;

/// What the peer has is not known.
#[derive(Clone, Copy, Debug)]
pub(super) struct Doubt {
    /// The lowest segment that the silent path carried.
    head: u64,
    /// The lowest that left so late that it died with both directions.
    half: Option<u64>,
    turn: Turn,
}

/// Who is next.
#[derive(Clone, Copy, Debug)]
enum Turn {
    Head,
    Half,
    New,
}

impl Doubt {
    pub(super) fn head(&self) -> u64 {
        self.head
    }

    /// A segment was given to a path.
    pub(super) fn pass(&mut self) {
        self.turn = match self.turn {
            Turn::Head => Turn::Half,
            Turn::Half => Turn::New,
            Turn::New => Turn::Head,
        };
    }
}

impl DataSender {
    /// What `path` carries and the peer has not acknowledged is given to another one, whenever one can take it.
    pub(in crate::multipath) fn place_again<P: Path>(&mut self, path: &P) {
        for number in path.carried() {
            // The peer may have acknowledged it on another path, and on this one not yet.
            if (self.first_data()..self.next_data()).contains(&number) {
                self.again.insert(self.segment_at(number));
            }
        }
    }

    /// What waits to be placed again is urgent, because the peer may have none of it. `half`: the lowest number that left so
    /// late that it died with both directions, where that may be.
    pub(in crate::multipath) fn hurry(&mut self, half: Option<u64>) {
        self.doubt = self.again.first().map(|head| Doubt {
            head: *head,
            half,
            turn: Turn::Head,
        });
        self.urgent = !self.again.is_empty();
    }

    /// The data `number`, which were given to the path and have not left, wait to be placed again.
    pub(in crate::multipath) fn take_back(&mut self, ordinal: usize, number: u64) {
        let segment = self.segment_at(number);
        self.assignments.forget_copy(segment, ordinal);
        if segment >= self.first {
            self.again.insert(segment);
        }
    }

    /// The path has ended: what it carried is carried by nobody.
    pub(in crate::multipath) fn forget_path(&mut self, ordinal: usize) {
        self.assignments.forget_path(ordinal);
    }

    /// The segment to be placed again next; none when it is the turn of new data, or there is none.
    pub(super) fn next_again<P: Path>(&mut self, paths: &Paths<P>) -> Option<Next> {
        loop {
            let again = &self.again;
            let segment = *match self.doubt {
                Some(Doubt {
                    turn: Turn::Half,
                    half: Some(half),
                    ..
                }) => again.range(half..).next().or(again.first())?,
                Some(Doubt { turn: Turn::New, .. }) if self.may_number() => return None,
                _ => again.first()?,
            };
            let fate = |copy: Copy| paths[copy.path].sender().fate(copy.number);
            let payload = self.buffer.get(segment);
            if let Some(payload) = payload.filter(|_| !self.assignments.has_arrived(segment, fate)) {
                return Some(self.again(segment, payload.len() as u64));
            }
            self.again.remove(&segment);
        }
    }

    /// The first segment of a failed path leaves on the best one, full or not: everything after it waits for it.
    pub(super) fn reinject_first<P: Path>(
        &mut self,
        now: Time,
        segment: u64,
        paths: &mut Paths<P>,
    ) -> Placement {
        let (Some(best), Some(payload)) = (paths.best(), self.buffer.get(segment).cloned()) else {
            return Placement::new();
        };
        self.urgent = false;
        self.again.remove(&segment);
        if self.assignments.is_on(segment, best) {
            return Placement::new(); // the path was silent before: once is enough
        }
        self.give(now, segment, &payload, &[best], false, paths);
        paths[best].sender_mut().send_at_once();
        Placement::from_slice(&[best])
    }

    /// A faster path retransmits what a slower one has lost, is late with, or would bring later than an idle one.
    pub(super) fn retransmit_elsewhere<P: Path>(
        &mut self,
        now: Time,
        candidates: &[Candidate],
        idle: bool,
        paths: &mut Paths<P>,
    ) -> Placement {
        let fate = |copy: Copy| paths[copy.path].sender().fate(copy.number);
        let Some((segment, path)) = self.assignments.to_retransmit(now, candidates, idle, fate) else {
            return Placement::new();
        };
        let (Some(payload), Some(number)) = (self.buffer.get(segment).cloned(), self.data_of(segment)) else {
            return Placement::new();
        };
        let copy = Copy {
            path,
            number: paths[path].assign(now, number, payload),
        };
        self.assignments.add_copy(segment, now, copy);
        self.again.remove(&segment);
        Placement::from_slice(&[path])
    }
}
