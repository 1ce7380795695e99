//! Two endpoints, a stranger, and a hostile network between them, in virtual time: packets are lost, repeated, kept for
//! later, changed in any byte, and changed in what they say. Nothing may panic, no deadline may stay in the past, sending
//! ends, and memory stays within the windows.

use arbitrary::Arbitrary;
use restp_base::flow::{Flow, FlowId, Read};
use restp_base::machine::{Datagram, Event, Input, Machine, PathAddress};
use restp_base::time::{Duration, Time};
use restp_proto::composition::{Composition, Preset};
use restp_proto::{Acceptance, EndpointConfig};
use restp_services::ordering::Ordering;
use std::collections::VecDeque;

/// What happens to two endpoints. `F` changes a packet's meaning.
#[derive(Arbitrary, Debug)]
pub struct Story<F> {
    composition: u8,
    steps: Vec<Step<F>>,
}

/// One thing that happens.
#[derive(Arbitrary, Debug)]
pub enum Step<F> {
    Open,
    Write {
        side: bool,
        bytes: u16,
    },
    Read {
        side: bool,
    },
    Finish {
        side: bool,
    },
    Abort {
        side: bool,
    },
    Release {
        side: bool,
    },
    Wait {
        milliseconds: u16,
    },
    /// The oldest packet on its way to `side` arrives.
    Deliver {
        side: bool,
    },
    Lose {
        side: bool,
    },
    /// Some packet of the past arrives (again).
    Replay {
        packet: u16,
    },
    /// One byte of it is another.
    Damage {
        packet: u16,
        at: u16,
        by: u8,
    },
    /// A well-formed packet with some of its fields another's idea.
    Forge {
        packet: u16,
        forgery: F,
    },
    Raw {
        side: bool,
        bytes: Vec<u8>,
    },
    /// A third host opens a flow to the second, under its own address or that of the first.
    Stranger {
        spoofed: bool,
    },
    /// The network says so of the address of `side`.
    Notice {
        side: bool,
        up: bool,
    },
}

/// How an attacker changes what a packet says.
pub trait Forge {
    /// The packet to deliver instead of `bytes`; `past` is what was sent before.
    fn apply(&self, bytes: &[u8], past: &[(usize, Vec<u8>)]) -> Option<Vec<u8>>;
    /// Does it come from another address?
    fn is_misaddressed(&self) -> bool;
}

/// A transport that can be put into a world.
pub trait End: Machine + Flow {
    /// The first, the second and the stranger; they differ in their secrets, and each life of one in its chance.
    fn new(config: EndpointConfig, host: usize, life: u8) -> Self;
    /// What it kept of an earlier life.
    fn inherit(&mut self, now: Time, before: &Self);
    /// Panics when `bytes`, which were sent, are not a packet.
    fn check_sent(bytes: &[u8]);
    /// Panics when it holds more than it may.
    fn check_bounds(&self);
    /// The host at the other end of `flow`, where that is certain: nobody else's bytes may be read then.
    fn peer(&self, flow: FlowId) -> Option<usize>;
}

const PORT: u16 = 80;
const SEGMENT: u64 = 200;
const WINDOW: u64 = 64;

/// The first, the second, one who is not expected, and the first behind a translator.
const ADDRESSES: [&str; 4] = ["10.0.0.1:0", "10.0.0.2:0", "10.9.9.9:9", "10.0.0.1:77"];

/// Compositions that differ in what a packet can do to them.
const COMPOSITIONS: &[(&str, &[(&str, &str)])] = &[
    ("default", &[]),
    ("3wh-arq", &[]),
    (
        "3wh-arq",
        &[("framing", "fixed"), ("ordering", "unordered"), ("crc", "on")],
    ),
    ("arq-only", &[("flow-control", "none")]),
    ("unrel", &[]),
    ("unrel", &[("connection", "three-way")]),
    ("unrel", &[("connection", "three-way"), ("ordering", "ordered")]),
    (
        "unrel",
        &[
            ("connection", "three-way"),
            ("flow-control", "window"),
            ("ack", "positive+sack"),
        ],
    ),
    ("opt-arq", &[]),
    ("3wh-harq", &[]),
    ("par-arq", &[]),
    (
        "default",
        &[("paths", "spreading"), ("scheduling", "round-robin")],
    ),
];

