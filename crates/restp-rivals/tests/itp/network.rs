//! Hosts on a star of equal delays. A rule judges every datagram, and a cache may sit in the middle.

use bytes::Bytes;
use restp_base::flow::{CloseReason, Flow, FlowId, FlowStats, Read};
use restp_base::machine::{Datagram, Event, Input, Machine, PathAddress};
use restp_base::time::{Duration, Time};
use restp_rivals::itp::wire::{Header, Kind};
use restp_rivals::itp::{Cache, Itp, ItpConfig, ItpParameters};
use std::collections::BTreeMap;

pub const PORT: u16 = 9;
/// From host to host.
pub const DELAY: Duration = Duration::from_millis(20);

/// A datagram that leaves.
#[derive(Clone, Debug)]
pub struct Seen {
    pub at: Time,
    pub from: usize,
    pub header: Header,
}

impl Seen {
    pub fn is_data(&self) -> bool {
        matches!(self.header.kind, Kind::Data)
    }
    pub fn is_interest(&self) -> bool {
        matches!(self.header.kind, Kind::Interest(_))
    }
}

/// How much later it arrives, each copy; none: it is lost.
pub type Rule = Box<dyn FnMut(&Seen, &mut Datagram) -> Vec<Duration>>;

pub struct Net {
    pub now: Time,
    pub hosts: Vec<Itp>,
    pub cache: Option<Cache>,
    pub rule: Rule,
    pub log: Vec<Seen>,
    pub events: Vec<Vec<Event>>,
    /// What each host has read.
    pub read: Vec<Vec<u8>>,
    wire: BTreeMap<(Time, u64), (usize, Datagram)>,
    order: u64,
}

pub fn itp(set: &[(&str, &str)]) -> ItpParameters {
    ItpParameters::from_pairs(set).expect("keys of the documentation")
}

pub fn host(parameters: &ItpParameters) -> Itp {
    Itp::new(ItpConfig {
        listen: Some(PORT),
        parameters: parameters.clone(),
    })
}

pub fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// Bytes of which no two chunks are alike.
pub fn content(bytes: usize) -> Vec<u8> {
    (0..bytes)
        .map(|at| (at as u32).wrapping_mul(2_654_435_761).to_be_bytes()[0])
        .collect()
}

pub fn once() -> Vec<Duration> {
    vec![Duration::ZERO]
}

impl Net {
    pub fn new(parameters: &ItpParameters, hosts: usize) -> Self {
        Net {
            now: Time::ZERO,
            hosts: (0..hosts).map(|_| host(parameters)).collect(),
            cache: None,
            rule: Box::new(|_, _| once()),
            log: Vec::new(),
            events: vec![Vec::new(); hosts],
            read: vec![Vec::new(); hosts],
            wire: BTreeMap::new(),
            order: 0,
        }
    }

    pub fn path(from: usize, to: usize) -> PathAddress {
        let at = |host: usize| ([10, 0, 0, host as u8 + 1], 0).into();
        PathAddress {
            local: at(from),
            remote: at(to),
        }
    }

    /// Host `from` publishes `content` and sends its manifest to host `to`.
    pub fn send(&mut self, from: usize, to: usize, content: &[u8]) -> FlowId {
        let flow = self.write(from, to, content);
        self.hosts[from].finish(self.now, flow);
        flow
    }

    pub fn write(&mut self, from: usize, to: usize, content: &[u8]) -> FlowId {
        let flow = self.hosts[from]
            .open(self.now, Self::path(from, to), PORT)
            .expect("a free port");
        let data = Bytes::copy_from_slice(content);
        self.hosts[from].write(self.now, flow, data).expect("room");
        flow
    }

    pub fn accepted(&self, host: usize) -> Option<FlowId> {
        self.events[host].iter().find_map(|event| match event {
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

    /// Of the retrieval of `host`.
    pub fn stats(&self, host: usize) -> FlowStats {
        let flow = self.accepted(host).expect("a manifest has come");
        self.hosts[host].stats(flow).expect("it is open")
    }

    /// Chunks that `host` refused, whichever flow asked for them.
    pub fn corrupted(&self, host: usize) -> u64 {
        let flows = (0..4).filter_map(|flow| self.hosts[host].stats(FlowId(flow)));
        flows.map(|stats| stats.corrupted_packets).sum()
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
            let Some(next) = wakes
                .iter()
                .flatten()
                .copied()
                .chain(arrival)
                .min()
                .filter(|next| *next <= until)
            else {
                break;
            };
            self.now = self.now.max(next);
            if arrival == Some(next)
                && let Some((_, (to, mut datagram))) = self.wire.pop_first()
            {
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
                let sent = std::mem::replace(&mut out, Datagram::empty());
                self.send_off(host, sent);
            }
            let Some(event) = self.hosts[host].poll_event() else {
                return;
            };
            if let Event::Readable(flow) = event {
                self.drain_flow(host, flow);
            }
            self.events[host].push(event);
        }
    }

    fn drain_flow(&mut self, host: usize, flow: FlowId) {
        loop {
            match self.hosts[host].read(self.now, flow) {
                Read::Data(data) => self.read[host].extend_from_slice(&data),
                Read::Empty => return,
                Read::End => return self.hosts[host].finish(self.now, flow),
            }
        }
    }

    fn send_off(&mut self, from: usize, mut datagram: Datagram) {
        let (header, _) = Header::parse(&datagram.head[8..]).expect("hosts send messages");
        let seen = Seen {
            at: self.now,
            from,
            header,
        };
        self.log.push(seen.clone());
        let delays = (self.rule)(&seen, &mut datagram);
        if delays.is_empty() {
            return;
        }
        let mut leaving = Vec::new();
        let goes_on = |cache: &mut Cache| cache.on_passing(self.now, &datagram, &mut leaving);
        if self.cache.as_mut().is_none_or(goes_on) {
            leaving.push(datagram);
        }
        for leaving in leaving {
            let std::net::IpAddr::V4(address) = leaving.path.remote.ip() else {
                return;
            };
            let to = usize::from(address.octets()[3] - 1);
            for delay in &delays {
                let mut arriving = leaving.clone();
                arriving.path = leaving.path.reversed();
                self.order += 1;
                self.wire
                    .insert((self.now + DELAY + *delay, self.order), (to, arriving));
            }
        }
    }
}
