//! A host's ResTP: finds the association of a datagram by its ports and addresses, answers unknown peers, and gives
//! each association its turn to send. Specification: ResTP §3.5.1, §3.5.5; OP-26, OP-27, OP-61.

mod accept;
mod application;
mod door;
mod session;
mod table;

use crate::association::Dial;
use crate::composition::ValidComposition;
use crate::config::{EndpointConfig, InitialNumbers};
use crate::connection::{Packet, Ports};
use crate::wire::{Header, Services};
use restp_base::flow::FlowId;
use restp_base::machine::{Datagram, Event, Input, Machine, PathAddress, Wakeup};
use restp_base::time::Time;
use restp_services::connection_management::{CookieCache, CookieMint, KeptCookie, LocalPorts, ReplayFilter};
use restp_services::framing::{StreamCounts, Streams};
use session::Session;
use siphasher::sip::SipHasher24;
use std::collections::VecDeque;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use table::{Key, Table};

/// Datagrams an association may send in its turn before the next one gets its own: one full offload batch.
const TURN: u32 = 64;

/// What an endpoint counts besides its associations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EndpointStats {
    /// Datagrams that are no PDU of this version.
    pub malformed: u64,
    /// Headers whose check sum was wrong.
    pub corrupted_headers: u64,
    /// PDUs for a port that nobody serves, or of no known association.
    pub unserved: u64,
    /// Requests refused because their composition is not acceptable.
    pub refused: u64,
    /// Paths whose peer was heard from another address and was believed.
    pub rebound: u64,
    /// Requests and refusals dropped because a table was full.
    pub overflowed: u64,
    /// Cookies that were not this host's, or too old.
    pub bad_cookies: u64,
    /// First flights that were here before (OP-34).
    pub replayed: u64,
    /// Early data not taken, and left to its sender to retransmit.
    pub early_discarded: u64,
}

/// The ResTP machine of one host.
#[derive(Debug)]
pub struct Endpoint {
    composition: Arc<ValidComposition>,
    services: Services,
    config: EndpointConfig,
    table: Table,
    /// Associations that may have something to send.
    turns: VecDeque<u32>,
    turn_left: u32,
    /// RSTs to unknown peers.
    refusals: VecDeque<(PathAddress, Header)>,
    events: VecDeque<Event>,
    local_ports: LocalPorts,
    stats: EndpointStats,
    /// Cookies for peers, and from them.
    mint: CookieMint,
    flights: ReplayFilter,
    cache: CookieCache,
    /// Values of chance taken so far.
    drawn: u64,
}

impl Endpoint {
    /// An endpoint without associations.
    pub fn new(config: EndpointConfig) -> Self {
        Endpoint {
            composition: Arc::new(config.composition.clone()),
            services: Services::of(&config.composition),
            table: Table::default(),
            turns: VecDeque::new(),
            turn_left: TURN,
            refusals: VecDeque::new(),
            events: VecDeque::new(),
            local_ports: config.local_ports(),
            stats: EndpointStats::default(),
            mint: CookieMint::new(config.cookies),
            flights: ReplayFilter::new(config.cookies.key),
            cache: CookieCache::default(),
            drawn: 0,
            config,
        }
    }

    /// What was counted besides associations.
    pub fn endpoint_stats(&self) -> EndpointStats {
        self.stats
    }

    /// The composition of an association, as negotiated.
    pub fn composition(&self, flow: FlowId) -> Option<&ValidComposition> {
        self.table.get(flow).map(|connection| &**connection.composition())
    }

    /// How many streams an association carries, where it carries some.
    pub fn stream_counts(&self, flow: FlowId) -> Option<StreamCounts> {
        self.table.get(flow)?.streams().map(Streams::counts)
    }

    /// The cookies that peers have given, to be kept beyond this endpoint's life.
    pub fn cookies(&self, now: Time) -> impl Iterator<Item = KeptCookie> {
        self.cache.all(now)
    }

