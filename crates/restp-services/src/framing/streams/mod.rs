//! Many streams of bytes in one flow (docs/protocol/streams.md; RFC 9000 §2 to §4): segments are cut from streams in turn, and what
//! arrives, in any order, is put in order per stream, so that a lost segment holds up only the streams that were in it.
//!
//! Below are segments that arrive once each: nothing is acknowledged or retransmitted here, and a direction that has left is forgotten.
//!
//! | File | What |
//! |---|---|
//! | `frame` | the bytes |
//! | `chunks` | bytes that wait |
//! | `credit` | what the peer may send |
//! | `sending`, `receiving` | the two directions of a stream |
//! | `turns` | whose bytes leave next |
//! | `arrival` | what a segment says |

mod arrival;
mod chunks;
mod credit;
mod frame;
mod receiving;
mod sending;
mod turns;

pub use frame::Violation;

use bytes::Bytes;
use credit::Credit;
use frame::Frame;
use receiving::Receiving;
use restp_base::streams::{StreamEvent, StreamId, StreamOpenError, StreamRead, StreamWriteError};
use sending::Sending;
use std::collections::{BTreeMap, VecDeque};
use turns::Turns;

/// Bytes of a stream that may be sent before the peer has said more.
pub const INITIAL_STREAM_BYTES: u64 = 64 * 1024;
/// Bytes of all streams that may be sent before the peer has said more.
pub const INITIAL_BYTES: u64 = 1024 * 1024;
/// Streams that may be opened before the peer has said more.
pub const INITIAL_STREAMS: u64 = 128;
/// Pieces of all streams that are held out of order at most: far more than lost segments leave in a window of them, and so few
/// that pieces of one byte take some 25 MB.
const MOST_PIECES: usize = 1 << 18;
/// A stream may have so much of the send buffer however many there are.
const LEAST_SHARE_BYTES: usize = 16 * 1024;

/// Bounds of streams, where a composition has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamLimits {
    /// Bytes of one stream that wait to be read, at most: a reader that stalls holds up no more than these, and less where many
    /// do. Default 1 MiB: 80 Mbit/s over 100 ms.
    pub window_bytes: u32,
    /// Streams that the peer may have open at once. Default 1024.
    pub most: u32,
}

impl StreamLimits {
    /// See the fields.
    pub const DEFAULT: StreamLimits = StreamLimits {
        window_bytes: 1024 * 1024,
        most: 1024,
    };
}

/// How many streams a flow carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamCounts {
    /// Now: of these a direction is not over yet.
    pub open: u64,
    /// In all, by either end.
    pub opened: u64,
}

/// Both directions of one stream.
#[derive(Debug)]
struct Stream {
    tx: Sending,
    rx: Receiving,
}

/// One end's streams. It is the queue of the sender, which takes a segment from it when one may leave.
#[derive(Debug)]
pub struct Streams {
    limits: StreamLimits,
    /// This end opened the flow.
    opened_here: bool,
    send_buffer_bytes: usize,
    streams: BTreeMap<StreamId, Stream>,
    /// Streams opened here, and how many may be.
    opened: u64,
    may_open: u64,
    opener_waits: bool,
    /// Streams of the peer: opened, taken by the application, and over; and what the peer may open.
    peer_opened: u64,
    peer_accepted: u64,
    peer_streams: Credit,
    application_knows: bool,
    turns: Turns,
    /// What the peer may send of all streams together, and how much of it may wait to be read.
    credit: Credit,
    window_bytes: u64,
    /// Pieces held out of order, of all streams.
    pieces: usize,
    events: VecDeque<StreamEvent>,
    /// No stream is opened here any more; the flow ends when all are over.
    finishing: bool,
    /// The application is gone: what the peer opens is refused.
    discards: bool,
    /// The flow is over.
    ended: bool,
}

impl Streams {
    /// No stream is open.
    pub fn new(limits: StreamLimits) -> Self {
        Streams {
            limits,
            opened_here: true,
            send_buffer_bytes: 0,
            streams: BTreeMap::new(),
            opened: 0,
            may_open: INITIAL_STREAMS,
            opener_waits: false,
            peer_opened: 0,
            peer_accepted: 0,
            peer_streams: Credit::new(INITIAL_STREAMS),
            application_knows: false,
            turns: Turns::new(),
            credit: Credit::new(INITIAL_BYTES),
            window_bytes: INITIAL_BYTES,
            pieces: 0,
            events: VecDeque::new(),
            finishing: false,
            discards: false,
            ended: false,
        }
    }

    /// The flow begins: which end this is, what all streams together may hold to be read, and to be sent.
    pub fn begin(&mut self, opened_here: bool, window_bytes: u64, send_buffer_bytes: usize) {
        self.opened_here = opened_here;
        self.window_bytes = window_bytes.max(INITIAL_BYTES);
        self.send_buffer_bytes = send_buffer_bytes;
    }

