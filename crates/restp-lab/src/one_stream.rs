//! An application of one stream of bytes over a flow that carries many (`framing = "streams"`): its first stream is what is written and
//! read, so that whatever runs over a flow runs over that. For chaos there are companions beside it: streams whose bytes are known, which
//! are held against what should have come; one of them is not read until the first stream has ended.
//!
//! A flow without streams passes through unchanged.

use bytes::Bytes;
use restp_base::flow::{Flow, FlowId, FlowStats, OpenError, Read, WriteError};
use restp_base::machine::{Datagram, Event, Input, Machine, PathAddress, Wakeup};
use restp_base::streams::{StreamEvent, StreamId, StreamRead, StreamWriteError, Streams};
use restp_base::time::Time;
use std::collections::{BTreeMap, VecDeque};

/// Most bytes that a companion is given at once.
const MOST_PIECE: usize = 5000;

/// The machine below, and what is known of its flows.
#[derive(Debug)]
pub struct OneStream<M> {
    inner: M,
    companions: u64,
    flows: BTreeMap<FlowId, Lanes>,
    events: VecDeque<Event>,
}

/// The streams of one flow.
#[derive(Debug, Default)]
struct Lanes {
    main: Option<StreamId>,
    companions: Vec<Companion>,
    finished: bool,
}

/// A stream whose bytes are known.
#[derive(Debug)]
struct Companion {
    id: StreamId,
    wrote: u64,
    read: u64,
    over: bool,
}

impl Companion {
    /// The byte at `place` of what either end writes.
    fn byte(&self, place: u64) -> u8 {
        (place * 7 + place / 256 + self.id.0 * 13) as u8
    }

    fn write(&mut self, size: usize, streams: &mut dyn Streams) {
        let data: Bytes = (0..size as u64).map(|at| self.byte(self.wrote + at)).collect();
        if streams.write(self.id, data).is_ok() {
            self.wrote += size as u64;
        }
    }

    /// Reads what there is, which has to be what was written.
    fn drain(&mut self, streams: &mut dyn Streams) {
        while !self.over {
            match streams.read(self.id) {
                StreamRead::Data(data) => {
                    for byte in data {
                        assert_eq!(
                            byte,
                            self.byte(self.read),
                            "byte {} of stream {}",
                            self.read,
                            self.id
                        );
                        self.read += 1;
                    }
                }
                StreamRead::Empty => return,
                StreamRead::End | StreamRead::Reset(_) | StreamRead::Lost => self.over = true,
            }
        }
    }
}

impl Lanes {
    fn enter(&mut self, id: StreamId, streams: &mut dyn Streams) {
        match self.main {
            None => self.main = Some(id),
            Some(_) => self.companions.push(Companion {
                id,
                wrote: 0,
                read: 0,
                over: false,
            }),
        }
        if self.finished {
            streams.finish(id);
        }
    }

    /// Streams that the peer has opened.
    fn accept(&mut self, streams: &mut dyn Streams) {
        while let Some(id) = streams.accept() {
            self.enter(id, streams);
        }
    }

    fn write(&mut self, data: Bytes, streams: &mut dyn Streams) -> Result<(), WriteError> {
        self.accept(streams);
        let (size, Some(main)) = (data.len(), self.main) else {
            return Err(WriteError::Blocked);
        };
        streams.write(main, data).map_err(|error| match error {
            StreamWriteError::Blocked => WriteError::Blocked,
            StreamWriteError::Stopped(_) | StreamWriteError::Closed => WriteError::Closed,
        })?;
        for (share, companion) in (1..).zip(&mut self.companions) {
            companion.write((size * share / 2).min(MOST_PIECE), streams);
        }
        Ok(())
    }

    fn read(&mut self, streams: &mut dyn Streams) -> Read {
        self.accept(streams);
        let main = self.main.map_or(StreamRead::Empty, |main| streams.read(main));
        let ends = !matches!(main, StreamRead::Data(_) | StreamRead::Empty);
        for companion in self.companions.iter_mut().skip(usize::from(!ends)) {
            companion.drain(streams);
        }
        match main {
            StreamRead::Data(data) => Read::Data(data),
            StreamRead::End if self.companions.iter().any(|companion| !companion.over) => Read::Empty,
            StreamRead::Empty => Read::Empty,
            StreamRead::End | StreamRead::Reset(_) | StreamRead::Lost => Read::End,
        }
    }
}

impl<M: Machine> OneStream<M> {
    /// `machine`, with so many companions in each flow that it opens.
    pub fn new(machine: M, companions: u64) -> Self {
        OneStream {
            inner: machine,
            companions,
            flows: BTreeMap::new(),
            events: VecDeque::new(),
        }
    }

    /// The machine below.
    pub fn inner(&self) -> &M {
        &self.inner
    }
    /// The same, to be changed.
    pub fn inner_mut(&mut self) -> &mut M {
        &mut self.inner
    }

    fn finish_if_known(&mut self, now: Time, flow: FlowId) {
        // A flow ends when its streams are over: not before the first of them is known.
        if self
            .flows
            .get(&flow)
            .is_some_and(|lanes| lanes.finished && lanes.main.is_some())
        {
            self.inner.finish(now, flow);
        }
    }
}

