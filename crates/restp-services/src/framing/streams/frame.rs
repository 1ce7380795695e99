//! The bytes of stream frames (docs/protocol/streams.md). Numbers are variable-length integers (RFC 9000 §16).

use bytes::{BufMut, Bytes, BytesMut};
use restp_base::streams::StreamId;

/// One frame of a segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Frame {
    /// Bytes of a stream, from `offset` on, and perhaps its end.
    Data {
        id: StreamId,
        offset: u64,
        data: Bytes,
        fin: bool,
    },
    /// The direction is broken off at `size` bytes.
    Reset { id: StreamId, code: u32, size: u64 },
    /// Nobody reads the stream any more.
    Stop { id: StreamId, code: u32 },
    /// So many bytes of the stream are taken from its beginning on.
    StreamCredit { id: StreamId, most: u64 },
    /// So many bytes of all streams together are taken.
    Credit { most: u64 },
    /// So many streams in all may be opened by who gets this.
    Streams { most: u64 },
}

/// What is wrong with a segment, or with what it says: the peer is not one of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Violation(pub &'static str);

const RESET: u8 = 0x01;
const STOP: u8 = 0x02;
const STREAM_CREDIT: u8 = 0x03;
const CREDIT: u8 = 0x04;
const STREAMS: u8 = 0x05;
const DATA: u8 = 0x08;
const DATA_FIN: u8 = 0x09;

/// Largest number that can be written.
pub(super) const MOST: u64 = (1 << 62) - 1;
/// Most bytes of a frame without data: its kind and three numbers.
pub(super) const CONTROL_BYTES: usize = 1 + 8 + 8 + 8;
/// Most bytes in front of the data of a frame.
pub(super) const HEAD_BYTES: usize = 1 + 8 + 8 + 4;

/// Bytes of `number` as written.
pub(super) const fn width(number: u64) -> usize {
    match number {
        0..=0x3F => 1,
        0x40..=0x3FFF => 2,
        0x4000..=0x3FFF_FFFF => 4,
        _ => 8,
    }
}

/// Bytes in front of at most `size` bytes of data.
pub(super) const fn head_bytes(id: StreamId, offset: u64, size: usize) -> usize {
    1 + width(id.0) + width(offset) + width(size as u64)
}

fn put(out: &mut BytesMut, number: u64) {
    match width(number) {
        1 => out.put_u8(number as u8),
        2 => out.put_u16(0x4000 | number as u16),
        4 => out.put_u32(0x8000_0000 | number as u32),
        _ => out.put_u64(0xC000_0000_0000_0000 | number & MOST),
    }
}

/// Writes the head of a frame of `size` bytes of data, which follow.
pub(super) fn put_head(out: &mut BytesMut, id: StreamId, offset: u64, size: usize, fin: bool) {
    out.put_u8(if fin { DATA_FIN } else { DATA });
    put(out, id.0);
    put(out, offset);
    put(out, size as u64);
}

impl Frame {
    /// Writes the frame.
    pub(super) fn emit(&self, out: &mut BytesMut) {
        let mut write = |kind, numbers: &[u64]| {
            out.put_u8(kind);
            numbers.iter().for_each(|number| put(out, *number));
        };
        match self {
            Frame::Data {
                id,
                offset,
                data,
                fin,
            } => {
                put_head(out, *id, *offset, data.len(), *fin);
                out.extend_from_slice(data);
            }
            Frame::Reset { id, code, size } => write(RESET, &[id.0, u64::from(*code), *size]),
            Frame::Stop { id, code } => write(STOP, &[id.0, u64::from(*code)]),
            Frame::StreamCredit { id, most } => write(STREAM_CREDIT, &[id.0, *most]),
            Frame::Credit { most } => write(CREDIT, &[*most]),
            Frame::Streams { most } => write(STREAMS, &[*most]),
        }
    }