    /// Takes a cookie from an earlier life of this host: the next flow to its server sends data with the SYN.
    pub fn keep_cookie(&mut self, now: Time, kept: KeptCookie) {
        self.cache.keep(now, kept);
    }

    /// Associations held, lingering ones included.
    pub fn connections(&self) -> usize {
        self.table.len()
    }

    fn on_datagram(&mut self, now: Time, datagram: &mut Datagram) {
        let bytes = datagram.len();
        let parsed = Header::parse(door::head(datagram), bytes);
        let Ok((header, length)) = &parsed else {
            self.stats.malformed += 1;
            return;
        };
        let Some((payload, is_damaged)) = self.payload(datagram, header, *length) else {
            return;
        };
        let ports = Ports {
            local: header.destination,
            remote: header.source,
        };
        let key = Key {
            ports,
            remote: datagram.path.remote,
        };
        let packet = Packet {
            header,
            payload,
            bytes,
            is_slice: datagram.head.is_empty(),
            is_damaged,
            ecn: datagram.ecn,
            peer: datagram.peer,
        };
        match self.table.find(&key) {
            Some((index, ordinal)) => {
                let ordinal = usize::from(ordinal);
                if self.is_asked_for_by_another(index, ordinal, &packet)
                    && self.rebind(now, datagram.path, key, &packet)
                {
                    return;
                }
                if let Some(session) = self.table.at(index) {
                    if session.finds_half_open(ordinal, header) {
                        return self.refuse(datagram.path, &packet);
                    }
                    session.handle(now, ordinal, packet);
                    if let Some(cookie) = session.take_cookie(ordinal) {
                        self.cache.learn(now, key.remote, key.ports.remote, cookie);
                    }
                }
                self.touch(index);
            }
            None => self.on_unknown(now, datagram.path, key, packet),
        }
    }

    /// Something happened to the association `index`: its notices become events, it gets a turn.
    fn touch(&mut self, index: u32) {
        self.collect(index);
        if self.table.enqueue(index) {
            self.turns.push_back(index);
        }
    }

    #[inline]
    fn collect(&mut self, index: u32) {
        if self.table.at(index).is_some_and(|session| session.has_notices()) {
            self.collect_all(index);
        }
    }

    fn collect_all(&mut self, index: u32) {
        let flow = self.table.flow(index);
        let Some(session) = self.table.at(index) else {
            return;
        };
        while let Some(notice) = session.poll_notice() {
            self.events.push_back(notice.of(flow));
        }
    }

    /// Ends the turn of the association in front.
    fn end_turn(&mut self) {
        self.turn_left = TURN;
        if let Some(index) = self.turns.pop_front() {
            self.collect(index);
            self.forget_paths(index);
            self.table.settle(index);
            self.table.sweep(index);
        }
    }

    /// Paths that have ended are found no more.
    fn forget_paths(&mut self, index: u32) {
        while let Some((_, path, ports)) = self.table.at(index).and_then(Session::poll_vacated) {
            let remote = path.remote;
            self.table.remove_key(index, &Key { ports, remote });
        }
    }

    /// Dials the paths of `index` whose time has come.
    #[inline]
    fn dial(&mut self, now: Time, index: u32) {
        if self.table.at(index).and_then(Session::association).is_some() {
            self.dial_all(now, index);
        }
    }

    fn dial_all(&mut self, now: Time, index: u32) {
        while let Some(dial) = self.table.at(index).and_then(|session| session.poll_dial(now)) {
            self.dial_one(now, index, dial);
        }
    }

    fn dial_one(&mut self, now: Time, index: u32, dial: Dial) {
        let (path, port) = (dial.address, dial.port);
        let Some(local) = self.free_port(path.remote, port) else {
            return; // every port towards it is in use: it is not dialled again
        };
        let ports = Ports { local, remote: port };
        let isn = self.initial_number(now, path, ports);
        let nonce = self.chance(now, path) as u32;
        let cookie = self.cache.find(now, path.remote, port);
        let association = self.table.at(index).and_then(Session::association);
        let ordinal = association.map(|one| one.dial(now, dial, ports, isn, nonce.to_be_bytes(), cookie));
        if let Some(ordinal) = ordinal {
            let remote = path.remote;
            self.table.add_key(index, Key { ports, remote }, ordinal as u8);
        }
    }

