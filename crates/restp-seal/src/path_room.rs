//! Room for keys of paths, which all sessions share. Anybody who sees the name of a session can say that he speaks on any of its
//! paths: keys on which nothing genuine has come yet are kept for the next packet, or each would cost more than it costs its
//! sender; and there are so many of all sessions at most. A path on which its peer was heard keeps its keys, and a peer may
//! have sixteen of them, but all peers together two for each session.

use crate::packet::ConnectionId;
use crate::schedule::Keys;
use restp_base::sources::Sources;
use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;

/// Kept at once, of all sessions. Who has more than 64 of them to forge packets in, on all of their paths, makes a host compute.
pub(crate) const MAX_PENDING: usize = 1_024;

/// Whose keys: of which session, of its early data, on which path.
pub(crate) type Whose = (ConnectionId, bool, u8);

/// The room there is, and what is in it.
pub(crate) struct PathRoom {
    /// Keys that nobody has shown to have.
    keys: BTreeMap<Whose, Keys>,
    /// Oldest first; some may be gone.
    order: VecDeque<Whose>,
    /// Paths beyond the first of sessions, and whose these are.
    further: Sources,
    all: usize,
    most: usize,
}

impl PathRoom {
    /// For `most` paths beyond the first of each session.
    pub(crate) fn new(most: usize) -> Self {
        PathRoom {
            keys: BTreeMap::new(),
            order: VecDeque::new(),
            further: Sources::default(),
            all: 0,
            most,
        }
    }

    /// May a session that `source` began have one more? A source has a sixteenth once half of all are in use.
    pub(crate) fn is_left(&self, source: IpAddr) -> bool {
        self.all < self.most && (self.all < self.most / 2 || self.further.count(source) < self.most / 16)
    }

    /// A session that `source` began has one more.
    pub(crate) fn enter(&mut self, source: IpAddr) {
        self.further.enter(source);
        self.all += 1;
    }

    /// Those of `whose`, or else what `compute` gives.
    pub(crate) fn of(&mut self, whose: Whose, compute: impl FnOnce() -> Option<Keys>) -> Option<&mut Keys> {
        if !self.keys.contains_key(&whose) {
            let keys = compute()?;
            while self.order.len() >= MAX_PENDING {
                let oldest = self.order.pop_front();
                oldest.and_then(|oldest| self.keys.remove(&oldest));
            }
            self.order.push_back(whose);
            self.keys.insert(whose, keys);
        }
        self.keys.get_mut(&whose)
    }

    /// Somebody has shown that he has those of `whose`.
    pub(crate) fn take(&mut self, whose: &Whose) -> Option<Keys> {
        self.keys.remove(whose)
    }

    /// Session `id` is over, which had so many further paths and was begun by `source`.
    pub(crate) fn leave(&mut self, id: ConnectionId, source: Option<IpAddr>, further: usize) {
        let of_session = self.keys.range((id, false, 0)..=(id, true, u8::MAX));
        let gone: Vec<Whose> = of_session.map(|(whose, _)| *whose).collect();
        gone.iter().for_each(|whose| drop(self.keys.remove(whose)));
        for source in source.iter().cycle().take(source.map_or(0, |_| further)) {
            self.further.leave(*source);
            self.all -= 1;
        }
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.keys.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::Suite;

    #[test]
    fn keys_are_computed_once_and_the_oldest_make_room() {
        let mut pending = PathRoom::new(64);
        let whose = |n: u64| (n.to_be_bytes(), n.is_multiple_of(2), 3);
        let keys = || Keys::new(Suite::Aes128Gcm, [1; 32]);
        for n in 0..3 * MAX_PENDING as u64 {
            assert!(pending.of(whose(n), keys).is_some());
            assert!(pending.of(whose(n), || panic!("computed before")).is_some());
        }
        assert_eq!((pending.len(), pending.order.len()), (MAX_PENDING, MAX_PENDING));
        assert!(pending.take(&whose(0)).is_none());
        let last = 3 * MAX_PENDING as u64 - 1;
        pending.leave(whose(last).0, None, 0);
        assert!(pending.take(&whose(last)).is_none() && pending.take(&whose(last - 1)).is_some());
        for n in 0..3 * MAX_PENDING as u64 {
            pending.of(whose(n), keys);
            pending.take(&whose(n));
        }
        assert!(pending.order.len() <= MAX_PENDING, "what is gone is forgotten");
    }
    #[test]
    fn further_paths_are_bounded_and_a_source_leaves_room_to_others() {
        let mut room = PathRoom::new(64);
        let source = |n: u8| IpAddr::from([10, 0, 0, n]);
        let fill = |room: &mut PathRoom, source| {
            let taken = (0..100).take_while(|_| {
                room.is_left(source) && {
                    room.enter(source);
                    true
                }
            });
            taken.count()
        };
        assert_eq!(
            fill(&mut room, source(1)),
            32,
            "half of all while nobody else wants any"
        );
        assert_eq!((2..20).map(|n| fill(&mut room, source(n))).sum::<usize>(), 32);
        room.leave([0; 8], Some(source(2)), 4);
        assert!(!room.is_left(source(1)) && room.is_left(source(2)) && room.is_left(source(99)));
        room.leave([0; 8], None, 15);
        assert_eq!(room.all, 60);
    }

    /// A session keeps its first path; forged packets on all paths of all sessions used to keep 16.
    #[test]
    fn keys_of_all_sessions_are_of_bounded_size() {
        let sessions = 65_536;
        // The cipher's state, of 592 bytes, is behind a pointer: of the present key, the one before and the next one.
        let path = 3 * 592 + std::mem::size_of::<(Keys, crate::replay::Window)>();
        let most = (2 * sessions + MAX_PENDING) * path;
        assert!(most < 300 << 20, "{most}: {path} for each");
    }
}