    /// Takes the first frame off `segment`, which is not empty.
    pub(super) fn parse(segment: &mut Bytes) -> Result<Frame, Violation> {
        let kind = segment.split_to(1)[0];
        let mut next = || number(segment);
        let frame = match kind {
            DATA | DATA_FIN => {
                let (id, offset, size) = (StreamId(next()?), next()?, next()?);
                if size > segment.len() as u64 {
                    return Err(Violation("a frame is longer than its segment"));
                }
                if offset > MOST - size {
                    return Err(Violation("a stream is longer than streams can be"));
                }
                let data = segment.split_to(size as usize);
                let fin = kind == DATA_FIN;
                Frame::Data {
                    id,
                    offset,
                    data,
                    fin,
                }
            }
            RESET => {
                let (id, code, size) = (StreamId(next()?), next()?, next()?);
                let code = narrow(code)?;
                Frame::Reset { id, code, size }
            }
            STOP => {
                let (id, code) = (StreamId(next()?), next()?);
                let code = narrow(code)?;
                Frame::Stop { id, code }
            }
            STREAM_CREDIT => {
                let (id, most) = (StreamId(next()?), next()?);
                Frame::StreamCredit { id, most }
            }
            CREDIT => Frame::Credit { most: next()? },
            STREAMS => Frame::Streams { most: next()? },
            _ => return Err(Violation("a frame of an unknown kind")),
        };
        Ok(frame)
    }
}

fn narrow(code: u64) -> Result<u32, Violation> {
    u32::try_from(code).map_err(|_| Violation("a code of more than 32 bits"))
}

fn number(segment: &mut Bytes) -> Result<u64, Violation> {
    const SHORT: Violation = Violation("a frame ends in the middle of a number");
    let first = *segment.first().ok_or(SHORT)?;
    let width = 1 << (first >> 6);
    if segment.len() < width {
        return Err(SHORT);
    }
    let bytes = segment.split_to(width);
    let whole = bytes.iter().fold(0, |whole, byte| whole << 8 | u64::from(*byte));
    Ok(whole & MOST >> (64 - 8 * width))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames() -> Vec<(Frame, Vec<u8>)> {
        let id = StreamId(4);
        let data = Bytes::from_static(b"abc");
        vec![
            (
                Frame::Data {
                    id,
                    offset: 300,
                    data,
                    fin: true,
                },
                b"\x09\x04\x41\x2C\x03abc".to_vec(),
            ),
            (
                Frame::Reset {
                    id,
                    code: 7,
                    size: 70_000,
                },
                vec![0x01, 4, 7, 0x80, 1, 0x11, 0x70],
            ),
            (Frame::Stop { id, code: 1 }, vec![0x02, 4, 1]),
            (Frame::StreamCredit { id, most: 63 }, vec![0x03, 4, 63]),
            (Frame::Streams { most: 64 }, vec![0x05, 0x40, 64]),
            (
                Frame::Credit { most: MOST },
                vec![0x04, 255, 255, 255, 255, 255, 255, 255, 255],
            ),
        ]
    }

    #[test]
    fn bytes_and_frames_are_each_others() {
        let mut all = BytesMut::new();
        for (frame, bytes) in frames() {
            let mut out = BytesMut::new();
            frame.emit(&mut out);
            assert_eq!(out, bytes);
            all.extend_from_slice(&out);
        }
        let mut segment = all.freeze();
        for (frame, _) in frames() {
            assert_eq!(Frame::parse(&mut segment), Ok(frame));
        }
        assert!(segment.is_empty());
    }

    #[test]
    fn what_is_cut_off_or_unknown_is_refused() {
        for (_, bytes) in frames() {
            for length in 1..bytes.len() {
                let mut cut = Bytes::copy_from_slice(&bytes[..length]);
                assert!(Frame::parse(&mut cut).is_err(), "{bytes:02X?} cut to {length}");
            }
        }
        for kind in [0x00, 0x06, 0x07, 0x0A, 0xFF] {
            let mut unknown = Bytes::from(vec![kind, 0, 0, 0]);
            assert!(Frame::parse(&mut unknown).is_err(), "kind {kind}");
        }
        let mut beyond = Bytes::from_static(b"\x08\x00\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01x");
        assert!(Frame::parse(&mut beyond).is_err(), "it would end beyond 2^62");
        let mut code = Bytes::from_static(b"\x02\x00\xC0\0\0\x01\0\0\0\0");
        assert!(Frame::parse(&mut code).is_err(), "a code of 33 bits");
    }
}
