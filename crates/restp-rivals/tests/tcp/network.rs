//! Two hosts and a network between them, in virtual time. A story scripts the network with a rule that judges every
//! segment, and the applications with calls between [`Pair::run_for`]s.

use bytes::Bytes;
use restp_base::flow::{CloseReason, Flow, FlowId, Read};
use restp_base::machine::{Datagram, Ecn, Event, Head, Input, Machine, PathAddress};
use restp_base::time::{Duration, Time};
use restp_rivals::host::{Tcp, TcpConfig};
use restp_rivals::tcp::TcpParameters;
use restp_rivals::tcp::wire::{Flags, Header};
use std::collections::BTreeMap;

pub const PORT: u16 = 80;

/// What the network does with a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Pass,
    Drop,
    /// Arrives this much later than it would.
    Late(Duration),
    Twice,
    /// Arrives with a mark, if the sender wants such.
    Mark,
}

/// A segment on its way.
#[derive(Clone, Debug)]
pub struct Seen {
    pub at: Time,
    /// From the side that opened (0) or the other (1).
    pub from: usize,
    pub header: Header,
    pub payload: Bytes,
    pub ecn: Ecn,
}

impl Seen {
    pub fn has(&self, flags: Flags) -> bool {
        self.header.flags.has(flags)
    }
    pub fn is_data(&self) -> bool {
        !self.payload.is_empty()
    }
    pub fn is_bare_ack(&self) -> bool {
        self.header.flags == Flags::ACK && !self.is_data()
    }
}

pub struct Pair {
    pub now: Time,
    pub ends: [Tcp; 2],
    pub rule: Box<dyn FnMut(&Seen) -> Verdict>,
    pub log: Vec<Seen>,
    pub events: [Vec<Event>; 2],
    wire: BTreeMap<(Time, u64), (usize, Datagram)>,
    order: u64,
}

/// One way.
const DELAY: Duration = Duration::from_millis(10);

impl Pair {
    /// Both ends are `newreno` changed by `set`, and both number their bytes from shortly before the wrap at 2³².
    pub fn new(set: &[(&str, &str)]) -> Self {
        let parameters =
            TcpParameters::classic_from_pairs("newreno", set).expect("keys of the documentation");
        let client = TcpConfig {
            initial_sequence: u32::MAX - 5000,
            ..TcpConfig::new(parameters)
        };
        let server = TcpConfig {
            listen: Some(PORT),
            initial_sequence: u32::MAX,
            ..client.clone()
        };
        Pair {
            now: Time::ZERO,
            ends: [Tcp::new(client), Tcp::new(server)],
            rule: Box::new(|_| Verdict::Pass),
            log: Vec::new(),
            events: [Vec::new(), Vec::new()],
            wire: BTreeMap::new(),
            order: 0,
        }
    }

    /// Both ends are current TCPs with this congestion control, changed by `set`.
    pub fn current(congestion: &str, set: &[(&str, &str)]) -> Self {
        let parameters = TcpParameters::from_pairs(congestion, set).expect("keys of the documentation");
        let mut pair = Pair::new(&[]);
        pair.ends[0] = Tcp::new(TcpConfig {
            initial_sequence: u32::MAX - 5000,
            ..TcpConfig::new(parameters.clone())
        });
        pair.replace_server(parameters);
        pair
    }

    /// The server is a TCP with other parameters.
    pub fn replace_server(&mut self, parameters: TcpParameters) {
        self.ends[1] = Tcp::new(TcpConfig {
            listen: Some(PORT),
            initial_sequence: u32::MAX,
            ..TcpConfig::new(parameters)
        });
    }

    pub fn path(side: usize) -> PathAddress {
        let ends = ["10.0.0.1:0", "10.0.0.2:0"].map(|address| address.parse().expect("an address"));
        PathAddress {
            local: ends[side],
            remote: ends[1 - side],
        }
    }

    pub fn open(&mut self) -> FlowId {
        self.ends[0]
            .open(self.now, Self::path(0), PORT)
            .expect("a free port")
    }

