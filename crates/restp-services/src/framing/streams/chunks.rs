//! Bytes in order that wait: what was written and has not left, or has arrived and was not read. Small pieces share a chunk, so
//! that a byte costs about a byte however it comes (RFC 9000 §2.2).

use bytes::{Buf, Bytes, BytesMut};
use std::collections::VecDeque;

/// Small pieces are gathered up to this size.
const CHUNK: usize = 16 * 1024;

#[derive(Debug, Default)]
pub(super) struct Chunks {
    whole: VecDeque<Bytes>,
    /// The last one, still growing.
    last: BytesMut,
    bytes: usize,
}

impl Chunks {
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
    pub(super) fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Appends `data`; a large piece is shared, not copied.
    pub(super) fn push(&mut self, data: Bytes) {
        if data.len() < CHUNK / 4 {
            return self.push_copy(&data);
        }
        self.close();
        self.bytes += data.len();
        self.whole.push_back(data);
    }

    /// Appends what belongs to a buffer that must not be kept.
    pub(super) fn push_copy(&mut self, data: &[u8]) {
        if self.last.len() + data.len() > CHUNK {
            self.close();
        }
        self.bytes += data.len();
        self.last.extend_from_slice(data);
    }

    /// The chunk in front.
    pub(super) fn pop(&mut self) -> Option<Bytes> {
        if self.whole.is_empty() {
            self.close();
        }
        let front = self.whole.pop_front()?;
        self.bytes -= front.len();
        Some(front)
    }

    /// Moves the first `size` bytes, of which there are as many, behind `out`.
    pub(super) fn move_to(&mut self, mut size: usize, out: &mut BytesMut) {
        self.bytes -= size;
        while size > 0 {
            if self.whole.is_empty() {
                self.close();
            }
            let Some(front) = self.whole.front_mut() else {
                break;
            };
            let part = front.len().min(size);
            out.extend_from_slice(&front[..part]);
            size -= part;
            if part == front.len() {
                self.whole.pop_front();
            } else {
                front.advance(part);
            }
        }
    }

    /// Drops everything. Returns how many bytes that was.
    pub(super) fn clear(&mut self) -> usize {
        std::mem::take(self).bytes
    }

    fn close(&mut self) {
        if !self.last.is_empty() {
            // Its spare room goes with it: split off, it would keep the whole allocation after every byte has left.
            self.whole.push_back(std::mem::take(&mut self.last).freeze());
        }
    }
}

impl Extend<Bytes> for Chunks {
    fn extend<T: IntoIterator<Item = Bytes>>(&mut self, pieces: T) {
        pieces.into_iter().for_each(|piece| self.push_copy(&piece));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_pieces_share_a_chunk_and_large_ones_are_not_copied() {
        let mut chunks = Chunks::default();
        let large = Bytes::from(vec![7; CHUNK]);
        for piece in [Bytes::from_static(b"ab"), Bytes::from_static(b"c"), large.clone()] {
            chunks.push(piece);
        }
        chunks.push(Bytes::from_static(b"de"));
        assert_eq!(chunks.bytes(), CHUNK + 5);
        assert_eq!(chunks.pop().as_deref(), Some(&b"abc"[..]));
        assert_eq!(chunks.pop().map(|data| data.as_ptr()), Some(large.as_ptr()));
        assert_eq!(chunks.pop().as_deref(), Some(&b"de"[..]));
        assert_eq!((chunks.pop(), chunks.bytes()), (None, 0));
    }

    #[test]
    fn bytes_are_moved_across_chunks() {
        let (mut chunks, mut out) = (Chunks::default(), BytesMut::new());
        let text: Vec<u8> = (0..3 * CHUNK).map(|at| at as u8).collect();
        text.chunks(5000)
            .for_each(|part| chunks.push(Bytes::copy_from_slice(part)));
        let mut left = text.len();
        while left > 0 {
            let size = left.min(4099);
            chunks.move_to(size, &mut out);
            left -= size;
        }
        assert_eq!(out, text);
        assert!(chunks.is_empty());
        chunks.push_copy(b"xyz");
        assert_eq!((chunks.clear(), chunks.bytes()), (3, 0));
    }

    #[test]
    fn what_has_left_keeps_no_memory() {
        let mut chunks = Chunks::default();
        (0..100).for_each(|_| chunks.push_copy(&[7; 90]));
        assert_eq!(chunks.pop().map(|data| data.len()), Some(9000));
        assert_eq!(chunks.last.capacity(), 0);
    }
}
