//! Two ends with streams: applications that open, write, read and end them, segments that arrive in any order, and segments that a
//! hostile peer has made up.

use arbitrary::{Arbitrary, Unstructured};
use bytes::Bytes;
use restp_base::streams::{StreamId, StreamRead, Streams as _};
use restp_services::framing::{StreamLimits, Streams};
use std::collections::BTreeMap;

/// Bytes that all streams of an end may hold to be read.
const WINDOW: u64 = 1 << 20;
/// Steps of a story.
const STEPS: usize = 400;

/// What happens next at the end `0` or `1`.
#[derive(Arbitrary, Debug)]
enum Step<'a> {
    Open(bool),
    Accept(bool),
    Write(bool, u8, u16),
    Read(bool, u8),
    Finish(bool, u8),
    Reset(bool, u8, u32),
    Stop(bool, u8, u32),
    /// A segment of so much room is cut, and is on its way.
    Cut(bool, u16),
    /// One of those on their way arrives.
    Carry(bool, u8),
    /// Something else arrives.
    Forge(bool, &'a [u8]),
    FinishAll(bool),
    End(bool),
}

struct End {
    streams: Streams,
    /// On the way to here.
    arriving: Vec<Bytes>,
    /// What it has written and read of each stream.
    wrote: BTreeMap<StreamId, u64>,
    read: BTreeMap<StreamId, u64>,
    /// Its peer has told lies: what it reads means nothing any more.
    deceived: bool,
    /// It has broken off.
    over: bool,
}

fn byte(id: StreamId, place: u64) -> u8 {
    (place * 7 + place / 256 + id.0 * 13) as u8
}

impl End {
    fn new(opened_here: bool) -> Self {
        let mut streams = Streams::new(StreamLimits::DEFAULT);
        streams.begin(opened_here, WINDOW, 64 * 1024);
        End {
            streams,
            arriving: Vec::new(),
            wrote: BTreeMap::new(),
            read: BTreeMap::new(),
            deceived: false,
            over: false,
        }
    }

    fn write(&mut self, id: StreamId, size: u64) {
        let done = self.wrote.entry(id).or_default();
        let data: Bytes = (*done..*done + size).map(|place| byte(id, place)).collect();
        if self.streams.write(id, data).is_ok() {
            *done += size;
        }
    }

    fn read(&mut self, id: StreamId) {
        while let StreamRead::Data(data) = self.streams.read(id) {
            let place = self.read.entry(id).or_default();
            for got in data {
                assert!(
                    self.deceived || got == byte(id, *place),
                    "byte {place} of stream {id}"
                );
                *place += 1;
            }
        }
    }

    fn cut(&mut self, room: usize) -> Option<Bytes> {
        let promised = self.streams.bytes();
        let segment = self.streams.next_segment(room);
        assert_eq!(segment.is_some(), promised > 0);
        let segment = segment?;
        assert!(
            segment.len() <= room.max(32) && segment.len() <= promised,
            "{} of {promised}",
            segment.len()
        );
        Some(segment)
    }

    fn take(&mut self, segment: Bytes, forged: bool) {
        self.deceived |= forged;
        if self.over {
            return;
        }
        if let Err(violation) = self.streams.on_segment(segment) {
            assert!(self.deceived, "an honest peer is refused: {violation:?}");
            self.over = true;
        }
        while self.streams.poll_event().is_some() {}
    }
}

/// Plays the story in `bytes`.
pub fn run(bytes: &[u8]) {
    let mut input = Unstructured::new(bytes);
    let mut ends = [End::new(true), End::new(false)];
    for _ in 0..STEPS {
        if input.is_empty() {
            break;
        }
        let Ok(step) = Step::arbitrary(&mut input) else {
            break;
        };
        play(&mut ends, step);
    }
    for end in &ends {
        // What waits to be sent is the application's own; what waits to be read is bounded.
        let bound = WINDOW as usize + 130 * (64 * 1024 + 20_000) + (4 << 20);
        assert!(
            end.streams.memory() <= bound,
            "{} bytes are held",
            end.streams.memory()
        );
    }
}

fn play(ends: &mut [End; 2], step: Step<'_>) {
    let named = |number: u8| StreamId(number.into());
    match step {
        Step::Open(at) => drop(ends[usize::from(at)].streams.open()),
        Step::Accept(at) => drop(ends[usize::from(at)].streams.accept()),
        Step::Write(at, number, size) => ends[usize::from(at)].write(named(number), (size % 20_000).into()),
        Step::Read(at, number) => ends[usize::from(at)].read(named(number)),
        Step::Finish(at, number) => ends[usize::from(at)].streams.finish(named(number)),
        Step::Reset(at, number, code) => ends[usize::from(at)].streams.reset(named(number), code),
        Step::Stop(at, number, code) => ends[usize::from(at)].streams.stop(named(number), code),
        Step::Cut(at, room) => {
            if let Some(segment) = ends[usize::from(at)].cut(room.into()) {
                let to = &mut ends[usize::from(!at)];
                if to.deceived {
                    to.arriving.clear(); // it will not go on for long
                }
                to.arriving.push(segment);
            }
        }
        Step::Carry(at, which) => {
            let end = &mut ends[usize::from(at)];
            if !end.arriving.is_empty() {
                let which = usize::from(which) % end.arriving.len();
                let segment = end.arriving.swap_remove(which);
                end.take(segment, false);
            }
        }
        Step::Forge(at, bytes) => {
            ends[usize::from(at)].take(Bytes::copy_from_slice(bytes), true);
            // What it says now may follow from lies.
            ends[usize::from(!at)].deceived = true;
        }
        Step::FinishAll(at) => ends[usize::from(at)].streams.finish_all(),
        Step::End(at) => {
            let end = &mut ends[usize::from(at)];
            end.streams.on_flow_end();
            end.over = true;
        }
    }
}