impl<M: Machine> Flow for OneStream<M> {
    fn open(&mut self, now: Time, path: PathAddress, port: u16) -> Result<FlowId, OpenError> {
        let flow = self.inner.open(now, path, port)?;
        if let Some(streams) = self.inner.streams(now, flow) {
            let mut lanes = Lanes::default();
            for _ in 0..=self.companions {
                if let Ok(id) = streams.open() {
                    lanes.enter(id, streams);
                }
            }
            // The peer hears of a stream with its first byte, and of all before it.
            if let Some(last) = lanes.companions.last_mut() {
                last.write(1, streams);
            }
            self.flows.insert(flow, lanes);
        }
        Ok(flow)
    }
    fn add_path(
        &mut self,
        now: Time,
        flow: FlowId,
        path: PathAddress,
        backup: bool,
    ) -> Result<(), OpenError> {
        self.inner.add_path(now, flow, path, backup)
    }
    fn remove_path(&mut self, now: Time, flow: FlowId, path: PathAddress) -> Result<(), OpenError> {
        self.inner.remove_path(now, flow, path)
    }
    fn write(&mut self, now: Time, flow: FlowId, data: Bytes) -> Result<(), WriteError> {
        let Some(streams) = self.inner.streams(now, flow) else {
            return self.inner.write(now, flow, data);
        };
        let written = self.flows.entry(flow).or_default().write(data, streams);
        self.finish_if_known(now, flow);
        written
    }
    fn write_on(
        &mut self,
        now: Time,
        flow: FlowId,
        data: Bytes,
        path: PathAddress,
    ) -> Result<(), WriteError> {
        if self.inner.streams(now, flow).is_some() {
            return self.write(now, flow, data);
        }
        self.inner.write_on(now, flow, data, path)
    }
    fn read(&mut self, now: Time, flow: FlowId) -> Read {
        let Some(streams) = self.inner.streams(now, flow) else {
            return self.inner.read(now, flow);
        };
        let read = self.flows.entry(flow).or_default().read(streams);
        self.finish_if_known(now, flow);
        match read {
            Read::Empty => self.inner.read(now, flow), // it may be over
            read => read,
        }
    }
    fn finish(&mut self, now: Time, flow: FlowId) {
        let Some(streams) = self.inner.streams(now, flow) else {
            return self.inner.finish(now, flow);
        };
        let lanes = self.flows.entry(flow).or_default();
        lanes.finished = true;
        let companions = lanes.companions.iter().map(|companion| companion.id);
        lanes
            .main
            .into_iter()
            .chain(companions)
            .for_each(|id| streams.finish(id));
        lanes.accept(streams);
        self.finish_if_known(now, flow);
    }
    fn streams(&mut self, now: Time, flow: FlowId) -> Option<&mut dyn Streams> {
        self.inner.streams(now, flow)
    }
    fn abort(&mut self, now: Time, flow: FlowId) {
        self.inner.abort(now, flow);
    }
    fn release(&mut self, now: Time, flow: FlowId) {
        self.flows.remove(&flow);
        self.inner.release(now, flow);
    }
    fn stats(&self, flow: FlowId) -> Option<FlowStats> {
        self.inner.stats(flow)
    }
    fn take_losses(&mut self, flow: FlowId, into: &mut Vec<restp_base::observe::Loss>) -> bool {
        self.inner.take_losses(flow, into)
    }
    fn reconfigure(
        &mut self,
        now: Time,
        flow: FlowId,
        set: &[(String, String)],
    ) -> Result<restp_base::flow::Change, restp_base::flow::ChangeError> {
        self.inner.reconfigure(now, flow, set)
    }
    fn take_changes(
        &mut self,
        now: Time,
        flow: FlowId,
        into: &mut Vec<restp_base::observe::Changed>,
    ) -> bool {
        self.inner.take_changes(now, flow, into)
    }
}

impl<M: Machine> Machine for OneStream<M> {
    fn handle(&mut self, now: Time, input: Input<'_>) {
        self.inner.handle(now, input);
    }
    fn poll_transmit(&mut self, now: Time, out: &mut Datagram) -> bool {
        self.inner.poll_transmit(now, out)
    }
    fn poll_event(&mut self) -> Option<Event> {
        if let Some(event) = self.events.pop_front() {
            return Some(event);
        }
        match self.inner.poll_event()? {
            Event::Stream(flow, StreamEvent::Readable(_)) => Some(Event::Readable(flow)),
            Event::Stream(flow, StreamEvent::Writable(_) | StreamEvent::Available) => {
                Some(Event::Writable(flow))
            }
            Event::Stream(flow, StreamEvent::Opened) => {
                self.events.push_back(Event::Writable(flow));
                Some(Event::Readable(flow))
            }
            event => Some(event),
        }
    }
    fn next_deadline(&self) -> Option<(Time, Wakeup)> {
        self.inner.next_deadline()
    }
    fn held(&self) -> usize {
        self.inner.held()
    }
}
