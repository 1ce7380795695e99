//! Payloads that wait for their reader are parts of larger buffers: what came in one receive, or was read in one go. Any of them keeps
//! its buffer in memory, so small ones could keep a thousand times their bytes. To copy them all would cost a fast transfer.

use bytes::Bytes;

/// Bounds the buffers that waiting payloads keep. `MOST` are counted, of `SPAN` bytes at most; each may hide one that lies right behind
/// it, so twice as much is kept at most beyond what waits. What is handed out does not depend on it.
#[derive(Debug, Default)]
pub struct Slices<const MOST: usize, const SPAN: usize> {
    kept: u32,
    /// Where the payload lies that was counted last, modulo 2^32: every flow has one of these, and what is taken for a neighbour by
    /// chance is only not counted.
    last: u32,
}

/// A payload that waits.
#[derive(Debug)]
pub struct Held {
    bytes: Bytes,
    /// It was counted for its buffer.
    counts: bool,
}

impl<const MOST: usize, const SPAN: usize> Slices<MOST, SPAN> {
    /// What waits in the place of `payload`: itself, or a copy where too many buffers are kept. Payloads of one buffer that come one after
    /// the other keep it once.
    pub fn hold(&mut self, payload: Bytes) -> Held {
        let at = payload.as_ptr().addr() as u32;
        let is_beside_last = (at.wrapping_sub(self.last) as usize) < SPAN;
        let counts = !is_beside_last && !payload.is_empty();
        if !counts || (self.kept as usize) < MOST {
            if counts {
                (self.kept, self.last) = (self.kept + 1, at);
            }
            return Held {
                bytes: payload,
                counts,
            };
        }
        Held {
            bytes: Bytes::copy_from_slice(&payload),
            counts: false,
        }
    }

    /// The payload waits no longer. They are released in the order in which they came.
    pub fn release(&mut self, held: Held) -> Bytes {
        self.kept -= u32::from(held.counts);
        if self.kept == 0 {
            self.last = 0; // what lay there may be gone
        }
        held.bytes
    }

    /// None waits any longer.
    pub fn clear(&mut self) {
        (self.kept, self.last) = (0, 0);
    }
}

impl Held {
    /// Its bytes.
    pub fn size(&self) -> usize {
        self.bytes.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of so many buffers, from each of which so many pieces are held, how many pieces are no copies.
    fn kept(slices: &mut Slices<8, 1000>, buffers: usize, pieces: usize) -> usize {
        // Parts of one: where an allocator puts many decides by chance which of them are taken for neighbours.
        let all = Bytes::from(vec![7; buffers * 1000]);
        let buffers: Vec<Bytes> = (0..buffers)
            .map(|n| all.slice(n * 1000..(n + 1) * 1000))
            .collect();
        let mut held = Vec::new();
        for buffer in &buffers {
            held.extend((0..pieces).map(|at| slices.hold(buffer.slice(at * 10..at * 10 + 5))));
        }
        let is_part = |piece: &Bytes| {
            let lies_in = |buffer: &Bytes| buffer.as_ptr_range().contains(&piece.as_ptr());
            buffers.iter().any(lies_in)
        };
        let released = held.into_iter().map(|held| slices.release(held));
        let parts = released.filter(|piece| {
            assert_eq!(piece[..], [7; 5]);
            is_part(piece)
        });
        parts.count()
    }

    #[test]
    fn pieces_of_few_buffers_are_not_copied_and_those_of_many_are() {
        let mut slices = Slices::default();
        for _ in 0..3 {
            assert_eq!(kept(&mut slices, 4, 100), 400, "of few");
            assert_eq!(kept(&mut slices, 20, 1), 8, "one of each");
            assert_eq!(slices.kept, 0, "all are released");
        }
    }

    #[test]
    fn what_is_dropped_at_once_is_kept_no_longer() {
        let mut slices = Slices::<1, 10>::default();
        let (one, other) = (Bytes::from(vec![1; 10]), Bytes::from(vec![2; 10]));
        drop(slices.hold(one.clone()));
        slices.clear();
        let held = slices.hold(other.clone());
        assert_eq!(slices.release(held).as_ptr(), other.as_ptr());
        let empty = slices.hold(Bytes::new());
        assert_eq!((empty.size(), slices.kept), (0, 0), "nothing keeps nothing");
    }
}
