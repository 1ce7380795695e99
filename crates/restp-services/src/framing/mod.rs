//! How application frames become segments (ResTP §3.5.3, OP-18). The connection puts writes in and takes one
//! segment's payload at a time, when it may send.

mod boundaries;
mod coalesce;
mod fixed;
mod send_buffer;
mod streams;

pub use boundaries::Boundaries;
pub use send_buffer::SendBuffer;
pub use streams::{
    INITIAL_BYTES, INITIAL_STREAM_BYTES, INITIAL_STREAMS, StreamCounts, StreamLimits, Streams, Violation,
};

use bytes::Bytes;
use std::collections::VecDeque;

/// Framing mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// One frame, one segment, one read; boundaries survive retransmission.
    Fixed,
    /// Frames share segments; a stream of bytes, boundaries are not preserved.
    Coalesce,
    /// Many streams of bytes share segments, each in order by itself.
    Streams(StreamLimits),
}

impl Framing {
    /// Every mode with its name in compositions.
    pub const ALL: [(&'static str, Framing); 3] = [
        ("fixed", Framing::Fixed),
        ("coalesce", Framing::Coalesce),
        ("streams", Framing::Streams(StreamLimits::DEFAULT)),
    ];

    /// Its name in compositions.
    pub const fn name(&self) -> &'static str {
        match self {
            Framing::Fixed => Framing::ALL[0].0,
            Framing::Coalesce => Framing::ALL[1].0,
            Framing::Streams(_) => Framing::ALL[2].0,
        }
    }

    /// What is read are bytes without boundaries.
    pub const fn is_byte_stream(&self) -> bool {
        matches!(self, Framing::Coalesce | Framing::Streams(_))
    }

    /// Many streams share the segments.
    pub const fn has_streams(&self) -> bool {
        matches!(self, Framing::Streams(_))
    }
}

/// Data written and not yet numbered.
#[derive(Debug)]
pub struct SendQueue {
    framing: Framing,
    frames: VecDeque<Bytes>,
    bytes: usize,
    /// A write was refused for lack of room. It goes with the queue: whoever has that when there is room tells the writer.
    writer_waits: bool,
    /// With streams: what the frames are cut from.
    streams: Option<Box<Streams>>,
}

impl SendQueue {
    /// An empty queue; it takes no memory until something is written.
    pub fn new(framing: Framing) -> Self {
        SendQueue {
            framing,
            frames: VecDeque::new(),
            bytes: 0,
            writer_waits: false,
            streams: match framing {
                Framing::Streams(limits) => Some(Box::new(Streams::new(limits))),
                Framing::Fixed | Framing::Coalesce => None,
            },
        }
    }
    /// The streams, where there are any.
    pub fn streams(&self) -> Option<&Streams> {
        self.streams.as_deref()
    }
    /// The same, to be written and read.
    pub fn streams_mut(&mut self) -> Option<&mut Streams> {
        self.streams.as_deref_mut()
    }
    /// Bytes waiting. Of streams: that may leave now, as far as the peer's credit for them goes.
    pub fn bytes(&self) -> usize {
        self.streams
            .as_ref()
            .map_or(self.bytes, |streams| streams.bytes())
    }
    /// Those that will leave whatever the application does: a stream may still be broken off.
    pub fn settled_bytes(&self) -> usize {
        self.bytes
    }
    /// Bytes of memory that it keeps.
    pub fn memory(&self) -> usize {
        self.bytes + self.streams.as_ref().map_or(0, |streams| streams.memory())
    }
    /// True when nothing waits. A frame of no bytes is still a frame under fixed framing.
    pub fn is_empty(&self) -> bool {
        match &self.streams {
            Some(streams) => streams.is_empty(),
            None => self.frames.is_empty(),
        }
    }
    /// Most bytes that the next segment has, of `segment_bytes`. A fixed frame may be larger: it was made for other paths.
    pub fn next_bytes(&self, segment_bytes: usize) -> usize {
        let whole = match self.framing {
            Framing::Fixed => self.frames.front().map_or(0, Bytes::len),
            Framing::Coalesce | Framing::Streams(_) => 0,
        };
        self.bytes().min(segment_bytes).max(whole)
    }
    /// Frames waiting.
    pub fn frames(&self) -> usize {
        self.frames.len()
    }
    /// True when `frame` can be sent at all with segments of `segment_bytes`.
    pub fn fits(&self, frame: &Bytes, segment_bytes: usize) -> bool {
        match self.framing {
            Framing::Fixed => fixed::fits(frame, segment_bytes),
            Framing::Coalesce | Framing::Streams(_) => true,
        }
    }
    /// The same of all that wait.
    pub fn fits_all(&self, segment_bytes: usize) -> bool {
        self.frames.iter().all(|frame| self.fits(frame, segment_bytes))
    }
    /// Appends a frame. Where there are streams they are written to instead.
    pub fn push(&mut self, frame: Bytes) {
        if self.streams.is_some() || frame.is_empty() && self.framing == Framing::Coalesce {
            return;
        }
        self.bytes += frame.len();
        self.frames.push_back(frame);
    }
    /// A write was refused for lack of room.
    pub fn refuse(&mut self) {
        self.writer_waits = true;
    }
    /// Was one, and is its writer still to be told that there is room?
    pub fn has_waiting_writer(&self) -> bool {
        self.writer_waits
    }
    /// True once after a write was refused, where it `has_room` now.
    pub fn takes_writes_again(&mut self, has_room: bool) -> bool {
        let again = self.writer_waits && has_room;
        self.writer_waits &= !again;
        again
    }
    /// The payload of the next segment, at most `segment_bytes`.
    pub fn next_segment(&mut self, segment_bytes: usize) -> Option<Bytes> {
        if let Some(streams) = &mut self.streams {
            return streams.next_segment(segment_bytes);
        }
        let payload = match self.framing {
            Framing::Fixed => fixed::next(&mut self.frames),
            Framing::Coalesce | Framing::Streams(_) => coalesce::next(&mut self.frames, segment_bytes),
        }?;
        self.bytes -= payload.len();
        Some(payload)
    }
    /// Drops everything that was to be sent and gives the memory back.
    pub fn clear(&mut self) {
        (self.frames, self.bytes) = (VecDeque::new(), 0);
        if let Some(streams) = &mut self.streams {
            streams.close();
        }
    }
}