    /// Streams share out another send buffer; writers that waited for room are told.
    pub fn share_out(&mut self, send_buffer_bytes: usize) {
        self.send_buffer_bytes = send_buffer_bytes;
        let ids: Vec<_> = self.streams.keys().copied().collect();
        ids.into_iter().for_each(|id| self.refresh(id));
    }

    fn is_own(&self, id: StreamId) -> bool {
        id.is_of_opener() == self.opened_here
    }
    /// Bytes of a stream that wait to be sent, at most.
    fn share(&self) -> usize {
        (self.send_buffer_bytes / self.streams.len().max(1)).max(LEAST_SHARE_BYTES)
    }
    /// Bytes of a stream that may wait to be read: what is free of the buffer is shared by the streams that are open, so that
    /// readers that stall leave room for those that do not, as long as what all may send without being told has room as well: a part
    /// of the buffer is kept for that. What is granted is not taken back: many streams that were fast and whose readers stall at the
    /// same moment may still hold everything until one of them reads.
    fn room_of_one(&self) -> u64 {
        let kept = (INITIAL_STREAM_BYTES * u64::from(self.limits.most)).min(self.window_bytes / 4);
        let free = (self.window_bytes - kept).saturating_sub(self.credit.held());
        let one = free / (self.streams.len() as u64).max(1);
        one.max(INITIAL_STREAM_BYTES).min(self.limits.window_bytes.into())
    }
    fn insert(&mut self, id: StreamId) {
        let (mut tx, rx) = (Sending::new(), Receiving::new());
        if self.turns.is_closed() {
            tx.abandon();
        }
        self.streams.insert(id, Stream { tx, rx });
    }

    /// How many there are, and have been.
    pub fn counts(&self) -> StreamCounts {
        StreamCounts {
            open: self.streams.len() as u64,
            opened: self.opened + self.peer_opened,
        }
    }
    /// There is something to tell.
    pub fn has_events(&self) -> bool {
        !self.events.is_empty()
    }
    /// Moves the next event out; changes nothing else.
    pub fn poll_event(&mut self) -> Option<StreamEvent> {
        self.events.pop_front()
    }
    /// Bytes of memory that the streams keep.
    pub fn memory(&self) -> usize {
        let of = |stream: &Stream| stream.tx.waiting_bytes() + stream.rx.memory();
        let streams = self.streams.values().map(of).sum::<usize>();
        streams + self.streams.len() * size_of::<Stream>() + self.turns.memory()
    }

    /// No stream is opened here any more; those that are open end as their ends want.
    pub fn finish_all(&mut self) {
        self.finishing = true;
    }
    /// The flow may end: that was asked for, and every stream is over.
    pub fn may_end(&self) -> bool {
        self.finishing && (self.ended || self.streams.is_empty() && self.turns.is_empty())
    }
    /// The flow is over, or the peer will send no more.
    pub fn has_ended(&self) -> bool {
        self.ended
    }
    /// Nothing is told any more: the application hears of the end of the flow, which says it all.
    pub fn forget_events(&mut self) {
        self.events.clear();
    }
    /// The application is gone: nothing is read any more, and what is open is broken off unless it was finished.
    pub fn discard(&mut self) {
        self.discards = true;
        let ids: Vec<_> = self.streams.keys().copied().collect();
        ids.into_iter().for_each(|id| self.leave(id));
        self.events.clear();
    }
    fn leave(&mut self, id: StreamId) {
        restp_base::streams::Streams::stop(self, id, 0);
        if self.streams.get(&id).is_some_and(|stream| stream.tx.is_open()) {
            restp_base::streams::Streams::reset(self, id, 0);
        }
    }
    /// The flow is over, or the peer will send no more: what is in order is still read, nothing is sent.
    pub fn on_flow_end(&mut self) {
        if std::mem::replace(&mut self.ended, true) {
            return;
        }
        self.close();
        let share = self.share();
        self.pieces = 0;
        for (id, stream) in &mut self.streams {
            stream.rx.on_flow_end();
            if stream.rx.has_news() {
                self.events.push_back(StreamEvent::Readable(*id));
            }
            if stream.tx.wakes_writer(share) {
                self.events.push_back(StreamEvent::Writable(*id));
            }
        }
        if std::mem::take(&mut self.opener_waits) {
            self.events.push_back(StreamEvent::Available);
        }
    }
    /// Nothing is sent any more: this end's FIN leaves, or the flow is over.
    pub fn close(&mut self) {
        self.turns.close();
        self.streams.values_mut().for_each(|stream| stream.tx.abandon());
    }

    /// The peer may send more than it knows: of a stream, if it is open, and of all. How much is said, and granted, when the frame
    /// leaves: who takes nothing gets nothing.
    fn grant(&mut self, id: StreamId) {
        let room = self.room_of_one();
        if let Some(stream) = self.streams.get_mut(&id)
            && stream.rx.credit_falls_due(room)
        {
            self.turns.announce(Frame::StreamCredit { id, most: 0 });
        }
        if self.credit.falls_due(self.window_bytes) {
            self.turns.announce(Frame::Credit { most: 0 });
        }
    }

