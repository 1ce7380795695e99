//! Packets between two hops.

use crate::queue::Turn;
use restp_base::time::Time;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A packet and when it is due. Ordered by time, then turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct InFlight {
    pub(super) at: Time,
    pub(super) turn: Turn,
    pub(super) packet: u32,
}

/// Packets outside the order of their line, with that line; and packets that cross none.
#[derive(Debug, Default)]
pub(super) struct Strays(BinaryHeap<Reverse<(InFlight, Option<usize>)>>);

impl Strays {
    pub(super) fn push(&mut self, stray: InFlight, line: Option<usize>) {
        self.0.push(Reverse((stray, line)));
    }

    pub(super) fn first(&self) -> Option<InFlight> {
        self.0.peek().map(|Reverse((stray, _))| *stray)
    }

    pub(super) fn pop(&mut self) -> Option<(InFlight, Option<usize>)> {
        self.0.pop().map(|Reverse(stray)| stray)
    }
}
