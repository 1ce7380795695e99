//! A small reliable transport (go-back-N, one cumulative acknowledgement per received batch) with just enough
//! behaviour to exercise everything a driver does. Its datagrams: kind, flow number, sequence number, payload.

use bytes::{Buf, Bytes};
use restp_base::flow::{CloseReason, Flow, FlowId, FlowStats, OpenError, Read, WriteError};
use restp_base::machine::{Datagram, Ecn, Event, Head, Input, Machine, PathAddress, Wakeup};
use restp_base::time::{Duration, Time};
use std::collections::{BTreeMap, VecDeque};

const SYN: u8 = 1;
const SYN_ACK: u8 = 2;
const DATA: u8 = 3;
const FIN: u8 = 4;
const ACK: u8 = 5;
const RST: u8 = 6;
const HEADER_BYTES: usize = 13;

pub const SEGMENT_BYTES: usize = 1472 - HEADER_BYTES;
const WINDOW: u64 = 512;
const BUFFERED: usize = 1024;
const RTO: Duration = Duration::from_millis(50);
const GIVE_UP: u32 = 40;
/// A message that makes it panic, as a fault in a machine would.
pub const FAULT: &[u8] = b"fault";
/// The one service port that refuses.
pub const CLOSED_PORT: u16 = 9;

type Key = (std::net::SocketAddr, u32);

#[derive(Default)]
pub struct Toy {
    latest: Time,
    next_id: u32,
    keys: BTreeMap<FlowId, Key>,
    conns: BTreeMap<Key, Conn>,
    /// What was read to the end of the peer, and the number that it ended before.
    ended: BTreeMap<Key, u64>,
    dirty: VecDeque<Key>,
    replies: VecDeque<Datagram>,
    events: VecDeque<Event>,
    /// Is told when a datagram came that is too short to be one of ours.
    pub observer: Option<Observer>,
}

pub type Observer = Box<dyn FnMut(Time) + Send>;

struct Conn {
    id: FlowId,
    path: PathAddress,
    port: u16,
    established: bool,
    tries: u32,
    sent: VecDeque<Option<Bytes>>,
    first: u64,
    next: u64,
    deadline: Option<Time>,
    expected: u64,
    received: VecDeque<Bytes>,
    read_end: bool,
    finished: bool,
    blocked: bool,
    ack_due: bool,
    closed: bool,
    released: bool,
    dirty: bool,
    stats: FlowStats,
}

fn header(kind: u8, flow: u32, number: u64) -> Head {
    let mut head = Head::new();
    head.push(kind);
    head.extend_from_slice(&flow.to_be_bytes());
    head.extend_from_slice(&number.to_be_bytes());
    head
}

impl Toy {
    fn add(&mut self, key: Key, path: PathAddress, port: u16, client: bool) -> FlowId {
        // Local names: the client's number, with the role in the lowest bit, and the port of the peer.
        let id = FlowId(u64::from(key.1) << 17 | u64::from(path.remote.port()) << 1 | u64::from(client));
        let conn = Conn {
            id,
            path,
            port,
            established: !client,
            tries: 0,
            sent: VecDeque::new(),
            first: 0,
            next: 0,
            deadline: client.then_some(Time::ZERO),
            expected: 0,
            received: VecDeque::new(),
            read_end: false,
            finished: false,
            blocked: false,
            ack_due: false,
            closed: false,
            released: false,
            dirty: false,
            stats: FlowStats::default(),
        };
        self.keys.insert(id, key);
        self.conns.insert(key, conn);
        id
    }

    fn conn(&mut self, flow: FlowId) -> Option<(Key, &mut Conn)> {
        let key = *self.keys.get(&flow)?;
        self.conns.get_mut(&key).map(|conn| (key, conn))
    }

    /// A driver's promise to every machine.
    fn at(&mut self, now: Time) {
        assert!(
            now >= self.latest,
            "time went backwards from {:?} to {now:?}",
            self.latest
        );
        self.latest = now;
    }

    fn touch(&mut self, key: Key) {
        if let Some(conn) = self.conns.get_mut(&key)
            && !std::mem::replace(&mut conn.dirty, true)
        {
            self.dirty.push_back(key);
        }
    }