    /// Forgets the stream if both directions are over.
    fn sweep(&mut self, id: StreamId) {
        let is_over = |stream: &Stream| stream.tx.is_over() && stream.rx.is_over();
        if !self.streams.get(&id).is_some_and(is_over) {
            return;
        }
        self.streams.remove(&id);
        if !self.is_own(id) {
            self.peer_streams.consume_up_to(self.peer_streams.consumed() + 1);
            self.grant_streams();
        }
    }

    fn grant_streams(&mut self) {
        if self.peer_streams.falls_due(self.limits.most.into()) {
            self.turns.announce(Frame::Streams { most: 0 });
        }
    }

    /// Does something to the receiving half of a stream, if it is there, and books what that means for all: bytes that came, bytes
    /// that make room, pieces.
    fn receive<T>(
        &mut self,
        id: StreamId,
        call: impl FnOnce(&mut Receiving) -> T,
    ) -> Result<Option<T>, Violation> {
        let Some(Stream { rx, .. }) = self.streams.get_mut(&id) else {
            return Ok(None);
        };
        let (used, consumed, pieces) = (rx.used(), rx.consumed(), rx.pieces());
        let result = call(rx);
        self.pieces = self.pieces + rx.pieces() - pieces;
        let (used, consumed) = (rx.used() - used, rx.consumed() - consumed);
        if rx.has_news() {
            self.events.push_back(StreamEvent::Readable(id));
        }
        self.credit.use_up_to(self.credit.used() + used)?;
        self.credit.consume_up_to(self.credit.consumed() + consumed);
        if self.pieces > MOST_PIECES {
            return Err(Violation("streams arrive in too many pieces"));
        }
        self.grant(id);
        self.sweep(id);
        Ok(Some(result))
    }

    /// The stream may have become able to send, or unable; its writer may have to hear of it.
    fn refresh(&mut self, id: StreamId) {
        let share = self.share();
        let Some(stream) = self.streams.get_mut(&id) else {
            return;
        };
        self.turns.recount(id, &mut stream.tx);
        if stream.tx.wakes_writer(share) {
            self.events.push_back(StreamEvent::Writable(id));
        }
    }
}

impl restp_base::streams::Streams for Streams {
    fn open(&mut self) -> Result<StreamId, StreamOpenError> {
        if self.finishing || self.ended || self.discards {
            return Err(StreamOpenError::Closed);
        }
        if self.opened >= self.may_open {
            self.opener_waits = true;
            return Err(StreamOpenError::Limit);
        }
        let id = StreamId::of(self.opened_here, self.opened);
        self.opened += 1;
        self.insert(id);
        Ok(id)
    }

    fn accept(&mut self) -> Option<StreamId> {
        if self.peer_accepted == self.peer_opened {
            self.application_knows = false;
            return None;
        }
        let id = StreamId::of(!self.opened_here, self.peer_accepted);
        self.peer_accepted += 1;
        Some(id)
    }

    fn write(&mut self, id: StreamId, data: Bytes) -> Result<(), StreamWriteError> {
        let (share, room) = (self.share(), self.room_of_one());
        let stream = self.streams.get_mut(&id).ok_or(StreamWriteError::Closed)?;
        let written = stream.tx.write(data, share);
        // It leaves with what was written, so that an answer need not wait for a round trip.
        if written.is_ok() && stream.rx.first_credit_falls_due(room) {
            self.turns.announce(Frame::StreamCredit { id, most: 0 });
        }
        self.refresh(id);
        self.sweep(id);
        written
    }

    fn read(&mut self, id: StreamId) -> StreamRead {
        if !self.is_own(id) && id.ordinal() >= self.peer_opened {
            return StreamRead::Empty; // nothing of it has come
        }
        let read = self.receive(id, Receiving::read); // uses nothing up, so it breaks no rule
        let over = if self.discards {
            StreamRead::Lost
        } else {
            StreamRead::End
        };
        read.ok().flatten().unwrap_or(over)
    }

    fn finish(&mut self, id: StreamId) {
        let Some(stream) = self.streams.get_mut(&id) else {
            return;
        };
        if stream.tx.finish() {
            let (offset, data, fin) = (stream.tx.offset(), Bytes::new(), true);
            self.turns.announce(Frame::Data {
                id,
                offset,
                data,
                fin,
            });
        }
        self.refresh(id);
        self.sweep(id);
    }

    fn reset(&mut self, id: StreamId, code: u32) {
        let Some(stream) = self.streams.get_mut(&id) else {
            return;
        };
        if let Some(size) = stream.tx.reset() {
            self.turns.announce(Frame::Reset { id, code, size });
        }
        self.refresh(id);
        self.sweep(id);
    }

    fn stop(&mut self, id: StreamId, code: u32) {
        if self.receive(id, Receiving::stop) == Ok(Some(true)) {
            self.turns.announce(Frame::Stop { id, code });
        }
    }

    fn open_streams(&self) -> usize {
        self.streams.len()
    }
}

#[cfg(test)]
mod tests;
