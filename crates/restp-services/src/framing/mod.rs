//! How application frames become segments (ResTP §3.5.3, OP-18). The connection puts writes in and takes one
//! segment's payload at a time, when it may send.

mod boundaries;
mod coalesce;
mod fixed;

pub use boundaries::Boundaries;

use bytes::Bytes;
use std::collections::VecDeque;

/// Framing mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// One frame, one segment, one read; boundaries survive retransmission.
    Fixed,
    /// Frames share segments; a stream of bytes, boundaries are not preserved.
    Coalesce,
}

impl Framing {
    /// Every mode with its name in compositions.
    pub const ALL: [(&'static str, Framing); 2] =
        [("fixed", Framing::Fixed), ("coalesce", Framing::Coalesce)];
}

/// Data written and not yet numbered.
#[derive(Debug)]
pub struct SendQueue {
    framing: Framing,
    frames: VecDeque<Bytes>,
    bytes: usize,
}

impl SendQueue {
    /// An empty queue; it takes no memory until something is written.
    pub fn new(framing: Framing) -> Self {
        SendQueue {
            framing,
            frames: VecDeque::new(),
            bytes: 0,
        }
    }
    /// Bytes waiting.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
    /// True when nothing waits. A frame of no bytes is still a frame under fixed framing.
    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }
    /// Most bytes that the next segment has, of `segment_bytes`. A fixed frame may be larger: it was made for other paths.
    pub fn next_bytes(&self, segment_bytes: usize) -> usize {
        let whole = match self.framing {
            Framing::Fixed => self.frames.front().map_or(0, Bytes::len),
            Framing::Coalesce => 0,
        };
        self.bytes.min(segment_bytes).max(whole)
    }
    /// Frames waiting.
    pub fn frames(&self) -> usize {
        self.frames.len()
    }
    /// True when `frame` can be sent at all with segments of `segment_bytes`.
    pub fn fits(&self, frame: &Bytes, segment_bytes: usize) -> bool {
        match self.framing {
            Framing::Fixed => fixed::fits(frame, segment_bytes),
            Framing::Coalesce => true,
        }
    }
    /// Appends a frame.
    pub fn push(&mut self, frame: Bytes) {
        if frame.is_empty() && self.framing == Framing::Coalesce {
            return;
        }
        self.bytes += frame.len();
        self.frames.push_back(frame);
    }
    /// The payload of the next segment, at most `segment_bytes`.
    pub fn next_segment(&mut self, segment_bytes: usize) -> Option<Bytes> {
        let payload = match self.framing {
            Framing::Fixed => fixed::next(&mut self.frames),
            Framing::Coalesce => coalesce::next(&mut self.frames, segment_bytes),
        }?;
        self.bytes -= payload.len();
        Some(payload)
    }
    /// Drops everything and gives the memory back.
    pub fn clear(&mut self) {
        *self = SendQueue::new(self.framing);
    }
}
