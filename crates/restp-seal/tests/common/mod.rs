//! Two sealed endpoints and a network between them, in virtual time. The network is the attacker: a rule judges every
//! datagram, and anything may be put on the wire.
#![allow(dead_code, reason = "each story uses a part of the harness")]

use bytes::Bytes;
use restp_base::flow::{CloseReason, Flow, FlowId, Read};
use restp_base::machine::{Datagram, Event, Input, Machine, PathAddress};
use restp_base::time::{Duration, Time};
use restp_proto::composition::Preset;
use restp_proto::wire::bare_request;
use restp_proto::{Acceptance, Endpoint, EndpointConfig, InitialNumbers};
use restp_seal::{PublicKey, SealConfig, Sealed, SecretKey};
use std::collections::BTreeMap;
use std::net::SocketAddr;

pub const PORT: u16 = 80;
/// Of the first flow a host opens.
pub const FIRST_PORT: u16 = 49_152;

/// What the network does with a datagram.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    Pass,
    Drop,
    Late(Duration),
    Twice,
    /// Arrives as these bytes.
    As(Vec<u8>),
}

/// A datagram on its way.
#[derive(Clone, Debug)]
pub struct Seen {
    pub at: Time,
    /// From the client (0) or the server (1).
    pub from: usize,
    pub path: PathAddress,
    pub bytes: Vec<u8>,
    /// The network may cut it into pieces.
    pub may_fragment: bool,
}

impl Seen {
    /// First byte without the path.
    pub fn kind(&self) -> u8 {
        if self.bytes[0] & 0xC0 == 0xC0 {
            self.bytes[0] & 0xF0
        } else {
            self.bytes[0]
        }
    }
}

pub const HELLO_IK: u8 = 0x80;
pub const HELLO_IX: u8 = 0x81;
pub const ANSWER: u8 = 0x82;
pub const RETRY: u8 = 0x83;
pub const FOREIGN: u8 = 0x84;
pub const HELLO_RESUMED: u8 = 0x85;
pub const STALE: u8 = 0x86;
pub const RESET: u8 = 0x87;
pub const DATA: u8 = 0xC0;
pub const EARLY: u8 = 0xE0;

pub type Rule = Box<dyn FnMut(&Seen) -> Verdict>;

/// Nothing that side `from` sends arrives.
pub fn silent(from: usize) -> Rule {
    Box::new(move |seen| match seen.from == from {
        true => Verdict::Drop,
        false => Verdict::Pass,
    })
}

pub struct Pair {
    pub now: Time,
    pub ends: [Sealed<Endpoint>; 2],
    pub rule: Rule,
    pub log: Vec<Seen>,
    pub events: [Vec<Event>; 2],
    pub delay: Duration,
    /// The server sees the client at this address.
    seen_as: Option<SocketAddr>,
    wire: BTreeMap<(Time, u64), (usize, Datagram)>,
    order: u64,
}

pub fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

pub fn secret(of: u8) -> SecretKey {
    SecretKey::from_chance([of; 32])
}

pub fn seal(of: u8) -> SealConfig {
    SealConfig::new(secret(of), [of; 32], bare_request)
}

pub fn config(preset: &str, set: &[(&str, &str)]) -> EndpointConfig {
    let mut composition = Preset::named(preset).expect("a preset").composition();
    for (key, value) in set {
        composition.set(key, value).expect("a key and a choice");
    }
    let mut config = EndpointConfig::new(composition.check().expect("valid"));
    config.initial_numbers = InitialNumbers::Keyed([5; 16]);
    config.first_port = Some(FIRST_PORT);
    config.cookies.key = [6; 16];
    config.addresses_proved = true;
    config
}

pub fn address(host: u8) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, host], 4000))
}

pub fn path(side: usize) -> PathAddress {
    let path = PathAddress {
        local: address(1),
        remote: address(2),
    };
    if side == 0 { path } else { path.reversed() }
}

impl Pair {
    /// The client knows the server's key.
    pub fn new(preset: &str, set: &[(&str, &str)]) -> Self {
        let mut pair = Self::of(preset, set, seal(1), seal(2));
        pair.know();
        pair
    }