/// The hosts, and what is on its way between them.
pub struct World<M> {
    config: EndpointConfig,
    lives: u8,
    now: Time,
    pub ends: [M; 3],
    flows: [Option<FlowId>; 3],
    /// Bytes that each has written, and on which flow each has read which last.
    written: [u8; 3],
    last: [Option<(FlowId, u8)>; 3],
    /// The client's packets come from another address, behind a translator that has forgotten the first.
    moved: bool,
    sent: Vec<(usize, Vec<u8>)>,
    on_the_way: [VecDeque<Vec<u8>>; 2],
    /// The stranger writes the first one's address on its envelopes.
    spoofed: bool,
}

/// Runs `story`, and then lets time bring all to rest.
pub fn run<M: End, F: Forge>(story: &Story<F>) {
    let mut world = World::<M>::new(story.composition);
    for step in story.steps.iter().take(STEPS) {
        world.step(step);
    }
    world.rest();
}

/// Most steps of a story.
pub const STEPS: usize = 200;

/// The composition of this number.
fn composition(number: u8) -> Composition {
    let (preset, set) = COMPOSITIONS[usize::from(number) % COMPOSITIONS.len()];
    let mut composition = Preset::named(preset).expect("a preset").composition();
    for (key, value) in set
        .iter()
        .chain(&[("segment", "200 B"), ("send-buffer", "10000 B")])
    {
        composition.set(key, value).expect("a key");
    }
    let _ = composition.set("window", "64 segments"); // where there is one
    composition
}

impl<M: End> World<M> {
    /// Nothing has happened; both use the composition of this number.
    pub fn new(number: u8) -> Self {
        let valid = composition(number).check().expect("a valid composition");
        let config = EndpointConfig::new(valid).listen(PORT, Acceptance::Any);
        World {
            now: Time::ZERO,
            ends: [0, 1, 2].map(|host| M::new(config.clone(), host, 0)),
            config,
            lives: 0,
            flows: [None; 3],
            written: [0; 3],
            last: [None; 3],
            moved: false,
            sent: Vec::new(),
            on_the_way: Default::default(),
            spoofed: false,
        }
    }

    /// Time brings all to rest.
    pub fn rest(&mut self) {
        for _ in 0..40 {
            self.wait(Duration::from_secs(30));
        }
    }

    /// The network is whole for a second: what is on its way arrives, and what follows from it.
    pub fn exchange(&mut self) {
        for _ in 0..100 {
            self.wait(Duration::from_millis(10));
            for side in [0, 1] {
                for bytes in std::mem::take(&mut self.on_the_way[side]) {
                    self.deliver(side, bytes, false);
                }
                self.read(side);
            }
        }
    }

    /// A flow from the first to the second, on which both say something.
    pub fn talk(&mut self) {
        self.flows[0] = None;
        self.open(0);
        self.write(0, 50);
        self.drain();
        self.exchange();
        self.write(1, 60);
        self.write(0, 70);
        self.exchange();
    }

    /// `host` starts again, with what it had written down.
    pub fn restart(&mut self, host: usize) {
        self.lives = self.lives.wrapping_add(1);
        let mut end = M::new(self.config.clone(), host, self.lives);
        end.inherit(self.now, &self.ends[host]);
        self.ends[host] = end;
        (self.flows[host], self.last[host]) = (None, None); // it names its flows as the one before did
    }

    /// The first one's packets come from another address from now on.
    pub fn relocate(&mut self) {
        self.moved = !self.moved;
    }

    /// Time passes.
    pub fn pass(&mut self, seconds: u64) {
        self.wait(Duration::from_secs(seconds));
    }

