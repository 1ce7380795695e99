//! What machines hold in chaos runs, counted by the allocator and not by the engine: the law of memory judges the heap, and
//! what machines say of themselves is near it.

use bytes::Bytes;
use peak_alloc::PeakAlloc;
use restp_base::flow::{Flow, FlowId, FlowStats, OpenError, Read, WriteError};
use restp_base::machine::{Datagram, Event, Input, Machine, PathAddress, Wakeup};
use restp_base::streams::{StreamId, StreamOpenError, StreamRead, StreamWriteError, Streams};
use restp_base::time::Time;
use restp_lab::chaos::{self, Case, Violation};
use restp_lab::one_stream::OneStream;
use restp_proto::{Endpoint, EndpointConfig};

#[global_allocator]
static HEAP: PeakAlloc = PeakAlloc;

/// What an endpoint holds beside what its flows speak of: the law allows a flow as much.
const SLACK_BYTES: u64 = 48 * 1024;

/// Streams beside the first one, of a flow that carries many.
const COMPANIONS: u64 = 3;

/// A machine that shares no buffer with the world: what comes in is copied, what goes out too. Whatever its calls leave
/// allocated is its own, so the heap before and after each call tells what it holds.
struct Metered {
    inner: Endpoint,
    holds: isize,
    flows: Vec<FlowId>,
    /// The flow whose streams are asked for, and when.
    asked: (Time, Option<FlowId>),
}

impl Metered {
    fn new(config: &EndpointConfig) -> Self {
        let before = HEAP.current_usage();
        let inner = Endpoint::new(config.clone());
        Metered {
            inner,
            holds: HEAP.current_usage().wrapping_sub(before).cast_signed(),
            flows: Vec::new(),
            asked: (Time::ZERO, None),
        }
    }

    fn metered<T>(&mut self, call: impl FnOnce(&mut Endpoint) -> T) -> T {
        let before = HEAP.current_usage();
        let result = call(&mut self.inner);
        self.holds += HEAP.current_usage().wrapping_sub(before).cast_signed();
        result
    }

    /// What the machine says that its flows hold.
    fn says(&self) -> u64 {
        let stats = self.flows.iter().filter_map(|flow| self.inner.stats(*flow));
        stats.map(|stats| stats.memory_bytes).sum()
    }
}

impl Flow for Metered {
    fn open(&mut self, now: Time, path: PathAddress, port: u16) -> Result<FlowId, OpenError> {
        let flow = self.metered(|inner| inner.open(now, path, port))?;
        self.flows.push(flow);
        Ok(flow)
    }
    fn write(&mut self, now: Time, flow: FlowId, data: Bytes) -> Result<(), WriteError> {
        self.metered(|inner| inner.write(now, flow, Bytes::copy_from_slice(&data)))
    }
    fn write_on(
        &mut self,
        now: Time,
        flow: FlowId,
        data: Bytes,
        path: PathAddress,
    ) -> Result<(), WriteError> {
        self.metered(|inner| inner.write_on(now, flow, Bytes::copy_from_slice(&data), path))
    }
    fn add_path(
        &mut self,
        now: Time,
        flow: FlowId,
        path: PathAddress,
        backup: bool,
    ) -> Result<(), OpenError> {
        self.metered(|inner| inner.add_path(now, flow, path, backup))
    }
    fn remove_path(&mut self, now: Time, flow: FlowId, path: PathAddress) -> Result<(), OpenError> {
        self.metered(|inner| inner.remove_path(now, flow, path))
    }
    fn read(&mut self, now: Time, flow: FlowId) -> Read {
        let read = self.metered(|inner| inner.read(now, flow));
        let Read::Data(data) = read else { return read };
        let copy = Bytes::copy_from_slice(&data);
        self.metered(|_| drop(data));
        Read::Data(copy)
    }
    fn finish(&mut self, now: Time, flow: FlowId) {
        self.metered(|inner| inner.finish(now, flow));
    }
    fn streams(&mut self, now: Time, flow: FlowId) -> Option<&mut dyn Streams> {
        let streams = self.metered(|inner| inner.streams(now, flow).is_some());
        self.asked = (now, Some(flow));
        streams.then_some(self)
    }
    fn abort(&mut self, now: Time, flow: FlowId) {
        self.metered(|inner| inner.abort(now, flow));
    }
    fn release(&mut self, now: Time, flow: FlowId) {
        self.metered(|inner| inner.release(now, flow));
    }
    fn stats(&self, flow: FlowId) -> Option<FlowStats> {
        let mut stats = self.inner.stats(flow)?;
        let (holds, says) = (
            u64::try_from(self.holds).expect("it frees what it allocated"),
            self.says(),
        );
        let near = 2 * holds.min(says) + SLACK_BYTES;
        assert!(holds.max(says) <= near, "it holds {holds} bytes and says {says}");
        // Each flow answers for everything that no other flow speaks of.
        stats.memory_bytes = holds - (says - stats.memory_bytes).min(holds);
        Some(stats)
    }
}