    fn end(&mut self, key: Key, reason: CloseReason) {
        let Some(conn) = self.conns.get_mut(&key) else {
            return;
        };
        conn.deadline = None;
        if !std::mem::replace(&mut conn.closed, true) {
            self.events.push_back(Event::Closed(conn.id, reason));
        }
        self.bury(key);
    }

    fn bury(&mut self, key: Key) {
        if let Some(conn) = self.conns.get(&key)
            && conn.closed
            && conn.released
        {
            if conn.read_end {
                self.ended.insert(key, conn.expected);
            }
            self.keys.remove(&conn.id);
            self.conns.remove(&key);
        }
    }

    fn reply(&mut self, path: PathAddress, head: Head) {
        if self.replies.len() < 1024 {
            self.replies.push_back(Datagram {
                path,
                ecn: Ecn::Ect0,
                head,
                ..Datagram::empty()
            });
        }
    }

    fn on_datagram(&mut self, now: Time, datagram: &mut Datagram) {
        assert!(
            datagram.head.is_empty(),
            "a driver hands over one contiguous body"
        );
        let path = datagram.path;
        let mut body = std::mem::take(&mut datagram.body);
        if body.len() < HEADER_BYTES {
            if let Some(observer) = &mut self.observer {
                observer(now);
            }
            return;
        }
        let head = body.split_to(HEADER_BYTES);
        let kind = head[0];
        let (flow, number) = (head.slice(1..5).get_u32(), head.slice(5..).get_u64());
        let key = (path.remote, flow);
        if kind == SYN {
            if number == u64::from(CLOSED_PORT) {
                return self.reply(path, header(RST, flow, 0));
            }
            if !self.conns.contains_key(&key) && !self.ended.contains_key(&key) {
                let id = self.add(key, path, number as u16, false);
                self.events.push_back(Event::Accepted(id));
            }
            return self.reply(path, header(SYN_ACK, flow, 0));
        }
        let Some(conn) = self.conns.get_mut(&key) else {
            // The peer retransmits what was read to its end: our last acknowledgement was lost, or is late.
            match (kind, self.ended.get(&key).copied()) {
                (DATA | FIN, Some(expected)) => self.reply(path, header(ACK, flow, expected)),
                (FIN, None) => self.reply(path, header(ACK, flow, number + 1)),
                (DATA, None) => self.reply(path, header(RST, flow, 0)),
                _ => {}
            }
            return;
        };
        conn.stats.received_packets += 1;
        match kind {
            SYN_ACK if !conn.established => {
                conn.established = true;
                conn.deadline = None;
                conn.tries = 0;
                self.events.push_back(Event::Connected(conn.id));
            }
            DATA | FIN => {
                conn.ack_due = true;
                if number == conn.expected && !conn.read_end {
                    conn.expected += 1;
                    if kind == FIN {
                        conn.read_end = true;
                    } else {
                        conn.stats.delivered_bytes += body.len() as u64;
                        conn.received.push_back(body);
                    }
                    if conn.received.len() <= 1 || conn.read_end {
                        self.events.push_back(Event::Readable(conn.id));
                    }
                }
            }
            ACK if number > conn.first && number <= conn.first + conn.sent.len() as u64 => {
                conn.sent.drain(..(number - conn.first) as usize);
                conn.first = number;
                conn.next = conn.next.max(number);
                conn.tries = 0;
                conn.deadline = (!conn.sent.is_empty()).then_some(now + RTO);
                if conn.blocked && conn.sent.len() < BUFFERED / 2 {
                    conn.blocked = false;
                    self.events.push_back(Event::Writable(conn.id));
                }
            }
            RST if conn.established => return self.end(key, CloseReason::Reset),
            RST => return self.end(key, CloseReason::Refused),
            _ => {}
        }
        self.touch(key);
    }

    fn on_deadline(&mut self, now: Time) {
        let due: Vec<Key> = self
            .conns
            .iter()
            .filter(|(_, conn)| conn.deadline.is_some_and(|at| at <= now))
            .map(|(key, _)| *key)
            .collect();
        for key in due {
            let Some(conn) = self.conns.get_mut(&key) else {
                continue;
            };
            conn.tries += 1;
            if conn.tries > GIVE_UP {
                self.end(key, CloseReason::TimedOut(RTO * u64::from(GIVE_UP)));
                continue;
            }
            conn.deadline = Some(now + RTO);
            if conn.established {
                conn.stats.timeouts += 1;
                conn.next = conn.first;
            } else {
                let (path, port) = (conn.path, conn.port);
                self.reply(path, header(SYN, key.1, u64::from(port)));
            }
            self.touch(key);
        }
    }
}

