//! One direction of a stream, from here to the peer (RFC 9000 §3.1).

use super::chunks::Chunks;
use super::frame::head_bytes;
use super::{INITIAL_STREAM_BYTES, frame};
use bytes::{Bytes, BytesMut};
use restp_base::streams::{StreamId, StreamWriteError};

/// How far the direction has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Open,
    /// No more is written; the end leaves with the last byte.
    Finishing,
    /// The end has left, or waits in a frame of its own.
    Finished,
    /// Broken off by the peer's wish, which the writer does not know yet.
    Stopped(u32),
    /// Broken off.
    Reset,
}

/// The sending half of one stream.
#[derive(Debug)]
pub(super) struct Sending {
    waiting: Chunks,
    /// Bytes that have left.
    offset: u64,
    /// Bytes that the peer takes, from the beginning on.
    credit: u64,
    state: State,
    /// The turn that it waits for among those that may send, where it is counted with so many bytes.
    pub(super) turn: Option<u64>,
    pub(super) counted: u64,
    writer_waits: bool,
}

impl Sending {
    pub(super) fn new() -> Self {
        Sending {
            waiting: Chunks::default(),
            offset: 0,
            credit: INITIAL_STREAM_BYTES,
            state: State::Open,
            turn: None,
            counted: 0,
            writer_waits: false,
        }
    }

    /// Its writer has not ended it, one way or another.
    pub(super) fn is_open(&self) -> bool {
        matches!(self.state, State::Open | State::Stopped(_))
    }
    /// Nothing leaves any more, and the writer knows.
    pub(super) fn is_over(&self) -> bool {
        matches!(self.state, State::Finished | State::Reset)
    }
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }
    pub(super) fn waiting_bytes(&self) -> usize {
        self.waiting.bytes()
    }
    /// Bytes that may leave as far as the stream is concerned.
    pub(super) fn sendable(&self) -> u64 {
        (self.waiting.bytes() as u64).min(self.credit - self.offset)
    }

    /// Takes bytes while fewer than `share` wait.
    pub(super) fn write(&mut self, data: Bytes, share: usize) -> Result<(), StreamWriteError> {
        match self.state {
            State::Open => {}
            State::Stopped(code) => {
                self.state = State::Reset;
                return Err(StreamWriteError::Stopped(code));
            }
            State::Finishing | State::Finished | State::Reset => return Err(StreamWriteError::Closed),
        }
        if self.waiting.bytes() >= share {
            self.writer_waits = true;
            return Err(StreamWriteError::Blocked);
        }
        self.waiting.push(data);
        Ok(())
    }

    /// True once when a writer was refused and half of `share` is free again, or no write will ever be taken.
    pub(super) fn wakes_writer(&mut self, share: usize) -> bool {
        let wakes = self.writer_waits && (self.waiting.bytes() <= share / 2 || self.state != State::Open);
        self.writer_waits &= !wakes;
        wakes
    }

    /// The peer takes so many bytes; less than it said before is an older word.
    pub(super) fn on_credit(&mut self, most: u64) {
        self.credit = self.credit.max(most);
    }

    /// No more is written. True when nothing waits that the end could leave with.
    pub(super) fn finish(&mut self) -> bool {
        if self.state != State::Open {
            self.learn();
            return false;
        }
        let alone = self.waiting.is_empty();
        self.state = if alone { State::Finished } else { State::Finishing };
        alone
    }

    /// Broken off here. Its size, unless that is known already.
    pub(super) fn reset(&mut self) -> Option<u64> {
        self.learn();
        self.break_off(State::Reset)
    }

    /// Broken off because the peer does not read.
    pub(super) fn on_stop(&mut self, code: u32) -> Option<u64> {
        let writes = self.state == State::Open;
        self.break_off(if writes {
            State::Stopped(code)
        } else {
            State::Reset
        })
    }

    fn break_off(&mut self, state: State) -> Option<u64> {
        if !matches!(self.state, State::Open | State::Finishing) {
            return None;
        }
        self.waiting.clear();
        self.state = state;
        Some(self.offset)
    }

    /// The writer wants no more of it either.
    fn learn(&mut self) {
        if matches!(self.state, State::Stopped(_)) {
            self.state = State::Reset;
        }
    }

    /// The flow is over, and with it the turns.
    pub(super) fn abandon(&mut self) {
        self.waiting.clear();
        (self.turn, self.counted) = (None, 0);
        if self.state != State::Finished {
            self.state = State::Reset;
        }
    }

    /// Writes a frame of `most` bytes of data at most behind `out`, in `room` bytes, but of one byte of data at least. Returns
    /// how many there are.
    pub(super) fn cut(&mut self, id: StreamId, most: u64, room: usize, out: &mut BytesMut) -> u64 {
        let sendable = self.sendable().min(most) as usize;
        let head = head_bytes(id, self.offset, sendable.min(room));
        let size = sendable.min(room.saturating_sub(head).max(1));
        let fin = self.state == State::Finishing && size == self.waiting.bytes();
        frame::put_head(out, id, self.offset, size, fin);
        self.waiting.move_to(size, out);
        self.offset += size as u64;
        if fin {
            self.state = State::Finished;
        }
        size as u64
    }
}