impl Metered {
    /// The same for a call on the streams that were asked for.
    fn on_streams<T>(&mut self, call: impl FnOnce(&mut dyn Streams) -> T) -> T {
        let (now, flow) = self.asked;
        self.metered(|inner| {
            let streams = flow.and_then(|flow| inner.streams(now, flow));
            call(streams.expect("they were there when they were asked for"))
        })
    }
}

impl Streams for Metered {
    fn open(&mut self) -> Result<StreamId, StreamOpenError> {
        self.on_streams(|streams| streams.open())
    }
    fn accept(&mut self) -> Option<StreamId> {
        self.on_streams(|streams| streams.accept())
    }
    fn write(&mut self, stream: StreamId, data: Bytes) -> Result<(), StreamWriteError> {
        self.on_streams(|streams| streams.write(stream, Bytes::copy_from_slice(&data)))
    }
    fn read(&mut self, stream: StreamId) -> StreamRead {
        let read = self.on_streams(|streams| streams.read(stream));
        let StreamRead::Data(data) = read else { return read };
        let copy = Bytes::copy_from_slice(&data);
        self.metered(|_| drop(data));
        StreamRead::Data(copy)
    }
    fn finish(&mut self, stream: StreamId) {
        self.on_streams(|streams| streams.finish(stream));
    }
    fn reset(&mut self, stream: StreamId, code: u32) {
        self.on_streams(|streams| streams.reset(stream, code));
    }
    fn stop(&mut self, stream: StreamId, code: u32) {
        self.on_streams(|streams| streams.stop(stream, code));
    }
    fn open_streams(&self) -> usize {
        0 // nothing here counts them
    }
}

impl Machine for Metered {
    fn handle(&mut self, now: Time, input: Input<'_>) {
        self.metered(|inner| match input {
            Input::Datagram(datagram) => {
                let mut own = copy(datagram);
                inner.handle(now, Input::Datagram(&mut own));
            }
            other => inner.handle(now, other),
        });
    }
    fn poll_transmit(&mut self, now: Time, out: &mut Datagram) -> bool {
        let mut own = Datagram::empty();
        let sent = self.metered(|inner| inner.poll_transmit(now, &mut own));
        if sent {
            *out = copy(&own);
        }
        self.metered(|_| drop(own));
        sent
    }
    fn poll_event(&mut self) -> Option<Event> {
        let event = self.metered(Endpoint::poll_event);
        if let Some(Event::Accepted(flow)) = event {
            self.flows.push(flow);
        }
        event
    }
    fn next_deadline(&self) -> Option<(Time, Wakeup)> {
        self.inner.next_deadline()
    }
    fn held(&self) -> usize {
        self.inner.held()
    }
}

/// The same bytes in buffers of their own.
fn copy(datagram: &Datagram) -> Datagram {
    Datagram {
        head: datagram.head.clone(),
        body: Bytes::copy_from_slice(&datagram.body),
        ..*datagram
    }
}

/// The law that a run breaks, with so many streams beside the first one.
fn broken(seed: u64, companions: u64) -> Option<Violation> {
    let outcome = chaos::judge_with(&Case::draw(seed).plain(), &|config| {
        Box::new(OneStream::new(Metered::new(config), companions))
    });
    outcome.violation
}

/// One test: the heap is that of the whole process.
#[test]
fn the_heap_is_within_the_bound_and_near_what_machines_say() {
    for seed in 1..=50 {
        assert_eq!(broken(seed, 0), None, "seed {seed}");
        // The bound does not know what goes over the others; what machines say has to.
        let others = broken(seed, COMPANIONS).filter(|violation| violation.law != "memory");
        assert_eq!(others, None, "seed {seed} with more streams");
    }
}
