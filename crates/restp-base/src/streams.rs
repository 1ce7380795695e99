//! Seam between a protocol and an application where one flow carries many streams: open, accept, write, read, end, by stream.

use bytes::Bytes;
use std::fmt;
use thiserror::Error;

/// Names one stream of a flow. Even: whoever opened the flow opened it; odd: the other end. Both count from zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(pub u64);

impl StreamId {
    /// The stream that an end opens as its `ordinal`th, from 0; `by_opener`: that end opened the flow as well.
    pub const fn of(by_opener: bool, ordinal: u64) -> Self {
        StreamId(ordinal << 1 | !by_opener as u64)
    }
    /// How many streams its end has opened before.
    pub const fn ordinal(self) -> u64 {
        self.0 >> 1
    }
    /// The end that opened the flow opened the stream as well.
    pub const fn is_of_opener(self) -> bool {
        self.0 & 1 == 0
    }
}

impl fmt::Display for StreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// What happened to the streams of a flow. Each is told once, until the application has looked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamEvent {
    /// The peer has opened streams: [`Streams::accept`] them until there is none.
    Opened,
    /// There is something to [read](Streams::read), or the direction has ended.
    Readable(StreamId),
    /// A [write](Streams::write) that was refused may be tried again, or will never be taken.
    Writable(StreamId),
    /// The peer takes a further stream: one could not be [opened](Streams::open).
    Available,
}

/// What [`Streams::read`] found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StreamRead {
    /// The next bytes.
    Data(Bytes),
    /// Nothing yet.
    Empty,
    /// The peer has finished and everything was read. A stream that is over says so too.
    End,
    /// The peer has broken the direction off, with this code.
    Reset(u32),
    /// The peer had not finished, and no more will be read: the flow is over, or this end has stopped reading.
    Lost,
}

/// Why no stream was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum StreamOpenError {
    /// As many are open as the peer takes.
    #[error("the peer takes no further stream now; wait until it is available")]
    Limit,
    /// The flow is not established, finished, or over.
    #[error("the flow is not open: no stream can be opened")]
    Closed,
}

/// Why [`Streams::write`] did not take the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum StreamWriteError {
    /// The stream's share of the send buffer is full.
    #[error("the stream's send buffer is full; wait until it is writable")]
    Blocked,
    /// The peer does not read the stream any more, and said so with this code.
    #[error("the peer has stopped reading the stream, code {0}")]
    Stopped(u32),
    /// The direction is finished or broken off, or there is no such stream.
    #[error("the stream is closed for writing")]
    Closed,
}

/// What an application can do with the streams of one flow. Both directions of a stream begin open and end by themselves; it is
/// over, and makes room for another, when both have ended and the end was read.
pub trait Streams {
    /// Opens a stream. The peer hears of it with the first write.
    ///
    /// # Errors
    /// When the peer takes no more, or the flow ends.
    fn open(&mut self) -> Result<StreamId, StreamOpenError>;

    /// The next stream that the peer has opened, in the order of their numbers.
    fn accept(&mut self) -> Option<StreamId>;

    /// Takes bytes to send: all or nothing.
    ///
    /// # Errors
    /// When there is no room, or the direction has ended.
    fn write(&mut self, stream: StreamId, data: Bytes) -> Result<(), StreamWriteError>;

    /// Takes the next bytes, in order.
    fn read(&mut self, stream: StreamId) -> StreamRead;

    /// No more writes will come: everything written is delivered, then the direction ends.
    fn finish(&mut self, stream: StreamId);

    /// Breaks off the direction to the peer: what has not left is dropped.
    fn reset(&mut self, stream: StreamId, code: u32);

    /// Nobody reads any more: what is unread is dropped, and the peer is asked to break its direction off.
    fn stop(&mut self, stream: StreamId, code: u32);

    /// Streams that are not over.
    fn open_streams(&self) -> usize;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_bit_says_who_opened_it() {
        assert_eq!(StreamId::of(true, 0), StreamId(0));
        assert_eq!(StreamId::of(false, 0), StreamId(1));
        let third = StreamId::of(false, 2);
        assert_eq!((third.0, third.ordinal(), third.is_of_opener()), (5, 2, false));
    }
}