    /// The client is 1, the server 2; they have not met.
    pub fn of(preset: &str, set: &[(&str, &str)], client: SealConfig, server: SealConfig) -> Self {
        let config = config(preset, set);
        let ends = [
            Sealed::new(Endpoint::new(config.clone()), client),
            Sealed::new(Endpoint::new(config.listen(PORT, Acceptance::Any)), server),
        ];
        Pair {
            now: Time::ZERO,
            ends,
            rule: Box::new(|_| Verdict::Pass),
            log: Vec::new(),
            events: [Vec::new(), Vec::new()],
            delay: ms(10),
            seen_as: None,
            wire: BTreeMap::new(),
            order: 0,
        }
    }

    pub fn know(&mut self) {
        self.know_as(self.ends[1].public_key());
    }

    /// The client is told that the server has `key`.
    pub fn know_as(&mut self, key: PublicKey) {
        self.ends[0].expect(address(2), key);
    }

    pub fn open(&mut self) -> FlowId {
        self.ends[0].open(self.now, path(0), PORT).expect("a free port")
    }

    /// Forgets what was told so far, opens a flow and runs for `span`: the flow, and whether it is established.
    pub fn dial(&mut self, span: Duration) -> (FlowId, bool) {
        self.events = [Vec::new(), Vec::new()];
        let flow = self.open();
        self.run_for(span);
        (flow, self.events[0].contains(&Event::Connected(flow)))
    }

    /// The server came to the client, which serves, with a flow of its own.
    pub fn visit_client(&mut self) -> FlowId {
        self.ends[0] = serving("3wh-arq", seal(1));
        let visit = self.ends[1].open(self.now, path(1), PORT).expect("a port");
        self.run_for(ms(100));
        assert!(self.events[1].contains(&Event::Connected(visit)));
        visit
    }

    /// Opens a flow and runs until both sides know of it.
    pub fn connect(&mut self) -> (FlowId, FlowId) {
        let flow = self.open();
        self.run_for(ms(100));
        assert!(
            self.events[0].contains(&Event::Connected(flow)),
            "{:?}",
            self.events
        );
        (flow, self.accepted().expect("accepted"))
    }

    pub fn accepted(&self) -> Option<FlowId> {
        self.events[1].iter().rev().find_map(|event| match event {
            Event::Accepted(flow) => Some(*flow),
            _ => None,
        })
    }

    pub fn closed(&self, side: usize) -> Option<&CloseReason> {
        self.events[side].iter().find_map(|event| match event {
            Event::Closed(_, reason) => Some(reason),
            _ => None,
        })
    }

    pub fn write(&mut self, side: usize, flow: FlowId, data: &[u8]) {
        let written = self.ends[side].write(self.now, flow, Bytes::copy_from_slice(data));
        written.expect("room to write");
    }

    pub fn read_all(&mut self, side: usize, flow: FlowId) -> Vec<u8> {
        let mut all = Vec::new();
        while let Read::Data(data) = self.ends[side].read(self.now, flow) {
            all.extend_from_slice(&data);
        }
        all
    }

    pub fn run_for(&mut self, span: Duration) {
        let until = self.now + span;
        loop {
            self.drain(0);
            self.drain(1);
            let arrival = self.wire.first_key_value().map(|(key, _)| key.0);
            let wakes = [0, 1].map(|side: usize| self.ends[side].next_deadline().map(|(at, _)| at));
            let next = [arrival, wakes[0], wakes[1]].into_iter().flatten().min();
            let Some(next) = next.filter(|next| *next <= until) else {
                break;
            };
            self.now = self.now.max(next);
            if arrival == Some(next) {
                let (_, (to, mut datagram)) = self.wire.pop_first().expect("an arrival");
                self.ends[to].handle(self.now, Input::Datagram(&mut datagram));
            }
            for (end, wake) in self.ends.iter_mut().zip(wakes) {
                if wake == Some(next) {
                    end.handle(self.now, Input::Deadline);
                }
            }
        }
        self.now = until;
    }

    fn drain(&mut self, side: usize) {
        let mut out = Datagram::empty();
        while self.ends[side].poll_transmit(self.now, &mut out) {
            self.carry(side, &out);
        }
        while let Some(event) = self.ends[side].poll_event() {
            self.events[side].push(event);
        }
    }

