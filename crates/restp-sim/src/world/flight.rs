//! Packets between two hops.

use restp_base::time::Time;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A packet and when it is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct InFlight {
    pub(super) at: Time,
    pub(super) packet: u32,
}

/// When a packet is due, how many were pushed before it, the packet, and the line that it is on.
type Due = (Time, u64, u32, Option<usize>);

/// Packets outside the order of their line, with that line; and packets that cross none. Simultaneous ones come in the
/// order in which they left.
#[derive(Debug, Default)]
pub(super) struct Strays {
    due: BinaryHeap<Reverse<Due>>,
    pushed: u64,
}

impl Strays {
    pub(super) fn push(&mut self, stray: InFlight, line: Option<usize>) {
        self.pushed += 1;
        self.due
            .push(Reverse((stray.at, self.pushed, stray.packet, line)));
    }

    /// When the next one is due.
    pub(super) fn next(&self) -> Option<Time> {
        self.due.peek().map(|Reverse((at, ..))| *at)
    }

    pub(super) fn pop(&mut self) -> Option<(u32, Option<usize>)> {
        self.due.pop().map(|Reverse((_, _, packet, line))| (packet, line))
    }
}
