//! Answers that wait to leave. What is beyond is lost, as in any queue.

use super::message::answer_bytes;
use bytes::Bytes;
use restp_base::machine::Datagram;
use std::collections::VecDeque;

/// So many, and so many bytes: large chunks fill the second before the first.
const MOST: usize = 16_384;
const MOST_BYTES: u64 = 32 << 20;
/// So many may be parts of a larger buffer, all of which each keeps in memory: a block of a file, or what came in one receive.
const MOST_SLICES: usize = 256;
/// Of them cookies for who has shown nothing: a flood from forged addresses leaves room to who has.
const MOST_UNPROVED: usize = MOST / 2;

#[derive(Debug, Default)]
pub(super) struct Outbox {
    waiting: VecDeque<(Datagram, Requester)>,
    bytes: u64,
    unproved: usize,
}

/// Who an answer is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Requester {
    /// He has shown that he receives.
    Proved,
    /// He has not.
    Unproved,
}

impl Outbox {
    /// Is there room for an answer?
    pub fn has_room(&self, requester: Requester) -> bool {
        let is_within_share = requester == Requester::Proved || self.unproved < MOST_UNPROVED;
        is_within_share && self.waiting.len() < MOST && self.bytes < MOST_BYTES
    }

    /// Takes an answer for which there is room.
    pub fn push(&mut self, mut answer: Datagram, requester: Requester) {
        if self.waiting.len() >= MOST_SLICES {
            answer.body = Bytes::copy_from_slice(&answer.body);
        }
        self.bytes += answer_bytes(answer.body.len());
        self.unproved += usize::from(requester == Requester::Unproved);
        self.waiting.push_back((answer, requester));
    }

    /// The one that has waited longest.
    pub fn pop(&mut self) -> Option<Datagram> {
        let (first, requester) = self.waiting.pop_front()?;
        self.bytes -= answer_bytes(first.body.len());
        self.unproved -= usize::from(requester == Requester::Unproved);
        Some(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            let mut outbox = Outbox::default();
            let taken = taken(&mut outbox, bytes, Requester::Proved);
            assert!(
                taken <= MOST && taken * bytes <= (MOST_BYTES as usize) + bytes,
                "{bytes}"
            );
            assert!(
                taken == MOST || taken * bytes > (MOST_BYTES as usize) / 2,
                "{bytes}"
            );
            assert!(
                outbox.pop().is_some() && outbox.has_room(Requester::Proved),
                "one has left"
            );
            while outbox.pop().is_some() {}
            assert_eq!(outbox.bytes, 0);
        }
    }

    #[test]
    fn many_small_answers_keep_no_large_buffers() {
        let buffer = Bytes::from(vec![7; 180_000]);
        let mut outbox = Outbox::default();
        for at in (0..).step_by(100).take(2 * MOST_SLICES) {
            let body = buffer.slice(at..at + 100);
            let answer = Datagram {
                body,
                ..Datagram::empty()
            };
            outbox.push(answer, Requester::Proved);
        }
        let buffer = buffer.as_ptr_range();
        let bodies = std::iter::from_fn(|| outbox.pop()).map(|answer| answer.body);
        let slices = bodies.filter(|body| {
            assert!(body[..] == [7; 100]);
            buffer.contains(&body.as_ptr())
        });
        assert_eq!(slices.count(), MOST_SLICES);
    }

    #[test]
    fn who_has_shown_nothing_leaves_room_to_who_has() {
        let mut outbox = Outbox::default();
        assert_eq!(taken(&mut outbox, 8, Requester::Unproved), MOST / 2);
        assert_eq!(taken(&mut outbox, 8, Requester::Proved), MOST / 2);
        assert!(outbox.pop().is_some());
        assert!(outbox.has_room(Requester::Unproved) && outbox.has_room(Requester::Proved));
        while outbox.pop().is_some() {}
        assert_eq!(
            taken(&mut outbox, 8, Requester::Proved),
            MOST,
            "those are not his"
        );
        assert!(!outbox.has_room(Requester::Unproved));
        (0..MOST).for_each(|_| assert!(outbox.pop().is_some()));
        assert_eq!(
            taken(&mut outbox, 8, Requester::Unproved),
            MOST / 2,
            "all have left"
        );
    }
}
