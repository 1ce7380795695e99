//! Hosts and paths between them, in virtual time. A path has a rate, a delay and a queue of one bandwidth-delay product;
//! two may share their bottleneck. A rule judges every segment.

use bytes::Bytes;
use restp_base::flow::{CloseReason, Flow, FlowId, Read};
use restp_base::machine::{Datagram, Event, Head, Input, Machine, PathAddress};
use restp_base::time::{Duration, Time};
use restp_rivals::host::{Tcp, TcpConfig};
use restp_rivals::mptcp::options::Multipath;
use restp_rivals::tcp::TcpParameters;
use restp_rivals::tcp::wire::{Flags, Header};
use std::collections::BTreeMap;

pub const PORT: u16 = 80;

/// A segment on its way.
#[derive(Clone, Debug)]
pub struct Seen {
    pub at: Time,
    /// From a side that opens (0) or the one that serves (1).
    pub from: usize,
    pub path: usize,
    pub header: Header,
    pub payload: Bytes,
}

impl Seen {
    pub fn has(&self, flags: Flags) -> bool {
        self.header.flags.has(flags)
    }
    pub fn is_data(&self) -> bool {
        !self.payload.is_empty()
    }
    pub fn is_data_of_opener(&self) -> bool {
        self.from == 0 && self.is_data()
    }
    pub fn option(&self) -> Option<Multipath> {
        self.header.options.multipath
    }
}

/// One path, the same in both directions but for the queue of data.
#[derive(Clone, Copy, Debug)]
pub struct Line {
    /// Bits per second; 0: no limit.
    pub rate: u64,
    pub delay: Duration,
    /// Bytes that may wait.
    pub queue_bytes: u64,
    /// Which bottleneck it passes.
    pub bottleneck: usize,
}

/// Without limit, 10 ms.
pub const WIDE: Line = Line {
    rate: 0,
    delay: Duration::from_millis(10),
    queue_bytes: 0,
    bottleneck: 0,
};

/// What becomes of a segment; false: it is lost.
pub type Rule = Box<dyn FnMut(&mut Seen) -> bool>;

pub struct Net {
    pub now: Time,
    /// Those that open, and the last one, which serves.
    pub hosts: Vec<Tcp>,
    pub lines: Vec<Line>,
    /// Which host opens on which line.
    pub owner: Vec<usize>,
    pub rule: Rule,
    pub log: Vec<Seen>,
    pub events: Vec<Vec<Event>>,
    /// When each bottleneck, by direction, is free again.
    busy: BTreeMap<(usize, usize), Time>,
    wire: BTreeMap<(Time, u64), (usize, Datagram)>,
    order: u64,
}

impl Net {
    /// One opener with `openers[0]` on all lines of owner 0, and so on; the server is made of `server`.
    pub fn new(openers: Vec<TcpParameters>, server: TcpParameters, lines: Vec<(usize, Line)>) -> Self {
        let mut hosts: Vec<_> = openers
            .into_iter()
            .zip(1..)
            .map(|(parameters, key_seed)| {
                Tcp::new(TcpConfig {
                    initial_sequence: u32::MAX - 5000,
                    key_seed,
                    ..TcpConfig::new(parameters)
                })
            })
            .collect();
        hosts.push(Tcp::new(TcpConfig {
            listen: Some(PORT),
            initial_sequence: u32::MAX,
            ..TcpConfig::new(server)
        }));
        let (owner, lines) = lines.into_iter().unzip();
        Net {
            now: Time::ZERO,
            events: hosts.iter().map(|_| Vec::new()).collect(),
            hosts,
            lines,
            owner,
            rule: Box::new(|_| true),
            log: Vec::new(),
            busy: BTreeMap::new(),
            wire: BTreeMap::new(),
            order: 0,
        }
    }

    /// Two equal ends with `mptcp` changed by `set` on `lines`.
    pub fn pair(set: &[(&str, &str)], lines: &[Line]) -> Self {
        let parameters = mptcp(None, set);
        let lines = lines.iter().map(|line| (0, *line)).collect();
        Net::new(vec![parameters.clone()], parameters, lines)
    }

    pub fn server(&self) -> usize {
        self.hosts.len() - 1
    }

    /// The path `line` as its opener sees it.
    pub fn path(line: usize) -> PathAddress {
        let at = |host: u8| ([10, 0, line as u8, host], 0).into();
        PathAddress {
            local: at(1),
            remote: at(2),
        }
    }

    /// Opens a flow of `host` on its first line and adds all its others.
    pub fn open(&mut self, host: usize) -> FlowId {
        let own: Vec<usize> = (0..self.lines.len())
            .filter(|line| self.owner[*line] == host)
            .collect();
        let now = self.now;
        let flow = self.hosts[host]
            .open(now, Self::path(own[0]), PORT)
            .expect("a free port");
        for line in &own[1..] {
            let added = self.hosts[host].add_path(now, flow, Self::path(*line), false);
            added.expect("one more path");
        }
        flow
    }

    pub fn accepted(&self) -> Vec<FlowId> {
        let events = self.events[self.server()].iter();
        events
            .filter_map(|event| match event {
                Event::Accepted(flow) => Some(*flow),
                _ => None,
            })
            .collect()
    }

    pub fn closed(&self, host: usize) -> Option<&CloseReason> {
        self.events[host].iter().find_map(|event| match event {
            Event::Closed(_, reason) => Some(reason),
            _ => None,
        })
    }

