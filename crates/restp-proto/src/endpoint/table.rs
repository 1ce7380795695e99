//! The associations of an endpoint: found by key or by name, and woken in the order of their deadlines.

use super::session::Session;
use crate::connection::Ports;
use restp_base::flow::FlowId;
use restp_base::machine::Wakeup;
use restp_base::sources::Sources;
use restp_base::time::Time;
use restp_base::wakes::Wakes;
use smallvec::SmallVec;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};

/// What tells one association from another (ResTP §3.1.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) ports: Ports,
    pub(super) remote: SocketAddr,
}

/// Keys whose place is remembered.
const RECENT: usize = 16;

impl Key {
    /// Where it is remembered: the bits in which paths and peers differ most.
    fn bits(&self) -> usize {
        let last = match self.remote.ip() {
            IpAddr::V4(address) => address.octets()[3],
            IpAddr::V6(address) => address.octets()[15],
        };
        let ports = self.ports.local ^ self.ports.remote ^ self.remote.port();
        usize::from(ports ^ u16::from(last)) % RECENT
    }
}

#[derive(Debug)]
struct Slot {
    generation: u32,
    session: Option<Box<Session>>,
    /// Where it is found: one key per path.
    keys: SmallVec<[Key; 1]>,
    /// How further paths name it.
    token: Option<[u8; 4]>,
    /// Who asked for it; none where it was opened here.
    source: Option<IpAddr>,
    /// The application has let it go: it is forgotten as soon as it is closed.
    released: bool,
    /// It waits for its turn to send.
    queued: bool,
    /// Its one entry among the wakes, and why: earlier than its true deadline at worst, because a deadline that
    /// moves away with every packet is not followed. `Time::MAX` for none.
    wakes_at: Time,
    wakes_why: Wakeup,
}

/// May a source that has `own` of `all` in use, of `max`, take another? Once half are in use each has a sixteenth, so that
/// nobody takes the places of all others.
fn has_room(all: usize, own: usize, max: usize) -> bool {
    all < max / 2 || all < max && own < (max / 16).max(4)
}

/// All associations of an endpoint.
#[derive(Debug, Default)]
pub(super) struct Table {
    slots: Vec<Slot>,
    free: Vec<u32>,
    /// Slot and ordinal of the path.
    by_key: BTreeMap<Key, (u32, u8)>,
    /// The same keys, in the order of where the other ends are.
    by_remote: BTreeSet<(SocketAddr, Ports)>,
    by_token: BTreeMap<[u8; 4], u32>,
    wakes: Wakes<u32>,
    /// What was found lately, each by a few bits of its key: most datagrams are for one of those.
    recent: [Option<(Key, (u32, u8))>; RECENT],
    half_open: BTreeSet<u32>,
    /// Whose those are, and whose all are that were asked for.
    half_open_of: Sources,
    holders: Sources,
    /// The same as `half_open` for those whose peer has proved its address: neither kind can crowd out the other.
    early: BTreeSet<u32>,
}

