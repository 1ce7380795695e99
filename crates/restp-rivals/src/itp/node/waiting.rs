//! Questions whose answers a disk is reading. They wait here, so that nobody else waits for the disk, and are asked again in the order
//! in which they came; those for the same thing together, so that it is read once.

use super::fair::Shares;
use super::guard::source_of;
use super::message::Wanted;
use super::upstream::Question;
use crate::itp::wire::Header;
use restp_base::machine::PathAddress;
use restp_base::time::{Duration, Time};
use std::collections::{BTreeMap, VecDeque};

/// Questions that wait at once, and those for one thing.
const MOST: usize = 8192;
const MOST_ALIKE: usize = 1024;
/// Who has not asked again for so long does not wait any more: his timers come round within 60 s.
const FORGOTTEN: Duration = Duration::from_secs(60);

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Requested {
    Root(Wanted),
    Item(Question),
}

/// A question of somebody who has proved where he is, in his words.
#[derive(Clone, Debug)]
pub(super) struct PendingRequest {
    pub at: Time,
    pub path: PathAddress,
    pub header: Header,
    pub what: Requested,
}

/// Whose disk it is: that of an object, or of the cache.
pub(super) type Disk = Option<u64>;

/// Who waits at each disk.
#[derive(Debug)]
pub(super) struct Waiting {
    places: Shares,
    queues: BTreeMap<Disk, Queue>,
}

#[derive(Debug, Default)]
struct Queue {
    order: VecDeque<Requested>,
    asked: BTreeMap<Requested, Vec<PendingRequest>>,
}

impl Waiting {
    pub fn new() -> Self {
        Waiting {
            places: Shares::new(MOST),
            queues: BTreeMap::new(),
        }
    }

    /// Behind all others. False: it has to be asked later.
    pub fn push(&mut self, disk: Disk, asked: PendingRequest) -> bool {
        let Queue { order, asked: known } = self.queues.entry(disk).or_default();
        if let Some(same) =
            (known.get_mut(&asked.what).into_iter().flatten()).find(|same| same.path == asked.path)
        {
            *same = asked;
            return true;
        }
        let alike = known.get(&asked.what).map_or(0, Vec::len);
        let has_place = alike < MOST_ALIKE && self.places.take(source_of(asked.path.remote.ip()));
        if has_place {
            if alike == 0 {
                order.push_back(asked.what);
            }
            known.entry(asked.what).or_default().push(asked);
        }
        has_place
    }

    pub fn len(&self) -> usize {
        self.places.taken()
    }

    /// Where somebody waits.
    pub fn disks(&self) -> Vec<Disk> {
        self.queues.keys().copied().collect()
    }

    /// Who has waited longest at `disk`.
    pub fn first(&mut self, disk: Disk, now: Time) -> Option<PendingRequest> {
        loop {
            let queue = self.queues.get_mut(&disk)?;
            let Some(alike) = queue.order.front().and_then(|what| queue.asked.get_mut(what)) else {
                self.queues.remove(&disk);
                return None;
            };
            alike.retain(|asked| {
                let stays = now.since(asked.at) <= FORGOTTEN;
                if !stays {
                    self.places.give_back(source_of(asked.path.remote.ip()));
                }
                stays
            });
            if let Some(first) = alike.first() {
                return Some(first.clone());
            }
            self.take(disk);
        }
    }

    /// Takes away what was waited for longest, and all who wait for it.
    pub fn take(&mut self, disk: Disk) -> Vec<PendingRequest> {
        let what = self.queues.get_mut(&disk).and_then(|queue| {
            let what = queue.order.pop_front()?;
            queue.asked.remove(&what)
        });
        let all = what.unwrap_or_default();
        for asked in &all {
            self.places.give_back(source_of(asked.path.remote.ip()));
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::itp::holding::Item;
    use crate::itp::wire::{Kind, Pointer};
    use std::net::SocketAddr;

    fn asked(host: u8, port: u16, chunk: u64, at: u64) -> PendingRequest {
        let remote = SocketAddr::from(([10, 0, 0, host], port));
        PendingRequest {
            at: Time::ZERO + Duration::from_secs(at),
            path: PathAddress {
                remote,
                ..PathAddress::UNSET
            },
            header: Header {
                kind: Kind::Interest(None),
                flags: 0,
                pointer: Pointer {
                    object: 1,
                    chunk: chunk as u32,
                    sequence: at as u32,
                },
            },
            what: Requested::Item(Question {
                digest: [0; 32],
                object: 1,
                item: Item::Chunk(chunk),
            }),
        }
    }

    fn ports(all: &[PendingRequest]) -> Vec<u16> {
        all.iter().map(|asked| asked.path.remote.port()).collect()
    }

    #[test]
    fn those_who_wait_for_one_thing_are_together_and_things_in_the_order_of_questions() {
        let mut waiting = Waiting::new();
        let now = Time::ZERO + Duration::from_secs(2);
        for (port, chunk) in [(1, 7), (1, 3), (2, 7), (3, 9)] {
            assert!(waiting.push(Some(1), asked(1, port, chunk, 0)));
        }
        assert!(waiting.push(None, asked(1, 4, 5, 0)));
        assert!(waiting.push(Some(1), asked(1, 1, 7, 1)), "in later words");
        assert_eq!(waiting.disks(), [None, Some(1)]);
        let first = waiting.first(Some(1), now).unwrap();
        assert_eq!((first.path.remote.port(), first.header.pointer.sequence), (1, 1));
        assert_eq!(ports(&waiting.take(Some(1))), [1, 2]);
        assert_eq!(ports(&waiting.take(Some(1))), [1]);
        assert_eq!(ports(&waiting.take(Some(1))), [3]);
        assert!(waiting.first(Some(1), now).is_none());
        assert_eq!(waiting.disks(), [None]);
    }

    #[test]
    fn nobody_takes_all_places_and_they_come_back() {
        let mut waiting = Waiting::new();
        let push = |waiting: &mut Waiting, host, count: u64| {
            (0..count)
                .filter(|chunk| waiting.push(None, asked(host, 1, chunk % 60_000, 0)))
                .count()
        };
        assert_eq!(push(&mut waiting, 1, 20_000), MOST / 2);
        assert_eq!(push(&mut waiting, 2, 20_000), MOST / 4);
        let queue = &waiting.queues[&None];
        assert_eq!((queue.order.len(), queue.asked.len()), (MOST / 2, MOST / 2));
        let now = Time::ZERO + FORGOTTEN;
        assert!(waiting.first(None, now).is_some());
        assert!(waiting.first(None, now + Duration::from_nanos(1)).is_none());
        assert!(waiting.queues.is_empty());
        assert_eq!(push(&mut waiting, 1, 20_000), MOST / 2);
        while !waiting.take(None).is_empty() {}
        let alike = (1..=2000)
            .filter(|port| waiting.push(None, asked(3, *port, 1, 0)))
            .count();
        assert_eq!(alike, MOST_ALIKE);
    }
}
