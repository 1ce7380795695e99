//! Interests that went on to a producer and are not answered yet, and those that wait for the same. A producer is asked for a chunk again
//! once its answer is overdue: all consumers miss a lost chunk at one time, and one of them asks for all.

use super::super::content_store::Name;
use super::super::manifest::Digest;
use super::super::wire::Pointer;
use restp_base::machine::PathAddress;
use restp_base::time::{Duration, Time};
use restp_services::recovery::RttEstimator;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

/// How long an unanswered Interest is remembered: the default lifetime of NDN's.
const LIFETIME: Duration = Duration::from_secs(4);
/// Before anything is known of the way to a producer (RFC 6298 (2.1)).
const FIRST_WAIT: Duration = Duration::from_secs(1);
/// A clock's grain: no producer is asked again before (as NDN's forwarder, which begins there).
const LEAST_WAIT: Duration = Duration::from_millis(10);
/// Names that are pending at most, and Interests that wait for them; what comes then goes on.
const MOST: usize = 65_536;
/// Producers whose round trip is known at most.
const MOST_PRODUCERS: usize = 4_096;

/// An Interest that came, with what an answer to it needs.
#[derive(Clone, Debug)]
pub(super) struct Waiting {
    /// As it passed.
    pub path: PathAddress,
    /// From and to.
    pub ports: (u16, u16),
    pub pointer: Pointer,
    /// What the content has to be, where that was said.
    pub digest: Option<Digest>,
}

impl Waiting {
    /// Who asks.
    fn consumer(&self) -> SocketAddr {
        SocketAddr::new(self.path.local.ip(), self.ports.0)
    }
}

/// What a producer was asked for.
#[derive(Debug)]
struct Asked {
    /// When, and by whom in which Interest, the last time that one went on.
    at: Time,
    by: (SocketAddr, u32),
    /// By consumer, each with its last Interest.
    waiting: BTreeMap<SocketAddr, Waiting>,
}

/// Everything that is not answered yet.
#[derive(Debug, Default)]
pub(super) struct Pending {
    asked: BTreeMap<Name, Asked>,
    by_time: BTreeSet<(Time, Name)>,
    waiting: usize,
    /// Round trips between here and the producers.
    round_trips: BTreeMap<SocketAddr, RttEstimator>,
    merged: u64,
}

impl Pending {
    /// Interests that were kept.
    pub fn merged(&self) -> u64 {
        self.merged
    }

    /// Somebody asks for what is not held. True when the Interest goes on; otherwise it waits for one that did.
    pub fn ask(&mut self, now: Time, name: Name, asks: Waiting) -> bool {
        self.expire(now);
        let wait = self.wait(&name.producer);
        let by = (asks.consumer(), asks.pointer.sequence);
        let Some(asked) = self.asked.get_mut(&name) else {
            if self.asked.len() < MOST {
                let waiting = BTreeMap::new();
                self.by_time.insert((now, name));
                self.asked.insert(name, Asked { at: now, by, waiting });
            }
            return true;
        };
        // Its new Interest takes the place of the one that waits.
        self.waiting -= usize::from(asked.waiting.remove(&by.0).is_some());
        if now.since(asked.at) > wait || self.waiting >= MOST {
            self.by_time.remove(&(asked.at, name));
            self.by_time.insert((now, name));
            (asked.at, asked.by) = (now, by);
            return true;
        }
        asked.waiting.insert(by.0, asks);
        self.waiting += 1;
        self.merged += 1;
        false
    }

    /// `name` has come, for `addressee`, in answer to its Interest of this pointer: those that wait for it. `None` when nobody asked.
    pub fn answered(
        &mut self,
        now: Time,
        name: &Name,
        addressee: SocketAddr,
        pointer: &Pointer,
    ) -> Option<impl Iterator<Item = Waiting> + use<>> {
        let asked = self.take(name)?;
        if asked.by == (addressee, pointer.sequence) {
            if self.round_trips.len() >= MOST_PRODUCERS && !self.round_trips.contains_key(&name.producer) {
                self.round_trips.pop_first();
            }
            let known = self.round_trips.entry(name.producer).or_default();
            known.sample(now.since(asked.at));
        }
        Some(asked.waiting.into_values())
    }