impl Table {
    pub(super) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }
    /// Is there room among `max` associations for one more that the source of `address` asks for?
    pub(super) fn has_room(&self, address: IpAddr, max: usize) -> bool {
        has_room(self.len(), self.holders.count(address), max)
    }
    /// The same among `max` associations whose set-up is not complete.
    pub(super) fn has_half_open_room(&self, address: IpAddr, max: usize) -> bool {
        has_room(self.half_open.len(), self.half_open_of.count(address), max)
    }
    /// Those that take data all the same.
    pub(super) fn early(&self) -> usize {
        self.early.len()
    }

    /// Where the packet of `key` belongs: slot, and ordinal of the path.
    pub(super) fn find(&mut self, key: &Key) -> Option<(u32, u8)> {
        let recent = &mut self.recent[key.bits()];
        if let Some((known, found)) = recent
            && known == key
        {
            return Some(*found);
        }
        let found = *self.by_key.get(key)?;
        *recent = Some((*key, found));
        Some(found)
    }
    pub(super) fn contains(&self, key: &Key) -> bool {
        self.by_key.contains_key(key)
    }
    pub(super) fn at(&mut self, index: u32) -> Option<&mut Session> {
        self.slots.get_mut(index as usize)?.session.as_deref_mut()
    }
    pub(super) fn get(&self, flow: FlowId) -> Option<&Session> {
        let slot = self.slots.get(flow.0 as u32 as usize)?;
        slot.session
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
        let indices: BTreeSet<u32> = self.by_key.values().map(|(index, _)| *index).collect();
        let begins_there = |index: &u32| self.at(*index).is_some_and(|session| session.is_on(local));
        indices.into_iter().filter(begins_there).collect()
    }

    /// Takes a flow whose first path, if it has one yet, is found by `key`.
    pub(super) fn insert(&mut self, key: Option<Key>, session: Session) -> u32 {
        let (half_open, early) = (session.is_half_open(), session.takes_early_data());
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot {
                generation: 0,
                session: None,
                keys: SmallVec::new(),
                token: None,
                source: None,
                released: false,
                queued: false,
                wakes_at: Time::MAX,
                wakes_why: Wakeup::Expiry,
            });
            self.slots.len() as u32 - 1
        });
        let slot = &mut self.slots[index as usize];
        slot.session = Some(Box::new(session));
        (slot.released, slot.queued, slot.wakes_at) = (false, false, Time::MAX);
        if let Some(key) = key {
            self.add_key(index, key, 0);
        }
        if half_open && early {
            self.early.insert(index);
        } else if half_open {
            self.half_open.insert(index);
        }
        index
    }

    /// Takes a flow that the peer of `key` asked for.
    pub(super) fn accept(&mut self, key: Key, session: Session) -> u32 {
        let index = self.insert(Some(key), session);
        let source = key.remote.ip();
        self.slots[index as usize].source = Some(source);
        self.holders.enter(source);
        if self.half_open.contains(&index) {
            self.half_open_of.enter(source);
        }
        index
    }

    /// The set-up of `index` is complete, or over.
    fn set_up(&mut self, index: u32) {
        let source = self.slots[index as usize].source;
        if self.half_open.remove(&index)
            && let Some(source) = source
        {
            self.half_open_of.leave(source);
        }
        self.early.remove(&index);
    }

    /// The path `ordinal` of `index` is found by `key`.
    pub(super) fn add_key(&mut self, index: u32, key: Key, ordinal: u8) {
        self.by_key.insert(key, (index, ordinal));
        self.by_remote.insert((key.remote, key.ports));
        self.slots[index as usize].keys.push(key);
        self.recent[key.bits()] = None;
    }
    /// A path of `index` is gone, or is found elsewhere.
    pub(super) fn remove_key(&mut self, index: u32, key: &Key) {
        if self.by_key.get(key).is_some_and(|(owner, _)| *owner == index) {
            self.by_key.remove(key);
            self.by_remote.remove(&(key.remote, key.ports));
        }
        self.slots[index as usize].keys.retain(|own| own != key);
        self.recent[key.bits()] = None;
    }
    /// Is any path of `index` found?
    pub(super) fn has_path(&self, index: u32) -> bool {
        self.slots
            .get(index as usize)
            .is_some_and(|slot| !slot.keys.is_empty())
    }
    /// Further paths name `index` by `token`.
    pub(super) fn set_token(&mut self, index: u32, token: [u8; 4]) {
        self.by_token.insert(token, index);
        self.slots[index as usize].token = Some(token);
    }
    /// The association that `token` names.
    pub(super) fn by_token(&self, token: [u8; 4]) -> Option<u32> {
        self.by_token.get(&token).copied()
    }
    /// The paths between `ports`.
    pub(super) fn between(&self, ports: Ports) -> impl Iterator<Item = (Key, u32, u8)> {
        let lowest = Key {
            ports,
            remote: SocketAddr::from(([0, 0, 0, 0], 0)),
        };
        let all = self.by_key.range(lowest..);
        let between = all.take_while(move |(key, _)| key.ports == ports);
        between.map(|(key, (index, ordinal))| (*key, *index, *ordinal))
    }

    /// The paths whose other end is at `remote`.
    pub(super) fn at_remote(&self, remote: SocketAddr) -> Vec<(Key, u32, u8)> {
        let lowest = Ports { local: 0, remote: 0 };
        let from = self.by_remote.range((remote, lowest)..);
        let there = from.take_while(|(other, _)| *other == remote);
        there
            .map(|&(remote, ports)| Key { ports, remote })
            .filter_map(|key| {
                self.by_key
                    .get(&key)
                    .map(|(index, ordinal)| (key, *index, *ordinal))
            })
            .collect()
    }

    /// The application has let `index` go.
    pub(super) fn release(&mut self, index: u32) {
        self.slots[index as usize].released = true;
    }

    /// Frees the ports of an association the protocol is done with, and forgets it when the application is, too.
    pub(super) fn sweep(&mut self, index: u32) {
        let Some(slot) = self.slots.get_mut(index as usize) else {
            return;
        };
        let Some(session) = slot.session.as_ref().filter(|session| session.is_closed()) else {
            return;
        };
        if slot.queued {
            return;
        }
        let done = slot.released || session.is_unknown();
        let (keys, token) = (std::mem::take(&mut slot.keys), slot.token.take());
        for key in keys {
            self.remove_key(index, &key);
        }
        if let Some(token) = token {
            self.by_token.remove(&token);
        }
        if done {
            self.wakes_at(index, Time::MAX, Wakeup::Expiry);
            self.set_up(index);
            let slot = &mut self.slots[index as usize];
            if let Some(source) = slot.source.take() {
                self.holders.leave(source);
            }
            slot.session = None;
            slot.generation = slot.generation.wrapping_add(1);
            self.free.push(index);
        }
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
        let (session, wakes_at) = (slot.session.as_ref(), slot.wakes_at);
        let deadline = session.and_then(|session| session.deadline());
        let some = !self.half_open.is_empty() || !self.early.is_empty();
        if some && !session.is_some_and(|session| session.is_half_open()) {
            self.set_up(index);
        }
        match deadline {
            None => self.wakes_at(index, Time::MAX, Wakeup::Expiry),
            Some((at, why)) if at < wakes_at => self.wakes_at(index, at, why),
            Some(_) => {}
        }
    }

    /// Moves the wake of `index`.
    fn wakes_at(&mut self, index: u32, at: Time, why: Wakeup) {
        let slot = &mut self.slots[index as usize];
        if slot.wakes_at != Time::MAX {
            self.wakes.remove(slot.wakes_at, index);
        }
        (slot.wakes_at, slot.wakes_why) = (at, why);
        if at != Time::MAX {
            self.wakes.insert(at, index);
        }
    }

    /// The next association to wake at or before `now`.
    pub(super) fn wake(&mut self, now: Time) -> Option<u32> {
        let (at, index) = self.wakes.first()?;
        if at > now {
            return None;
        }
        self.wakes_at(index, Time::MAX, Wakeup::Expiry);
        Some(index)
    }
    /// When the next one wakes, and why.
    pub(super) fn next_wake(&self) -> Option<(Time, Wakeup)> {
        let (at, index) = self.wakes.first()?;
        let slot = self.slots.get(index as usize)?;
        Some((at, slot.wakes_why))
    }
}
