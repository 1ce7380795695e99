//! Answers that wait to leave. What is beyond is lost, as in any queue.

use super::message::answer_bytes;
use restp_base::machine::Datagram;
use std::collections::VecDeque;

/// So many, and so many bytes: large chunks fill the second before the first.
const MOST: usize = 16_384;
const MOST_BYTES: u64 = 32 << 20;

#[derive(Debug, Default)]
pub(super) struct Outbox {
    waiting: VecDeque<Datagram>,
    bytes: u64,
}

impl Outbox {
    /// False: there is no room for it.
    pub fn push(&mut self, answer: Datagram) -> bool {
        let has_room = self.waiting.len() < MOST && self.bytes < MOST_BYTES;
        if has_room {
            self.bytes += answer_bytes(answer.body.len());
            self.waiting.push_back(answer);
        }
        has_room
    }

    /// The one that has waited longest.
    pub fn pop(&mut self) -> Option<Datagram> {
        let first = self.waiting.pop_front()?;
        self.bytes -= answer_bytes(first.body.len());
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

    #[test]
    fn neither_many_nor_large_answers_take_all_memory() {
        for bytes in [0, 1_384, 64_000] {
            let mut outbox = Outbox::default();
            let taken = (0..20_000).take_while(|_| outbox.push(answer(bytes))).count();
            assert!(
                taken <= MOST && taken * bytes <= (MOST_BYTES as usize) + bytes,
                "{bytes}"
            );
            assert!(
                taken == MOST || taken * bytes > (MOST_BYTES as usize) / 2,
                "{bytes}"
            );
            assert!(
                outbox.pop().is_some() && outbox.push(answer(bytes)),
                "one has left"
            );
            while outbox.pop().is_some() {}
            assert_eq!(outbox.bytes, 0);
        }
    }
}
