//! What is in order and waits for its reader (ResTP §3.5.7): the last station on the receiver's side, and what the
//! advertised window has to leave room for.

use bytes::Bytes;
use std::collections::VecDeque;

/// So many may be parts of a larger buffer, all of which each keeps in memory: what came in one receive. About as many come in one turn
/// of a fast transfer, before its reader has had one, and to copy them would cost it.
const MOST_SLICES: usize = 2048;

/// Data handed up and not read yet.
#[derive(Debug, Default)]
pub struct Inbox {
    ready: VecDeque<Bytes>,
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
        let piece = self.ready.pop_front();
        self.bytes -= piece.as_ref().map_or(0, Bytes::len);
        self.reader_knows &= piece.is_some();
        piece
    }

    /// Moves everything to somebody else, who tells the reader.
    pub fn drain(&mut self) -> impl Iterator<Item = Bytes> {
        self.bytes = 0;
        self.ready.drain(..)
    }

    /// Drops what nobody will read, and its memory.
    pub fn clear(&mut self) {
        self.ready = VecDeque::new();
        self.bytes = 0;
    }
}

impl Extend<Bytes> for Inbox {
    fn extend<T: IntoIterator<Item = Bytes>>(&mut self, pieces: T) {
        for piece in pieces {
            self.bytes += piece.len();
            let is_kept_for_long = self.ready.len() >= MOST_SLICES;
            self.ready.push_back(if is_kept_for_long {
                Bytes::copy_from_slice(&piece)
            } else {
                piece
            });
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

    #[test]
    fn many_unread_pieces_keep_no_receive_buffers() {
        let buffer = Bytes::from(vec![7; 4 * MOST_SLICES]);
        let mut inbox = Inbox::default();
        inbox.extend((0..2 * MOST_SLICES).map(|at| buffer.slice(at..at + 2)));
        let pieces: Vec<Bytes> = std::iter::from_fn(|| inbox.pop()).collect();
        assert!(pieces.len() == 2 * MOST_SLICES && pieces.iter().all(|piece| piece[..] == [7; 2]));
        let buffer = buffer.as_ptr_range();
        let slices = pieces.iter().filter(|piece| buffer.contains(&piece.as_ptr()));
        assert_eq!(slices.count(), MOST_SLICES);
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
