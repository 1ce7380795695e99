//! Connections take turns to send, wake at their deadlines, and are forgotten when nothing is left of them.

use super::accept::own_token;
use super::held::Held;
use super::{Key, Tcp};
use restp_base::flow::FlowId;
use restp_base::time::Time;
use smallvec::{SmallVec, smallvec};

/// Segments a connection may send in its turn before the next one gets its own.
pub(super) const TURN: u32 = 64;

#[derive(Debug)]
pub(super) struct Slot {
    pub(super) held: Held,
    /// Of its subflows, in their order.
    pub(super) keys: SmallVec<[Key; 1]>,
    /// The application has let it go.
    pub(super) released: bool,
    /// It waits for its turn to send.
    queued: bool,
    /// Its entry in the list of wakes; earlier than its true deadline at worst.
    wakes_at: Option<Time>,
}

impl Tcp {
    pub(super) fn insert(&mut self, key: Key, mut held: Held) -> FlowId {
        let flow = FlowId(self.opened);
        self.opened += 1;
        if let Some(several) = held.several() {
            self.by_token.insert(own_token(several.local_key()), flow);
        }
        let slot = Slot {
            held,
            keys: smallvec![key],
            released: false,
            queued: false,
            wakes_at: None,
        };
        self.slots.insert(flow, slot);
        self.by_key.insert(key, (flow, 0));
        self.touch(flow);
        flow
    }

    /// Something happened to `flow`: its notices become events, it gets a turn.
    pub(super) fn touch(&mut self, flow: FlowId) {
        self.collect(flow);
        if let Some(slot) = self.slots.get_mut(&flow)
            && !std::mem::replace(&mut slot.queued, true)
        {
            self.turns.push_back(flow);
        }
    }

    fn collect(&mut self, flow: FlowId) {
        let Some(slot) = self.slots.get_mut(&flow) else {
            return;
        };
        while let Some(notice) = slot.held.poll_notice() {
            self.events.push_back(notice.of(flow));
        }
    }

    /// Ends the turn of the connection in front: sets its next wake, or forgets it.
    pub(super) fn end_turn(&mut self) {
        self.turn_left = TURN;
        let Some(flow) = self.turns.pop_front() else {
            return;
        };
        self.collect(flow);
        let Some(slot) = self.slots.get_mut(&flow) else {
            return;
        };
        slot.queued = false;
        if !slot.held.is_half_open() {
            self.half_open.remove(&flow);
        }
        for (ordinal, key) in slot.keys.iter().enumerate() {
            if slot.held.has_ended(ordinal) && self.by_key.get(key) == Some(&(flow, ordinal)) {
                self.by_key.remove(key); // what still comes is of no connection
            }
        }
        if slot.held.is_closed() {
            if slot.released || slot.held.is_unknown_to_application() {
                self.forget(flow);
            }
            return;
        }
        let Some((at, _)) = slot.held.deadline() else {
            return;
        };
        if slot.wakes_at.is_none_or(|earlier| at < earlier) {
            if let Some(later) = slot.wakes_at.replace(at) {
                self.wakes.remove(later, flow);
            }
            self.wakes.insert(at, flow);
        }
    }

    fn forget(&mut self, flow: FlowId) {
        let Some(mut slot) = self.slots.remove(&flow) else {
            return;
        };
        if let Some(at) = slot.wakes_at {
            self.wakes.remove(at, flow);
        }
        if let Some(several) = slot.held.several() {
            self.by_token.remove(&own_token(several.local_key()));
        }
    }

    pub(super) fn on_deadlines(&mut self, now: Time) {
        while let Some((at, flow)) = self.wakes.first()
            && at <= now
        {
            self.wakes.remove(at, flow);
            if let Some(slot) = self.slots.get_mut(&flow) {
                slot.wakes_at = None;
                slot.held.on_deadline(now);
            }
            self.settle(now, flow);
            self.touch(flow);
        }
    }
}
