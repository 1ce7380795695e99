//! A host's UDP: which flow a datagram belongs to, and the two seams.

use super::flow::UdpFlow;
use super::wire::{HEADER_BYTES, Header, WireError};
use bytes::Bytes;
use restp_base::flow::{CloseReason, Flow, FlowId, FlowStats, OpenError, Read, WriteError};
use restp_base::machine::{Datagram, Ecn, Event, Head, Input, Machine, PathAddress, Wakeup};
use restp_base::time::Time;
use restp_services::connection_management::EPHEMERAL;
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

/// What a user sets.
#[derive(Clone, Copy, Debug)]
pub struct UdpConfig {
    /// The port whose datagrams open flows; none: only answers to own flows are taken.
    pub listen: Option<u16>,
    /// Largest message in bytes: 1500 less an IPv4 header (20) and a UDP header (8), since nothing is fragmented.
    pub max_message_bytes: usize,
    /// Bytes a flow may hold for sending, and for its reader. 208 KiB is what Linux gives a socket by default.
    pub buffer_bytes: usize,
    /// Flows this host keeps at once; datagrams of further peers are dropped and counted.
    pub max_flows: usize,
}

impl Default for UdpConfig {
    fn default() -> Self {
        UdpConfig {
            listen: None,
            max_message_bytes: 1472,
            buffer_bytes: 208 << 10,
            max_flows: 65_536,
        }
    }
}

/// A host's UDP.
#[derive(Debug, Default)]
pub struct Udp {
    config: UdpConfig,
    flows: BTreeMap<FlowId, UdpFlow>,
    /// (peer, its port, own port) to flow.
    by_ports: BTreeMap<(SocketAddr, u16, u16), FlowId>,
    /// Flows with something to send, each once, oldest first.
    sending: VecDeque<FlowId>,
    events: VecDeque<Event>,
    opened: u64,
    dropped: u64,
}

impl Udp {
    /// A host without flows.
    pub fn new(config: UdpConfig) -> Self {
        Udp {
            config,
            ..Udp::default()
        }
    }

    /// Datagrams dropped because they were malformed, for a closed port, or beyond the number of flows.
    pub fn dropped_datagrams(&self) -> u64 {
        self.dropped
    }

    fn add(&mut self, path: PathAddress, local_port: u16, remote_port: u16) -> FlowId {
        let id = FlowId(self.opened);
        self.opened += 1;
        self.flows.insert(id, UdpFlow::new(path, local_port, remote_port));
        self.by_ports.insert((path.remote, remote_port, local_port), id);
        id
    }

    /// The flow of a datagram, opened if somebody serves its port.
    fn flow_of(&mut self, path: PathAddress, header: &Header) -> Option<FlowId> {
        let key = (path.remote, header.source_port, header.destination_port);
        if let Some(&id) = self.by_ports.get(&key) {
            return Some(id);
        }
        if self.config.listen != Some(header.destination_port) || self.flows.len() >= self.config.max_flows {
            return None;
        }
        let id = self.add(path, header.destination_port, header.source_port);
        self.events.push_back(Event::Accepted(id));
        Some(id)
    }

    fn receive(&mut self, datagram: &mut Datagram) {
        let path = datagram.path;
        let (header, payload) = match take_apart(datagram) {
            Ok(parts) => parts,
            Err(_) => {
                self.dropped += 1;
                return;
            }
        };
        let found = self.flow_of(path, &header);
        let Some((id, flow)) = found.and_then(|id| Some((id, self.flows.get_mut(&id)?))) else {
            self.dropped += 1;
            return;
        };
        if flow.push_in(payload, self.config.buffer_bytes) {
            self.events.push_back(Event::Readable(id));
        }
    }

    fn forget(&mut self, id: FlowId) {
        if let Some(flow) = self.flows.remove(&id) {
            self.by_ports
                .remove(&(flow.path.remote, flow.remote_port, flow.local_port));
        }
    }
}

/// Header and payload of a datagram in either of its two forms.
fn take_apart(datagram: &mut Datagram) -> Result<(Header, Bytes), WireError> {
    let path = datagram.path;
    if datagram.head.is_empty() {
        let header = Header::parse(&datagram.body, &[], path)?;
        return Ok((header, datagram.body.split_off(HEADER_BYTES)));
    }
    if datagram.head.len() != HEADER_BYTES {
        let whole = datagram.to_vec();
        let header = Header::parse(&whole, &[], path)?;
        return Ok((header, Bytes::from(whole).split_off(HEADER_BYTES)));
    }
    let header = Header::parse(&datagram.head, &datagram.body, path)?;
    Ok((header, std::mem::take(&mut datagram.body)))
}

