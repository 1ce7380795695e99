//! The application that opens a flow and writes, or asks for what it then reads.

use super::{Account, Moments, PORT, Source, Traffic, TrafficError};
use restp_base::flow::{CloseReason, FlowId, Read};
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

    /// Takes one event of the protocol.
    ///
    /// # Errors
    /// When this traffic cannot run over this transport.
    pub fn on(&mut self, now: Time, event: &Event, machine: &mut dyn Machine) -> Result<(), TrafficError> {
        match event {
            Event::Connected(flow) => {
                self.connected.get_or_insert(now);
                self.source.pump(now, machine, *flow)?;
            }
            Event::Writable(flow) => self.source.pump(now, machine, *flow)?,
            Event::Readable(flow) => {
                while let Read::Data(data) = machine.read(now, *flow) {
                    self.account.enter(now, data.len());
                    self.source.take(now, data.len());
                }
                self.source.pump(now, machine, *flow)?;
            }
            Event::Closed(_, reason) => self.closed = Some(reason.clone()),
            Event::Accepted(_) | Event::Stream(..) | Event::Path(..) => {}
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

    /// How the flow ended.
    pub fn closed(&self) -> Option<&CloseReason> {
        self.closed.as_ref()
    }

    /// Messages handed to the transport, where traffic consists of messages.
    pub fn sent_messages(&self) -> Option<u64> {
        self.source.sent_messages()
    }
}
