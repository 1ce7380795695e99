//! Streams in virtual time (docs/protocol/streams.md): two endpoints, a network that loses and reorders, one path and several.

mod ends;
mod fairness;
mod hostile;
mod order;
mod pauses;
mod set_up;

use crate::common::*;
use bytes::Bytes;
use restp_base::flow::{Flow, FlowId};
use restp_base::machine::Event;
use restp_base::streams::{StreamEvent, StreamId, StreamRead, StreamWriteError, Streams};
use restp_base::time::Duration;

pub(crate) const MS: Duration = Duration::from_millis(1);
pub(crate) const STREAMS: &[(&str, &str)] = &[("framing", "streams"), ("ordering", "unordered")];

/// An established flow with streams, and its names on both sides.
pub(crate) fn connected(set: &[(&str, &str)]) -> (Pair, FlowId, FlowId) {
    let mut pair = Pair::new("cubic", &[STREAMS, set].concat());
    let (flow, accepted) = pair.connect();
    (pair, flow, accepted)
}

pub(crate) fn streams(pair: &mut Pair, side: usize, flow: FlowId) -> &mut dyn Streams {
    pair.ends[side]
        .streams(pair.now, flow)
        .expect("a flow with streams")
}

pub(crate) fn open(pair: &mut Pair, side: usize, flow: FlowId) -> StreamId {
    streams(pair, side, flow).open().expect("a stream")
}

/// What can be read now, and what was found behind it.
pub(crate) fn read_all(pair: &mut Pair, side: usize, flow: FlowId, id: StreamId) -> (Vec<u8>, StreamRead) {
    let mut all = Vec::new();
    loop {
        match streams(pair, side, flow).read(id) {
            StreamRead::Data(data) => all.extend_from_slice(&data),
            other => return (all, other),
        }
    }
}

/// Bytes that say where they belong.
pub(crate) fn text(id: StreamId, size: usize) -> Bytes {
    (0..size as u64)
        .map(|at| (at * 31 + at / 251 + id.0 * 7) as u8)
        .collect()
}

/// Streams that an end of an application sends, and those that it reads, moved along until everything has arrived.
pub(crate) struct Exchange {
    /// What is still to be written, by stream.
    rest: Vec<(StreamId, Bytes)>,
    pub(crate) got: Vec<(StreamId, Vec<u8>, Option<StreamRead>)>,
    size: usize,
}

impl Exchange {
    /// `count` streams of `size` bytes from side 0.
    pub(crate) fn new(pair: &mut Pair, flow: FlowId, count: usize, size: usize) -> Self {
        let mut rest = Vec::new();
        for _ in 0..count {
            let id = open(pair, 0, flow);
            rest.push((id, text(id, size)));
        }
        let got = rest.iter().map(|(id, _)| (*id, Vec::new(), None)).collect();
        Exchange { rest, got, size }
    }

    pub(crate) fn step(&mut self, pair: &mut Pair, flows: (FlowId, FlowId), span: Duration) {
        let tx = streams(pair, 0, flows.0);
        self.rest.retain_mut(|(id, rest)| {
            while !rest.is_empty() {
                let piece = rest.slice(..rest.len().min(4000));
                match tx.write(*id, piece.clone()) {
                    Ok(()) => drop(rest.split_to(piece.len())),
                    Err(StreamWriteError::Blocked) => return true,
                    Err(other) => panic!("{other}"),
                }
            }
            tx.finish(*id);
            false
        });
        pair.run_for(span);
        let rx = streams(pair, 1, flows.1);
        while rx.accept().is_some() {}
        for (id, got, end) in self.got.iter_mut().filter(|(.., end)| end.is_none()) {
            loop {
                match rx.read(*id) {
                    StreamRead::Data(data) => got.extend_from_slice(&data),
                    StreamRead::Empty => break,
                    over => {
                        *end = Some(over);
                        break;
                    }
                }
            }
        }
    }

    /// Everything has arrived in order within `limit`.
    pub(crate) fn complete(&mut self, pair: &mut Pair, flows: (FlowId, FlowId), limit: Duration) {
        let until = pair.now + limit;
        while self.got.iter().any(|(.., end)| end.is_none()) && pair.now < until {
            self.step(pair, flows, MS * 5);
            pair.log.clear();
        }
        for (id, got, end) in &self.got {
            assert_eq!(*end, Some(StreamRead::End), "stream {id}: {} bytes", got.len());
            assert!(*got == text(*id, self.size), "stream {id} is whole and in order");
        }
    }
}

pub(crate) fn told(pair: &Pair, side: usize, event: StreamEvent) -> bool {
    pair.events[side]
        .iter()
        .any(|seen| matches!(seen, Event::Stream(_, told) if *told == event))
}
