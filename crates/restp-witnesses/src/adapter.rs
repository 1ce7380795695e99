//! One connection of somebody else's engine as a [`Machine`]: what every witness needs and none should write again. The
//! send buffer (engines differ in what they take), the events, the counters of datagrams and bytes.

use bytes::{Buf, Bytes};
use restp_base::flow::{CloseReason, Flow, FlowId, FlowStats, OpenError, Read, WriteError};
use restp_base::machine::{Datagram, Event, Input, Machine, PathAddress, Wakeup};
use restp_base::time::Time;
use std::collections::VecDeque;

/// An engine with at most one connection. After every call the adapter drains [`Stack::transmit`] and [`Stack::poll`].
pub(crate) trait Stack {
    /// Begins to open the connection.
    fn open(&mut self, now: Time, path: PathAddress) -> Result<(), OpenError>;
    /// One more pair of addresses.
    fn add_path(&mut self, now: Time, path: PathAddress, backup: bool) -> Result<(), OpenError>;
    /// A datagram has arrived; all its bytes are in `bytes`.
    fn receive(&mut self, now: Time, datagram: &Datagram, bytes: Vec<u8>);
    /// Its deadline has come, or nearly so.
    fn expire(&mut self, now: Time);
    /// The earliest of its timers.
    fn deadline(&mut self, now: Time) -> Option<Time>;
    /// Writes the next datagram; `None`: there is none now.
    fn transmit(&mut self, now: Time, out: &mut Datagram) -> Option<Sent>;
    /// What happened to the connection since it was asked last.
    fn poll(&mut self) -> Option<News>;
    /// Takes bytes to send, in order, and says how many.
    fn write(&mut self, now: Time, data: &Bytes) -> usize;
    /// Everything was written.
    fn finish(&mut self, now: Time);
    /// The next bytes for the reader.
    fn read(&mut self, now: Time) -> Read;
    /// Breaks off.
    fn abort(&mut self, now: Time);
    /// Fills in what the engine tells of itself: losses, timers, round trip, window, paths.
    fn describe(&self, stats: &mut FlowStats);
}

/// What was in a datagram.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sent {
    /// Application bytes. Where the engine encrypts, all its bytes count.
    pub(crate) payload: usize,
    /// They were sent before. Known where nothing is encrypted.
    pub(crate) again: bool,
}

/// What happened to the connection.
#[derive(Clone, Debug)]
pub(crate) enum News {
    Established,
    Readable,
    Closed(CloseReason),
}

/// Bytes an application may have written that the engine did not take yet: as much as our TCP holds.
const SEND_BUFFER_BYTES: usize = 256 << 10;
/// The one connection.
const FLOW: FlowId = FlowId(0);

/// A witness as a host's transport.
pub(crate) struct Adapter<S> {
    stack: S,
    opened: Option<Time>,
    established: bool,
    closed: bool,
    /// Written and not taken.
    waiting: VecDeque<Bytes>,
    waiting_bytes: usize,
    writer_waits: bool,
    finish: Finish,
    deadline: Option<Time>,
    events: VecDeque<Event>,
    /// Opened by the peer.
    accepts: bool,
    stats: FlowStats,
}

/// How far the end of the sending direction is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Finish {
    Open,
    Wanted,
    Told,
}

impl<S: Stack> Adapter<S> {
    pub(crate) fn new(stack: S) -> Self {
        Adapter {
            stack,
            opened: None,
            established: false,
            closed: false,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            writer_waits: false,
            finish: Finish::Open,
            deadline: None,
            events: VecDeque::new(),
            accepts: true,
            stats: FlowStats::default(),
        }
    }

    /// Hands the engine what it takes, and the application what it tells.
    fn settle(&mut self, now: Time) {
        while let Some(news) = self.stack.poll() {
            self.on_news(now, news);
        }
        self.pump(now);
    }

    fn on_news(&mut self, now: Time, news: News) {
        let event = match news {
            News::Established if !self.established => {
                self.established = true;
                self.stats.handshake = self.opened.map(|at| now.since(at));
                if self.accepts {
                    Event::Accepted(FLOW)
                } else {
                    Event::Connected(FLOW)
                }
            }
            News::Established => return,
            News::Readable => Event::Readable(FLOW),
            News::Closed(reason) if !std::mem::replace(&mut self.closed, true) => {
                self.waiting.clear();
                self.waiting_bytes = 0;
                Event::Closed(FLOW, reason)
            }
            News::Closed(_) => return,
        };
        if self.events.back() != Some(&event) {
            self.events.push_back(event);
        }
    }

