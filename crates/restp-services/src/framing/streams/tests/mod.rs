//! Two ends with segments between them that arrive once each, in whatever order a test likes.

mod fairness;
mod hostile;
mod limits;
mod order;

use super::frame::Frame;
use super::{StreamCounts, StreamLimits, Streams};
use bytes::Bytes;
use restp_base::random::Stream as Chance;
use restp_base::streams::{StreamEvent, StreamId, StreamRead, Streams as _};

const ROOM: usize = 1400;

/// Both ends, and what is on its way to each.
pub(super) struct Pair {
    pub(super) a: Streams,
    pub(super) b: Streams,
    chance: Option<Chance>,
}

pub(super) fn end(opened_here: bool, limits: StreamLimits) -> Streams {
    let mut streams = Streams::new(limits);
    streams.begin(opened_here, 8 << 20, 256 * 1024);
    streams
}

impl Pair {
    pub(super) fn new(limits: StreamLimits) -> Self {
        Pair {
            a: end(true, limits),
            b: end(false, limits),
            chance: None,
        }
    }

    /// Segments arrive in an order of chance.
    pub(super) fn shuffled(seed: u64) -> Self {
        Pair {
            chance: Some(Chance::named(seed, "segments")),
            ..Pair::new(StreamLimits::DEFAULT)
        }
    }

    /// Moves at most `most` segments each way.
    pub(super) fn carry(&mut self, most: usize) {
        let mut to_b = segments(&mut self.a, most);
        let mut to_a = segments(&mut self.b, most);
        if let Some(chance) = &mut self.chance {
            shuffle(chance, &mut to_b);
            shuffle(chance, &mut to_a);
        }
        to_b.into_iter()
            .for_each(|segment| self.b.on_segment(segment).unwrap());
        to_a.into_iter()
            .for_each(|segment| self.a.on_segment(segment).unwrap());
    }

    /// Until nothing may leave at either end.
    pub(super) fn settle(&mut self) {
        while !(self.a.is_empty() && self.b.is_empty()) {
            self.carry(64);
        }
    }
}

fn shuffle(chance: &mut Chance, segments: &mut [Bytes]) {
    for last in (1..segments.len()).rev() {
        segments.swap(last, chance.below(last as u64 + 1) as usize);
    }
}

pub(super) fn segments(from: &mut Streams, most: usize) -> Vec<Bytes> {
    let mut all = Vec::new();
    while all.len() < most {
        let promised = from.bytes();
        let Some(segment) = from.next_segment(ROOM) else {
            break;
        };
        assert!(
            segment.len() <= ROOM && segment.len() <= promised,
            "{} of {promised}",
            segment.len()
        );
        all.push(segment);
    }
    assert_eq!(from.is_empty(), from.bytes() == 0);
    all
}

/// Bytes of streams in segments.
pub(super) fn data_bytes(segments: Vec<Bytes>) -> u64 {
    let mut bytes = 0;
    for mut segment in segments {
        while !segment.is_empty() {
            if let Ok(Frame::Data { data, .. }) = Frame::parse(&mut segment) {
                bytes += data.len() as u64;
            }
        }
    }
    bytes
}

/// Everything that can be read now, and whether the stream has ended.
pub(super) fn read_all(from: &mut Streams, id: StreamId) -> (Vec<u8>, StreamRead) {
    let mut all = Vec::new();
    loop {
        match from.read(id) {
            StreamRead::Data(data) => all.extend_from_slice(&data),
            other => return (all, other),
        }
    }
}

pub(super) fn events(of: &mut Streams) -> Vec<StreamEvent> {
    std::iter::from_fn(|| of.poll_event()).collect()
}

/// Bytes that tell where they belong.
pub(super) fn text(seed: u64, size: usize) -> Bytes {
    (0..size as u64)
        .map(|at| (at * 31 + at / 251 + seed * 7) as u8)
        .collect()
}
