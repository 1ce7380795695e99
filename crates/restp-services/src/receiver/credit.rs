//! What the peer may send (ResTP §3.5.4, RFC 9293 §3.8.6).

use super::{Receiver, Store};

impl Receiver {
    /// RCV.NXT and what waits for the reader, in units of the window.
    fn units(&self) -> (u64, u64) {
        self.store.units(&self.inbox)
    }

    /// The first number that is not taken.
    pub fn edge(&self) -> u64 {
        match &self.store {
            Store::Bytes { edge, .. } => *edge,
            Store::Unknown | Store::Segments(_) => {
                let (next, unread) = self.units();
                self.window.edge(next, unread)
            }
        }
    }

    /// Bytes of the buffer that are free, besides `elsewhere` that the protocol holds of what it took out.
    pub fn free_bytes(&self, elsewhere: usize) -> u64 {
        self.most_bytes().saturating_sub(self.held_bytes() + elsewhere) as u64
    }

    /// The window for the packet that leaves now.
    pub fn advertise(&mut self) -> u16 {
        let (next, unread) = self.units();
        let window = self.window.advertise(next, unread);
        self.promise_units(window);
        window
    }

    /// The next packet says what is granted by itself, so that no update is due for it.
    pub fn needs_no_update(&mut self) {
        let (next, unread) = self.units();
        self.window.advertise(next, unread);
    }

    /// The peer was told a window of so many units that is not this receiver's own: it takes no less.
    pub fn promise_units(&mut self, window: u16) {
        self.store.promise_bytes(u64::from(window) << self.store.shift());
    }
    /// The same in bytes from RCV.NXT on.
    pub fn promise_bytes(&mut self, bytes: u64) {
        self.store.promise_bytes(bytes);
    }

    /// Reading has made room: a sender that believes there is none hears of it, once however much is read, because retransmissions
    /// would count as duplicates.
    pub(super) fn offer_window(&mut self) {
        let (next, unread) = self.units();
        if self.window.update_is_due(next, unread) {
            self.ack.on_urgent_once();
        }
    }

    /// How far the window in a header is shifted.
    pub fn window_shift(&self) -> u8 {
        self.store.shift()
    }
}
