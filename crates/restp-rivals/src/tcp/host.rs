//! A host's TCP: which connection a segment belongs to, resets for everything else, and the two seams.

use super::connection::{Connection, Packet, Ports, Verdict};
use super::options::Options;
use super::parameters::TcpParameters;
use super::wire::{Flags, Header, WireError};
use bytes::Bytes;
use restp_base::flow::{Flow, FlowId, FlowStats, OpenError, Read, WriteError};
use restp_base::machine::{Datagram, Ecn, Event, Input, Machine, PathAddress, Wakeup};
use restp_base::time::Time;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::sync::Arc;

/// What a user sets for a whole host.
#[derive(Clone, Debug)]
pub struct TcpConfig {
    /// What its connections are made of.
    pub parameters: TcpParameters,
    /// The port it serves; none: it only opens.
    pub listen: Option<u16>,
    /// First sequence number of every connection. Fixed, for simulation and for tests of the wrap at 2³²: an open
    /// network needs one that cannot be guessed (RFC 6528).
    pub initial_sequence: u32,
    /// Connections held at once, lingering ones included; further SYNs are dropped and counted.
    pub max_connections: usize,
    /// Connections whose set-up is not complete, at once.
    pub max_half_open: usize,
}

impl TcpConfig {
    /// A host that opens connections with `parameters` and serves nothing.
    pub fn new(parameters: TcpParameters) -> Self {
        TcpConfig {
            parameters,
            listen: None,
            initial_sequence: 0,
            max_connections: 65_536,
            max_half_open: 1_024,
        }
    }
}

/// Segments a connection may send in its turn before the next one gets its own.
const TURN: u32 = 64;
/// Ports of connections opened here (RFC 6335 §6).
const DYNAMIC_PORTS: RangeInclusive<u16> = 49_152..=65_535;
/// Resets that may wait to be sent; more are dropped, as the network might.
const MAX_RESETS: usize = 64;

/// What tells one connection from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    remote: SocketAddr,
    ports: Ports,
}

#[derive(Debug)]
struct Slot {
    connection: Connection,
    key: Key,
    /// The application has let it go.
    released: bool,
    /// It waits for its turn to send.
    queued: bool,
    /// Its entry in the list of wakes; earlier than its true deadline at worst.
    wakes_at: Option<Time>,
}

/// A host's TCP.
#[derive(Debug)]
pub struct Tcp {
    config: TcpConfig,
    parameters: Arc<TcpParameters>,
    slots: BTreeMap<FlowId, Slot>,
    by_key: BTreeMap<Key, FlowId>,
    half_open: BTreeSet<FlowId>,
    wakes: BTreeSet<(Time, FlowId)>,
    /// Connections that may have something to send.
    turns: VecDeque<FlowId>,
    turn_left: u32,
    resets: VecDeque<(PathAddress, Header)>,
    events: VecDeque<Event>,
    opened: u64,
    dropped: u64,
}

impl Tcp {
    /// A host without connections.
    pub fn new(config: TcpConfig) -> Self {
        Tcp {
            parameters: Arc::new(config.parameters.clone()),
            config,
            slots: BTreeMap::new(),
            by_key: BTreeMap::new(),
            half_open: BTreeSet::new(),
            wakes: BTreeSet::new(),
            turns: VecDeque::new(),
            turn_left: TURN,
            resets: VecDeque::new(),
            events: VecDeque::new(),
            opened: 0,
            dropped: 0,
        }
    }

    /// Segments dropped because they were malformed, damaged, of no connection, or beyond a limit.
    pub fn dropped_segments(&self) -> u64 {
        self.dropped
    }

    /// Connections held, lingering ones included.
    pub fn connections(&self) -> usize {
        self.slots.len()
    }

    fn on_datagram(&mut self, now: Time, datagram: &mut Datagram) {
        let (path, size) = (datagram.path, datagram.len());
        let Ok((header, payload)) = take_apart(datagram) else {
            self.dropped += 1;
            return;
        };
        let ports = Ports {
            local: header.destination_port,
            remote: header.source_port,
        };
        let key = Key {
            remote: path.remote,
            ports,
        };
        let packet = Packet {
            header: &header,
            payload,
            size,
        };
        let bytes = packet.sequence_length();
        let found = self.by_key.get(&key).copied();
        let Some((flow, slot)) = found.and_then(|flow| Some((flow, self.slots.get_mut(&flow)?))) else {
            return self.on_stranger(now, path, key, &packet);
        };
        if slot.connection.handle(now, packet) == Verdict::Refuse {
            self.reset(path, &header, bytes);
        }
        self.touch(flow);
    }

