//! What a peer may not say, and what it costs to say what it may (RFC 9000 §4, §19).

use super::super::frame::{Frame, Violation};
use super::super::{INITIAL_STREAM_BYTES, INITIAL_STREAMS};
use super::*;
use bytes::BytesMut;
use std::sync::Arc;

fn segment(frames: &[Frame]) -> Bytes {
    let mut out = BytesMut::new();
    frames.iter().for_each(|frame| frame.emit(&mut out));
    out.freeze()
}

fn data(id: StreamId, offset: u64, size: usize, fin: bool) -> Frame {
    let data = text(id.0, size);
    Frame::Data {
        id,
        offset,
        data,
        fin,
    }
}

fn b() -> Streams {
    end(false, StreamLimits::DEFAULT)
}

#[test]
fn what_no_peer_of_ours_says_ends_the_flow() {
    let first = StreamId(0);
    let reset = |size| Frame::Reset {
        id: first,
        code: 0,
        size,
    };
    let cases: &[(&str, &[Frame])] = &[
        (
            "beyond the stream's credit",
            &[data(first, INITIAL_STREAM_BYTES, 1, false)],
        ),
        ("a break-off beyond it", &[reset(INITIAL_STREAM_BYTES + 1)]),
        (
            "more streams",
            &[data(StreamId::of(true, INITIAL_STREAMS), 0, 1, false)],
        ),
        ("no such stream", &[data(StreamId(1), 0, 1, false)]),
        (
            "credit for no stream",
            &[Frame::StreamCredit {
                id: StreamId(3),
                most: 1,
            }],
        ),
        (
            "nobody reads no stream",
            &[Frame::Stop {
                id: StreamId(1),
                code: 0,
            }],
        ),
        (
            "an end before what came",
            &[data(first, 0, 10, false), data(first, 5, 1, true)],
        ),
        (
            "bytes beyond the end",
            &[data(first, 0, 10, true), data(first, 10, 1, false)],
        ),
        (
            "another end",
            &[data(first, 0, 10, true), data(first, 0, 11, true)],
        ),
        ("a break-off elsewhere", &[data(first, 5, 5, true), reset(11)]),
        (
            "a break-off before what came",
            &[data(first, 5, 5, false), reset(9)],
        ),
    ];
    for (what, frames) in cases {
        assert!(b().on_segment(segment(frames)).is_err(), "{what}");
    }
    assert_eq!(
        b().on_segment(Bytes::new()),
        Err(Violation("a segment without a frame"))
    );
}

#[test]
fn streams_beyond_the_credit_in_all_end_the_flow() {
    let mut small = b();
    small.begin(false, 0, 0);
    let mut taken = 0;
    let refused = (0..128).find(|ordinal| {
        let id = StreamId::of(true, *ordinal);
        let fits = small.on_segment(segment(&[data(id, 0, 60_000, false)])).is_ok();
        taken += u64::from(fits) * 60_000;
        !fits
    });
    assert!(refused.is_some());
    assert_eq!(taken, super::super::INITIAL_BYTES / 60_000 * 60_000);
}

#[test]
fn overlapping_bytes_count_as_they_came_first() {
    let mut b = b();
    let id = StreamId(0);
    let lie = Frame::Data {
        id,
        offset: 5,
        data: Bytes::from_static(b"XXXXXXXXXX"),
        fin: false,
    };
    b.on_segment(segment(&[data(id, 0, 10, false), lie, data(id, 0, 4, false)]))
        .unwrap();
    let (read, _) = read_all(&mut b, id);
    assert_eq!(read, [&text(0, 10)[..], b"XXXXX"].concat());
    assert_eq!(b.credit.used(), 15, "booked once");
}

/// An end that no window bounds.
fn wide_open() -> Streams {
    let limits = StreamLimits {
        window_bytes: 1 << 30,
        most: 1024,
    };
    let mut streams = Streams::new(limits);
    streams.begin(false, 1 << 32, 0);
    streams
}

#[test]
fn single_bytes_with_gaps_are_bounded() {
    let mut b = wide_open();
    let mut frames = Vec::new();
    let mut refused = None;
    'flood: for ordinal in 0..INITIAL_STREAMS {
        for at in 0..INITIAL_STREAM_BYTES / 2 {
            frames.push(data(StreamId::of(true, ordinal), 2 * at + 1, 1, false));
            if frames.len() == 1000 {
                if b.on_segment(segment(&frames)).is_err() {
                    refused = Some(b.pieces);
                    break 'flood;
                }
                frames.clear();
            }
        }
    }
    assert_eq!(refused, Some(super::super::MOST_PIECES + 1));
}

#[test]
fn single_bytes_in_order_take_about_a_byte_each() {
    let mut b = b();
    for at in 0..INITIAL_STREAM_BYTES {
        b.on_segment(segment(&[data(StreamId(0), at, 1, false)])).unwrap();
    }
    let rx = &b.streams[&StreamId(0)].rx;
    assert_eq!((rx.memory(), rx.pieces()), (INITIAL_STREAM_BYTES as usize, 0));
    let pieces = std::iter::from_fn(|| match b.read(StreamId(0)) {
        StreamRead::Data(data) => Some(data),
        _ => None,
    });
    assert_eq!(pieces.count(), 4);
}

