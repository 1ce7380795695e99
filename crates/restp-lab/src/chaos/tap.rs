//! The engine as the seal sees it: notes what passes between the two, so that each PDU that the seal hands up can be held
//! against what was said on the other side.

use super::COMPANIONS;
use crate::one_stream::OneStream;
use bytes::Bytes;
use restp_base::flow::{Flow, FlowId, FlowStats, OpenError, Read, WriteError};
use restp_base::machine::{Datagram, Event, Input, Machine, PathAddress, Wakeup};
use restp_base::streams::Streams;
use restp_base::time::Time;
use restp_proto::Endpoint;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

/// What passed.
#[derive(Debug)]
pub enum Note {
    /// The engine sent this PDU.
    Sent(Datagram),
    /// It was handed this PDU.
    Received(Datagram),
    /// Because of the PDU handed to it last a flow began.
    Accepted(FlowId),
    /// Because of the PDU handed to it last a flow ended.
    Closed(FlowId),
}

/// What passed since the last look.
pub type Notes = Rc<RefCell<Vec<Note>>>;

/// An engine with a note of what passes.
pub struct Tap {
    engine: OneStream<Endpoint>,
    notes: Notes,
    /// A PDU was handed to it, and what it tells is because of that.
    hears: bool,
    /// Flows that were broken off here.
    aborted: BTreeSet<FlowId>,
}

impl Tap {
    pub fn new(engine: Endpoint, notes: Notes) -> Self {
        Tap {
            engine: OneStream::new(engine, COMPANIONS),
            notes,
            hears: false,
            aborted: BTreeSet::new(),
        }
    }

    pub fn engine(&self) -> &Endpoint {
        self.engine.inner()
    }

    pub fn engine_mut(&mut self) -> &mut Endpoint {
        self.engine.inner_mut()
    }
}

impl Flow for Tap {
    fn open(&mut self, now: Time, path: PathAddress, port: u16) -> Result<FlowId, OpenError> {
        self.engine.open(now, path, port)
    }
    fn add_path(
        &mut self,
        now: Time,
        flow: FlowId,
        path: PathAddress,
        backup: bool,
    ) -> Result<(), OpenError> {
        self.engine.add_path(now, flow, path, backup)
    }
    fn remove_path(&mut self, now: Time, flow: FlowId, path: PathAddress) -> Result<(), OpenError> {
        self.hears = false;
        self.engine.remove_path(now, flow, path)
    }
    fn write(&mut self, now: Time, flow: FlowId, data: Bytes) -> Result<(), WriteError> {
        self.engine.write(now, flow, data)
    }
    fn write_on(
        &mut self,
        now: Time,
        flow: FlowId,
        data: Bytes,
        path: PathAddress,
    ) -> Result<(), WriteError> {
        self.engine.write_on(now, flow, data, path)
    }
    fn read(&mut self, now: Time, flow: FlowId) -> Read {
        self.engine.read(now, flow)
    }
    fn finish(&mut self, now: Time, flow: FlowId) {
        self.hears = false;
        self.engine.finish(now, flow);
    }
    fn streams(&mut self, now: Time, flow: FlowId) -> Option<&mut dyn Streams> {
        self.engine.streams(now, flow)
    }
    fn abort(&mut self, now: Time, flow: FlowId) {
        self.aborted.insert(flow);
        self.engine.abort(now, flow);
    }
    fn release(&mut self, now: Time, flow: FlowId) {
        self.engine.release(now, flow);
    }
    fn stats(&self, flow: FlowId) -> Option<FlowStats> {
        self.engine.stats(flow)
    }
}

impl Machine for Tap {
    fn handle(&mut self, now: Time, input: Input<'_>) {
        self.hears = false;
        if let Input::Datagram(datagram) = &input {
            self.hears = true;
            self.notes
                .borrow_mut()
                .push(Note::Received(Datagram::clone(datagram)));
        }
        self.engine.handle(now, input);
    }
    fn poll_transmit(&mut self, now: Time, out: &mut Datagram) -> bool {
        self.hears = false;
        let sends = self.engine.poll_transmit(now, out);
        if sends {
            self.notes.borrow_mut().push(Note::Sent(out.clone()));
        }
        sends
    }
    fn poll_event(&mut self) -> Option<Event> {
        let event = self.engine.poll_event();
        let note = match &event {
            _ if !self.hears => None,
            Some(Event::Accepted(flow)) => Some(Note::Accepted(*flow)),
            Some(Event::Closed(flow, _)) if !self.aborted.contains(flow) => Some(Note::Closed(*flow)),
            _ => None,
        };
        self.notes.borrow_mut().extend(note);
        event
    }
    fn next_deadline(&self) -> Option<(Time, Wakeup)> {
        self.engine.next_deadline()
    }
    fn held(&self) -> usize {
        self.engine.held()
    }
}
