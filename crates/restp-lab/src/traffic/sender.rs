//! The application that opens a flow and writes, or asks for what it then reads.

use super::{Account, Moments, PORT, Source, Traffic, TrafficError};
use restp_base::flow::{CloseReason, FlowId, FlowStats, Read};
use restp_base::machine::{Event, Machine, PathAddress};
use restp_base::random::Stream;
use restp_base::time::{Duration, Time};

/// Opens its flow at a given time and feeds it.
#[derive(Debug)]
pub struct Sender {
    paths: Vec<Attempt>,
    start: Time,
    flow: Option<FlowId>,
    source: Source,
    account: Account,
    connected: Option<Time>,
    closed: Option<CloseReason>,
    /// What its flows before this one have counted.
    past: Box<FlowStats>,
}

/// A path to use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// From here to there.
    pub path: PathAddress,
    /// Only when no other works.
    pub backup: bool,
}

impl Sender {
    /// A sender along `paths`, one at least, that begins at `start`; its messages go on the `pinned` one, if one is.
    /// Everything random about its traffic comes from `stream`.
    pub fn new(
        paths: Vec<Attempt>,
        pinned: Option<PathAddress>,
        start: Time,
        traffic: &Traffic,
        stream: Stream,
        moments: Moments,
    ) -> Self {
        Sender {
            paths,
            start,
            flow: None,
            source: Source::new(traffic, pinned, stream),
            account: Account::new(moments),
            connected: None,
            closed: None,
            past: Box::default(),
        }
    }

    /// When it wants to be woken.
    pub fn next(&self) -> Time {
        match (self.flow, &self.closed) {
            (None, _) => self.start,
            (Some(_), None) => self.source.next(),
            (Some(_), Some(_)) => Time::MAX,
        }
    }

    /// Opens the flow, or writes what is due.
    ///
    /// # Errors
    /// When this traffic cannot run over this transport.
    pub fn wake(&mut self, now: Time, machine: &mut dyn Machine) -> Result<(), TrafficError> {
        if self.source.connectionless().is_some() {
            return self.visit(now, machine);
        }
        if let Some(flow) = self.flow {
            return self.source.pump(now, machine, flow);
        }
        let Some((first, further)) = self.paths.split_first() else {
            return Ok(());
        };
        let flow = machine.open(now, first.path, PORT)?;
        self.flow = Some(flow);
        for attempt in further {
            machine.add_path(now, flow, attempt.path, attempt.backup)?;
        }
        self.source.begin(now);
        self.source.pump(now, machine, flow)
    }

    /// Asks for the next object, in a flow of its own. The one before is over.
    fn visit(&mut self, now: Time, machine: &mut dyn Machine) -> Result<(), TrafficError> {
        if self.flow.is_none() {
            self.source.begin(now);
        }
        let path = self.paths.first().map(|attempt| attempt.path);
        let request = self
            .source
            .connectionless()
            .and_then(|visitor| visitor.take_request(now));
        if let Some((path, request)) = path.zip(request) {
            if let Some(flow) = self.flow {
                if let Some(stats) = machine.stats(flow) {
                    self.past.add(&stats);
                }
                machine.release(now, flow);
            }
            self.flow = Some(machine.request(now, path, PORT, request)?);
        }
        Ok(())
    }

    /// Takes one event of the protocol.
    ///
    /// # Errors
    /// When this traffic cannot run over this transport.
    pub fn on(&mut self, now: Time, event: &Event, machine: &mut dyn Machine) -> Result<(), TrafficError> {
        if self.source.connectionless().is_some() {
            return self.on_object(now, event, machine);
        }
        match event {
            Event::Connected(flow) => {
                self.connected.get_or_insert(now);
                self.source.pump(now, machine, *flow)?;
            }
            Event::Writable(flow) => self.source.pump(now, machine, *flow)?,
            Event::Readable(flow) => {
                while let Read::Data(data) = machine.read(now, *flow) {
                    self.account.enter(now, data.len());
                    self.source.take(now, &data);
                }
                self.source.pump(now, machine, *flow)?;
            }
            Event::Closed(_, reason) => self.closed = Some(reason.clone()),
            Event::Accepted(_) | Event::Stream(..) | Event::Path(..) => {}
        }
        Ok(())
    }

    /// Takes one event of the flow of an object; those of earlier ones are nobody's.
    fn on_object(&mut self, now: Time, event: &Event, machine: &mut dyn Machine) -> Result<(), TrafficError> {
        match event {
            Event::Readable(flow) if self.flow == Some(*flow) => {
                let mut is_whole = false;
                while let Read::Data(data) = machine.read(now, *flow) {
                    self.account.enter(now, data.len());
                    if let Some(visitor) = self.source.connectionless() {
                        is_whole |= visitor.take(now, &data);
                    }
                }
                if is_whole {
                    machine.finish(now, *flow);
                    self.visit(now, machine)?;
                }
            }
            Event::Closed(flow, reason) if self.flow == Some(*flow) && *reason != CloseReason::Finished => {
                self.closed = Some(reason.clone());
            }
            _ => {}
        }
        Ok(())
    }

    /// Its flow, once opened.
    pub fn flow(&self) -> Option<FlowId> {
        self.flow
    }

    /// The paths it was given, in that order.
    pub fn paths(&self) -> &[Attempt] {
        &self.paths
    }

    /// When the flow was to be opened.
    pub fn start(&self) -> Time {
        self.start
    }

    /// It is established, or was.
    pub fn is_connected(&self) -> bool {
        self.connected.is_some()
    }

    /// From opening to established, as the application sees it.
    pub fn handshake(&self) -> Option<Duration> {
        Some(self.connected?.since(self.start))
    }

    /// What it read.
    pub fn account(&self) -> &Account {
        &self.account
    }

    /// How long each page took, where traffic consists of pages, and whether these are all.
    pub fn pages(&self) -> Option<(&[Duration], bool)> {
        self.source.pages()
    }

    /// Of a catalogue: bytes that are not those of the object that was asked for, and when the last object was read.
    pub fn objects(&self) -> Option<(u64, Option<Time>)> {
        let visitor = self.source.visitor()?;
        Some((visitor.wrong(), visitor.complete()))
    }

    /// Does it read what it asks for, rather than write?
    pub fn asks(&self) -> bool {
        self.pages().is_some() || self.source.visitor().is_some()
    }

    /// What its flows before this one have counted.
    pub fn past(&self) -> &FlowStats {
        &self.past
    }

    /// How the flow ended.
    pub fn closed(&self) -> Option<&CloseReason> {
        self.closed.as_ref()
    }

    /// Messages handed to the transport, where traffic consists of messages.
    pub fn sent_messages(&self) -> Option<u64> {
        self.source.sent_messages()
    }
}