    /// `name` is no longer pending here.
    pub fn forget(&mut self, name: &Name) {
        self.take(name);
    }

    fn take(&mut self, name: &Name) -> Option<Asked> {
        let asked = self.asked.remove(name)?;
        self.by_time.remove(&(asked.at, *name));
        self.waiting -= asked.waiting.len();
        Some(asked)
    }

    /// How long a producer's answer takes at most.
    fn wait(&self, producer: &SocketAddr) -> Duration {
        let known = self.round_trips.get(producer).and_then(RttEstimator::timeout);
        known.unwrap_or(FIRST_WAIT).max(LEAST_WAIT)
    }

    fn expire(&mut self, now: Time) {
        while let Some((at, name)) = self.by_time.first().copied()
            && now.since(at) > LIFETIME
        {
            self.forget(&name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(chunk: u32) -> Name {
        Name {
            producer: SocketAddr::from(([10, 0, 0, 1], 4000)),
            object: 1,
            is_manifest: false,
            chunk,
        }
    }

    fn asks(consumer: u16, sequence: u32) -> Waiting {
        Waiting {
            path: PathAddress {
                local: ([10, 0, 1, 1], 0).into(),
                remote: ([10, 0, 0, 1], 0).into(),
            },
            ports: (consumer, 4000),
            pointer: Pointer {
                sequence,
                ..Pointer::default()
            },
            digest: None,
        }
    }

    fn at(ms: u64) -> Time {
        Time::ZERO + Duration::from_millis(ms)
    }

    #[test]
    fn one_interest_goes_on_and_the_others_wait_for_its_data() {
        let mut pending = Pending::default();
        assert!(pending.ask(at(0), name(7), asks(1, 70)));
        assert!(!pending.ask(at(1), name(7), asks(2, 10)) && !pending.ask(at(1), name(7), asks(3, 20)));
        assert!(
            !pending.ask(at(2), name(7), asks(2, 11)),
            "again, and its first is forgotten"
        );
        assert!(pending.ask(at(2), name(8), asks(2, 12)), "something else");
        let came = |pending: &mut Pending, ms, sequence| {
            let by = asks(1, sequence);
            pending.answered(at(ms), &name(7), by.consumer(), &by.pointer)
        };
        let waiting = came(&mut pending, 40, 70).expect("it was asked for");
        let who: Vec<_> = waiting
            .map(|waits| (waits.ports.0, waits.pointer.sequence))
            .collect();
        assert_eq!((who, pending.merged()), (vec![(2, 11), (3, 20)], 3));
        assert!(came(&mut pending, 41, 70).is_none(), "no second one is pending");
        // 40 ms and twice their half: what is asked for again earlier is on its way.
        assert!(pending.ask(at(100), name(7), asks(1, 71)));
        assert!(!pending.ask(at(220), name(7), asks(2, 13)));
        assert!(
            pending.ask(at(221), name(7), asks(3, 21)),
            "the answer is overdue: one asks for all"
        );
        assert!(!pending.ask(at(222), name(7), asks(1, 72)));
    }

    #[test]
    fn what_nobody_answers_is_forgotten_and_nothing_grows_beyond_its_bound() {
        let mut pending = Pending::default();
        for chunk in 0..MOST as u32 + 10 {
            assert!(pending.ask(at(0), name(chunk), asks(1, chunk)));
        }
        assert_eq!((pending.asked.len(), pending.by_time.len()), (MOST, MOST));
        assert!(!pending.ask(at(10), name(3), asks(2, 0)));
        assert!(
            pending.ask(at(4001), name(9), asks(2, 1)),
            "forgotten, so that it is asked for"
        );
        assert_eq!(
            (pending.asked.len(), pending.by_time.len(), pending.waiting),
            (1, 1, 0)
        );
        for consumer in 0..u16::MAX {
            pending.ask(at(4002), name(9), asks(consumer, 2));
        }
        for consumer in 0..20 {
            pending.ask(
                at(4003),
                name(9),
                Waiting {
                    ports: (consumer, 1),
                    ..asks(consumer, 3)
                },
            );
        }
        assert!(pending.waiting <= MOST);
        pending.forget(&name(9));
        assert_eq!((pending.waiting, pending.asked.len()), (0, 0));
    }
}