    /// A value that nobody else can foresee, where numbers are keyed (RFC 6824 §5: keys and nonces).
    /// The time goes in as well, because a host that starts again with the same key has drawn nothing yet.
    fn chance(&mut self, now: Time, path: PathAddress) -> u64 {
        let key = match self.config.initial_numbers {
            InitialNumbers::Fixed(number) => u128::from(number).to_be_bytes(),
            InitialNumbers::Keyed(key) => key,
        };
        self.drawn += 1;
        let mut hasher = SipHasher24::new_with_key(&key);
        (now.as_nanos(), self.drawn, path.local, path.remote).hash(&mut hasher);
        hasher.finish()
    }

    /// A flow of this endpoint by name, for a call of the application.
    fn with<T>(&mut self, flow: FlowId, call: impl FnOnce(&mut Session) -> T) -> Option<T> {
        let index = self.table.index(flow)?;
        let result = call(self.table.at(index)?);
        self.touch(index);
        Some(result)
    }

    fn free_port(&mut self, remote: std::net::SocketAddr, port: u16) -> Option<u16> {
        let (table, listeners) = (&self.table, &self.config.listeners);
        self.local_ports.find(|local| {
            let ports = Ports { local, remote: port };
            !table.contains(&Key { ports, remote }) && listeners.iter().all(|listener| listener.port != local)
        })
    }

    /// First number of an association (OP-17, RFC 6528 §3: a keyed hash, and a clock of 4 µs).
    fn initial_number(&self, now: Time, path: PathAddress, ports: Ports) -> u32 {
        match self.config.initial_numbers {
            InitialNumbers::Fixed(number) => number,
            InitialNumbers::Keyed(key) => {
                let mut hasher = SipHasher24::new_with_key(&key);
                (path.local, path.remote, ports.local, ports.remote).hash(&mut hasher);
                (hasher.finish() as u32).wrapping_add((now.as_nanos() / 4_000) as u32)
            }
        }
    }
}

impl Machine for Endpoint {
    fn handle(&mut self, now: Time, input: Input<'_>) {
        match input {
            Input::Datagram(datagram) => self.on_datagram(now, datagram),
            Input::Deadline => {
                while let Some(index) = self.table.wake(now) {
                    if let Some(connection) = self.table.at(index) {
                        connection.on_deadline(now);
                    }
                    self.touch(index);
                }
            }
            Input::Refused(path) => {
                for index in self.table.of_local(path.local) {
                    if let Some(association) = self.table.at(index).and_then(Session::association) {
                        association.on_refused(now, path);
                    }
                    self.touch(index);
                }
            }
            Input::PathNotice { local, up } => {
                for index in self.table.of_local(local) {
                    if let Some(connection) = self.table.at(index) {
                        connection.on_path_notice(now, local, up);
                        if up && self.config.addresses_proved {
                            connection.acknowledge_now();
                        }
                    }
                    self.touch(index);
                }
            }
        }
    }

    fn poll_transmit(&mut self, now: Time, out: &mut Datagram) -> bool {
        if self.refuse_next(out) {
            return true;
        }
        while let Some(&index) = self.turns.front() {
            self.dial(now, index);
            let Some(connection) = self.table.at(index) else {
                self.end_turn();
                continue;
            };
            if !connection.poll_transmit(now, out) {
                self.end_turn();
                continue;
            }
            self.turn_left -= 1;
            if self.turn_left == 0 && self.turns.len() > 1 {
                self.turn_left = TURN;
                self.turns.rotate_left(1);
            } else if self.turn_left == 0 {
                self.turn_left = TURN;
            }
            return true;
        }
        false
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    fn next_deadline(&self) -> Option<(Time, Wakeup)> {
        self.table.next_wake()
    }

    fn held(&self) -> usize {
        self.connections()
    }
}
