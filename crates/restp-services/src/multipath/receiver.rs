//! What travels from the peer to here, over whatever path: order, the shared buffer, the shared window, the end (ResTP §3.1.13; OP-55;
//! RFC 8684 §3.3.1, §3.3.5).

use super::Shared;
use crate::flow_control::{ReceiveWindow, WindowParameters};
use crate::ordering::{Arrival, Inbox, Ordering, Reassembly, Stretch};
use crate::receiver::{Contradiction, MAX_PIECES, Store};
use bytes::Bytes;
use restp_base::sequence;
use restp_base::time::Time;

/// The receiving side of a connection over several paths.
#[derive(Debug)]
pub struct DataReceiver {
    store: Store,
    window: ReceiveWindow,
    inbox: Inbox,
    /// The window is told to the peer.
    advertises: bool,
    /// Payload bytes of a full segment of ours: what memory the window promises.
    segment_bytes: u32,
    /// Where the peer's segments end, once known.
    fin: Option<u64>,
    /// The application does not read any more.
    discards: bool,
}

impl DataReceiver {
    /// The peer numbers segments; where they begin is said by [`DataReceiver::begin`]. As many as `window` says are taken,
    /// advertised or not.
    pub fn of_segments(window: WindowParameters, advertises: bool, segment_bytes: u32) -> Self {
        DataReceiver {
            store: Store::Unknown,
            window: ReceiveWindow::new(sequence::ORIGIN, window),
            inbox: Inbox::default(),
            advertises,
            segment_bytes,
            fin: None,
            discards: false,
        }
    }

    /// The peer numbers bytes, the first is `next`, and `units` of `1 << shift` are taken, in at most `pieces` out of order.
    pub fn of_bytes(next: u64, shift: u8, units: u32, pieces: usize) -> Self {
        let window = WindowParameters { segments: units };
        DataReceiver {
            store: Store::bytes(next, shift, pieces),
            window: ReceiveWindow::new(next >> shift, window),
            ..DataReceiver::of_segments(window, true, 0)
        }
    }

    /// The peer's first segment is `next`.
    pub fn begin(&mut self, next: u64, ordering: Ordering, window: WindowParameters) {
        self.store = Store::Segments(Reassembly::new(ordering, next));
        self.window = ReceiveWindow::new(next, window);
    }

    /// The lowest number that has not arrived; none before the peer's first is known.
    pub fn next(&self) -> Option<u64> {
        self.store.next()
    }

    /// Is the segment within the window, and does it fit what memory the window promises?
    pub fn takes(&self, number: u64, size: usize) -> bool {
        let Some(next) = self.next() else {
            return false;
        };
        let edge = self.edge();
        if number < next {
            return true; // a copy takes no memory: its path has to answer
        }
        if number == next && edge == next {
            return true; // asks whether the window is still shut: the path has to answer, whatever the reader does
        }
        let most_bytes = self.window.capacity() as usize * self.segment_bytes as usize;
        let before = self.inbox.bytes();
        let fits = if number == next {
            before == 0 || before + size <= most_bytes
        } else {
            self.store.held_bytes() + before + size <= most_bytes
        };
        fits && number < edge
    }

    /// The first number that is not taken.
    fn edge(&self) -> u64 {
        let (next, unread) = self.store.units(&self.inbox);
        match &self.store {
            Store::Bytes { stream, shift, edge } => {
                let window = u64::from(self.window.offer(next, unread)) << shift;
                (*edge).max(stream.next() + window)
            }
            Store::Unknown | Store::Segments(_) => self.window.edge(next, unread),
        }
    }

    /// Takes data that begin with `number`.
    pub(super) fn on_data(
        &mut self,
        now: Time,
        number: u64,
        payload: Bytes,
    ) -> Result<Arrival, Contradiction> {
        let edge = self.edge();
        match &mut self.store {
            Store::Unknown => Err(Contradiction),
            Store::Segments(_) if self.fin.is_some_and(|fin| number >= fin) => Err(Contradiction), // nothing follows the end
            Store::Segments(reassembly) => {
                Ok(reassembly.insert(now, number, Some(payload), edge, &mut self.inbox))
            }
            Store::Bytes { .. } => self.on_stretch(number, payload, false),
        }
    }

    /// The data end at `number`: the end does not move, and nothing lies beyond it.
    pub(super) fn on_fin(&mut self, number: u64) -> Result<Arrival, Contradiction> {
        match &self.store {
            Store::Unknown => Err(Contradiction),
            Store::Segments(reassembly) => {
                let beyond = reassembly.arrived().ranges().last().map_or(0, |last| last.end);
                let moved = self.fin.is_some_and(|fin| fin != number);
                let passed = number < reassembly.next() && self.fin.is_none();
                if moved || passed || number < beyond {
                    return Err(Contradiction);
                }
                self.fin = Some(number);
                Ok(Arrival::InOrder)
            }
            Store::Bytes { .. } => self.on_stretch(number, Bytes::new(), true),
        }
    }

    fn on_stretch(&mut self, start: u64, payload: Bytes, fin: bool) -> Result<Arrival, Contradiction> {
        // An end stands behind the last byte that the window allows.
        let edge = self.edge() + u64::from(fin);
        let Store::Bytes { stream, .. } = &mut self.store else {
            return Err(Contradiction);
        };
        let stretch = Stretch { start, payload, fin };
        if stream.contradicts(&stretch) {
            return Err(Contradiction);
        }
        if self.inbox.len() >= MAX_PIECES {
            return Ok(Arrival::BeyondWindow);
        }
        Ok(stream.insert(stretch, edge, &mut self.inbox))
    }

    /// Number of the end, once everything before it has arrived.
    pub(super) fn end(&mut self, now: Time) -> Option<u64> {
        match &mut self.store {
            Store::Unknown => None,
            Store::Segments(reassembly) => {
                let fin = self.fin.filter(|fin| reassembly.next() >= *fin)?;
                if reassembly.next() == fin {
                    reassembly.insert(now, fin, None, fin + 1, &mut self.inbox); // it needs no room
                }
                Some(fin)
            }
            Store::Bytes { stream, .. } => stream.is_finished().then(|| stream.next() - 1),
        }
    }

    pub(super) fn read(&mut self) -> Option<Bytes> {
        self.inbox.pop()
    }
    pub(super) fn has_news(&mut self, ended: bool) -> bool {
        if self.discards {
            self.inbox.clear();
        }
        self.inbox.has_news(ended)
    }
    pub(super) fn discard(&mut self, from_now_on: bool) {
        self.inbox.clear();
        self.discards |= from_now_on;
    }
    pub(super) fn memory(&self) -> usize {
        self.store.held_bytes() + self.inbox.bytes()
    }

    /// Reading has made room of which a sender that believes there is none should hear.
    pub(super) fn update_is_due(&self) -> bool {
        let (next, unread) = self.store.units(&self.inbox);
        self.advertises && self.next().is_some() && self.window.update_is_due(next, unread)
    }

    pub(super) fn shared(&self, paths: usize) -> Shared {
        let (next, unread) = self.store.units(&self.inbox);
        Shared {
            next: self.next(),
            window: u64::from(self.window.offer(next, unread)) << self.store.shift(),
            edge: self.edge(),
            paths,
        }
    }

    /// A packet with what is `shared` has left: what it promised is taken.
    pub(super) fn on_sent(&mut self, shared: &Shared) {
        let (next, unread) = self.store.units(&self.inbox);
        if self.next().is_some() {
            self.window.advertise(next, unread);
            self.store.promise_bytes(shared.window);
        }
    }
}
