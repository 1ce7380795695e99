//! Coalescing (ResTP §3.5.3, OP-18): a stream of bytes cut into full segments. A large write is shared, not
//! copied; only the segment that spans two writes is.

use bytes::{Bytes, BytesMut};
use std::collections::VecDeque;

pub(super) fn next(frames: &mut VecDeque<Bytes>, segment_bytes: usize) -> Option<Bytes> {
    let front = frames.front_mut()?;
    if front.len() > segment_bytes {
        return Some(front.split_to(segment_bytes));
    }
    let first = frames.pop_front()?;
    if first.len() == segment_bytes || frames.is_empty() {
        return Some(first);
    }
    let mut joined = BytesMut::with_capacity(segment_bytes);
    joined.extend_from_slice(&first);
    while let Some(front) = frames.front_mut() {
        let room = segment_bytes - joined.len();
        if front.len() > room {
            joined.extend_from_slice(&front.split_to(room));
            break;
        }
        joined.extend_from_slice(front);
        frames.pop_front();
    }
    Some(joined.freeze())
}

#[cfg(test)]
mod tests {
    use super::super::{Framing, SendQueue};
    use bytes::Bytes;

    #[test]
    fn writes_share_segments_and_the_stream_is_kept() {
        let mut queue = SendQueue::new(Framing::Coalesce);
        for write in [&b"abc"[..], b"", b"defghijk", b"l", b"mnopq"] {
            queue.push(Bytes::from_static(write));
        }
        assert_eq!(queue.bytes(), 17);
        let segments: Vec<_> = std::iter::from_fn(|| queue.next_segment(4)).collect();
        assert_eq!(segments, [&b"abcd"[..], b"efgh", b"ijkl", b"mnop", b"q"]);
        assert_eq!(queue.bytes(), 0);
    }

    #[test]
    fn a_large_write_is_not_copied() {
        let written = Bytes::from(vec![7u8; 10_000]);
        let mut queue = SendQueue::new(Framing::Coalesce);
        queue.push(written.clone());
        let segment = queue.next_segment(1400).unwrap();
        assert_eq!(segment.as_ptr(), written.as_ptr());
    }
}
