//! Answers that wait to leave. What is beyond is lost, as in any queue. They leave in the order in which they came, but a source that
//! asks for more than leaves has no more than half of the room, so that there is room for others. Those of a source whose rate is
//! limited leave at their times.

use super::fair::Shares;
use super::message::answer_bytes;
use restp_base::machine::Datagram;
use restp_base::slices::{Held, Slices};
use restp_base::time::Time;
use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;

/// So many, and so many bytes: large chunks fill the second before the first. Of one source half of them.
const MOST: usize = 16_384;
const MOST_BYTES: usize = 32 << 20;
/// So many larger buffers are kept by what waits: blocks of a file, of which none is longer than this, or what came in one receive.
const MOST_BUFFERS: usize = 256;
const BUFFER_BYTES: usize = 180_000;
/// Cookies for who has shown nothing: a flood from forged addresses takes no room of who has.
const MOST_UNPROVED: usize = MOST / 2;

type Waiting = (Datagram, Held, Requester);

#[derive(Debug)]
pub(super) struct Outbox {
    /// Answers without their bodies, and these.
    waiting: VecDeque<Waiting>,
    /// Those with a time to leave at, by it; of one time, in the order in which they came.
    paced: BTreeMap<(Time, u64), Waiting>,
    came: u64,
    /// The last one that left had its time: the next has none, if there is one.
    was_paced: bool,
    slices: Slices<MOST_BUFFERS, BUFFER_BYTES>,
    /// Bytes, a small answer counting as many as leave room for so many of them.
    bytes: Shares,
    unproved: usize,
}

/// Who an answer is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Requester {
    /// He has shown that he receives there.
    Proved(IpAddr),
    /// He has not.
    Unproved,
}

/// What an answer with so long a body takes.
fn weight(body: usize) -> usize {
    (answer_bytes(body) as usize).max(MOST_BYTES / MOST)
}

impl Outbox {
    /// Nothing waits.
    pub fn new() -> Self {
        Outbox {
            waiting: VecDeque::new(),
            paced: BTreeMap::new(),
            came: 0,
            was_paced: false,
            slices: Slices::default(),
            bytes: Shares::new(MOST_BYTES),
            unproved: 0,
        }
    }

    /// Is there room for an answer?
    pub fn has_room(&self, requester: Requester) -> bool {
        match requester {
            Requester::Proved(source) => self.bytes.admits(source),
            Requester::Unproved => self.unproved < MOST_UNPROVED,
        }
    }

    /// Takes an answer for which there is room.
    pub fn push(&mut self, answer: Datagram, requester: Requester) {
        let waiting = self.hold(answer, requester);
        self.waiting.push_back(waiting);
    }

    /// The same, and it does not leave before `departs`.
    pub fn push_paced(&mut self, answer: Datagram, requester: Requester, departs: Time) {
        let waiting = self.hold(answer, requester);
        self.paced.insert((departs, self.came), waiting);
        self.came += 1;
    }

    fn hold(&mut self, mut answer: Datagram, requester: Requester) -> Waiting {
        match requester {
            Requester::Proved(source) => self.bytes.take_all(source, weight(answer.body.len())),
            Requester::Unproved => self.unproved += 1,
        }
        let body = self.slices.hold(std::mem::take(&mut answer.body));
        (answer, body, requester)
    }

    /// When the next one may leave that may not yet.
    pub fn deadline(&self) -> Option<Time> {
        self.paced.first_key_value().map(|((departs, _), _)| *departs)
    }

