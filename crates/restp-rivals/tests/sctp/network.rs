//! Two hosts and the paths between them. A path has a rate, a delay and a queue in each direction; a rule judges every packet.

use bytes::Bytes;
use restp_base::flow::{CloseReason, Flow, FlowId, FlowStats, Read};
use restp_base::machine::{Datagram, Event, Input, Machine, PathAddress};
use restp_base::time::{Duration, Time};
use restp_rivals::sctp::chunk::{Chunk, Sack};
use restp_rivals::sctp::wire::Packet;
use restp_rivals::sctp::{Sctp, SctpConfig, SctpParameters};
use std::collections::BTreeMap;

pub const PORT: u16 = 9;
/// Who opens, and who serves.
pub const OPENER: usize = 0;
pub const SERVER: usize = 1;

/// A packet on its way.
#[derive(Clone, Debug)]
pub struct Seen {
    pub at: Time,
    pub from: usize,
    pub path: usize,
    pub packet: Packet,
    pub bytes: usize,
}

impl Seen {
    pub fn chunk(&self) -> &Chunk {
        &self.packet.chunks[0]
    }
    pub fn is_data(&self) -> bool {
        matches!(self.chunk(), Chunk::Data(_))
    }
    pub fn sack(&self) -> Option<&Sack> {
        match self.chunk() {
            Chunk::Sack(sack) => Some(sack),
            _ => None,
        }
    }
    /// TSN, from 0 for the first of this end.
    pub fn tsn(&self) -> Option<u32> {
        match self.chunk() {
            Chunk::Data(data) => Some(data.fragment.tsn.wrapping_sub(FIRST_TSN)),
            _ => None,
        }
    }
}

/// So near to the end of the numbers that every transfer wraps.
pub const FIRST_TSN: u32 = u32::MAX - 20;

#[derive(Clone, Copy, Debug)]
pub struct Line {
    /// Bits per second; 0: no limit.
    pub rate: u64,
    pub delay: Duration,
    /// Bytes that may wait.
    pub queue_bytes: u64,
}

/// Without limit.
pub fn wide(delay_ms: u64) -> Line {
    Line {
        rate: 0,
        delay: ms(delay_ms),
        queue_bytes: u64::MAX >> 8,
    }
}

/// Of so many Mbit/s, with a queue of 50 packets.
pub fn line(mbit: u64, delay_ms: u64) -> Line {
    Line {
        rate: mbit * 1_000_000,
        delay: ms(delay_ms),
        queue_bytes: 50 * 1500,
    }
}

/// The same with a queue that never is full.
pub fn deep(mbit: u64, delay_ms: u64) -> Line {
    Line {
        queue_bytes: 1 << 30,
        ..line(mbit, delay_ms)
    }
}

pub fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// How much later it arrives than the line says, or that it is lost.
pub type Rule = Box<dyn FnMut(&Seen) -> Option<Duration>>;

pub struct Net {
    pub now: Time,
    pub hosts: [Sctp; 2],
    pub lines: Vec<Line>,
    pub rule: Rule,
    pub log: Vec<Seen>,
    pub events: [Vec<Event>; 2],
    /// What the server read, message by message.
    pub read: Vec<Bytes>,
    pub reads: bool,
    busy: BTreeMap<(usize, usize), Time>,
    wire: BTreeMap<(Time, u64), (usize, Datagram)>,
    order: u64,
}

pub fn sctp(set: &[(&str, &str)]) -> SctpParameters {
    SctpParameters::from_pairs(set).expect("keys of the documentation")
}

pub fn cmt(policy: &str, set: &[(&str, &str)]) -> SctpParameters {
    SctpParameters::concurrent_from_pairs(policy, set).expect("a policy, and keys of the documentation")
}

pub fn smt(scheme: &str, set: &[(&str, &str)]) -> SctpParameters {
    SctpParameters::simultaneous_from_pairs(scheme, set).expect("a scheme, and keys of the documentation")
}

impl Net {
    pub fn new(parameters: SctpParameters, lines: &[Line]) -> Self {
        let host = |listen| {
            Sctp::new(SctpConfig {
                listen,
                first_tsn: Some(FIRST_TSN),
                ..SctpConfig::new(parameters.clone())
            })
        };
        Net {
            now: Time::ZERO,
            hosts: [host(None), host(Some(PORT))],
            lines: lines.to_vec(),
            rule: Box::new(|_| Some(Duration::ZERO)),
            log: Vec::new(),
            events: Default::default(),
            read: Vec::new(),
            reads: true,
            busy: BTreeMap::new(),
            wire: BTreeMap::new(),
            order: 0,
        }
    }

