//! Packets that wait for a discipline to decide on their departure.

use crate::error_model::Fate;
use restp_base::machine::Ecn;
use restp_base::time::Time;
use std::collections::VecDeque;

/// A packet that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Held {
    /// By which its owner knows it.
    pub(crate) tag: u64,
    pub(crate) flow: u64,
    pub(crate) bytes: u32,
    pub(crate) ecn: Ecn,
    /// When it came.
    pub(crate) since: Time,
    /// What the wire has in store for it, drawn when it was offered.
    pub(crate) fate: Fate,
}

/// Packets for which an empty queue keeps room. FQ-CoDel has 1024 queues: each that was full once would keep room for 10 240.
const KEPT_PACKETS: usize = 64;

/// First in, first out.
#[derive(Clone, Debug, Default)]
pub(super) struct Fifo {
    packets: VecDeque<Held>,
    bytes: u64,
}

impl Fifo {
    pub(super) fn push(&mut self, packet: Held) {
        self.bytes += u64::from(packet.bytes);
        self.packets.push_back(packet);
    }

    pub(super) fn pop(&mut self) -> Option<Held> {
        let packet = self.packets.pop_front()?;
        self.bytes -= u64::from(packet.bytes);
        if self.packets.is_empty() {
            self.packets.shrink_to(KEPT_PACKETS);
        }
        Some(packet)
    }

    pub(super) fn packets(&self) -> u64 {
        self.packets.len() as u64
    }

    pub(super) const fn bytes(&self) -> u64 {
        self.bytes
    }
}

#[cfg(test)]
pub(super) fn packet(tag: u64, since_ms: u64) -> Held {
    Held {
        tag,
        flow: 0,
        bytes: 1000,
        ecn: Ecn::NotEct,
        since: Time::from_nanos(since_ms * 1_000_000),
        fate: Fate::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_that_was_long_keeps_no_memory_for_it() {
        let mut queue = Fifo::default();
        (0..10_000).for_each(|tag| queue.push(packet(tag, 0)));
        assert!((0..10_000).all(|tag| queue.pop() == Some(packet(tag, 0))));
        assert!(
            queue.packets.capacity() <= 2 * KEPT_PACKETS,
            "{}",
            queue.packets.capacity()
        );
        assert_eq!((queue.pop(), queue.packets(), queue.bytes()), (None, 0, 0));
    }
}
