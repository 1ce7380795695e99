//! A host's TCP: which connection a segment belongs to, resets for everything else, and the two seams. With
//! [`TcpParameters::multipath`] its connections use several paths where the peer does.
//!
//! | File | What |
//! |---|---|
//! | `held` | a connection of one path, or of several |
//! | `accept` | segments of no connection: new ones, joins, resets |
//! | `turns` | who may send, who wakes when, who is forgotten |
//! | `application` | what an application can do |

mod accept;
mod application;
mod held;
mod turns;

use crate::tcp::connection::{Packet, Ports, Verdict};
use crate::tcp::parameters::TcpParameters;
use crate::tcp::wire::{Header, WireError};
use bytes::Bytes;
use restp_base::flow::FlowId;
use restp_base::machine::{Datagram, Ecn, Event, Input, Machine, PathAddress, Wakeup};
use restp_base::random::Stream;
use restp_base::time::Time;
use restp_base::wakes::Wakes;
use restp_services::connection_management::{CookieCache, CookieMint, CookieParameters, KeptCookie};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;
use turns::{Slot, TURN};

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
    /// What the keys of MPTCP are drawn from, another stream for whoever serves. Fixed, for simulation: an open network
    /// needs one that cannot be guessed (RFC 8684 §5).
    pub key_seed: u64,
    /// How cookies are made for openers whose address is to be proved (RFC 7413 §4.1.2).
    pub cookies: CookieParameters,
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
            key_seed: 0,
            cookies: CookieParameters::default(),
        }
    }
}

/// What tells one subflow from another; a connection of one path has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    remote: SocketAddr,
    ports: Ports,
}

/// A host's TCP.
#[derive(Debug)]
pub struct Tcp {
    config: TcpConfig,
    parameters: Arc<TcpParameters>,
    slots: BTreeMap<FlowId, Slot>,
    /// Which subflow of which connection.
    by_key: BTreeMap<Key, (FlowId, usize)>,
    /// Which connection a join means.
    by_token: BTreeMap<[u8; 4], FlowId>,
    chance: Stream,
    mint: CookieMint,
    /// Cookies of servers.
    kept: CookieCache,
    half_open: BTreeSet<FlowId>,
    wakes: Wakes<FlowId>,
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
        let role = if config.listen.is_some() {
            "serves"
        } else {
            "opens"
        };
        Tcp {
            parameters: Arc::new(config.parameters.clone()),
            slots: BTreeMap::new(),
            by_key: BTreeMap::new(),
            by_token: BTreeMap::new(),
            chance: Stream::named(config.key_seed, &format!("mptcp/{role}")),
            mint: CookieMint::new(config.cookies),
            kept: CookieCache::default(),
            half_open: BTreeSet::new(),
            wakes: Wakes::default(),
            turns: VecDeque::new(),
            turn_left: TURN,
            resets: VecDeque::new(),
            events: VecDeque::new(),
            opened: 0,
            dropped: 0,
            config,
        }
    }

    /// Segments dropped because they were malformed, damaged, of no connection, or beyond a limit.
    pub fn dropped_segments(&self) -> u64 {
        self.dropped
    }

    /// A cookie from an earlier contact, to be shown with `fast_open`.
    pub fn keep_cookie(&mut self, now: Time, kept: KeptCookie) {
        self.kept.keep(now, kept);
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
            ecn: datagram.ecn,
            size,
        };
        let bytes = packet.sequence_length();
        let found = self.by_key.get(&key).copied();
        let found = found.and_then(|(flow, ordinal)| Some((flow, ordinal, self.slots.get_mut(&flow)?)));
        let Some((flow, ordinal, slot)) = found else {
            return self.on_unknown(now, path, key, &packet);
        };
        let verdict = slot.held.handle(now, ordinal, packet);
        if let Some(cookie) = slot.held.take_cookie() {
            self.kept.learn(now, path.remote, key.ports.remote, cookie);
        }
        if verdict == Verdict::Refuse {
            self.reset(path, &header, bytes);
        }
        self.settle(now, flow);
        self.touch(flow);
    }

    /// An address of this host works, or no longer does. One path finds out by itself; several are managed.
    fn on_local_address(&mut self, now: Time, local: SocketAddr, up: bool) {
        let flows: Vec<FlowId> = self.slots.keys().copied().collect();
        for flow in flows {
            let several = self.slots.get_mut(&flow).and_then(|slot| slot.held.several());
            if let Some(several) = several {
                several.on_local_address(now, local, up);
                self.settle(now, flow);
                self.touch(flow);
            }
        }
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
            Input::PathNotice { local, up } => self.on_local_address(now, local, up),
            Input::Refused(_) => {} // TCP finds out by itself
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
                Some(slot) => slot.held.poll_transmit(now, out),
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
        let (at, flow) = self.wakes.first()?;
        let deadline = self.slots.get(&flow).and_then(|slot| slot.held.deadline());
        Some((at, deadline.map_or(Wakeup::Expiry, |(_, why)| why)))
    }

    fn held(&self) -> usize {
        self.slots.len()
    }
}