    fn pump(&mut self, now: Time) {
        if !self.established || self.closed {
            return;
        }
        while let Some(front) = self.waiting.front_mut() {
            let taken = self.stack.write(now, front).min(front.len());
            front.advance(taken);
            self.waiting_bytes -= taken;
            if !front.is_empty() {
                break;
            }
            self.waiting.pop_front();
        }
        if self.finish == Finish::Wanted && self.waiting.is_empty() {
            self.finish = Finish::Told;
            self.stack.finish(now);
        }
        if self.writer_waits && self.waiting_bytes <= SEND_BUFFER_BYTES / 2 {
            self.writer_waits = false;
            self.events.push_back(Event::Writable(FLOW));
        }
    }

    fn on_datagram(&mut self, now: Time, datagram: &Datagram) {
        self.stats.received_packets += 1;
        self.stats.received_bytes += datagram.len() as u64;
        self.opened.get_or_insert(now);
        self.stats.path.get_or_insert(datagram.path);
        self.stack.receive(now, datagram, datagram.to_vec());
    }
}

impl<S: Stack> Machine for Adapter<S> {
    fn handle(&mut self, now: Time, input: Input<'_>) {
        match input {
            Input::Datagram(datagram) => self.on_datagram(now, datagram),
            Input::Deadline => self.stack.expire(now),
            // None of the engines takes notices of its lower layer.
            Input::PathNotice { .. } | Input::Refused(_) => {}
        }
        self.settle(now);
    }

    fn poll_transmit(&mut self, now: Time, out: &mut Datagram) -> bool {
        if let Some(sent) = self.stack.transmit(now, out) {
            self.stats.sent_packets += 1;
            self.stats.sent_bytes += out.len() as u64;
            self.stats.sent_payload_bytes += sent.payload as u64;
            self.stats.retransmitted_packets += u64::from(sent.again);
            return true;
        }
        self.settle(now);
        self.deadline = self.stack.deadline(now);
        false
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    fn next_deadline(&self) -> Option<(Time, Wakeup)> {
        Some((self.deadline?, Wakeup::Retransmission))
    }

    fn held(&self) -> usize {
        (self.opened.is_some() && !self.closed).into()
    }
}

impl<S: Stack> Flow for Adapter<S> {
    fn open(&mut self, now: Time, path: PathAddress, _port: u16) -> Result<FlowId, OpenError> {
        if self.opened.is_some() {
            return Err(OpenError::Unsupported(
                "a witness holds one connection; give a second flow a machine of its own".into(),
            ));
        }
        self.stack.open(now, path)?;
        (self.opened, self.accepts, self.stats.path) = (Some(now), false, Some(path));
        Ok(FLOW)
    }

    fn add_path(
        &mut self,
        now: Time,
        _flow: FlowId,
        path: PathAddress,
        backup: bool,
    ) -> Result<(), OpenError> {
        self.stack.add_path(now, path, backup)
    }

    fn write(&mut self, now: Time, _flow: FlowId, data: Bytes) -> Result<(), WriteError> {
        if self.closed || self.finish != Finish::Open {
            return Err(WriteError::Closed);
        }
        if self.waiting_bytes >= SEND_BUFFER_BYTES {
            self.writer_waits = true;
            return Err(WriteError::Blocked);
        }
        self.waiting_bytes += data.len();
        self.waiting.push_back(data);
        self.pump(now);
        Ok(())
    }

    fn read(&mut self, now: Time, _flow: FlowId) -> Read {
        let read = self.stack.read(now);
        if let Read::Data(data) = &read {
            self.stats.delivered_bytes += data.len() as u64;
            self.stats.delivered_messages += 1;
        }
        read
    }

    fn finish(&mut self, now: Time, _flow: FlowId) {
        if self.finish == Finish::Open {
            self.finish = Finish::Wanted;
            self.pump(now);
        }
    }

    fn abort(&mut self, now: Time, _flow: FlowId) {
        self.stack.abort(now);
        self.on_news(now, News::Closed(CloseReason::Aborted));
    }

    fn release(&mut self, now: Time, flow: FlowId) {
        self.finish(now, flow);
    }

    fn stats(&self, _flow: FlowId) -> Option<FlowStats> {
        self.opened?;
        let mut stats = self.stats.clone();
        self.stack.describe(&mut stats);
        Some(stats)
    }
}

/// What an engine with one path says to a second one.
pub(crate) fn one_path(path: PathAddress) -> OpenError {
    OpenError::Unsupported(format!(
        "this witness has one path and cannot use {} as well",
        path.local
    ))
}
