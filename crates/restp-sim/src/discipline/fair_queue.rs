//! FQ-CoDel for real packets: the queue of the simulator before whatever is slower than what comes.

use super::fq_codel::{FqCodel, Process};
use super::held::Held;
use crate::error_model::Fate;
use crate::parcel::Parcel;
use crate::spec_error::SpecError;
use restp_base::random::Stream;
use restp_base::time::{Duration, Time};
use std::collections::BTreeMap;

/// The target is 5 % of the interval (RFC 8289 §4.3).
const TARGET_DIVISOR: u64 = 20;

/// Packets that wait, a queue for each flow (RFC 8290).
#[derive(Debug)]
pub struct FairQueue<T> {
    process: Process,
    /// By the tag under which `process` knows them.
    packets: BTreeMap<u64, T>,
    next_tag: u64,
    dropped: u64,
}

impl<T> FairQueue<T> {
    /// Nothing waits. Who knows `seed` can choose whose queue he shares.
    ///
    /// # Errors
    /// When the parameters contradict each other.
    pub fn new(parameters: &FqCodel, seed: u64) -> Result<Self, SpecError> {
        parameters.check()?;
        Ok(FairQueue {
            process: Process::new(parameters, Stream::named(seed, "queue")),
            packets: BTreeMap::new(),
            next_tag: 0,
            dropped: 0,
        })
    }

    /// Takes a packet that comes at `now`, described by `parcel` but for its tag. Where there is no room for it one of the flow with
    /// most bytes is dropped.
    pub fn push(&mut self, now: Time, parcel: Parcel, packet: T) {
        let held = Held {
            tag: self.next_tag,
            flow: parcel.flow,
            bytes: parcel.bytes,
            ecn: parcel.ecn,
            since: now,
            fate: Fate::default(),
        };
        self.next_tag += 1;
        self.packets.insert(held.tag, packet);
        let mut dropped = Vec::new();
        self.process.enqueue(held, &mut dropped);
        self.forget(&dropped);
    }

    /// The packet to send at `now`, and whether to mark it. Those that waited too long are dropped before.
    pub fn pop(&mut self, now: Time) -> Option<(T, bool)> {
        let mut dropped = Vec::new();
        let popped = self.process.dequeue(now, &mut dropped);
        self.forget(&dropped);
        let (held, is_marked) = popped?;
        self.packets.remove(&held.tag).map(|packet| (packet, is_marked))
    }

    /// Round trips take as long as `interval` at most from now on; a twentieth of it is what a packet may wait for longer (RFC 8289
    /// §4.3). Nothing else changes.
    ///
    /// # Errors
    /// When it is too short to have a twentieth.
    pub fn set_interval(&mut self, interval: Duration) -> Result<(), SpecError> {
        self.process.set_times(interval / TARGET_DIVISOR, interval)
    }

    fn forget(&mut self, dropped: &[Held]) {
        self.dropped += dropped.len() as u64;
        for held in dropped {
            self.packets.remove(&held.tag);
        }
    }

    /// Does nothing wait?
    pub fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// Packets dropped so far.
    pub const fn dropped(&self) -> u64 {
        self.dropped
    }
}

#[cfg(test)]
mod tests {
    use super::super::QueueLimit;
    use super::*;
    use restp_base::machine::Ecn;

    fn parcel(flow: u64, ecn: Ecn) -> Parcel {
        Parcel {
            bytes: 1000,
            ecn,
            may_fragment: false,
            flow,
            tag: 0,
        }
    }

    fn at(ms: u64) -> Time {
        Time::from_nanos(ms * 1_000_000)
    }

    #[test]
    fn who_sends_little_overtakes_who_sends_much() {
        let mut queue = FairQueue::new(&FqCodel::default(), 1).expect("sound");
        (0..9).for_each(|number| queue.push(at(0), parcel(1, Ecn::NotEct), number));
        // A turn of 1514 bytes.
        assert_eq!(
            [queue.pop(at(1)), queue.pop(at(1))],
            [Some((0, false)), Some((1, false))]
        );
        queue.push(at(1), parcel(2, Ecn::NotEct), 77);
        assert_eq!(queue.pop(at(1)).map(|(packet, _)| packet), Some(77));
        let rest = std::iter::from_fn(|| queue.pop(at(1)));
        assert!(rest.map(|(packet, _)| packet).eq(2..9));
        assert!(queue.is_empty());
    }

    #[test]
    fn what_stands_for_long_is_marked_or_dropped_and_held_no_more() {
        for (ecn, marked) in [(Ecn::NotEct, 0), (Ecn::Ect0, 3)] {
            let mut queue = FairQueue::new(&FqCodel::default(), 1).expect("sound");
            (0..50).for_each(|number| queue.push(at(0), parcel(1, ecn), number));
            // Above the target from the beginning: an interval later, and 100 / sqrt(n) ms after that.
            let popped: Vec<_> = (0..30).filter_map(|turn| queue.pop(at(10 + 10 * turn))).collect();
            assert_eq!(popped.len(), 30);
            assert_eq!(popped.iter().filter(|(_, is_marked)| *is_marked).count(), marked);
            assert_eq!(queue.dropped(), 3 - marked as u64);
            assert_eq!(queue.packets.len(), 50 - 30 - queue.dropped() as usize);
        }
    }

