//! Two endpoints in virtual time and a hostile network between them: packets are lost, repeated, kept for later,
//! changed in any byte, and changed in any field of a well-formed header (ResTP §3.5). Nothing may panic, no deadline
//! may stay in the past, and memory stays within the windows.

#![no_main]

use bytes::Bytes;
use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use restp_base::flow::{Flow, FlowId, Read};
use restp_base::machine::{Datagram, Event, Head, Input, Machine, PathAddress};
use restp_base::time::{Duration, Time};
use restp_proto::composition::{Composition, Preset};
use restp_proto::wire::{Blocks, Flags, Header, Tail};
use restp_proto::{Acceptance, Endpoint, EndpointConfig};

#[derive(Arbitrary, Debug)]
struct Story {
    composition: u8,
    steps: Vec<Step>,
}

#[derive(Arbitrary, Debug)]
enum Step {
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
        forgery: Forgery,
    },
    Raw {
        side: bool,
        bytes: Vec<u8>,
    },
}

#[derive(Arbitrary, Debug)]
struct Forgery {
    flags: Option<u8>,
    sequence: i8,
    acknowledgement: i8,
    far: bool,
    window: Option<u16>,
    blocks: Option<Vec<(i8, i8)>>,
    payload: Option<u8>,
    address: bool,
}

const PORT: u16 = 80;
const SEGMENT: u64 = 200;
const WINDOW: u64 = 64;

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
];

struct World {
    now: Time,
    ends: [Endpoint; 2],
    flows: [Option<FlowId>; 2],
    sent: Vec<(usize, Vec<u8>)>,
    on_the_way: [std::collections::VecDeque<Vec<u8>>; 2],
}

fuzz_target!(|story: Story| {
    let (preset, set) = COMPOSITIONS[usize::from(story.composition) % COMPOSITIONS.len()];
    let mut composition = Preset::named(preset).expect("a preset").composition();
    for (key, value) in set
        .iter()
        .chain(&[("segment", "200 B"), ("send-buffer", "10000 B")])
    {
        composition.set(key, value).expect("a key");
    }
    let _ = composition.set("window", "64 segments");
    let mut world = World::new(composition);
    for step in story.steps.iter().take(200) {
        world.step(step);
    }
    // Whatever happened: time alone brings both to rest.
    for _ in 0..40 {
        world.wait(Duration::from_secs(30));
    }
});

impl World {
    fn new(composition: Composition) -> Self {
        let valid = composition.check().expect("a valid composition");
        let end = || Endpoint::new(EndpointConfig::new(valid.clone()).listen(PORT, Acceptance::Any));
        World {
            now: Time::ZERO,
            ends: [end(), end()],
            flows: [None, None],
            sent: Vec::new(),
            on_the_way: Default::default(),
        }
    }

    fn step(&mut self, step: &Step) {
        match *step {
            Step::Open => {
                if self.flows[0].is_none() {
                    self.flows[0] = self.ends[0].open(self.now, path(0), PORT).ok();
                }
            }
            Step::Write { side, bytes } => {
                let data = Bytes::from(vec![side.into(); usize::from(bytes) % 3000]);
                self.with(side, |end, now, flow| drop(end.write(now, flow, data)));
            }
            Step::Read { side } => self.with(
                side,
                |end, now, flow| {
                    while let Read::Data(_) = end.read(now, flow) {}
                },
            ),
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
                    && let Some(forged) = forgery.apply(&bytes)
                {
                    self.deliver(1 - from, forged, forgery.address);
                }
            }
            Step::Raw { side, ref bytes } => self.deliver(side.into(), bytes.clone(), false),
        }
        self.drain();
    }

    fn with(&mut self, side: bool, call: impl FnOnce(&mut Endpoint, Time, FlowId)) {
        if let Some(flow) = self.flows[usize::from(side)] {
            call(&mut self.ends[usize::from(side)], self.now, flow);
        }
    }

    fn past(&self, packet: u16) -> Option<(usize, Vec<u8>)> {
        let index = self.sent.len().checked_sub(1)?.min(packet.into());
        self.sent.get(index).cloned()
    }

    fn deliver(&mut self, side: usize, bytes: Vec<u8>, from_elsewhere: bool) {
        let mut path = path(side);
        if from_elsewhere {
            path.remote = "10.9.9.9:9".parse().expect("an address");
        }
        let mut datagram = Datagram {
            path,
            body: bytes.into(),
            ..Datagram::empty()
        };
        self.ends[side].handle(self.now, Input::Datagram(&mut datagram));
        self.drain();
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
        for side in 0..2 {
            let mut batch = 0;
            while self.ends[side].poll_transmit(self.now, &mut out) {
                batch += 1;
                assert!(batch < 10_000, "sending never ends");
                let bytes = out.to_vec();
                assert!(Header::parse(&bytes, bytes.len()).is_ok(), "what is sent parses");
                if self.sent.len() < 1_000 {
                    self.sent.push((side, bytes.clone()));
                }
                if self.on_the_way[1 - side].len() < 1_000 {
                    self.on_the_way[1 - side].push_back(bytes);
                }
            }
            while let Some(event) = self.ends[side].poll_event() {
                if let Event::Accepted(flow) = event {
                    self.flows[side] = Some(flow);
                }
            }
            if let Some(stats) = self.flows[side].and_then(|flow| self.ends[side].stats(flow)) {
                // Kept, held, unread, waiting; a datagram of an attacker may be larger than our segments.
                let most = 8192 * SEGMENT + 3 * WINDOW * (SEGMENT + 64) + 10_000 + 400_000;
                assert!(stats.memory_bytes <= most, "{} bytes", stats.memory_bytes);
            }
        }
    }
}

fn path(side: usize) -> PathAddress {
    let ends = ["10.0.0.1:0", "10.0.0.2:0"].map(|address| address.parse().expect("an address"));
    PathAddress {
        local: ends[side],
        remote: ends[1 - side],
    }
}

impl Forgery {
    fn apply(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        let (mut header, length) = Header::parse(bytes, bytes.len()).ok()?;
        let far = if self.far { 0x4000_0000 } else { 1 };
        let moved = |number: u32, by: i8| number.wrapping_add((i64::from(by) * far) as u32);
        if let Some(flags) = self.flags {
            header.flags = Flags::from_bits(flags);
        }
        header.sequence = header.sequence.map(|number| moved(number, self.sequence));
        header.acknowledgement = match (header.flags.has(Flags::ACK), header.sequence) {
            (true, Some(_)) => Some(moved(header.acknowledgement.unwrap_or(0), self.acknowledgement)),
            _ => None,
        };
        header.window = header.window.map(|window| self.window.unwrap_or(window));
        if let (Some(blocks), Some(pointer)) = (&self.blocks, header.acknowledgement) {
            let edges = blocks.iter().take(30);
            let blocks: Blocks = edges
                .map(|(l, r)| (moved(pointer, *l), moved(pointer, *r)))
                .collect();
            header.tail = Tail::Sack(blocks);
        }
        let payload = match self.payload {
            Some(size) => vec![7; size.into()],
            None => bytes[length..].to_vec(),
        };
        let mut head = Head::new();
        header.emit(&payload, &mut head).ok()?;
        Some([&head[..], &payload].concat())
    }
}
