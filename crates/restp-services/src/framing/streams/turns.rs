//! Whose bytes leave next: frames that are not data first, then streams in turn, as much of each as a segment holds. A stream
//! that shares a segment with others goes on in the next one until its turn is used up, so that all get the same (RFC 9000 §2.3).

use super::frame::{CONTROL_BYTES, Frame, HEAD_BYTES};
use super::sending::Sending;
use super::{INITIAL_BYTES, Stream, Streams};
use bytes::{Bytes, BytesMut};
use restp_base::streams::StreamId;
use std::collections::{BTreeMap, VecDeque};

/// A frame with fewer bytes of a stream is not begun at the end of a segment.
const LEAST_DATA_BYTES: usize = 32;

/// What waits to leave.
#[derive(Debug)]
pub(super) struct Turns {
    /// Frames that are not data, and lone ends. At most four of a stream.
    control: VecDeque<Frame>,
    /// Streams with bytes that the peer takes of them, by the turn that each waits for.
    ready: BTreeMap<u64, StreamId>,
    turns: u64,
    /// Their bytes.
    ready_bytes: u64,
    /// What the first of them has left of its turn; 0: its turn has not begun.
    left: u64,
    /// Bytes of all streams that have left, and that the peer takes.
    sent: u64,
    may_send: u64,
    /// Nothing leaves any more.
    closed: bool,
}

impl Turns {
    pub(super) fn new() -> Self {
        Turns {
            control: VecDeque::new(),
            ready: BTreeMap::new(),
            turns: 0,
            ready_bytes: 0,
            left: 0,
            sent: 0,
            may_send: INITIAL_BYTES,
            closed: false,
        }
    }

    /// What waits is dropped, and nothing is taken any more.
    pub(super) fn close(&mut self) {
        *self = Turns {
            closed: true,
            ..Turns::new()
        };
    }
    pub(super) fn is_closed(&self) -> bool {
        self.closed
    }

    /// Nothing may leave.
    pub(super) fn is_empty(&self) -> bool {
        self.control.is_empty() && !self.has_data()
    }
    fn has_data(&self) -> bool {
        self.may_send > self.sent && !self.ready.is_empty()
    }
    pub(super) fn memory(&self) -> usize {
        self.control.capacity() * size_of::<Frame>() + self.ready.len() * size_of::<(u64, StreamId)>()
    }

    /// The peer takes so many bytes of all streams; less than it said before is an older word.
    pub(super) fn on_credit(&mut self, most: u64) {
        self.may_send = self.may_send.max(most);
    }

    /// The frame leaves before any data.
    pub(super) fn announce(&mut self, frame: Frame) {
        if !self.closed {
            self.control.push_back(frame);
        }
    }

    /// The stream has other bytes to send than when it was counted.
    pub(super) fn recount(&mut self, id: StreamId, tx: &mut Sending) {
        let sendable = tx.sendable();
        self.ready_bytes = self.ready_bytes + sendable - tx.counted;
        tx.counted = sendable;
        match tx.turn {
            None if sendable > 0 => tx.turn = Some(self.line_up(id)),
            Some(turn) if sendable == 0 => {
                tx.turn = None;
                self.leave(turn);
            }
            Some(_) | None => {}
        }
    }

    /// The stream waits for the turn after all others.
    fn line_up(&mut self, id: StreamId) -> u64 {
        self.turns += 1;
        self.ready.insert(self.turns, id);
        self.turns
    }

    /// The turn is over. What is left of one that had begun is not given to the next stream.
    fn leave(&mut self, turn: u64) {
        if self
            .ready
            .first_key_value()
            .is_some_and(|(first, _)| *first == turn)
        {
            self.left = 0;
        }
        self.ready.remove(&turn);
    }
}

impl Streams {
    /// Nothing may leave now.
    pub fn is_empty(&self) -> bool {
        self.turns.is_empty()
    }

    /// Bytes that may leave now, frames included: at least as many as there are.
    pub fn bytes(&self) -> usize {
        let turns = &self.turns;
        let control = turns.control.len() * CONTROL_BYTES;
        if !turns.has_data() {
            return control;
        }
        let data = turns.ready_bytes.min(turns.may_send - turns.sent) as usize;
        control + data + turns.ready.len() * HEAD_BYTES
    }

    /// The next segment, of at most `room` bytes, or one frame if that is larger. None if and only if nothing may leave.
    pub fn next_segment(&mut self, room: usize) -> Option<Bytes> {
        let mut out = BytesMut::with_capacity(room.min(self.bytes()));
        while !self.turns.control.is_empty() && (out.is_empty() || out.len() + CONTROL_BYTES <= room) {
            self.next_control(&mut out);
        }
        let begins = |out: &BytesMut| out.is_empty() || out.len() + HEAD_BYTES + LEAST_DATA_BYTES <= room;
        while self.turns.has_data() && begins(&out) {
            self.next_data(room, &mut out);
        }
        (!out.is_empty()).then(|| out.freeze())
    }

    fn next_control(&mut self, out: &mut BytesMut) {
        let Some(mut frame) = self.turns.control.pop_front() else {
            return;
        };
        let room = self.room_of_one();
        match &mut frame {
            // One that is over needs none, and says so.
            Frame::StreamCredit { id, most } => {
                *most = self.streams.get_mut(id).map_or(0, |stream| stream.rx.grant(room));
            }
            Frame::Credit { most } => *most = self.credit.grant(self.window_bytes),
            Frame::Streams { most } => *most = self.peer_streams.grant(self.limits.most.into()),
            Frame::Data { .. } | Frame::Reset { .. } | Frame::Stop { .. } => {}
        }
        frame.emit(out);
    }

    fn next_data(&mut self, room: usize, out: &mut BytesMut) {
        let turns = &mut self.turns;
        let Some((turn, id)) = turns.ready.first_key_value().map(|(turn, id)| (*turn, *id)) else {
            return;
        };
        let Some(Stream { tx, .. }) = self.streams.get_mut(&id) else {
            turns.leave(turn);
            return;
        };
        if turns.left == 0 {
            turns.left = room.max(1) as u64;
        }
        let most = turns.left.min(turns.may_send - turns.sent);
        let size = tx.cut(id, most, room.saturating_sub(out.len()), out);
        turns.sent += size;
        turns.left -= size;
        let uses_up = turns.left == 0;
        turns.recount(id, tx);
        if uses_up && tx.turn.is_some() {
            turns.leave(turn);
            tx.turn = Some(turns.line_up(id));
        }
        self.refresh(id);
        self.sweep(id);
    }
}
