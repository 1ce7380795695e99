//! The one store of what arrived out of order, of segments or of bytes, and how it stands to the window (ResTP §3.5.7,
//! RFC 9293 §3.8.6).

use crate::ordering::{Arrived, ByteStream, Inbox, Reassembly};
use restp_base::sequence;

/// What is numbered.
#[derive(Debug)]
pub(crate) enum Store {
    /// The peer's first number is not known yet.
    Unknown,
    /// Segments.
    Segments(Reassembly),
    /// Bytes, in windows of `1 << shift` (RFC 7323 §2). First byte beyond everything ever advertised: `edge`.
    Bytes {
        stream: ByteStream,
        shift: u8,
        edge: u64,
    },
}

impl Store {
    /// Bytes from `next` on, at most `pieces` of them out of order.
    pub(crate) fn bytes(next: u64, shift: u8, pieces: usize) -> Self {
        Store::Bytes {
            stream: ByteStream::new(next, pieces),
            shift,
            edge: next,
        }
    }

    /// RCV.NXT.
    pub(crate) fn next(&self) -> Option<u64> {
        match self {
            Store::Unknown => None,
            Store::Segments(reassembly) => Some(reassembly.next()),
            Store::Bytes { stream, .. } => Some(stream.next()),
        }
    }

    /// What has arrived beyond it.
    pub(crate) fn arrived(&self) -> Option<&Arrived> {
        match self {
            Store::Unknown => None,
            Store::Segments(reassembly) => Some(reassembly.arrived()),
            Store::Bytes { stream, .. } => Some(stream.arrived()),
        }
    }

    /// Payload bytes held back.
    pub(crate) fn held_bytes(&self) -> usize {
        match self {
            Store::Unknown => 0,
            Store::Segments(reassembly) => reassembly.held_bytes(),
            Store::Bytes { stream, .. } => stream.held_bytes(),
        }
    }

    /// RCV.NXT and what waits for the reader in `inbox`, in units of the window.
    pub(crate) fn units(&self, inbox: &Inbox) -> (u64, u64) {
        match self {
            Store::Unknown => (sequence::ORIGIN, inbox.len() as u64),
            Store::Segments(reassembly) => (reassembly.next(), inbox.len() as u64),
            Store::Bytes { stream, shift, .. } => {
                let unread = (inbox.bytes() as u64).div_ceil(1 << shift);
                (stream.next() >> shift, unread)
            }
        }
    }

    /// How far a window is shifted.
    pub(crate) fn shift(&self) -> u8 {
        match self {
            Store::Bytes { shift, .. } => *shift,
            Store::Unknown | Store::Segments(_) => 0,
        }
    }

    /// The peer was told that so many bytes from RCV.NXT on may come.
    pub(crate) fn promise_bytes(&mut self, bytes: u64) {
        if let Store::Bytes { stream, edge, .. } = self {
            *edge = (*edge).max(stream.next() + bytes);
        }
    }
}
