//! Two endpoints and a network between them, in virtual time. A story scripts the network with a rule that judges
//! every datagram, and the applications with calls between [`Pair::run`]s.
#![allow(dead_code, reason = "each story uses a part of the harness")]

pub mod call;
pub mod lines;
pub mod links;
pub mod web;

use bytes::Bytes;
use restp_base::flow::{CloseReason, Flow, FlowId, Read};
use restp_base::machine::{Datagram, Ecn, Event, Input, Machine, PathAddress};
use restp_base::time::{Duration, Time};
use restp_proto::composition::{Composition, Preset};
use restp_proto::wire::{ErrorControl, Flags, Header};
use restp_proto::{Acceptance, Endpoint, EndpointConfig, InitialNumbers};
use std::collections::BTreeMap;
use std::net::SocketAddr;

pub const PORT: u16 = 80;

/// What the network does with a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Pass,
    Drop,
    /// Arrives this much later than it would.
    Late(Duration),
    /// Arrives twice.
    Twice,
    /// Arrives with this bit changed, counted from the first of the header.
    Flip(usize),
    /// Arrives without what follows this many bytes.
    Cut(usize),
}

/// A datagram on its way, decoded for the rule and the record.
#[derive(Clone, Debug)]
pub struct Seen {
    pub at: Time,
    /// From the side that opened (0) or the other (1).
    pub from: usize,
    pub path: PathAddress,
    pub header: Header,
    pub payload: Bytes,
    /// The network may cut it into pieces.
    pub may_fragment: bool,
    pub verdict: Verdict,
}

impl Seen {
    pub fn is(&self, flags: Flags) -> bool {
        self.header.flags == flags
    }
    pub fn is_data(&self) -> bool {
        !self.payload.is_empty() && !self.is_encoded() && !self.header.probe
    }
    pub fn is_encoded(&self) -> bool {
        self.header.services.error.has(ErrorControl::ENC)
    }
    /// As it was on the wire.
    pub fn bytes(&self) -> Vec<u8> {
        let mut head = restp_base::machine::Head::new();
        self.header.emit(&self.payload, &mut head).expect("it was sent");
        [&head[..], &self.payload].concat()
    }
    /// The number after those this packet takes.
    pub fn next_number(&self) -> u32 {
        let takes = self.is_data() || self.header.flags.has(Flags::SYN) || self.header.flags.has(Flags::FIN);
        self.header.sequence.unwrap_or(0).wrapping_add(u32::from(takes))
    }
}

pub type Rule = Box<dyn FnMut(&Seen) -> Verdict>;

/// Nothing that side `from` sends arrives.
pub fn silent(from: usize) -> Rule {
    Box::new(move |seen| match seen.from == from {
        true => Verdict::Drop,
        false => Verdict::Pass,
    })
}

/// Drops the first transmission of the data segments from side 0 whose position among them is in `lost`, counted from 1.
pub fn lose_segments(lost: &'static [u64]) -> Rule {
    let mut sent = Vec::new();
    Box::new(move |seen| {
        let number = seen.header.sequence;
        if !seen.is_data() || seen.from != 0 || sent.contains(&number) {
            return Verdict::Pass;
        }
        sent.push(number);
        if lost.contains(&(sent.len() as u64)) {
            Verdict::Drop
        } else {
            Verdict::Pass
        }
    })
}

/// Drops all data, from either side.
pub fn lose_all_data() -> Rule {
    Box::new(|seen| {
        if seen.is_data() {
            Verdict::Drop
        } else {
            Verdict::Pass
        }
    })
}

pub struct Pair {
    pub now: Time,
    pub ends: [Endpoint; 2],
    pub delay: Duration,
    /// Delay of the paths that use this address of either side, where it is another.
    pub delays: BTreeMap<SocketAddr, Duration>,
    /// Addresses of side 0 that the other side sees as others.
    pub translate: BTreeMap<SocketAddr, SocketAddr>,
    pub rule: Rule,
    pub log: Vec<Seen>,
    pub events: [Vec<Event>; 2],
    /// So many of the next data segments from side 0 get a congestion mark.
    pub mark_next: u32,
    /// So many of the next data segments from side 0 have a bit of their payload flipped.
    pub damage_next: u32,
    /// Times a deadline woke an end.
    pub wakeups: u64,
    wire: BTreeMap<(Time, u64), (usize, Datagram)>,
    order: u64,
}

/// Wakes of one end at one instant that nobody needs: a deadline that stays in the past.
const STUCK: u64 = 10_000;

pub fn composition(preset: &str, set: &[(&str, &str)]) -> Composition {
    let mut composition = Preset::named(preset)
        .expect("a preset of the specification")
        .composition();
    for (key, value) in set {
        composition
            .set(key, value)
            .expect("a key and a choice of the documentation");
    }
    composition
}