    #[test]
    fn how_long_a_packet_waits_counts_from_when_it_came() {
        let mut queue = FairQueue::new(&FqCodel::default(), 1).expect("sound");
        (0..8).for_each(|_| queue.push(at(0), parcel(1, Ecn::NotEct), ()));
        for ms in 1..500 {
            (0..4).for_each(|_| queue.push(at(ms), parcel(1, Ecn::NotEct), ()));
            // The eight before them came 2 ms ago at most.
            (0..4).for_each(|_| assert!(queue.pop(at(ms)).is_some()));
        }
        assert_eq!(queue.dropped(), 0);
    }

    #[test]
    fn what_stands_for_long_is_what_stands_for_longer_than_round_trips_take() {
        for (interval, dropped) in [(200, 1), (400, 0)] {
            let mut queue = FairQueue::new(&FqCodel::default(), 1).expect("sound");
            let interval = Duration::from_millis(interval);
            queue.set_interval(interval).expect("long enough");
            (0..50).for_each(|_| queue.push(at(0), parcel(1, Ecn::NotEct), ()));
            // Above both targets from the beginning.
            (0..30).for_each(|turn| assert!(queue.pop(at(30 + 10 * turn)).is_some()));
            assert_eq!(queue.dropped(), dropped, "{interval:?}");
        }
        let mut queue = FairQueue::<()>::new(&FqCodel::default(), 1).expect("sound");
        assert!(queue.set_interval(Duration::from_nanos(19)).is_err());
        assert!(queue.set_interval(Duration::from_nanos(20)).is_ok());
    }

    /// The second of four flows has fewer packets than the others, and most bytes.
    #[test]
    fn the_flow_with_most_bytes_makes_room() {
        let mut parameters = FqCodel::default();
        parameters.codel.limit = QueueLimit::Packets(10);
        let mut queue = FairQueue::new(&parameters, 1).expect("sound");
        for (flow, packets, bytes) in [(1, 4, 64), (2, 2, 1300), (3, 4, 64), (4, 1, 64)] {
            let parcel = Parcel {
                bytes,
                ..parcel(flow, Ecn::NotEct)
            };
            (0..packets).for_each(|_| queue.push(at(0), parcel, flow));
        }
        let left: Vec<_> = std::iter::from_fn(|| queue.pop(at(0)))
            .map(|(flow, _)| flow)
            .collect();
        assert_eq!(left.iter().filter(|flow| **flow == 2).count(), 1, "{left:?}");
        assert_eq!((left.len(), queue.dropped()), (10, 1));
    }

    /// Many small packets fit where few large ones do.
    #[test]
    fn neither_many_nor_large_packets_are_more_than_the_limits() {
        let mut parameters = FqCodel {
            most_bytes: 9000,
            ..FqCodel::default()
        };
        parameters.codel.limit = QueueLimit::Packets(20);
        for (bytes, expected) in [(1, 20), (450, 20), (451, 19), (3000, 3), (9000, 1), (9001, 0)] {
            let mut queue = FairQueue::new(&parameters, 1).expect("sound");
            let parcel = Parcel {
                bytes,
                ..parcel(1, Ecn::NotEct)
            };
            (0..30).for_each(|_| queue.push(at(0), parcel, ()));
            assert_eq!(queue.packets.len(), expected, "{bytes}");
            assert_eq!(
                queue.process.held(),
                (expected as u64, expected as u64 * u64::from(bytes))
            );
        }
    }

    /// Each takes longer to leave than CoDel lets one wait.
    #[test]
    fn one_large_packet_behind_another_is_no_standing_queue() {
        let dropped = |mtu_bytes, waiting| {
            let mut parameters = FqCodel::default();
            parameters.codel.mtu_bytes = mtu_bytes;
            let mut queue = FairQueue::new(&parameters, 1).expect("sound");
            let large = Parcel {
                bytes: 8035,
                ..parcel(1, Ecn::NotEct)
            };
            (0..waiting).for_each(|_| queue.push(at(0), large, ()));
            for turn in 1..20 {
                queue.push(at(64 * (turn - 1)), large, ());
                assert!(queue.pop(at(64 * turn)).is_some());
            }
            queue.dropped()
        };
        assert_eq!(dropped(8035, 1), 0);
        assert!(dropped(8034, 1) > 0 && dropped(8035, 2) > 0);
    }

    #[test]
    fn another_seed_lets_other_flows_share_a_queue() {
        let parameters = FqCodel {
            queues: 2,
            ..FqCodel::default()
        };
        // The second of two flows overtakes the first, unless they share a queue.
        let overtakes = |seed, flow| {
            let mut queue = FairQueue::new(&parameters, seed).expect("sound");
            (0..9).for_each(|_| queue.push(at(0), parcel(0, Ecn::NotEct), 0));
            queue.push(at(0), parcel(flow, Ecn::NotEct), flow);
            std::iter::from_fn(|| queue.pop(at(0))).position(|(packet, _)| packet == flow) != Some(9)
        };
        let of = |seed| -> Vec<bool> { (1..20).map(|flow| overtakes(seed, flow)).collect() };
        assert_ne!(of(1), of(2));
    }

    #[test]
    fn no_more_is_held_than_the_limit() {
        let mut parameters = FqCodel::default();
        parameters.codel.limit = QueueLimit::Packets(5);
        let mut queue = FairQueue::new(&parameters, 1).expect("sound");
        (0..9).for_each(|number| queue.push(at(0), parcel(1, Ecn::NotEct), number));
        assert_eq!((queue.packets.len(), queue.dropped()), (5, 4));
        assert_eq!(
            queue.pop(at(0)),
            Some((4, false)),
            "those that waited longest are gone"
        );
    }
}
