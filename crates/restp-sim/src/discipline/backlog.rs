//! What waits for the serialiser: a ring of the times at which each packet stops waiting.

use restp_base::time::Time;
use std::collections::VecDeque;

/// Packets waiting, the one being sent not among them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Backlog {
    waiting: VecDeque<(Time, u32)>,
    bytes: u64,
}

impl Backlog {
    /// Forgets those whose transmission has begun by `now`.
    pub(crate) fn advance(&mut self, now: Time) {
        while let Some(&(start, bytes)) = self.waiting.front()
            && start <= now
        {
            self.waiting.pop_front();
            self.bytes -= u64::from(bytes);
        }
    }

    /// A packet waits until `start`, which is never before that of the packet ahead.
    pub(crate) fn push(&mut self, start: Time, bytes: u32) {
        debug_assert!(
            self.waiting.back().is_none_or(|&(ahead, _)| ahead <= start),
            "a queue keeps its order"
        );
        self.waiting.push_back((start, bytes));
        self.bytes += u64::from(bytes);
    }

    pub(crate) fn packets(&self) -> u64 {
        self.waiting.len() as u64
    }

    pub(crate) const fn bytes(&self) -> u64 {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_wait_until_their_transmission_begins() {
        let at = Time::from_nanos;
        let mut waiting = Backlog::default();
        waiting.push(at(10), 1500);
        waiting.push(at(20), 500);
        assert_eq!((waiting.packets(), waiting.bytes()), (2, 2000));
        waiting.advance(at(10));
        assert_eq!((waiting.packets(), waiting.bytes()), (1, 500));
    }
}