    fn carry(&mut self, side: usize, datagram: &Datagram) {
        let seen = Seen {
            at: self.now,
            from: side,
            path: datagram.path,
            bytes: datagram.to_vec(),
            may_fragment: datagram.may_fragment,
        };
        assert!(seen.bytes[0] & 0x80 != 0, "everything that leaves is sealed");
        let verdict = (self.rule)(&seen);
        let bytes = seen.bytes.clone();
        self.log.push(seen);
        let mut path = datagram.path.reversed();
        match self.seen_as {
            Some(outside) if side == 0 => path.remote = outside,
            // What still goes to the old binding is lost.
            Some(outside) if datagram.path.remote != outside => return,
            Some(_) => path.local = address(1),
            None => {}
        }
        let ecn = datagram.ecn;
        let mut deliver = |after, bytes: Vec<u8>| {
            self.order += 1;
            let mut arriving = contiguous(path, bytes);
            arriving.ecn = ecn;
            self.wire
                .insert((self.now + self.delay + after, self.order), (1 - side, arriving));
        };
        match verdict {
            Verdict::Pass => deliver(Duration::ZERO, bytes),
            Verdict::Drop => {}
            Verdict::Late(after) => deliver(after, bytes),
            Verdict::Twice => {
                deliver(Duration::ZERO, bytes.clone());
                deliver(Duration::ZERO, bytes);
            }
            Verdict::As(other) => deliver(Duration::ZERO, other),
        }
    }

    /// Time until the server has what the client says first.
    pub fn time_to_say(&mut self) -> Duration {
        let begin = self.now;
        let flow = self.open();
        self.write(0, flow, b"a question");
        let mut got = Vec::new();
        while got.is_empty() && self.now.since(begin) < ms(500) {
            self.run_for(ms(1));
            if let Some(accepted) = self.accepted() {
                got = self.read_all(1, accepted);
            }
        }
        assert_eq!(got, b"a question");
        self.now.since(begin)
    }

    /// The client begins anew with nothing but its tokens, with chance from `seed`; what was open is over.
    pub fn come_again(&mut self, preset: &str, seed: u8) {
        if let Some(flow) = self.accepted() {
            self.ends[1].abort(self.now, flow);
            self.ends[1].release(self.now, flow);
            self.run_for(ms(1000));
        }
        let tokens: Vec<_> = self.ends[0].tokens().collect();
        let mut later = seal(1);
        later.seed = [seed; 32].into();
        self.ends[0] = Sealed::new(Endpoint::new(config(preset, &[])), later);
        self.know();
        for (key, token) in tokens {
            self.ends[0].keep_token(key, token);
        }
        (self.log, self.events) = (Vec::new(), [Vec::new(), Vec::new()]);
    }

    /// The server begins anew with nothing but its key, with chance from `seed`.
    pub fn restart(&mut self, preset: &str, seed: u8) {
        let mut later = seal(2);
        later.seed = [seed; 32].into();
        self.serve(preset, later);
    }

    /// The server begins anew as `seal` says.
    pub fn serve(&mut self, preset: &str, seal: SealConfig) {
        self.ends[1] = serving(preset, seal);
    }

    /// Data goes both ways.
    pub fn assert_talk(&mut self, flows: (FlowId, FlowId)) {
        for from in [0, 1] {
            assert!(self.transfer(from, flows, &noise(20_000), Duration::from_secs(5)));
        }
    }

    /// What the client has sent so far of kind `kind`.
    pub fn sent(&self, kind: u8) -> Vec<Vec<u8>> {
        let sent = (self.log.iter()).filter(|seen| seen.from == 0 && seen.kind() == kind);
        sent.map(|seen| seen.bytes.clone()).collect()
    }

    /// From now on a NAT shows the client as `host`.
    pub fn rebind_to(&mut self, host: u8) {
        self.seen_as = Some(address(host));
    }

    /// Gives `bytes` to the end of `side` as if they had come along `path`, and drains it.
    pub fn inject(&mut self, side: usize, path: PathAddress, bytes: &[u8]) {
        let mut datagram = contiguous(path, bytes.to_vec());
        self.ends[side].handle(self.now, Input::Datagram(&mut datagram));
        self.drain(side);
    }

    /// Moves `data` from `from` to the other side within `limit`; true when all of it arrived, in order and once.
    pub fn transfer(&mut self, from: usize, flows: (FlowId, FlowId), data: &[u8], limit: Duration) -> bool {
        let (source, sink) = if from == 0 { flows } else { (flows.1, flows.0) };
        let deadline = self.now + limit;
        let mut rest = Bytes::copy_from_slice(data);
        let mut got = Vec::new();
        while got.len() < data.len() && self.now < deadline {
            while !rest.is_empty() {
                let piece = rest.slice(..rest.len().min(5000));
                if self.ends[from].write(self.now, source, piece.clone()).is_err() {
                    break;
                }
                drop(rest.split_to(piece.len()));
            }
            self.run_for(ms(5));
            got.extend(self.read_all(1 - from, sink));
        }
        got == data
    }
}

