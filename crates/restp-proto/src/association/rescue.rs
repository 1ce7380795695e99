//! Data of a path that went silent is placed on the others, before anything new (OP-54).
//!
//! Silence says that answers are missing, not what the peer has. The data may be lost from the first unanswered packet on;
//! or from half a round trip later on, when both directions died together and its last answers with them; or only answers
//! are lost, and what the reader waits for is new. Until the peer says on another path what it has, each of the three takes
//! its turn, so none of them waits for repeats that nobody needs.

use super::Association;
use restp_base::time::Time;
use restp_services::path_management::Health;
use restp_services::scheduling::{Copy, Placement};

/// In which order the numbers to be placed again leave.
#[derive(Debug, Default)]
pub(super) struct Rescue {
    /// The first of them leaves at once.
    urgent: bool,
    doubt: Option<Doubt>,
}

/// What the peer has is not known.
#[derive(Clone, Copy, Debug)]
struct Doubt {
    /// The lowest number that the silent path carried.
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

impl Rescue {
    pub(super) fn is_urgent(&self) -> bool {
        self.urgent
    }

    /// A segment was given to a path.
    pub(super) fn on_given(&mut self) {
        if let Some(doubt) = &mut self.doubt {
            doubt.turn = match doubt.turn {
                Turn::Head => Turn::Half,
                Turn::Half => Turn::New,
                Turn::New => Turn::Head,
            };
        }
    }

    /// The peer has everything below `number`: more than before the silence, so it speaks of the repeats.
    pub(super) fn on_pointer(&mut self, number: u64) {
        self.doubt = self.doubt.filter(|doubt| number <= doubt.head);
    }
}

impl Association {
    /// What the path carries and the peer has not acknowledged is placed again, if another path can take it.
    pub(super) fn rescue(&mut self, ordinal: usize) {
        if self.works_beside(ordinal) {
            self.salvage(ordinal);
        }
    }

    /// The same, whenever a path can take it: this one will not.
    pub(super) fn salvage(&mut self, ordinal: usize) {
        let first = self.out.first;
        let connection = &self.members[ordinal].connection;
        let carried = connection.carried().filter(|number| *number >= first);
        self.out.again.extend(carried);
        let half = connection.unanswered().and_then(|unanswered| {
            // Its answer did not come back in time; an eighth of the way is allowed for what is not known of it.
            let back = connection.minimum_rtt()? / 2;
            connection.first_sent_since(unanswered.since + back.scaled(7, 8))
        });
        self.out.rescue.doubt = self.out.again.first().map(|head| Doubt {
            head: *head,
            half,
            turn: Turn::Head,
        });
        self.out.rescue.urgent = !self.out.again.is_empty();
        self.take_back(ordinal);
    }

    /// What was given to the path and has not left waits to be placed again. The numbers that it would have had there will be
    /// others'.
    pub(super) fn take_back(&mut self, ordinal: usize) {
        for number in self.members[ordinal].connection.unassign() {
            self.out.places.forget_copy(number, ordinal);
            if number >= self.out.first {
                self.out.again.insert(number);
            }
        }
    }

    /// A path has come up: it takes over from those that are silent.
    pub(super) fn rescue_all(&mut self) {
        for ordinal in 0..self.members.len() {
            let member = &self.members[ordinal];
            let waits = member.health.verdict() != Health::Good || !member.connection.is_established();
            if !member.vacant && waits {
                self.rescue(ordinal);
            }
        }
    }

    /// The number to be placed again next, and its bytes; none when it is the turn of new data, or there is none.
    pub(super) fn next_again(&mut self) -> Option<(u64, u64)> {
        loop {
            let again = &self.out.again;
            let number = *match self.out.rescue.doubt {
                Some(Doubt {
                    turn: Turn::Half,
                    half: Some(half),
                    ..
                }) => again.range(half..).next().or(again.first())?,
                Some(Doubt { turn: Turn::New, .. }) if self.may_number() => return None,
                _ => again.first()?,
            };
            let fate = |copy: Copy| self.members[copy.path].connection.fate(copy.number);
            let payload = self.out.buffer.get(number);
            if let Some(payload) = payload.filter(|_| !self.out.places.has_arrived(number, fate)) {
                return Some((number, payload.len() as u64));
            }
            self.out.again.remove(&number);
        }
    }

    /// There is new data, and the peer takes it.
    fn may_number(&self) -> bool {
        !self.out.queue.is_empty() && self.out.window.allows(self.out.next)
    }

    /// The first number of a failed path leaves on the best one, full or not: everything after it waits for it.
    pub(super) fn rescue_first(&mut self, now: Time, number: u64) -> Placement {
        let (Some(best), Some(payload)) = (self.best(), self.out.buffer.get(number).cloned()) else {
            return Placement::new();
        };
        self.out.rescue.urgent = false;
        self.out.again.remove(&number);
        if self.out.places.is_on(number, best) {
            return Placement::new(); // the path was silent before: once is enough
        }
        self.give(now, number, &payload, &[best], false);
        self.members[best].connection.rescue();
        Placement::from_slice(&[best])
    }
}
