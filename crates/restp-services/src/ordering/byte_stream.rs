//! The received side of a byte stream (RFC 9293 §3.10.7.4): segments arrive at any place and may overlap; bytes leave
//! once and in order. FIN stands for one byte without content.

use super::{Arrival, Arrived};
use bytes::{Buf, Bytes};
use std::collections::BTreeMap;

/// RCV.NXT and everything that arrived beyond it, by 64-bit byte numbers.
#[derive(Debug)]
pub struct ByteStream {
    next: u64,
    held: BTreeMap<u64, Piece>,
    /// Which numbers beyond it have arrived, if somebody is told.
    arrived: Arrived,
    is_reported: bool,
    held_bytes: usize,
    /// Number of the FIN, once seen.
    fin: Option<u64>,
    /// Pieces held at most: tiny segments cost more memory than the window counts.
    most_pieces: usize,
}

#[derive(Debug)]
enum Piece {
    Data(Bytes),
    Fin,
}

/// A segment as it lies among the bytes.
#[derive(Debug)]
pub struct Stretch {
    /// Number of its first byte.
    pub start: u64,
    /// Its bytes.
    pub payload: Bytes,
    /// A FIN follows them.
    pub fin: bool,
}

impl Stretch {
    /// The number after its last.
    pub fn end(&self) -> u64 {
        self.start + self.payload.len() as u64 + u64::from(self.fin)
    }
}

impl ByteStream {
    /// Expects the byte `next` first, and holds at most `most_pieces` out of order.
    pub fn new(next: u64, most_pieces: usize) -> Self {
        ByteStream {
            next,
            held: BTreeMap::new(),
            arrived: Arrived::default(),
            is_reported: true,
            held_bytes: 0,
            fin: None,
            most_pieces,
        }
    }
    /// The same without [`arrived`](Self::arrived): a peer that chooses where its bytes lie can make that slow to keep.
    pub fn unreported(next: u64, most_pieces: usize) -> Self {
        ByteStream {
            is_reported: false,
            ..Self::new(next, most_pieces)
        }
    }
    /// RCV.NXT.
    pub fn next(&self) -> u64 {
        self.next
    }
    /// What has arrived beyond it.
    pub fn arrived(&self) -> &Arrived {
        &self.arrived
    }
    /// Pieces held back.
    pub fn pieces(&self) -> usize {
        self.held.len()
    }
    /// Payload bytes held back.
    pub fn held_bytes(&self) -> usize {
        self.held_bytes
    }
    /// Every byte up to the FIN, and the FIN, has arrived.
    pub fn is_finished(&self) -> bool {
        self.fin.is_some_and(|fin| fin < self.next)
    }
    /// True when `stretch` says something about the end that cannot be, given what arrived before.
    pub fn contradicts(&self, stretch: &Stretch) -> bool {
        let data_end = stretch.start + stretch.payload.len() as u64;
        let last = self.held.last_key_value();
        let highest = last.map_or(self.next, |(from, piece)| from + piece.len());
        match self.fin {
            Some(fin) if stretch.fin => data_end != fin,
            Some(fin) => !stretch.payload.is_empty() && data_end > fin,
            None => stretch.fin && data_end < highest,
        }
    }

    /// Takes a segment that does not [contradict](Self::contradicts) earlier ones. What may be handed up is appended
    /// to `ready`; what lies at or beyond `edge` is cut off.
    pub fn insert(&mut self, mut stretch: Stretch, edge: u64, ready: &mut impl Extend<Bytes>) -> Arrival {
        if stretch.end() <= self.next {
            return Arrival::Duplicate;
        }
        if stretch.start >= edge {
            return Arrival::BeyondWindow;
        }
        if stretch.end() > edge {
            stretch.fin = false;
            stretch.payload.truncate((edge - stretch.start) as usize);
        }
        if stretch.start < self.next {
            stretch.payload.advance((self.next - stretch.start) as usize);
            stretch.start = self.next;
        }
        let end = stretch.end();
        if stretch.fin {
            self.fin = Some(end - 1);
        }
        if stretch.start == self.next && self.held.is_empty() {
            self.next = end;
            ready.extend(Some(stretch.payload).filter(|payload| !payload.is_empty()));
            return Arrival::InOrder;
        }
        if stretch.start > self.next && self.held.len() >= self.most_pieces {
            return Arrival::BeyondWindow;
        }
        if self.is_reported && self.arrived.insert(stretch.start..end) == 0 {
            return Arrival::Duplicate;
        }
        let fills = stretch.start == self.next;
        if !self.hold(stretch) {
            return Arrival::Duplicate;
        }
        if !fills {
            return Arrival::OutOfOrder;
        }
        self.advance(ready);
        Arrival::FilledHole
    }