/// A host that serves.
pub fn serving(preset: &str, seal: SealConfig) -> Sealed<Endpoint> {
    Sealed::new(
        Endpoint::new(config(preset, &[]).listen(PORT, Acceptance::Any)),
        seal,
    )
}

/// Where the key of the asking host lies in a request of IX: behind kind, name, token and one-time key.
const TOLD: usize = 1 + 8 + 16 + 32;

pub const IMPOSTOR: u8 = 66;

/// `request`, as if the host with `key` had made it. IX has nothing that would tell.
pub fn in_the_name_of(key: PublicKey, request: &[u8]) -> Vec<u8> {
    assert_eq!(request[0], HELLO_IX);
    let mut bytes = request.to_vec();
    bytes[TOLD..TOLD + 32].copy_from_slice(&key.0);
    bytes
}

/// What a stranger at the address of end `side` says first, from the port that this one would take.
pub fn first_word(preset: &str, side: usize) -> Vec<u8> {
    first_word_from(FIRST_PORT, preset, side)
}

/// The same from another port.
pub fn first_word_from(port: u16, preset: &str, side: usize) -> Vec<u8> {
    let mut config = config(preset, &[]);
    config.first_port = Some(port);
    let mut host = Sealed::new(Endpoint::new(config), seal(IMPOSTOR));
    host.open(Time::ZERO, path(side), PORT).expect("a port");
    let mut out = Datagram::empty();
    assert!(host.poll_transmit(Time::ZERO, &mut out));
    out.to_vec()
}

pub fn contiguous(path: PathAddress, bytes: Vec<u8>) -> Datagram {
    Datagram {
        path,
        body: bytes.into(),
        ..Datagram::empty()
    }
}

/// The client has been here before: it has a cookie and a token with a ticket, and everything else is over.
pub fn warm(preset: &str) -> Pair {
    warm_at(preset, seal(2))
}

/// The same, at this server.
pub fn warm_at(preset: &str, server: SealConfig) -> Pair {
    let mut pair = Pair::of(preset, &[], seal(1), server);
    pair.know();
    let flows = pair.connect();
    assert!(pair.transfer(0, flows, b"first", ms(500)));
    for (side, flow) in [(0, flows.0), (1, flows.1)] {
        pair.ends[side].finish(pair.now, flow);
    }
    pair.run_for(Duration::from_secs(200));
    pair.ends[1].release(pair.now, flows.1);
    let cookie = pair.ends[0].inner().cookies(pair.now).next();
    pair.come_again(preset, 9);
    if let Some(cookie) = cookie {
        pair.ends[0].inner_mut().keep_cookie(pair.now, cookie);
    }
    pair
}

/// Bytes that are nowhere the same.
pub fn noise(count: usize) -> Vec<u8> {
    let mut stream = restp_base::random::Stream::named(1, "noise");
    (0..count).map(|_| stream.bits() as u8).collect()
}

/// The same endpoints without a seal: how long a set-up takes at least.
pub fn plain_handshake(preset: &str, set: &[(&str, &str)], delay: Duration) -> Duration {
    let config = config(preset, set);
    let mut ends = [
        Endpoint::new(config.clone()),
        Endpoint::new(config.listen(PORT, Acceptance::Any)),
    ];
    let mut now = Time::ZERO;
    let flow = ends[0].open(now, path(0), PORT).expect("a free port");
    let mut out = Datagram::empty();
    for side in [0, 1, 0, 1].into_iter().cycle().take(8) {
        let mut arriving = Vec::new();
        while ends[side].poll_transmit(now, &mut out) {
            arriving.push(contiguous(out.path.reversed(), out.to_vec()));
        }
        now += delay;
        for datagram in &mut arriving {
            ends[1 - side].handle(now, Input::Datagram(datagram));
        }
        let told = std::iter::from_fn(|| ends[0].poll_event());
        if told.into_iter().any(|event| event == Event::Connected(flow)) {
            return now.since(Time::ZERO);
        }
    }
    panic!("not connected");
}
