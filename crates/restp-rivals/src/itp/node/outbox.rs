//! Answers that wait to leave. What is beyond is lost, as in any queue.

use super::message::answer_bytes;
use restp_base::machine::Datagram;
use restp_base::slices::{Held, Slices};
use std::collections::VecDeque;

/// So many, and so many bytes: large chunks fill the second before the first.
const MOST: usize = 16_384;
const MOST_BYTES: u64 = 32 << 20;
/// So many larger buffers are kept by what waits: blocks of a file, of which none is longer than this, or what came in one receive.
const MOST_BUFFERS: usize = 256;
const BUFFER_BYTES: usize = 180_000;
/// Of them cookies for who has shown nothing: a flood from forged addresses leaves room to who has.
const MOST_UNPROVED: usize = MOST / 2;

#[derive(Debug, Default)]
pub(super) struct Outbox {
    /// Answers without their bodies, and these.
    waiting: VecDeque<(Datagram, Held, Requester)>,
    slices: Slices<MOST_BUFFERS, BUFFER_BYTES>,
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
        self.bytes += answer_bytes(answer.body.len());
        self.unproved += usize::from(requester == Requester::Unproved);
        let body = self.slices.hold(std::mem::take(&mut answer.body));
        self.waiting.push_back((answer, body, requester));
    }

    /// The one that has waited longest.
    pub fn pop(&mut self) -> Option<Datagram> {
        let (mut first, body, requester) = self.waiting.pop_front()?;
        first.body = self.slices.release(body);
        self.bytes -= answer_bytes(first.body.len());
        self.unproved -= usize::from(requester == Requester::Unproved);
        Some(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

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
    fn many_small_answers_keep_so_many_blocks_and_no_more() {
        let block = || Bytes::from(vec![7; BUFFER_BYTES]).slice(..100);
        let bodies: Vec<_> = (0..2 * MOST_BUFFERS).map(|_| block()).collect();
        let mut outbox = Outbox::default();
        for body in &bodies {
            let answer = Datagram {
                body: body.clone(),
                ..Datagram::empty()
            };
            outbox.push(answer, Requester::Proved);
        }
        let left = std::iter::from_fn(|| outbox.pop()).map(|answer| answer.body);
        let kept = left.zip(&bodies).filter(|(left, body)| {
            assert_eq!(left, *body);
            left.as_ptr() == body.as_ptr()
        });
        assert_eq!(kept.count(), MOST_BUFFERS);
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