    /// Opens a connection and runs until both sides know of it.
    pub fn connect(&mut self) -> (FlowId, FlowId) {
        let flow = self.open();
        self.run_for(Duration::from_millis(50));
        assert!(self.events[0].contains(&Event::Connected(flow)));
        (flow, self.accepted().expect("accepted"))
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

    pub fn read_all(&mut self, side: usize, flow: FlowId) -> Vec<u8> {
        let mut all = Vec::new();
        while let Read::Data(data) = self.ends[side].read(self.now, flow) {
            all.extend_from_slice(&data);
        }
        all
    }

    /// Segments of `side` that were put on the wire and of which `judge` holds.
    pub fn count(&self, side: usize, judge: impl Fn(&Seen) -> bool) -> usize {
        self.log
            .iter()
            .filter(|seen| seen.from == side && judge(seen))
            .count()
    }

    pub fn run_for(&mut self, span: Duration) {
        let until = self.now + span;
        loop {
            (0..2).for_each(|side| self.drain(side));
            let arrival = self.wire.first_key_value().map(|(key, _)| key.0);
            let wakes = self
                .ends
                .each_ref()
                .map(|end| end.next_deadline().map(|(at, _)| at));
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
            self.send(side, out.clone());
        }
        while let Some(event) = self.ends[side].poll_event() {
            self.events[side].push(event);
        }
    }

    /// Puts a datagram on the wire, as if the host of `side` had sent it.
    pub fn send(&mut self, side: usize, mut datagram: Datagram) {
        let bytes = Bytes::from(datagram.to_vec());
        let (header, length) = Header::parse(&bytes, &[], datagram.path).expect("everything sent parses");
        let payload = bytes.slice(length..);
        let mut again = Head::new();
        header.emit(&payload, datagram.path, &mut again);
        assert_eq!(
            again[..],
            bytes[..length],
            "and is written again to the same bytes"
        );
        let seen = Seen {
            at: self.now,
            from: side,
            header,
            payload,
            ecn: datagram.ecn,
        };
        let verdict = (self.rule)(&seen);
        self.log.push(seen);
        datagram.path = datagram.path.reversed();
        if verdict == Verdict::Mark && datagram.ecn != Ecn::NotEct {
            datagram.ecn = Ecn::Ce;
        }
        let (copies, after) = match verdict {
            Verdict::Drop => (0, Duration::ZERO),
            Verdict::Pass | Verdict::Mark => (1, Duration::ZERO),
            Verdict::Late(after) => (1, after),
            Verdict::Twice => (2, Duration::ZERO),
        };
        for _ in 0..copies {
            self.order += 1;
            self.wire.insert(
                (self.now + DELAY + after, self.order),
                (1 - side, datagram.clone()),
            );
        }
    }

    /// A segment of `side` that no connection has sent.
    pub fn forge(&mut self, side: usize, header: &Header, payload: &'static [u8]) {
        let mut datagram = Datagram::empty();
        datagram.path = Self::path(side);
        header.emit(payload, datagram.path, &mut datagram.head);
        datagram.body = Bytes::from_static(payload);
        self.send(side, datagram);
    }

    /// Moves `data` from side 0 to side 1 within `limit`, reading as it comes; what has arrived then.
    pub fn transfer(&mut self, flows: (FlowId, FlowId), data: &[u8], limit: Duration) -> Vec<u8> {
        let deadline = self.now + limit;
        let mut rest = Bytes::copy_from_slice(data);
        let mut got = Vec::new();
        while got.len() < data.len() && self.now < deadline {
            while !rest.is_empty() {
                let piece = rest.slice(..rest.len().min(5000));
                match self.ends[0].write(self.now, flows.0, piece.clone()) {
                    Ok(()) => drop(rest.split_to(piece.len())),
                    Err(_) => break,
                }
            }
            self.run_for(Duration::from_millis(5));
            got.extend(self.read_all(1, flows.1));
        }
        got
    }
}

/// Bytes that are nowhere the same.
pub fn noise(count: usize) -> Vec<u8> {
    let mut stream = restp_base::random::Stream::named(1, "noise");
    (0..count).map(|_| stream.bits() as u8).collect()
}