pub fn config(preset: &str, set: &[(&str, &str)]) -> EndpointConfig {
    EndpointConfig::new(composition(preset, set).check().expect("a valid composition"))
}

impl Pair {
    /// Both ends use `preset` changed by `set`, 10 ms apart; numbers begin near the wrap at 2³² on one side.
    pub fn new(preset: &str, set: &[(&str, &str)]) -> Self {
        Self::of(
            config(preset, set),
            config(preset, set).listen(PORT, Acceptance::Any),
        )
    }

    pub fn of(mut opener: EndpointConfig, acceptor: EndpointConfig) -> Self {
        opener.initial_numbers = InitialNumbers::Fixed(u32::MAX - 20);
        Pair {
            now: Time::ZERO,
            ends: [Endpoint::new(opener), Endpoint::new(acceptor)],
            delay: Duration::from_millis(10),
            delays: BTreeMap::new(),
            translate: BTreeMap::new(),
            rule: Box::new(|_| Verdict::Pass),
            log: Vec::new(),
            events: [Vec::new(), Vec::new()],
            mark_next: 0,
            damage_next: 0,
            wakeups: 0,
            wire: BTreeMap::new(),
            order: 0,
        }
    }

    pub fn path(&self, side: usize) -> PathAddress {
        let ends = ["10.0.0.1:0", "10.0.0.2:0"].map(|address| address.parse().expect("an address"));
        PathAddress {
            local: ends[side],
            remote: ends[1 - side],
        }
    }

    pub fn open(&mut self) -> FlowId {
        let path = self.path(0);
        self.ends[0].open(self.now, path, PORT).expect("a free port")
    }

    /// Opens a flow and runs until both sides know of it.
    pub fn connect(&mut self) -> (FlowId, FlowId) {
        let flow = self.open();
        self.run_for(Duration::from_millis(100));
        assert!(
            self.events[0].contains(&Event::Connected(flow)),
            "{:?}",
            self.events
        );
        let accepted = self.accepted().expect("accepted");
        (flow, accepted)
    }