    /// Keeps the parts of `stretch` that are not held yet; false if there are none.
    fn hold(&mut self, stretch: Stretch) -> bool {
        let pieces = self.held.len();
        let Stretch {
            start,
            mut payload,
            fin,
        } = stretch;
        let end = start + payload.len() as u64;
        let mut at = start;
        while at < end {
            let before = self.held.range(..=at).next_back();
            let covered = before.map_or(at, |(from, piece)| from + piece.len()).max(at);
            let free = self
                .held
                .range(at..)
                .next()
                .map_or(end, |(from, _)| *from)
                .min(end);
            if covered > at {
                payload.advance((covered.min(end) - at) as usize);
                at = covered;
                continue;
            }
            let part = payload.split_to((free - at) as usize);
            self.held_bytes += part.len();
            // Copied: a few bytes that wait must not keep a whole receive buffer, be it theirs alone.
            let part = Bytes::copy_from_slice(&part);
            self.held.insert(at, Piece::Data(part));
            at = free;
        }
        if fin {
            self.held.insert(end, Piece::Fin);
        }
        self.held.len() > pieces
    }

    /// Moves RCV.NXT over what is there.
    fn advance(&mut self, ready: &mut impl Extend<Bytes>) {
        while let Some(entry) = self.held.first_entry()
            && *entry.key() == self.next
        {
            let piece = entry.remove();
            self.next += piece.len();
            if let Piece::Data(data) = piece {
                self.held_bytes -= data.len();
                ready.extend([data]);
            }
        }
        self.arrived.remove_below(self.next);
    }
}