    /// The path `line` as its opener sees it.
    pub fn path(line: usize) -> PathAddress {
        let at = |host: u8| ([10, 0, line as u8, host], 0).into();
        PathAddress {
            local: at(1),
            remote: at(2),
        }
    }

    pub fn open(&mut self) -> FlowId {
        let flow = self.hosts[OPENER]
            .open(self.now, Self::path(0), PORT)
            .expect("a free port");
        for line in 1..self.lines.len() {
            let added = self.hosts[OPENER].add_path(self.now, flow, Self::path(line), false);
            added.expect("before INIT has left");
        }
        flow
    }

    pub fn accepted(&self) -> Option<FlowId> {
        self.events[SERVER].iter().find_map(|event| match event {
            Event::Accepted(flow) => Some(*flow),
            _ => None,
        })
    }

    pub fn closed(&self, host: usize) -> Option<&CloseReason> {
        self.events[host].iter().find_map(|event| match event {
            Event::Closed(_, reason) => Some(reason),
            _ => None,
        })
    }

    pub fn stats(&self, flow: FlowId) -> FlowStats {
        self.hosts[OPENER].stats(flow).expect("it is open")
    }

    pub fn count(&self, judge: impl Fn(&Seen) -> bool) -> usize {
        self.log.iter().filter(|seen| judge(seen)).count()
    }

    pub fn run_for(&mut self, span: Duration) {
        let until = self.now + span;
        loop {
            (0..2).for_each(|host| self.drain(host));
            let arrival = self.wire.first_key_value().map(|(key, _)| key.0);
            let wakes = [0, 1].map(|host: usize| self.hosts[host].next_deadline().map(|(at, _)| at));
            let next = wakes.iter().flatten().copied().chain(arrival).min();
            let Some(next) = next.filter(|next| *next <= until) else {
                break;
            };
            self.now = self.now.max(next);
            if arrival == Some(next) {
                let (_, (to, mut datagram)) = self.wire.pop_first().expect("an arrival");
                self.hosts[to].handle(self.now, Input::Datagram(&mut datagram));
            }
            for (host, wake) in self.hosts.iter_mut().zip(wakes) {
                if wake == Some(next) {
                    host.handle(self.now, Input::Deadline);
                }
            }
        }
        self.now = until;
    }

    fn drain(&mut self, host: usize) {
        loop {
            let mut out = Datagram::empty();
            while self.hosts[host].poll_transmit(self.now, &mut out) {
                self.send(host, out.clone());
            }
            let Some(event) = self.hosts[host].poll_event() else {
                return;
            };
            if let Event::Readable(flow) = event
                && host == SERVER
                && self.reads
            {
                self.read_all(flow);
            }
            self.events[host].push(event);
        }
    }

    pub fn read_all(&mut self, flow: FlowId) {
        loop {
            match self.hosts[SERVER].read(self.now, flow) {
                Read::Data(data) => self.read.push(data),
                Read::Empty => return,
                Read::End => return self.hosts[SERVER].finish(self.now, flow),
            }
        }
    }

    /// `host` hears `chunks` by the first path at once, in a packet with the header of `like`.
    pub fn hears(&mut self, host: usize, like: &Packet, chunks: impl IntoIterator<Item = Chunk>) {
        let path = Self::path(0);
        let path = if host == OPENER { path } else { path.reversed() };
        self.hears_by(host, path, like, chunks);
    }

    /// The same by a path as `host` sees it.
    pub fn hears_by(
        &mut self,
        host: usize,
        path: PathAddress,
        like: &Packet,
        chunks: impl IntoIterator<Item = Chunk>,
    ) {
        let packet = Packet {
            chunks: chunks.into_iter().collect(),
            ..like.clone()
        };
        let mut datagram = datagram(&packet, path);
        self.hosts[host].handle(self.now, Input::Datagram(&mut datagram));
    }

    pub fn server_hears(&mut self, like: &Packet, chunk: Chunk) {
        self.hears(SERVER, like, [chunk]);
    }