    pub fn accepted(&self) -> Option<FlowId> {
        self.events[1].iter().find_map(|event| match event {
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
        self.ends[side]
            .write(self.now, flow, Bytes::copy_from_slice(data))
            .expect("room to write");
    }

    pub fn read_all(&mut self, side: usize, flow: FlowId) -> Vec<Bytes> {
        std::iter::from_fn(|| match self.ends[side].read(self.now, flow) {
            Read::Data(data) => Some(data),
            Read::Empty | Read::End => None,
        })
        .collect()
    }

    pub fn run_for(&mut self, span: Duration) {
        self.run_until(self.now + span);
    }

    /// The loop every driver has: drain, then sleep until the next datagram or deadline.
    pub fn run_until(&mut self, until: Time) {
        let mut woken_now = 0;
        loop {
            for side in 0..2 {
                self.drain(side);
            }
            let arrival = self.wire.first_key_value().map(|(key, _)| key.0);
            let wakes = self
                .ends
                .each_ref()
                .map(|end| end.next_deadline().map(|(at, _)| at));
            let next = [arrival, wakes[0], wakes[1]].into_iter().flatten().min();
            let Some(next) = next.filter(|next| *next <= until) else {
                break;
            };
            assert!(next >= self.now || arrival != Some(next), "time runs forwards");
            woken_now = if next > self.now { 0 } else { woken_now + 1 };
            assert!(woken_now < STUCK, "a deadline stays in the past: {wakes:?}");
            self.now = self.now.max(next);
            if arrival == Some(next) {
                let (_, (to, mut datagram)) = self.wire.pop_first().expect("an arrival");
                self.ends[to].handle(self.now, Input::Datagram(&mut datagram));
            }
            for (end, wake) in self.ends.iter_mut().zip(wakes) {
                if wake == Some(next) {
                    self.wakeups += 1;
                    end.handle(self.now, Input::Deadline);
                }
            }
        }
        self.now = until;
    }

    fn drain(&mut self, side: usize) {
        let mut out = Datagram::empty();
        while self.ends[side].poll_transmit(self.now, &mut out) {
            self.send(side, out.clone());
        }
        while let Some(event) = self.ends[side].poll_event() {
            self.events[side].push(event);
        }
    }

    /// Puts a datagram on the wire, as if the endpoint of `side` had sent it.
    pub fn send(&mut self, side: usize, mut datagram: Datagram) {
        let bytes = Bytes::from(datagram.to_vec());
        let (header, length) = Header::parse(&bytes, bytes.len()).expect("everything sent parses");
        let payload = bytes.slice(length..);
        let mut again = restp_base::machine::Head::new();
        header
            .emit(&payload, &mut again)
            .expect("and can be emitted again");
        assert_eq!(again[..], bytes[..length], "to the same bytes");
        let mut seen = Seen {
            at: self.now,
            from: side,
            path: datagram.path,
            header,
            payload,
            may_fragment: datagram.may_fragment,
            verdict: Verdict::Pass,
        };
        seen.verdict = (self.rule)(&seen);
        let verdict = seen.verdict;
        self.log.push(seen);
        let ends = [datagram.path.local, datagram.path.remote];
        let delay = ends
            .iter()
            .find_map(|end| self.delays.get(end))
            .copied()
            .unwrap_or(self.delay);
        datagram.path = datagram.path.reversed();
        for (inside, outside) in &self.translate {
            if side == 0 && datagram.path.remote == *inside {
                datagram.path.remote = *outside;
            } else if side == 1 && datagram.path.local == *outside {
                datagram.path.local = *inside;
            }
        }
        let data = side == 0 && !datagram.body.is_empty();
        if data && self.mark_next > 0 {
            assert_eq!(datagram.ecn, Ecn::Ect0, "data of a flow with ECN may be marked");
            self.mark_next -= 1;
            datagram.ecn = Ecn::Ce;
        }
        if data && self.damage_next > 0 {
            self.damage_next -= 1;
            let mut body = datagram.body.to_vec();
            body[0] ^= 1;
            datagram.body = body.into();
        }
        let mut deliver = |after, datagram| {
            self.order += 1;
            self.wire
                .insert((self.now + delay + after, self.order), (1 - side, datagram));
        };
        match verdict {
            Verdict::Pass => deliver(Duration::ZERO, datagram),
            Verdict::Late(after) => deliver(after, datagram),
            Verdict::Twice => {
                deliver(Duration::ZERO, datagram.clone());
                deliver(Duration::ZERO, datagram);
            }
            Verdict::Flip(bit) => {
                let mut bytes = datagram.to_vec();
                bytes[bit / 8] ^= 0x80 >> (bit % 8);
                deliver(Duration::ZERO, contiguous(datagram.path, bytes));
            }
            Verdict::Cut(length) => {
                let mut bytes = datagram.to_vec();
                bytes.truncate(length);
                deliver(Duration::ZERO, contiguous(datagram.path, bytes));
            }
            Verdict::Drop => {}
        }
    }

    /// Gives `bytes` to the end of `side` as if its peer had sent them, and drains it.
    pub fn inject(&mut self, side: usize, bytes: &[u8]) {
        self.inject_on(side, self.path(side), bytes);
    }

    /// The same along another path.
    pub fn inject_on(&mut self, side: usize, path: PathAddress, bytes: &[u8]) {
        let mut datagram = contiguous(path, bytes.to_vec());
        self.ends[side].handle(self.now, Input::Datagram(&mut datagram));
        self.drain(side);
    }

    /// A bare acknowledgement as the end of `side` would send it now, changed by `change`; carried to its peer.
    pub fn forge(&mut self, side: usize, payload: &[u8], change: impl FnOnce(&mut Header)) {
        let last = self
            .log
            .iter()
            .rfind(|seen| seen.from == side && !seen.is_encoded())
            .expect("a packet to start from");
        let mut header = last.header.clone();
        header.era &= !header.flags.has(Flags::SYN); // there it says something else
        header.flags = Flags::ACK;
        header.tail = restp_proto::wire::Tail::None;
        header.sequence = header.sequence.map(|_| last.next_number());
        change(&mut header);
        let mut head = restp_base::machine::Head::new();
        header
            .emit(payload, &mut head)
            .expect("a header that can be said");
        self.inject(1 - side, &[&head[..], payload].concat());
    }

    /// Moves `data` from `from` to the other side within `limit`, reading as it comes; true when all arrived, in
    /// order and once.
    pub fn transfer(&mut self, from: usize, flows: (FlowId, FlowId), data: &[u8], limit: Duration) -> bool {
        let (source, sink) = if from == 0 { flows } else { (flows.1, flows.0) };
        let deadline = self.now + limit;
        let mut rest = Bytes::copy_from_slice(data);
        let mut got = Vec::new();
        while got.len() < data.len() && self.now < deadline {
            while !rest.is_empty() {
                let piece = rest.slice(..rest.len().min(5000));
                match self.ends[from].write(self.now, source, piece.clone()) {
                    Ok(()) => drop(rest.split_to(piece.len())),
                    Err(_) => break,
                }
            }
            self.run_for(Duration::from_millis(5));
            self.read_all(1 - from, sink)
                .iter()
                .for_each(|data| got.extend_from_slice(data));
        }
        got == data
    }
}

/// A datagram as a driver received it: in one piece.
pub fn contiguous(path: PathAddress, bytes: Vec<u8>) -> Datagram {
    Datagram {
        path,
        body: bytes.into(),
        ..Datagram::empty()
    }
}

/// Bytes that are nowhere the same.
pub fn noise(count: usize) -> Vec<u8> {
    let mut stream = restp_base::random::Stream::named(1, "noise");
    (0..count).map(|_| stream.bits() as u8).collect()
}