    /// A segment of no connection: a SYN to the port served opens one, anything else is reset
    /// (RFC 9293 §3.10.7.1, §3.10.7.2).
    fn on_stranger(&mut self, now: Time, path: PathAddress, key: Key, packet: &Packet<'_>) {
        let flags = packet.header.flags;
        let opens = flags.has(Flags::SYN) && !flags.has(Flags::ACK) && !flags.has(Flags::RST);
        if !opens || self.config.listen != Some(key.ports.local) {
            self.dropped += 1;
            return self.reset(path, packet.header, packet.sequence_length());
        }
        if self.half_open.len() >= self.config.max_half_open
            || self.slots.len() >= self.config.max_connections
        {
            self.dropped += 1; // the peer will try again
            return;
        }
        let isn = self.config.initial_sequence;
        let connection = Connection::accept(now, self.parameters.clone(), path, packet.header, isn);
        let flow = self.insert(key, connection);
        self.half_open.insert(flow);
    }

    /// RST with the numbers that make it credible (RFC 9293 §3.5.2); never for an RST.
    fn reset(&mut self, path: PathAddress, asked: &Header, sequence_length: u32) {
        if asked.flags.has(Flags::RST) || self.resets.len() >= MAX_RESETS {
            return;
        }
        let mut header = Header {
            source_port: asked.destination_port,
            destination_port: asked.source_port,
            flags: Flags::RST,
            options: Options::default(),
            ..Header::default()
        };
        if asked.flags.has(Flags::ACK) {
            header.sequence = asked.acknowledgement;
        } else {
            header.flags = Flags::RST | Flags::ACK;
            header.acknowledgement = asked.sequence.wrapping_add(sequence_length);
        }
        self.resets.push_back((path, header));
    }

    fn insert(&mut self, key: Key, connection: Connection) -> FlowId {
        let flow = FlowId(self.opened);
        self.opened += 1;
        let slot = Slot {
            connection,
            key,
            released: false,
            queued: false,
            wakes_at: None,
        };
        self.slots.insert(flow, slot);
        self.by_key.insert(key, flow);
        self.touch(flow);
        flow
    }

    /// Something happened to `flow`: its notices become events, it gets a turn.
    fn touch(&mut self, flow: FlowId) {
        self.collect(flow);
        if let Some(slot) = self.slots.get_mut(&flow)
            && !std::mem::replace(&mut slot.queued, true)
        {
            self.turns.push_back(flow);
        }
    }

    fn collect(&mut self, flow: FlowId) {
        let Some(slot) = self.slots.get_mut(&flow) else {
            return;
        };
        while let Some(notice) = slot.connection.poll_notice() {
            self.events.push_back(notice.of(flow));
        }
    }

    /// Ends the turn of the connection in front: sets its next wake, or forgets it.
    fn end_turn(&mut self) {
        self.turn_left = TURN;
        let Some(flow) = self.turns.pop_front() else {
            return;
        };
        self.collect(flow);
        let Some(slot) = self.slots.get_mut(&flow) else {
            return;
        };
        slot.queued = false;
        if !slot.connection.is_half_open() {
            self.half_open.remove(&flow);
        }
        if slot.connection.is_closed() {
            if self.by_key.get(&slot.key) == Some(&flow) {
                self.by_key.remove(&slot.key); // what still comes is a stranger's
            }
            if slot.released || slot.connection.is_unknown_to_application() {
                if let Some(at) = slot.wakes_at {
                    self.wakes.remove(&(at, flow));
                }
                self.slots.remove(&flow);
            }
            return;
        }
        let Some((at, _)) = slot.connection.deadline() else {
            return;
        };
        if slot.wakes_at.is_none_or(|earlier| at < earlier) {
            if let Some(later) = slot.wakes_at.replace(at) {
                self.wakes.remove(&(later, flow));
            }
            self.wakes.insert((at, flow));
        }
    }

    fn on_deadlines(&mut self, now: Time) {
        while let Some(&(at, flow)) = self.wakes.first()
            && at <= now
        {
            self.wakes.pop_first();
            if let Some(slot) = self.slots.get_mut(&flow) {
                slot.wakes_at = None;
                slot.connection.on_deadline(now);
            }
            self.touch(flow);
        }
    }