    /// Something happens.
    pub fn step<F: Forge>(&mut self, step: &Step<F>) {
        match *step {
            Step::Open => self.open(0),
            Step::Write { side, bytes } => self.write(side.into(), usize::from(bytes) % 3000),
            Step::Read { side } => self.read(side.into()),
            Step::Finish { side } => self.with(side, |end, now, flow| end.finish(now, flow)),
            Step::Abort { side } => self.with(side, |end, now, flow| end.abort(now, flow)),
            Step::Release { side } => self.with(side, |end, now, flow| end.release(now, flow)),
            Step::Wait { milliseconds } => self.wait(Duration::from_millis(milliseconds.into())),
            Step::Deliver { side } => {
                if let Some(bytes) = self.on_the_way[usize::from(side)].pop_front() {
                    self.deliver(side.into(), bytes, false);
                }
            }
            Step::Lose { side } => drop(self.on_the_way[usize::from(side)].pop_front()),
            Step::Replay { packet } => {
                if let Some((from, bytes)) = self.past(packet) {
                    self.deliver(1 - from, bytes, false);
                }
            }
            Step::Damage { packet, at, by } => {
                if let Some((from, mut bytes)) = self.past(packet) {
                    let at = usize::from(at) % bytes.len();
                    bytes[at] ^= by;
                    self.deliver(1 - from, bytes, false);
                }
            }
            Step::Forge { packet, ref forgery } => {
                if let Some((from, bytes)) = self.past(packet)
                    && let Some(forged) = forgery.apply(&bytes, &self.sent)
                {
                    self.deliver(1 - from, forged, forgery.is_misaddressed());
                }
            }
            Step::Raw { side, ref bytes } => self.deliver(side.into(), bytes.clone(), false),
            Step::Stranger { spoofed } => {
                self.spoofed = spoofed;
                self.open(2);
            }
            Step::Notice { side, up } => {
                let local = path(side.into(), 1 - usize::from(side)).local;
                self.ends[usize::from(side)].handle(self.now, Input::PathNotice { local, up });
            }
        }
        self.drain();
    }

    fn open(&mut self, host: usize) {
        if self.flows[host].is_none() {
            self.flows[host] = self.ends[host].open(self.now, path(host, 1), PORT).ok();
        }
    }

    fn with(&mut self, side: bool, call: impl FnOnce(&mut M, Time, FlowId)) {
        if let Some(flow) = self.flows[usize::from(side)] {
            call(&mut self.ends[usize::from(side)], self.now, flow);
        }
    }

    /// Every byte tells who wrote it, and a little of where it stands.
    fn write(&mut self, host: usize, length: usize) {
        let Some(flow) = self.flows[host] else { return };
        let begin = self.written[host];
        let byte = |place: usize| (host as u8) << 6 | begin.wrapping_add(place as u8) & 0x3F;
        let data: Vec<u8> = (0..length).map(byte).collect();
        if self.ends[host].write(self.now, flow, data.into()).is_ok() {
            self.written[host] = begin.wrapping_add(length as u8);
        }
    }

    /// What is read was written by who is at the other end.
    fn read(&mut self, host: usize) {
        let Some(flow) = self.flows[host] else { return };
        while let Read::Data(data) = self.ends[host].read(self.now, flow) {
            if let Some(peer) = self.ends[host].peer(flow) {
                let foreign = data.iter().find(|byte| usize::from(**byte >> 6) != peer);
                assert_eq!(foreign, None, "host {host} reads what {peer} did not write");
                self.follows(host, flow, &data);
            }
        }
    }

    /// Where nothing may be missing, each byte is the one after the last.
    fn follows(&mut self, host: usize, flow: FlowId, data: &[u8]) {
        let composition = &self.config.composition;
        if !composition.reliability.is_full() || composition.ordering != Ordering::Ordered {
            return;
        }
        for byte in data {
            let before = self.last[host]
                .replace((flow, *byte))
                .filter(|(of, _)| *of == flow);
            let expected = before.map_or(*byte, |(_, before)| before & 0xC0 | before.wrapping_add(1) & 0x3F);
            assert_eq!(*byte, expected, "host {host} misses something");
        }
    }