impl Machine for Udp {
    fn handle(&mut self, _now: Time, input: Input<'_>) {
        if let Input::Datagram(datagram) = input {
            self.receive(datagram);
        }
    }

    fn poll_transmit(&mut self, _now: Time, out: &mut Datagram) -> bool {
        while let Some(&id) = self.sending.front() {
            let Some(flow) = self.flows.get_mut(&id) else {
                self.sending.pop_front();
                continue;
            };
            let Some(message) = flow.pop_out() else {
                self.sending.pop_front();
                continue;
            };
            let header = Header::of(flow.local_port, flow.remote_port, &message, flow.path);
            *out = Datagram {
                path: flow.path,
                ecn: Ecn::NotEct,
                peer: 0,
                segment: None,
                may_fragment: true, // as the system sends a datagram that is too large for the path (RFC 1122 §3.3.2)
                head: Head::from_slice(&header.emit()),
                body: message,
            };
            if !flow.has_output() {
                self.sending.pop_front();
                if std::mem::take(&mut flow.wants_room) {
                    self.events.push_back(Event::Writable(id));
                }
                if flow.finished {
                    self.events.push_back(Event::Closed(id, CloseReason::Finished));
                }
            }
            return true;
        }
        false
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    fn next_deadline(&self) -> Option<(Time, Wakeup)> {
        None
    }

    fn held(&self) -> usize {
        self.flows.len()
    }
}

impl Flow for Udp {
    fn open(&mut self, _now: Time, path: PathAddress, port: u16) -> Result<FlowId, OpenError> {
        let free = |local: &u16| !self.by_ports.contains_key(&(path.remote, port, *local));
        let Some(local) = EPHEMERAL.into_iter().find(free) else {
            return Err(OpenError::NoPort(path.remote));
        };
        let id = self.add(path, local, port);
        self.events.push_back(Event::Connected(id));
        Ok(id)
    }

    fn write(&mut self, _now: Time, id: FlowId, data: Bytes) -> Result<(), WriteError> {
        let limit = self.config.max_message_bytes;
        if data.len() > limit {
            return Err(WriteError::TooLarge {
                size: data.len(),
                limit,
            });
        }
        let flow = self
            .flows
            .get_mut(&id)
            .filter(|flow| !flow.finished)
            .ok_or(WriteError::Closed)?;
        let idle = !flow.has_output();
        if !flow.push_out(data, self.config.buffer_bytes) {
            flow.wants_room = true;
            return Err(WriteError::Blocked);
        }
        if idle {
            self.sending.push_back(id);
        }
        Ok(())
    }

    fn read(&mut self, _now: Time, id: FlowId) -> Read {
        match self.flows.get_mut(&id) {
            Some(flow) => flow.pop_in().map_or(Read::Empty, Read::Data),
            None => Read::End,
        }
    }

    /// A peer never learns of it: UDP has no end of data.
    fn finish(&mut self, _now: Time, id: FlowId) {
        let Some(flow) = self.flows.get_mut(&id) else {
            return;
        };
        if !std::mem::replace(&mut flow.finished, true) && !flow.has_output() {
            self.events.push_back(Event::Closed(id, CloseReason::Finished));
        }
    }

    fn abort(&mut self, _now: Time, id: FlowId) {
        if self.flows.contains_key(&id) {
            self.forget(id);
            self.events.push_back(Event::Closed(id, CloseReason::Aborted));
        }
    }

    fn release(&mut self, _now: Time, id: FlowId) {
        self.forget(id);
    }

