//! The associations of an endpoint: found by key or by name, and woken in the order of their deadlines.

use crate::connection::{Connection, Ports};
use restp_base::flow::FlowId;
use restp_base::machine::Wakeup;
use restp_base::time::Time;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

/// What tells one association from another (ResTP §3.1.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) ports: Ports,
    pub(super) remote: SocketAddr,
}

#[derive(Debug)]
struct Slot {
    generation: u32,
    connection: Option<Box<Connection>>,
    key: Key,
    /// The application has let it go: it is forgotten as soon as it is closed.
    released: bool,
    /// It waits for its turn to send.
    queued: bool,
    /// Its one entry among the wakes, and why: earlier than its true deadline at worst, because a deadline that
    /// moves away with every packet is not followed. `Time::MAX` for none.
    wakes_at: Time,
    wakes_why: Wakeup,
}

/// All associations of an endpoint.
#[derive(Debug, Default)]
pub(super) struct Table {
    slots: Vec<Slot>,
    free: Vec<u32>,
    by_key: BTreeMap<Key, u32>,
    wakes: BTreeSet<(Time, u32)>,
    /// The association that was found last: most datagrams are for the same one as the one before.
    last: Option<(Key, u32)>,
    half_open: BTreeSet<u32>,
    /// The same for those whose peer has proved its address: neither kind can crowd out the other.
    early: BTreeSet<u32>,
}

impl Table {
    pub(super) fn len(&self) -> usize {
        self.by_key.len()
    }
    /// Associations whose set-up is not complete.
    pub(super) fn half_open(&self) -> usize {
        self.half_open.len()
    }
    /// Those that take data all the same.
    pub(super) fn early(&self) -> usize {
        self.early.len()
    }

    pub(super) fn find(&mut self, key: &Key) -> Option<u32> {
        if let Some((last, index)) = self.last
            && last == *key
        {
            return Some(index);
        }
        let index = *self.by_key.get(key)?;
        self.last = Some((*key, index));
        Some(index)
    }
    pub(super) fn contains(&self, key: &Key) -> bool {
        self.by_key.contains_key(key)
    }
    pub(super) fn at(&mut self, index: u32) -> Option<&mut Connection> {
        self.slots.get_mut(index as usize)?.connection.as_deref_mut()
    }
    pub(super) fn get(&self, flow: FlowId) -> Option<&Connection> {
        let slot = self.slots.get(flow.0 as u32 as usize)?;
        slot.connection
            .as_deref()
            .filter(|_| u64::from(slot.generation) == flow.0 >> 32)
    }
    /// Where `flow` is, if it still is.
    pub(super) fn index(&self, flow: FlowId) -> Option<u32> {
        self.get(flow).map(|_| flow.0 as u32)
    }
    pub(super) fn flow(&self, index: u32) -> FlowId {
        let generation = self.slots.get(index as usize).map_or(0, |slot| slot.generation);
        FlowId(u64::from(generation) << 32 | u64::from(index))
    }

    /// The associations whose path begins at `local`.
    pub(super) fn of_local(&mut self, local: SocketAddr) -> Vec<u32> {
        let indices: Vec<u32> = self.by_key.values().copied().collect();
        let begins_there = |index: &u32| self.at(*index).is_some_and(|connection| connection.is_on(local));
        indices.into_iter().filter(begins_there).collect()
    }

    pub(super) fn insert(&mut self, key: Key, connection: Connection) -> u32 {
        let (half_open, early) = (connection.is_half_open(), connection.takes_early_data());
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot {
                generation: 0,
                connection: None,
                key,
                released: false,
                queued: false,
                wakes_at: Time::MAX,
                wakes_why: Wakeup::Expiry,
            });
            self.slots.len() as u32 - 1
        });
        let slot = &mut self.slots[index as usize];
        slot.connection = Some(Box::new(connection));
        (slot.key, slot.released, slot.queued, slot.wakes_at) = (key, false, false, Time::MAX);
        self.by_key.insert(key, index);
        if half_open && early {
            self.early.insert(index);
        } else if half_open {
            self.half_open.insert(index);
        }
        index
    }

    /// The application has let `index` go.
    pub(super) fn release(&mut self, index: u32) {
        self.slots[index as usize].released = true;
    }

    /// Forgets the association when both the protocol and the application are done with it.
    pub(super) fn sweep(&mut self, index: u32) {
        let Some(slot) = self.slots.get_mut(index as usize) else {
            return;
        };
        let done = slot
            .connection
            .as_ref()
            .is_some_and(|connection| connection.is_closed() && (slot.released || connection.is_unknown()));
        if !done || slot.queued {
            return;
        }
        self.wakes_at(index, Time::MAX, Wakeup::Expiry);
        let slot = &mut self.slots[index as usize];
        slot.connection = None;
        slot.generation = slot.generation.wrapping_add(1);
        let key = slot.key;
        self.by_key.remove(&key);
        self.last = None;
        self.free.push(index);
    }

    /// True when `index` was not yet queued for its turn.
    pub(super) fn enqueue(&mut self, index: u32) -> bool {
        self.slots
            .get_mut(index as usize)
            .is_some_and(|slot| !std::mem::replace(&mut slot.queued, true))
    }
    /// Its turn is over: schedules its next wake.
    pub(super) fn settle(&mut self, index: u32) {
        let Some(slot) = self.slots.get_mut(index as usize) else {
            return;
        };
        slot.queued = false;
        let some = !self.half_open.is_empty() || !self.early.is_empty();
        if some && !slot.connection.as_ref().is_some_and(|c| c.is_half_open()) {
            self.half_open.remove(&index);
            self.early.remove(&index);
        }
        match slot
            .connection
            .as_ref()
            .and_then(|connection| connection.deadline())
        {
            None => self.wakes_at(index, Time::MAX, Wakeup::Expiry),
            Some((at, why)) if at < slot.wakes_at => self.wakes_at(index, at, why),
            Some(_) => {}
        }
    }

    /// Moves the wake of `index`.
    fn wakes_at(&mut self, index: u32, at: Time, why: Wakeup) {
        let slot = &mut self.slots[index as usize];
        if slot.wakes_at != Time::MAX {
            self.wakes.remove(&(slot.wakes_at, index));
        }
        (slot.wakes_at, slot.wakes_why) = (at, why);
        if at != Time::MAX {
            self.wakes.insert((at, index));
        }
    }

    /// The next association to wake at or before `now`.
    pub(super) fn wake(&mut self, now: Time) -> Option<u32> {
        let (at, index) = *self.wakes.first()?;
        if at > now {
            return None;
        }
        self.wakes_at(index, Time::MAX, Wakeup::Expiry);
        Some(index)
    }
    /// When the next one wakes, and why.
    pub(super) fn next_wake(&self) -> Option<(Time, Wakeup)> {
        let (at, index) = *self.wakes.first()?;
        let slot = self.slots.get(index as usize)?;
        Some((at, slot.wakes_why))
    }
}
