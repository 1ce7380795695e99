//! When to look after the handshakes of a peer: one time for each.

use super::session::PeerId;
use restp_base::time::Time;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Default)]
pub(crate) struct Timers {
    of: BTreeMap<PeerId, Time>,
    in_order: BTreeSet<(Time, PeerId)>,
}

impl Timers {
    /// The timer of `peer` ends at `at`, or never.
    pub(crate) fn set(&mut self, peer: PeerId, at: Option<Time>) {
        let before = match at {
            Some(at) => self.of.insert(peer, at),
            None => self.of.remove(&peer),
        };
        if let Some(before) = before {
            self.in_order.remove(&(before, peer));
        }
        self.in_order.extend(at.map(|at| (at, peer)));
    }

    /// The timer of `peer` ends at `at`, if it has none.
    pub(crate) fn begin(&mut self, peer: PeerId, at: Time) {
        if !self.of.contains_key(&peer) {
            self.set(peer, Some(at));
        }
    }

    /// When the next timer ends.
    pub(crate) fn next(&self) -> Option<Time> {
        self.in_order.first().map(|(at, _)| *at)
    }

    /// A peer whose timer has ended; each is told once.
    pub(crate) fn pop_due(&mut self, now: Time) -> Option<PeerId> {
        let (_, peer) = self.in_order.first().copied().filter(|(at, _)| *at <= now)?;
        self.set(peer, None);
        Some(peer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_peer_has_one_timer_which_ends_once() {
        let at = Time::from_nanos;
        let mut timers = Timers::default();
        timers.set(1, Some(at(30)));
        timers.set(2, Some(at(20)));
        timers.set(1, Some(at(10)));
        timers.set(3, Some(at(5)));
        timers.set(3, None);
        assert_eq!(timers.next(), Some(at(10)));
        assert_eq!(timers.pop_due(at(9)), None);
        assert_eq!(
            [timers.pop_due(at(40)), timers.pop_due(at(40))],
            [Some(1), Some(2)]
        );
        assert_eq!((timers.pop_due(at(40)), timers.next()), (None, None));
        timers.set(1, Some(at(50)));
        assert_eq!(timers.next(), Some(at(50)), "it can be set again");
    }
}