    /// A connection by name, for a call of the application.
    fn with<T>(&mut self, flow: FlowId, call: impl FnOnce(&mut Connection) -> T) -> Option<T> {
        let result = call(&mut self.slots.get_mut(&flow)?.connection);
        self.touch(flow);
        Some(result)
    }
}

/// Header and payload of a datagram in either of its two forms.
fn take_apart(datagram: &mut Datagram) -> Result<(Header, Bytes), WireError> {
    let path = datagram.path;
    if !datagram.head.is_empty() {
        if let Ok((header, length)) = Header::parse(&datagram.head, &datagram.body, path)
            && length == datagram.head.len()
        {
            return Ok((header, std::mem::take(&mut datagram.body)));
        }
        datagram.body = Bytes::from(datagram.to_vec());
        datagram.head.clear();
    }
    let (header, length) = Header::parse(&datagram.body, &[], path)?;
    Ok((header, datagram.body.split_off(length)))
}

impl Machine for Tcp {
    fn handle(&mut self, now: Time, input: Input<'_>) {
        match input {
            Input::Datagram(datagram) => self.on_datagram(now, datagram),
            Input::Deadline => self.on_deadlines(now),
            Input::PathNotice { .. } | Input::Refused(_) => {} // a TCP connection has one path
        }
    }

    fn poll_transmit(&mut self, now: Time, out: &mut Datagram) -> bool {
        if let Some((path, header)) = self.resets.pop_front() {
            header.emit(&[], path, &mut out.head);
            (out.path, out.ecn, out.body) = (path, Ecn::NotEct, Bytes::new());
            return true;
        }
        while let Some(&flow) = self.turns.front() {
            let sent = match self.slots.get_mut(&flow) {
                Some(slot) => slot.connection.poll_transmit(now, out),
                None => false,
            };
            if !sent {
                self.end_turn();
                continue;
            }
            self.turn_left -= 1;
            if self.turn_left == 0 {
                self.turn_left = TURN;
                self.turns.rotate_left(1);
            }
            return true;
        }
        false
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    fn next_deadline(&self) -> Option<(Time, Wakeup)> {
        let &(at, flow) = self.wakes.first()?;
        let deadline = self.slots.get(&flow).and_then(|slot| slot.connection.deadline());
        Some((at, deadline.map_or(Wakeup::Expiry, |(_, why)| why)))
    }
}

impl Flow for Tcp {
    fn open(&mut self, now: Time, path: PathAddress, port: u16) -> Result<FlowId, OpenError> {
        if self.slots.len() >= self.config.max_connections {
            let held = self.slots.len();
            return Err(OpenError::Unsupported(format!(
                "this host already holds its {held} connections; close one first"
            )));
        }
        let key = |local| Key {
            remote: path.remote,
            ports: Ports { local, remote: port },
        };
        let free =
            |local: &u16| !self.by_key.contains_key(&key(*local)) && self.config.listen != Some(*local);
        let Some(local) = DYNAMIC_PORTS.into_iter().find(free) else {
            return Err(OpenError::NoPort(path.remote));
        };
        let (parameters, isn) = (self.parameters.clone(), self.config.initial_sequence);
        let connection = Connection::open(now, parameters, path, key(local).ports, isn);
        Ok(self.insert(key(local), connection))
    }

    fn write(&mut self, now: Time, flow: FlowId, data: Bytes) -> Result<(), WriteError> {
        self.with(flow, |connection| connection.write(now, data))
            .unwrap_or(Err(WriteError::Closed))
    }

    fn read(&mut self, _now: Time, flow: FlowId) -> Read {
        let Some(slot) = self.slots.get_mut(&flow) else {
            return Read::End;
        };
        let read = slot.connection.read();
        if slot.connection.owes_acknowledgement() {
            self.touch(flow);
        }
        read
    }

    fn finish(&mut self, now: Time, flow: FlowId) {
        self.with(flow, |connection| connection.finish(now));
    }

    fn abort(&mut self, _now: Time, flow: FlowId) {
        self.with(flow, Connection::abort);
    }

    fn release(&mut self, now: Time, flow: FlowId) {
        if let Some(slot) = self.slots.get_mut(&flow) {
            slot.released = true;
            slot.connection.discard(now);
            self.touch(flow);
        }
    }

    fn stats(&self, flow: FlowId) -> Option<FlowStats> {
        self.slots.get(&flow).map(|slot| slot.connection.stats())
    }
}
