//! Fixed-size framing (ResTP §3.5.3): one application frame is one segment is one receive.

use bytes::Bytes;
use std::collections::VecDeque;

pub(super) fn fits(frame: &Bytes, segment_bytes: usize) -> bool {
    frame.len() <= segment_bytes
}

pub(super) fn next(frames: &mut VecDeque<Bytes>) -> Option<Bytes> {
    frames.pop_front()
}

#[cfg(test)]
mod tests {
    use super::super::{Framing, SendQueue};
    use bytes::Bytes;

    #[test]
    fn each_frame_is_one_segment_whatever_its_size() {
        let mut queue = SendQueue::new(Framing::Fixed);
        assert!(!queue.fits(&Bytes::from_static(b"abcde"), 4));
        for frame in [&b"ab"[..], b"", b"cdef"] {
            queue.push(Bytes::from_static(frame));
        }
        let segments: Vec<_> = std::iter::from_fn(|| queue.next_segment(4)).collect();
        assert_eq!(segments, [&b"ab"[..], b"", b"cdef"]);
        assert_eq!((queue.bytes(), queue.is_empty()), (0, true));
    }
}