    fn stats(&self, id: FlowId) -> Option<FlowStats> {
        let flow = self.flows.get(&id)?;
        Some(FlowStats {
            memory_bytes: flow.memory_bytes(),
            ..flow.stats.clone()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    const PORT: u16 = 7;
    const NOW: Time = Time::ZERO;

    fn address(last: u8) -> SocketAddr {
        SocketAddr::from((Ipv4Addr::new(10, 0, 0, last), 0))
    }

    fn pair() -> (Udp, Udp, FlowId) {
        let mut client = Udp::new(UdpConfig::default());
        let server = Udp::new(UdpConfig {
            listen: Some(PORT),
            ..UdpConfig::default()
        });
        let flow = client
            .open(
                NOW,
                PathAddress {
                    local: address(1),
                    remote: address(2),
                },
                PORT,
            )
            .unwrap();
        assert_eq!(client.poll_event(), Some(Event::Connected(flow)));
        (client, server, flow)
    }

    /// Carries everything from one host to the other; returns how many datagrams there were.
    fn carry(from: &mut Udp, to: &mut Udp) -> usize {
        let mut datagram = Datagram::empty();
        let mut count = 0;
        while from.poll_transmit(NOW, &mut datagram) {
            datagram.path = datagram.path.reversed();
            to.handle(NOW, Input::Datagram(&mut datagram));
            count += 1;
        }
        count
    }

    #[test]
    fn a_message_arrives_as_one_datagram_and_can_be_answered() {
        let (mut client, mut server, flow) = pair();
        client.write(NOW, flow, Bytes::from_static(b"ping")).unwrap();
        assert_eq!(carry(&mut client, &mut server), 1);
        let Some(Event::Accepted(theirs)) = server.poll_event() else {
            panic!("not accepted")
        };
        assert_eq!(server.poll_event(), Some(Event::Readable(theirs)));
        assert_eq!(server.read(NOW, theirs), Read::Data(Bytes::from_static(b"ping")));
        assert_eq!(server.read(NOW, theirs), Read::Empty);

        server.write(NOW, theirs, Bytes::from_static(b"pong")).unwrap();
        carry(&mut server, &mut client);
        assert_eq!(client.read(NOW, flow), Read::Data(Bytes::from_static(b"pong")));
        assert_eq!(client.stats(flow).unwrap().sent_bytes, 12);
    }

    #[test]
    fn a_full_queue_blocks_and_says_when_there_is_room() {
        let (mut client, mut server, flow) = pair();
        let message = Bytes::from(vec![0; 1400]);
        while client.write(NOW, flow, message.clone()) != Err(WriteError::Blocked) {}
        assert_eq!(client.poll_event(), None);
        carry(&mut client, &mut server);
        assert_eq!(client.poll_event(), Some(Event::Writable(flow)));
        assert_eq!(client.write(NOW, flow, message), Ok(()));
    }

    #[test]
    fn a_reader_that_never_reads_costs_bounded_memory() {
        let (mut client, mut server, flow) = pair();
        for _ in 0..1000 {
            client.write(NOW, flow, Bytes::from(vec![0; 1400])).unwrap();
            carry(&mut client, &mut server);
        }
        let Some(Event::Accepted(theirs)) = server.poll_event() else {
            panic!("not accepted")
        };
        let stats = server.stats(theirs).unwrap();
        assert!(stats.memory_bytes < (208 << 10) + 1400, "{stats:?}");
        assert_eq!(stats.received_packets + stats.rejected_packets, 1000);
    }

    #[test]
    fn strangers_and_broken_bytes_are_dropped_and_counted() {
        let (mut client, mut server, flow) = pair();
        let mut datagram = Datagram::empty();
        client.write(NOW, flow, Bytes::from_static(b"x")).unwrap();
        assert!(client.poll_transmit(NOW, &mut datagram));
        datagram.path = datagram.path.reversed();
        datagram.body = Bytes::from_static(b"y");
        server.handle(NOW, Input::Datagram(&mut datagram));
        let mut nobody = Udp::new(UdpConfig::default());
        client.write(NOW, flow, Bytes::from_static(b"x")).unwrap();
        carry(&mut client, &mut nobody);
        assert_eq!((server.dropped_datagrams(), nobody.dropped_datagrams()), (1, 1));
        assert_eq!(server.poll_event(), None);
    }

    #[test]
    fn what_does_not_fit_a_packet_is_refused() {
        let (mut client, _, flow) = pair();
        let refused = client.write(NOW, flow, Bytes::from(vec![0; 1473]));
        assert_eq!(
            refused,
            Err(WriteError::TooLarge {
                size: 1473,
                limit: 1472
            })
        );
    }

    #[test]
    fn finishing_closes_after_the_last_message_left() {
        let (mut client, mut server, flow) = pair();
        client.write(NOW, flow, Bytes::from_static(b"last")).unwrap();
        client.finish(NOW, flow);
        assert_eq!(client.write(NOW, flow, Bytes::new()), Err(WriteError::Closed));
        assert_eq!(client.poll_event(), None);
        carry(&mut client, &mut server);
        assert_eq!(
            client.poll_event(),
            Some(Event::Closed(flow, CloseReason::Finished))
        );
        client.release(NOW, flow);
        assert_eq!(client.stats(flow), None);
    }
}
