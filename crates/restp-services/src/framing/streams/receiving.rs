//! One direction of a stream, from the peer to here (RFC 9000 §3.2).

use super::chunks::Chunks;
use super::credit::Credit;
use super::frame::Violation;
use super::{INITIAL_STREAM_BYTES, MOST_PIECES};
use crate::ordering::{Arrival, ByteStream, Stretch};
use bytes::Bytes;
use restp_base::streams::StreamRead;

/// How far the direction has come, for the reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Open,
    /// The peer has broken it off.
    Reset(u32),
    /// The flow is over.
    Lost,
    /// Nobody reads any more, though more may come.
    Stopped,
    /// The reader knows the end.
    Over,
}

/// The receiving half of one stream.
#[derive(Debug)]
pub(super) struct Receiving {
    stream: ByteStream,
    ready: Chunks,
    /// What the peer may send.
    credit: Credit,
    /// Where it ends, once known.
    size: Option<u64>,
    state: State,
    reader_knows: bool,
}

impl Receiving {
    pub(super) fn new() -> Self {
        Receiving {
            stream: nothing_held(),
            ready: Chunks::default(),
            credit: Credit::new(INITIAL_STREAM_BYTES),
            size: None,
            state: State::Open,
            reader_knows: false,
        }
    }

    /// The reader has learnt the end, or will not, and everything that the peer has sent is accounted for.
    pub(super) fn is_over(&self) -> bool {
        match self.state {
            State::Over => true,
            State::Stopped => self.size == Some(self.credit.used()),
            State::Open | State::Reset(_) | State::Lost => false,
        }
    }
    pub(super) fn pieces(&self) -> usize {
        self.stream.pieces()
    }
    pub(super) fn memory(&self) -> usize {
        self.stream.held_bytes() + self.ready.bytes()
    }
    /// Bytes that the peer has sent, as far as is known.
    pub(super) fn used(&self) -> u64 {
        self.credit.used()
    }
    /// Bytes that were read, or dropped.
    pub(super) fn consumed(&self) -> u64 {
        self.credit.consumed()
    }

    /// Bytes of the stream have arrived, and perhaps its end.
    pub(super) fn on_data(&mut self, offset: u64, data: Bytes, fin: bool) -> Result<(), Violation> {
        let end = offset + data.len() as u64;
        self.credit.use_up_to(end)?;
        if self
            .size
            .is_some_and(|size| if fin { end != size } else { end > size })
            || fin && end < self.credit.used()
        {
            return Err(Violation("a stream has two ends"));
        }
        if fin {
            self.size = Some(end);
        }
        if self.state != State::Open {
            self.credit.consume_up_to(self.credit.used()); // nobody reads it
            return Ok(());
        }
        let stretch = Stretch {
            start: offset,
            payload: data,
            fin,
        };
        match self.stream.insert(stretch, u64::MAX, &mut self.ready) {
            Arrival::BeyondWindow => Err(Violation("a stream arrives in too many pieces")),
            _ => Ok(()),
        }
    }

    /// The peer breaks off at `size` bytes. What is complete all the same is still read.
    pub(super) fn on_reset(&mut self, code: u32, size: u64) -> Result<(), Violation> {
        self.credit.use_up_to(size)?;
        if self.size.is_some_and(|known| known != size) || size < self.credit.used() {
            return Err(Violation("a stream has two ends"));
        }
        self.size = Some(size);
        if self.state == State::Open && !self.stream.is_finished() {
            self.state = State::Reset(code);
            self.drop_unread();
        }
        if self.state == State::Stopped {
            self.credit.consume_up_to(size);
        }
        Ok(())
    }

    /// The flow is over: what is in order is still read, and what is not never will be.
    pub(super) fn on_flow_end(&mut self) {
        if self.state == State::Open && !self.stream.is_finished() {
            self.state = State::Lost;
            self.stream = nothing_held();
        }
    }

    /// Nobody reads any more. True when the peer has to hear of it.
    pub(super) fn stop(&mut self) -> bool {
        let news = self.state == State::Open && self.size.is_none();
        if self.state != State::Over {
            self.state = State::Stopped;
            self.drop_unread();
        }
        news
    }

    fn drop_unread(&mut self) {
        self.ready.clear();
        self.stream = nothing_held();
        self.credit.consume_up_to(self.credit.used());
    }

    /// True when the reader has to be told of something: once, until it finds nothing.
    pub(super) fn has_news(&mut self) -> bool {
        let something = match self.state {
            State::Open => !self.ready.is_empty() || self.stream.is_finished(),
            State::Reset(_) | State::Lost => true,
            State::Stopped | State::Over => false,
        };
        let news = something && !self.reader_knows;
        self.reader_knows |= news;
        news
    }

    /// The next bytes for the reader.
    pub(super) fn read(&mut self) -> StreamRead {
        if let Some(data) = self.ready.pop() {
            self.credit
                .consume_up_to(self.credit.consumed() + data.len() as u64);
            return StreamRead::Data(data);
        }
        match self.state {
            State::Open if !self.stream.is_finished() => {
                self.reader_knows = false;
                StreamRead::Empty
            }
            State::Reset(code) => {
                self.state = State::Over;
                StreamRead::Reset(code)
            }
            State::Lost => {
                self.state = State::Over;
                StreamRead::Lost
            }
            State::Open | State::Over => {
                self.state = State::Over;
                StreamRead::End
            }
            State::Stopped => StreamRead::Lost,
        }
    }

    /// True once, until it is granted, when the peer should know that more may come, `window` bytes of it unread at most. Never
    /// once the end is known.
    pub(super) fn credit_falls_due(&mut self, window: u64) -> bool {
        self.size.is_none() && self.credit.falls_due(window)
    }

    /// The same for the first word about it.
    pub(super) fn first_credit_falls_due(&mut self, window: u64) -> bool {
        self.size.is_none() && self.state == State::Open && self.credit.first_falls_due(window)
    }

    /// What it is told.
    pub(super) fn grant(&mut self, window: u64) -> u64 {
        self.credit.grant(window)
    }
}

/// Nobody asks which bytes have arrived, so nothing is kept to say it.
fn nothing_held() -> ByteStream {
    ByteStream::unreported(0, MOST_PIECES)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ranges of what had arrived lay in a row: with a byte between a hundred thousand others a megabyte was moved.
    #[test]
    fn no_report_is_kept_of_bytes_out_of_order() {
        let mut rx = Receiving::new();
        for at in [40, 20, 30, 10] {
            rx.on_data(at, Bytes::from_static(b"x"), false).unwrap();
        }
        assert_eq!((rx.pieces(), rx.stream.arrived().ranges().total()), (4, 0));
        rx.drop_unread();
        rx.on_data(50, Bytes::from_static(b"x"), false).unwrap();
        assert_eq!((rx.pieces(), rx.stream.arrived().ranges().total()), (1, 0));
    }
}
