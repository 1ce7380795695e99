//! What is in order and waits for its reader (ResTP §3.5.7): the last station on the receiver's side, and what the
//! advertised window has to leave room for.

use bytes::Bytes;
use restp_base::slices::{Held, Slices};
use std::collections::VecDeque;

/// So many receive buffers are counted of what waits: 64 MiB at most. A flow's window of 32,768 full segments takes some 760
/// of them: of one that nobody reads a third is copied.
const MOST_BUFFERS: usize = 512;
/// A receive buffer: as much as one receive can bring.
const BUFFER_BYTES: usize = 1 << 16;

/// Data handed up and not read yet.
#[derive(Debug, Default)]
pub struct Inbox {
    ready: VecDeque<Held>,
    slices: Slices<MOST_BUFFERS, BUFFER_BYTES>,
    bytes: usize,
    /// The reader was told that there is something, and has not found it empty since.
    reader_knows: bool,
}

impl Inbox {
    /// Pieces that wait.
    pub fn len(&self) -> usize {
        self.ready.len()
    }
    /// True when nothing waits.
    pub fn is_empty(&self) -> bool {
        self.ready.is_empty()
    }
    /// Their bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// To be called whenever something was added or the end has come: true when the reader has to be told. It is told
    /// once, until it finds nothing to read.
    pub fn has_news(&mut self, ended: bool) -> bool {
        let news = !self.reader_knows && (ended || !self.ready.is_empty());
        self.reader_knows |= news;
        news
    }

    /// Moves the next piece to the reader.
    pub fn pop(&mut self) -> Option<Bytes> {
        let piece = self.ready.pop_front().map(|held| self.slices.release(held));
        self.bytes -= piece.as_ref().map_or(0, Bytes::len);
        self.reader_knows &= piece.is_some();
        piece
    }

    /// Moves everything to somebody else, who tells the reader.
    pub fn drain(&mut self) -> impl Iterator<Item = Bytes> {
        self.bytes = 0;
        let slices = &mut self.slices;
        self.ready.drain(..).map(|held| slices.release(held))
    }

    /// Drops what nobody will read, and its memory.
    pub fn clear(&mut self) {
        self.ready = VecDeque::new();
        self.slices.clear();
        self.bytes = 0;
    }
}

impl Extend<Bytes> for Inbox {
    fn extend<T: IntoIterator<Item = Bytes>>(&mut self, pieces: T) {
        for piece in pieces {
            self.bytes += piece.len();
            self.ready.push_back(self.slices.hold(piece));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(bytes: usize) -> Bytes {
        Bytes::from(vec![0; bytes])
    }

    #[test]
    fn bytes_follow_what_comes_and_goes() {
        let mut inbox = Inbox::default();
        inbox.extend([piece(10), piece(0), piece(5)]);
        assert_eq!((inbox.len(), inbox.bytes()), (3, 15));
        assert_eq!(inbox.pop().map(|data| data.len()), Some(10));
        assert_eq!((inbox.len(), inbox.bytes()), (2, 5));
        assert_eq!(inbox.drain().count(), 2);
        assert_eq!((inbox.is_empty(), inbox.bytes()), (true, 0));
        inbox.extend([piece(7)]);
        inbox.clear();
        assert_eq!((inbox.pop(), inbox.bytes()), (None, 0));
    }

    /// How many of the pieces are no copies once they are read.
    fn kept(pieces: &[Bytes]) -> usize {
        let mut inbox = Inbox::default();
        inbox.extend(pieces.iter().cloned());
        let read = std::iter::from_fn(|| inbox.pop()).zip(pieces);
        read.filter(|(read, piece)| {
            assert_eq!(read, *piece);
            read.as_ptr() == piece.as_ptr()
        })
        .count()
    }

    #[test]
    fn unread_pieces_keep_so_many_receive_buffers_and_no_more() {
        let buffers = (0..MOST_BUFFERS + 10).map(|_| piece(BUFFER_BYTES));
        let one_of_each: Vec<_> = buffers.map(|buffer| buffer.slice(..2)).collect();
        assert_eq!(kept(&one_of_each), MOST_BUFFERS);
        let buffer = piece(4 * MOST_BUFFERS);
        let of_one: Vec<_> = (0..2 * MOST_BUFFERS).map(|at| buffer.slice(at..at + 2)).collect();
        assert_eq!(kept(&of_one), of_one.len());
    }

    #[test]
    fn a_reader_is_told_once_until_it_finds_nothing() {
        let mut inbox = Inbox::default();
        assert!(!inbox.has_news(false), "nothing came");
        inbox.extend([piece(1)]);
        assert!(inbox.has_news(false));
        inbox.extend([piece(1)]);
        assert!(!inbox.has_news(false), "it knows");
        assert!(inbox.pop().is_some() && inbox.pop().is_some());
        inbox.extend([piece(1)]);
        assert!(!inbox.has_news(false), "it still reads");
        assert!(inbox.pop().is_some() && inbox.pop().is_none());
        assert!(inbox.has_news(true), "the end is news as well");
    }
}