impl Machine for Toy {
    fn handle(&mut self, now: Time, input: Input<'_>) {
        self.at(now);
        match input {
            Input::Datagram(datagram) => self.on_datagram(now, datagram),
            Input::Deadline => self.on_deadline(now),
            Input::PathNotice { .. } | Input::Refused(_) => {}
        }
    }

    fn poll_transmit(&mut self, now: Time, out: &mut Datagram) -> bool {
        self.at(now);
        if let Some(reply) = self.replies.pop_front() {
            *out = reply;
            return true;
        }
        while let Some(key) = self.dirty.front().copied() {
            if let Some(conn) = self.conns.get_mut(&key) {
                out.path = conn.path;
                out.ecn = Ecn::Ect0;
                out.body = Bytes::new();
                if std::mem::take(&mut conn.ack_due) {
                    out.head = header(ACK, key.1, conn.expected);
                    return true;
                }
                let index = (conn.next - conn.first) as usize;
                if conn.established && !conn.closed && index < conn.sent.len() && index < WINDOW as usize {
                    out.head = header(
                        if conn.sent[index].is_some() { DATA } else { FIN },
                        key.1,
                        conn.next,
                    );
                    out.body = conn.sent[index].clone().unwrap_or_default();
                    conn.next += 1;
                    conn.stats.sent_packets += 1;
                    conn.deadline.get_or_insert(now + RTO);
                    return true;
                }
                conn.dirty = false;
                if conn.read_end && conn.finished && conn.sent.is_empty() {
                    self.end(key, CloseReason::Finished);
                }
            }
            self.dirty.pop_front();
        }
        false
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    fn next_deadline(&self) -> Option<(Time, Wakeup)> {
        self.conns
            .values()
            .filter_map(|conn| conn.deadline)
            .min()
            .map(|at| (at, Wakeup::Retransmission))
    }

    fn held(&self) -> usize {
        self.conns.len()
    }
}

impl Flow for Toy {
    fn open(&mut self, _: Time, path: PathAddress, port: u16) -> Result<FlowId, OpenError> {
        self.next_id += 1;
        Ok(self.add((path.remote, self.next_id), path, port, true))
    }

    fn write(&mut self, now: Time, flow: FlowId, data: Bytes) -> Result<(), WriteError> {
        self.at(now);
        let Some((key, conn)) = self.conn(flow) else {
            return Err(WriteError::Closed);
        };
        if conn.closed || conn.finished {
            return Err(WriteError::Closed);
        }
        assert!(data != FAULT, "a fault in the machine");
        if data.len() > SEGMENT_BYTES {
            return Err(WriteError::TooLarge {
                size: data.len(),
                limit: SEGMENT_BYTES,
            });
        }
        if conn.sent.len() >= BUFFERED {
            conn.blocked = true;
            return Err(WriteError::Blocked);
        }
        conn.sent.push_back(Some(data));
        self.touch(key);
        Ok(())
    }

    fn read(&mut self, now: Time, flow: FlowId) -> Read {
        self.at(now);
        let Some((_, conn)) = self.conn(flow) else {
            return Read::End;
        };
        match conn.received.pop_front() {
            Some(data) => Read::Data(data),
            None if conn.read_end || conn.closed => Read::End,
            None => Read::Empty,
        }
    }

    fn finish(&mut self, _: Time, flow: FlowId) {
        if let Some((key, conn)) = self.conn(flow)
            && !std::mem::replace(&mut conn.finished, true)
        {
            conn.sent.push_back(None);
            self.touch(key);
        }
    }

    fn abort(&mut self, _: Time, flow: FlowId) {
        if let Some((key, conn)) = self.conn(flow)
            && !conn.closed
        {
            let path = conn.path;
            self.reply(path, header(RST, key.1, 0));
            self.end(key, CloseReason::Aborted);
        }
    }

    fn release(&mut self, _: Time, flow: FlowId) {
        if let Some((key, conn)) = self.conn(flow) {
            conn.released = true;
            self.bury(key);
        }
    }

    fn stats(&self, flow: FlowId) -> Option<FlowStats> {
        self.conns
            .get(self.keys.get(&flow)?)
            .map(|conn| conn.stats.clone())
    }
}