    /// One whose time has come and the one that has waited longest, in turns: neither kind keeps the other from leaving.
    pub fn pop(&mut self, now: Time) -> Option<Datagram> {
        let due = self.paced.first_entry().filter(|first| first.key().0 <= now);
        let due = due.filter(|_| !self.was_paced || self.waiting.is_empty());
        let due = due.map(|first| first.remove());
        self.was_paced = due.is_some();
        let (mut first, body, requester) = due.or_else(|| self.waiting.pop_front())?;
        first.body = self.slices.release(body);
        match requester {
            Requester::Proved(source) => self.bytes.give_all_back(source, weight(first.body.len())),
            Requester::Unproved => self.unproved -= 1,
        }
        Some(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use restp_base::time::Duration;

    fn proved(source: u8) -> Requester {
        Requester::Proved([10, 0, 0, source].into())
    }

    fn answer(bytes: usize) -> Datagram {
        Datagram {
            body: Bytes::from(vec![0; bytes]),
            ..Datagram::empty()
        }
    }

    /// How many of so many answers are taken.
    fn taken(outbox: &mut Outbox, bytes: usize, requester: Requester) -> usize {
        let push = |_: &u32| {
            let has_room = outbox.has_room(requester);
            if has_room {
                outbox.push(answer(bytes), requester);
            }
            has_room
        };
        (0..20_000).take_while(push).count()
    }

    #[test]
    fn neither_many_nor_large_answers_take_all_memory() {
        for bytes in [0, 1_384, 64_000] {
            let mut outbox = Outbox::new();
            let taken: usize = (0..40)
                .map(|source| taken(&mut outbox, bytes, proved(source)))
                .sum();
            assert!(taken <= MOST && taken * bytes <= MOST_BYTES + bytes, "{bytes}");
            assert!(
                taken == MOST || taken * bytes > MOST_BYTES - 2 * bytes.max(2048),
                "{bytes} {taken}"
            );
            assert!(!outbox.has_room(proved(0)));
            while outbox.pop(Time::ZERO).is_some() {}
            assert_eq!(outbox.bytes.taken(), 0);
        }
    }

    /// Who asks for more than leaves had every place that became free.
    #[test]
    fn a_source_that_asks_for_too_much_leaves_room_to_others() {
        let mut outbox = Outbox::new();
        let greedy = taken(&mut outbox, 64_000, proved(1));
        assert!(
            outbox.has_room(proved(2)) && !outbox.has_room(proved(1)),
            "{greedy}"
        );
        for _ in 0..1_000 {
            outbox.pop(Time::ZERO);
            taken(&mut outbox, 64_000, proved(1));
            assert!(outbox.has_room(proved(2)));
        }
    }

    #[test]
    fn many_small_answers_keep_so_many_blocks_and_no_more() {
        // Parts of one buffer: where an allocator puts many decides by chance which of them are taken for neighbours.
        let blocks = Bytes::from(vec![0; 2 * MOST_BUFFERS * BUFFER_BYTES]);
        let block = |n| blocks.slice(n * BUFFER_BYTES..).slice(..100);
        let bodies: Vec<_> = (0..2 * MOST_BUFFERS).map(block).collect();
        let mut outbox = Outbox::new();
        for body in &bodies {
            let answer = Datagram {
                body: body.clone(),
                ..Datagram::empty()
            };
            outbox.push(answer, proved(1));
        }
        let left = std::iter::from_fn(|| outbox.pop(Time::ZERO)).map(|answer| answer.body);
        let kept = left.zip(&bodies).filter(|(left, body)| {
            assert_eq!(left, *body);
            left.as_ptr() == body.as_ptr()
        });
        assert_eq!(kept.count(), MOST_BUFFERS);
    }

    #[test]
    fn who_has_shown_nothing_leaves_room_to_who_has() {
        let mut outbox = Outbox::new();
        assert_eq!(taken(&mut outbox, 8, Requester::Unproved), MOST_UNPROVED);
        assert!(!outbox.has_room(Requester::Unproved) && outbox.has_room(proved(1)));
        let his = taken(&mut outbox, 8, proved(1));
        assert_eq!(his, MOST / 2);
        assert!(outbox.pop(Time::ZERO).is_some() && outbox.has_room(Requester::Unproved));
        assert!(!outbox.has_room(proved(1)), "those were not his");
        while outbox.pop(Time::ZERO).is_some() {}
        assert_eq!((taken(&mut outbox, 8, proved(1)), outbox.unproved), (his, 0));
    }
    #[test]
    fn what_is_paced_leaves_at_its_time_and_what_is_not_need_not_wait_for_it() {
        let (mut outbox, at) = (Outbox::new(), |ms| Time::ZERO + Duration::from_millis(ms));
        for (bytes, departs) in [(2, at(20)), (1, at(10)), (3, at(20))] {
            outbox.push_paced(answer(bytes), proved(1), departs);
        }
        outbox.push(answer(9), proved(2));
        let mut left = |now| outbox.pop(now).map(|answer| answer.body.len());
        assert_eq!([left(at(0)), left(at(9)), left(at(10))], [Some(9), None, Some(1)]);
        assert_eq!(
            [left(at(19)), left(at(30)), left(at(30))],
            [None, Some(2), Some(3)]
        );
        assert_eq!((outbox.deadline(), outbox.bytes.taken()), (None, 0));
    }

    /// Sources at their rates filled the line, and no cookie left.
    #[test]
    fn what_is_due_lets_others_leave_between() {
        let (mut outbox, now) = (Outbox::new(), Time::ZERO + Duration::from_secs(1));
        for _ in 0..3 {
            outbox.push_paced(answer(1), proved(1), Time::ZERO);
            outbox.push(answer(9), Requester::Unproved);
        }
        let left: Vec<_> = std::iter::from_fn(|| outbox.pop(now))
            .map(|left| left.body.len())
            .collect();
        assert_eq!(left, [1, 9, 1, 9, 1, 9]);
    }
}