    /// What `host` has to say now; it gets nowhere.
    pub fn says(&mut self, host: usize) -> Vec<Packet> {
        let mut out = Datagram::empty();
        let mut said = Vec::new();
        while self.hosts[host].poll_transmit(self.now, &mut out) {
            said.push(Packet::parse(&mut out).expect("everything sent parses"));
        }
        said
    }

    /// The first packet that carries what `is_it` looks for.
    pub fn seen(&self, is_it: impl Fn(&Chunk) -> bool) -> Packet {
        let seen = self.log.iter().find(|seen| is_it(seen.chunk()));
        seen.expect("it was sent").packet.clone()
    }

    /// Puts a datagram on the wire, as if `host` had sent it.
    pub fn send(&mut self, host: usize, mut datagram: Datagram) {
        let std::net::IpAddr::V4(address) = datagram.path.local.ip() else {
            panic!("an address of these stories")
        };
        let path = usize::from(address.octets()[2]);
        let packet = Packet::parse(&mut datagram.clone()).expect("everything sent parses");
        let seen = Seen {
            at: self.now,
            from: host,
            path,
            packet,
            bytes: datagram.len(),
        };
        let verdict = (self.rule)(&seen);
        self.log.push(seen);
        let line = self.lines[path];
        let lasts =
            |bytes: u64| Duration::from_nanos((bytes * 8_000_000_000).checked_div(line.rate).unwrap_or(0));
        let free = self.busy.entry((path, host)).or_default();
        let starts = (*free).max(self.now);
        let is_full = line.rate > 0 && starts.since(self.now) > lasts(line.queue_bytes);
        let Some(extra) = verdict.filter(|_| !is_full) else {
            return;
        };
        *free = starts + lasts(datagram.len() as u64 + 20);
        let arrives = *free + line.delay + extra;
        datagram.path = datagram.path.reversed();
        self.order += 1;
        self.wire.insert((arrives, self.order), (1 - host, datagram));
    }

    /// Opens, writes `messages`, finishes and waits for at most `limit`; the flow of the opener.
    pub fn transfer(&mut self, messages: &[Bytes], limit: Duration) -> FlowId {
        let flow = self.open();
        let deadline = self.now + limit;
        let mut rest = messages.iter().peekable();
        while self.now < deadline && self.closed(OPENER).is_none() {
            while let Some(message) = rest.peek() {
                match self.hosts[OPENER].write(self.now, flow, Bytes::clone(message)) {
                    Ok(()) => drop(rest.next()),
                    Err(_) => break,
                }
            }
            if rest.peek().is_none() {
                self.hosts[OPENER].finish(self.now, flow);
            }
            self.run_for(ms(5));
        }
        flow
    }

    /// Keeps the opener writing for `span`; bytes that the server read.
    pub fn bulk(&mut self, flow: FlowId, message: usize, span: Duration) -> usize {
        let until = self.now + span;
        let message = Bytes::from(noise(message));
        let before: usize = self.read.iter().map(Bytes::len).sum();
        while self.now < until {
            while self.hosts[OPENER].write(self.now, flow, message.clone()).is_ok() {}
            self.run_for(ms(5));
        }
        self.read.iter().map(Bytes::len).sum::<usize>() - before
    }
}

/// Bytes that are nowhere the same.
pub fn noise(count: usize) -> Vec<u8> {
    let mut stream = restp_base::random::Stream::named(1, "noise");
    (0..count).map(|_| stream.bits() as u8).collect()
}

/// Messages of 1 to `most` bytes.
pub fn messages(count: usize, most: usize) -> Vec<Bytes> {
    let mut stream = restp_base::random::Stream::named(2, "messages");
    let lengths = (0..count).map(|_| 1 + stream.below(most as u64) as usize);
    lengths.map(|length| Bytes::from(noise(length))).collect()
}

/// Chance that is the same in every run.
pub fn chance(seed: u64) -> restp_base::random::Stream {
    restp_base::random::Stream::named(seed, "network")
}

pub fn datagram(packet: &Packet, path: PathAddress) -> Datagram {
    let mut out = Datagram::empty();
    packet.emit(&mut out);
    out.path = path;
    out
}

/// A network whose association stands, and a packet of its opener to copy.
pub fn standing() -> (Net, Packet) {
    let mut net = Net::new(sctp(&[("receive-buffer", "64 KiB")]), &[wide(10)]);
    net.open();
    net.run_for(ms(100));
    let sent = net.log.iter().rfind(|seen| seen.from == OPENER);
    let packet = sent.expect("sent").packet.clone();
    (net, packet)
}