#[test]
fn a_flood_of_streams_that_end_at_once_is_answered_with_little() {
    let mut b = b();
    let mut answers = 0;
    for ordinal in 0..100_000 {
        let id = StreamId::of(true, ordinal);
        let reset = Frame::Reset { id, code: 0, size: 0 };
        b.on_segment(segment(&[reset, Frame::Stop { id, code: 0 }]))
            .unwrap();
        assert_eq!(b.accept(), Some(id));
        assert_eq!(b.read(id), StreamRead::Reset(0));
        b.finish(id);
        if ordinal % 50 == 0 {
            answers += segments(&mut b, 999).len();
        }
        assert!(b.open_streams() < 2 && b.turns.memory() < 100_000);
        events(&mut b);
    }
    assert!(
        answers <= 4000,
        "{answers}: each is answered by its break-off, many in a segment"
    );
}

#[test]
fn who_takes_no_answers_is_granted_nothing() {
    let mut b = b();
    let taken = (0..10_000).take_while(|ordinal| {
        let id = StreamId::of(true, *ordinal);
        let reset = Frame::Reset { id, code: 0, size: 0 };
        let taken = b
            .on_segment(segment(&[reset, Frame::Stop { id, code: 0 }]))
            .is_ok();
        while let Some(id) = b.accept() {
            b.read(id);
            b.finish(id);
        }
        taken
    });
    assert_eq!(taken.count() as u64, INITIAL_STREAMS);
    assert!(b.bytes() < 10_000, "{} bytes wait to leave", b.bytes());
}

#[test]
fn credit_of_every_size_is_taken_as_it_is() {
    let mut a = end(true, StreamLimits::DEFAULT);
    let id = a.open().unwrap();
    let most = super::super::frame::MOST;
    a.on_segment(segment(&[
        Frame::Credit { most },
        Frame::StreamCredit { id, most },
        Frame::Streams { most },
        Frame::Credit { most: 0 },
        Frame::StreamCredit { id, most: 0 },
        Frame::Streams { most: 0 },
    ]))
    .unwrap();
    a.write(id, text(0, 2 << 20)).unwrap();
    assert_eq!(data_bytes(segments(&mut a, 9999)), 2 << 20);
    let opened = std::iter::from_fn(|| a.open().ok()).take(1000);
    assert_eq!(opened.count(), 1000);
}

/// A segment that says when it is dropped.
struct Buffer {
    bytes: Vec<u8>,
    _alive: Arc<()>,
}

impl AsRef<[u8]> for Buffer {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

#[test]
fn a_byte_that_waits_does_not_keep_its_segment() {
    let mut b = b();
    let alive = Arc::new(());
    let older_words = std::iter::repeat_n(Frame::Credit { most: 0 }, 600);
    let frames: Vec<_> = older_words.chain([data(StreamId(0), 5, 1, false)]).collect();
    let buffer = Buffer {
        bytes: segment(&frames).to_vec(),
        _alive: alive.clone(),
    };
    b.on_segment(Bytes::from_owner(buffer)).unwrap();
    assert_eq!((b.pieces, Arc::strong_count(&alive)), (1, 1));
}

#[test]
fn after_too_many_pieces_what_is_in_order_is_read_and_the_rest_is_lost() {
    let mut b = wide_open();
    b.on_segment(segment(&[data(StreamId(0), 0, 10, false)])).unwrap();
    let pieces = (0..INITIAL_STREAMS).flat_map(|ordinal| {
        (10..INITIAL_STREAM_BYTES / 2).map(move |at| (StreamId::of(true, ordinal), 2 * at + 1))
    });
    let refused = pieces
        .into_iter()
        .any(|(id, at)| b.on_segment(segment(&[data(id, at, 1, false)])).is_err());
    assert!(refused);
    b.on_flow_end();
    assert_eq!(
        read_all(&mut b, StreamId(0)),
        (text(0, 10).to_vec(), StreamRead::Lost)
    );
    assert_eq!(read_all(&mut b, StreamId(2)), (vec![], StreamRead::Lost));
}

#[test]
fn credit_is_announced_once_however_much_arrives() {
    let mut b = end(false, StreamLimits::DEFAULT);
    for ordinal in 0..20 {
        for at in 0..20 {
            let id = StreamId::of(true, ordinal);
            b.on_segment(segment(&[data(id, at * 2000, 2000, false)]))
                .unwrap();
        }
    }
    let mut frames = Vec::new();
    for mut segment in segments(&mut b, 99) {
        while !segment.is_empty() {
            frames.push(Frame::parse(&mut segment).unwrap());
        }
    }
    let all = frames
        .iter()
        .filter(|frame| matches!(frame, Frame::Credit { .. }));
    assert_eq!((all.count(), frames.len()), (1, 21));
}

#[test]
fn whose_end_is_known_is_given_no_credit_and_not_asked_to_stop() {
    let mut b = b();
    b.on_segment(segment(&[data(StreamId(0), 0, 40_000, true)]))
        .unwrap();
    assert!(b.is_empty(), "{:?}", b.turns);
    b.stop(StreamId(0), 1);
    assert!(b.is_empty(), "{:?}", b.turns);
}