    fn past(&self, packet: u16) -> Option<(usize, Vec<u8>)> {
        let index = self.sent.len().checked_sub(1)?.min(packet.into());
        self.sent.get(index).cloned()
    }

    fn deliver(&mut self, side: usize, bytes: Vec<u8>, from_elsewhere: bool) {
        let peer = match (from_elsewhere, side) {
            (true, _) => 2,
            (false, 1) if self.moved => 3,
            _ => 1 - side,
        };
        self.arrive(side, path(side, peer), bytes);
        self.drain();
    }

    fn arrive(&mut self, side: usize, path: PathAddress, bytes: Vec<u8>) {
        let mut datagram = Datagram {
            path,
            body: bytes.into(),
            ..Datagram::empty()
        };
        self.ends[side].handle(self.now, Input::Datagram(&mut datagram));
    }

    /// Time passes; deadlines come when they are due.
    fn wait(&mut self, span: Duration) {
        let until = self.now + span;
        let mut same = 0;
        self.drain();
        while let Some(next) = self.next_deadline().filter(|next| *next <= until) {
            same = if next > self.now { 0 } else { same + 1 };
            assert!(same < 10_000, "a deadline stays in the past");
            self.now = self.now.max(next);
            for end in &mut self.ends {
                if end.next_deadline().is_some_and(|(at, _)| at <= self.now) {
                    end.handle(self.now, Input::Deadline);
                }
            }
            self.drain();
        }
        self.now = until;
    }

    fn next_deadline(&self) -> Option<Time> {
        let deadlines = self.ends.iter().filter_map(|end| end.next_deadline());
        deadlines.map(|(at, _)| at).min()
    }

    fn drain(&mut self) {
        let mut out = Datagram::empty();
        // The stranger goes first: what it causes leaves with the rest.
        for host in [2, 0, 1] {
            let mut batch = 0;
            while self.ends[host].poll_transmit(self.now, &mut out) {
                batch += 1;
                assert!(batch < 10_000, "sending never ends");
                let bytes = out.to_vec();
                M::check_sent(&bytes);
                self.carry(host, out.path, bytes);
            }
            while let Some(event) = self.ends[host].poll_event() {
                if let Event::Accepted(flow) = event {
                    let stranger = self.ends[host].peer(flow).is_some_and(|peer| host + peer != 1);
                    if !stranger && (self.ends[host].peer(flow).is_some() || self.flows[host].is_none()) {
                        self.flows[host] = Some(flow);
                    }
                }
            }
            self.ends[host].check_bounds();
            if let Some(stats) = self.flows[host].and_then(|flow| self.ends[host].stats(flow)) {
                // Kept, held, unread, waiting; a datagram of an attacker may be larger than our segments.
                let most = 8192 * SEGMENT + 3 * WINDOW * (SEGMENT + 64) + 10_000 + 400_000;
                assert!(stats.memory_bytes <= most, "{} bytes", stats.memory_bytes);
            }
        }
    }

    fn carry(&mut self, host: usize, along: PathAddress, bytes: Vec<u8>) {
        if host == 2 {
            let pretended = if self.spoofed { 0 } else { 2 };
            return self.arrive(1, path(1, pretended), bytes);
        }
        if along.remote == path(1, 2).remote {
            return self.arrive(2, path(2, 1), bytes);
        }
        if host == 1 && (along.remote == path(1, 3).remote) != self.moved {
            return; // the translator knows that address no more, or not yet
        }
        if self.sent.len() < 1_000 {
            self.sent.push((host, bytes.clone()));
        }
        if self.on_the_way[1 - host].len() < 1_000 {
            self.on_the_way[1 - host].push_back(bytes);
        }
    }
}

fn path(from: usize, to: usize) -> PathAddress {
    let ends = ADDRESSES.map(|address| address.parse().expect("an address"));
    PathAddress {
        local: ends[from],
        remote: ends[to],
    }
}