    pub fn write(&mut self, host: usize, flow: FlowId, data: &[u8]) {
        let data = Bytes::copy_from_slice(data);
        self.hosts[host]
            .write(self.now, flow, data)
            .expect("room to write");
    }

    pub fn read_all(&mut self, host: usize, flow: FlowId) -> Vec<u8> {
        let mut all = Vec::new();
        while let Read::Data(data) = self.hosts[host].read(self.now, flow) {
            all.extend_from_slice(&data);
        }
        all
    }

    pub fn count(&self, judge: impl Fn(&Seen) -> bool) -> usize {
        self.log.iter().filter(|seen| judge(seen)).count()
    }

    pub fn run_for(&mut self, span: Duration) {
        let until = self.now + span;
        loop {
            (0..self.hosts.len()).for_each(|host| self.drain(host));
            let arrival = self.wire.first_key_value().map(|(key, _)| key.0);
            let wakes: Vec<_> = self
                .hosts
                .iter()
                .map(|host| host.next_deadline().map(|(at, _)| at))
                .collect();
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
        let mut out = Datagram::empty();
        while self.hosts[host].poll_transmit(self.now, &mut out) {
            self.send(host, out.clone());
        }
        while let Some(event) = self.hosts[host].poll_event() {
            self.events[host].push(event);
        }
    }

    /// Puts a datagram on the wire, as if `host` had sent it.
    pub fn send(&mut self, host: usize, mut datagram: Datagram) {
        let from = usize::from(host == self.server());
        let std::net::IpAddr::V4(address) = datagram.path.local.ip() else {
            panic!("an address of these stories")
        };
        let path = usize::from(address.octets()[2]);
        let bytes = Bytes::from(datagram.to_vec());
        let (header, length) = Header::parse(&bytes, &[], datagram.path).expect("everything sent parses");
        assert!(length <= 60, "a header of TCP");
        let mut seen = Seen {
            at: self.now,
            from,
            path,
            header,
            payload: bytes.slice(length..),
        };
        let passes = (self.rule)(&mut seen);
        let mut head = Head::new();
        seen.header.emit(&seen.payload, datagram.path, &mut head);
        (datagram.head, datagram.body) = (head, seen.payload.clone());
        self.log.push(seen);
        let line = self.lines[path];
        let bits = (datagram.len() as u64 + 20) * 8;
        let lasts =
            |bits: u64| Duration::from_nanos((bits * 1_000_000_000).checked_div(line.rate).unwrap_or(0));
        let takes = lasts(bits);
        let free = self.busy.entry((line.bottleneck, from)).or_default();
        let starts = (*free).max(self.now);
        if !passes || starts.since(self.now) > lasts(line.queue_bytes * 8) {
            return;
        }
        *free = starts + takes;
        let arrives = starts + takes + line.delay;
        let to = if from == 0 {
            self.server()
        } else {
            self.owner[path]
        };
        datagram.path = datagram.path.reversed();
        self.order += 1;
        self.wire.insert((arrives, self.order), (to, datagram));
    }

    /// Keeps every flow writing and the server reading for `span`; how many bytes of each were read.
    pub fn bulk(&mut self, flows: &[(usize, FlowId)], span: Duration) -> Vec<u64> {
        let until = self.now + span;
        let piece = Bytes::from(noise(10_000));
        let mut read = vec![0; self.accepted().len().max(flows.len())];
        while self.now < until {
            for (host, flow) in flows {
                while self.hosts[*host].write(self.now, *flow, piece.clone()).is_ok() {}
            }
            self.run_for(Duration::from_millis(5));
            for (at, flow) in self.accepted().into_iter().enumerate() {
                read[at] += self.read_all(self.server(), flow).len() as u64;
            }
        }
        read
    }

    /// Moves `data` from host 0 to the server within `limit`, then ends it; what was read.
    pub fn transfer(&mut self, flow: FlowId, data: &[u8], limit: Duration) -> Vec<u8> {
        let deadline = self.now + limit;
        let mut rest = Bytes::copy_from_slice(data);
        let mut got = Vec::new();
        while got.len() < data.len() && self.now < deadline {
            while !rest.is_empty() {
                let piece = rest.slice(..rest.len().min(5000));
                match self.hosts[0].write(self.now, flow, piece.clone()) {
                    Ok(()) => drop(rest.split_to(piece.len())),
                    Err(_) => break,
                }
            }
            self.run_for(Duration::from_millis(5));
            if let Some(accepted) = self.accepted().first().copied() {
                got.extend(self.read_all(self.server(), accepted));
            }
        }
        got
    }
}

/// The first segment of a further subflow.
pub fn is_join(seen: &Seen) -> bool {
    matches!(seen.option(), Some(Multipath::Join { .. }))
}

/// MPTCP by name, changed by `set`.
pub fn mptcp(name: Option<&str>, set: &[(&str, &str)]) -> TcpParameters {
    TcpParameters::of_several_from_pairs(name, set).expect("keys of the documentation")
}

/// Bytes that are nowhere the same.
pub fn noise(count: usize) -> Vec<u8> {
    let mut stream = restp_base::random::Stream::named(1, "noise");
    (0..count).map(|_| stream.bits() as u8).collect()
}

/// A line of `mbit` with 10 ms and a queue of one bandwidth-delay product, its own bottleneck being `number`.
pub fn line(mbit: u64, number: usize) -> Line {
    Line {
        rate: mbit * 1_000_000,
        delay: Duration::from_millis(10),
        queue_bytes: mbit * 1_000_000 / 8 / 50,
        bottleneck: number,
    }
}
