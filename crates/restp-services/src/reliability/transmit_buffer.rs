//! The one store of sent data (ResTP §A.1): a segment is immutable once numbered (OP-18) and stays until the
//! release rule of its service lets it go; with ARQ and HARQ, until it is acknowledged (OP-43).

use bytes::Bytes;
use std::collections::VecDeque;

/// Sent segments by number.
#[derive(Debug)]
pub struct TransmitBuffer {
    base: u64,
    segments: VecDeque<Option<Bytes>>,
    bytes: usize,
}

impl TransmitBuffer {
    /// The first segment kept will have the number `base`.
    pub fn new(base: u64) -> Self {
        TransmitBuffer {
            base,
            segments: VecDeque::new(),
            bytes: 0,
        }
    }
    /// Payload bytes kept.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
    /// Keeps the next segment; `None` is a number without payload (FIN). Returns its number.
    pub fn push(&mut self, payload: Option<Bytes>) -> u64 {
        self.bytes += payload.as_ref().map_or(0, Bytes::len);
        self.segments.push_back(payload);
        self.base + self.segments.len() as u64 - 1
    }
    /// The payload of `number`, if it is kept.
    pub fn get(&self, number: u64) -> Option<&Bytes> {
        let index = number.checked_sub(self.base)?;
        self.segments.get(usize::try_from(index).ok()?)?.as_ref()
    }
    /// Lets everything below `next` go: it is acknowledged (or was skipped by the receiver).
    pub fn release_below(&mut self, next: u64) {
        while self.base < next {
            let Some(payload) = self.segments.pop_front() else {
                break;
            };
            self.bytes -= payload.map_or(0, |payload| payload.len());
            self.base += 1;
        }
        if self.segments.is_empty() && self.segments.capacity() > 64 {
            self.segments = VecDeque::new();
        }
    }
    /// Drops everything and gives the memory back.
    pub fn clear(&mut self) {
        *self = TransmitBuffer::new(self.base + self.segments.len() as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_stay_until_acknowledged() {
        let mut buffer = TransmitBuffer::new(11);
        assert_eq!(buffer.push(Some(Bytes::from_static(b"abc"))), 11);
        assert_eq!(buffer.push(Some(Bytes::from_static(b"de"))), 12);
        assert_eq!(buffer.push(None), 13);
        assert_eq!(buffer.bytes(), 5);
        buffer.release_below(12);
        assert_eq!(buffer.get(11), None);
        assert_eq!(buffer.get(12).unwrap(), &b"de"[..]);
        assert_eq!(
            (buffer.get(13), buffer.get(14), buffer.get(u64::MAX)),
            (None, None, None)
        );
        buffer.release_below(100);
        assert_eq!(buffer.bytes(), 0);
        assert_eq!(
            buffer.push(None),
            14,
            "numbers go on after everything was released"
        );
    }
}