impl Piece {
    fn len(&self) -> u64 {
        match self {
            Piece::Data(data) => data.len() as u64,
            Piece::Fin => 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use restp_base::random::Stream;
    use std::collections::VecDeque;

    const TEXT: &[u8] = b"abcdefghijklmnopqrstuvwxyz";

    /// The bytes `start..end` of the text that begins at 100; its FIN is byte 126.
    fn stretch(start: u64, end: u64) -> Stretch {
        let data = end.min(126);
        Stretch {
            start,
            payload: Bytes::from_static(&TEXT[(start - 100) as usize..(data - 100) as usize]),
            fin: end == 127,
        }
    }
    fn text(ready: &VecDeque<Bytes>) -> Vec<u8> {
        ready.iter().flatten().copied().collect()
    }

    #[test]
    fn holes_fill_and_overlaps_are_delivered_once() {
        let (mut stream, mut ready) = (ByteStream::new(100, 10), VecDeque::new());
        let mut feed = |start, end| stream.insert(stretch(start, end), 200, &mut ready);
        assert_eq!(feed(100, 105), Arrival::InOrder);
        assert_eq!(feed(107, 110), Arrival::OutOfOrder);
        assert_eq!(feed(108, 112), Arrival::OutOfOrder);
        assert_eq!(feed(107, 112), Arrival::Duplicate);
        assert_eq!(feed(100, 104), Arrival::Duplicate);
        assert_eq!(feed(120, 127), Arrival::OutOfOrder);
        assert_eq!(feed(103, 109), Arrival::FilledHole);
        assert_eq!((stream.next(), stream.held_bytes()), (112, 6));
        assert_eq!(
            stream.arrived().ranges().iter().collect::<Vec<_>>(),
            [&(120..127)]
        );
        assert!(!stream.is_finished());
        assert_eq!(
            stream.insert(stretch(112, 120), 200, &mut ready),
            Arrival::FilledHole
        );
        assert!(stream.is_finished());
        assert_eq!((text(&ready), stream.next()), (TEXT.to_vec(), 127));
    }

    /// The last piece of a buffer was its only owner, and kept it.
    #[test]
    fn the_last_byte_of_a_buffer_does_not_keep_it() {
        let (mut stream, mut ready) = (ByteStream::new(100, 10), VecDeque::new());
        let mut buffer = Bytes::from(vec![7; 1400]);
        let payload = buffer.split_off(1399);
        drop(buffer);
        let its = payload.as_ptr();
        let stretch = Stretch {
            start: 105,
            payload,
            fin: false,
        };
        assert_eq!(stream.insert(stretch, 200, &mut ready), Arrival::OutOfOrder);
        let of = |piece: &Piece| match piece {
            Piece::Data(data) => data.as_ptr(),
            Piece::Fin => its,
        };
        assert!(stream.held.values().all(|piece| of(piece) != its));
    }

    #[test]
    fn what_is_not_reported_is_put_in_order_all_the_same() {
        let mut random = Stream::named(2, "stretches");
        for _ in 0..300 {
            let (mut told, mut untold) = (ByteStream::new(100, 100), ByteStream::unreported(100, 100));
            let (mut ready, mut same) = (VecDeque::new(), VecDeque::new());
            while !told.is_finished() {
                let start = 100 + random.below(27);
                let end = (start + 1 + random.below(6)).min(127);
                let arriving = || stretch(start.min(126), end);
                assert!(!untold.contradicts(&arriving()));
                assert_eq!(
                    told.insert(arriving(), 127, &mut ready),
                    untold.insert(arriving(), 127, &mut same)
                );
                assert_eq!((told.next(), told.pieces()), (untold.next(), untold.pieces()));
            }
            assert_eq!(
                (text(&same), untold.arrived().ranges().total()),
                (TEXT.to_vec(), 0)
            );
        }
    }

    #[test]
    fn the_window_cuts_and_the_number_of_pieces_is_bounded() {
        let (mut stream, mut ready) = (ByteStream::new(100, 2), VecDeque::new());
        assert_eq!(
            stream.insert(stretch(100, 127), 110, &mut ready),
            Arrival::InOrder
        );
        assert_eq!((stream.next(), stream.is_finished()), (110, false));
        assert_eq!(
            stream.insert(stretch(110, 127), 110, &mut ready),
            Arrival::BeyondWindow
        );
        for (start, arrival) in [
            (112, Arrival::OutOfOrder),
            (114, Arrival::OutOfOrder),
            (116, Arrival::BeyondWindow),
        ] {
            assert_eq!(stream.insert(stretch(start, start + 1), 127, &mut ready), arrival);
        }
        assert_eq!(
            stream.insert(stretch(110, 127), 127, &mut ready),
            Arrival::FilledHole
        );
        assert_eq!(text(&ready), TEXT, "what fills the first hole is always taken");
    }

    #[test]
    fn nothing_follows_a_fin_and_nothing_moves_it() {
        let (mut stream, mut ready) = (ByteStream::new(100, 10), VecDeque::new());
        stream.insert(stretch(105, 110), 200, &mut ready);
        let early = Stretch {
            fin: true,
            ..stretch(105, 108)
        };
        assert!(
            stream.contradicts(&early),
            "bytes beyond this end have arrived already"
        );
        stream.insert(stretch(120, 127), 200, &mut ready);
        let late = |fin, length| Stretch {
            start: 120,
            payload: Bytes::from(vec![0; length]),
            fin,
        };
        assert!(stream.contradicts(&late(false, 8)) && stream.contradicts(&late(true, 3)));
        assert!(
            stream.contradicts(&late(false, 7)),
            "its last byte has the number of the FIN"
        );
        assert!(!stream.contradicts(&late(false, 6)));
        assert!(!stream.contradicts(&late(true, 6)) && !stream.contradicts(&stretch(100, 104)));
    }

    #[test]
    fn random_stretches_give_the_text_once() {
        let mut random = Stream::named(1, "stretches");
        for _ in 0..300 {
            let (mut stream, mut ready) = (ByteStream::new(100, 100), VecDeque::new());
            while !stream.is_finished() {
                let start = 100 + random.below(27);
                let end = (start + 1 + random.below(6)).min(127);
                let arriving = stretch(start.min(126), end);
                assert!(!stream.contradicts(&arriving));
                stream.insert(arriving, 127, &mut ready);
                assert_eq!(text(&ready), TEXT[..text(&ready).len()]);
                let above = stream.arrived().ranges().total();
                let held: u64 = stream.held.values().map(Piece::len).sum();
                assert_eq!(above, held, "pieces do not overlap");
            }
            assert_eq!((text(&ready), stream.held_bytes()), (TEXT.to_vec(), 0));
        }
    }
}
