//! A host's SCTP: which association a packet belongs to, what becomes of others (RFC 9260 §8.4), and the two seams. A server keeps
//! nothing of a peer that has not brought back its cookie.

mod out_of_the_blue;
mod set_up;

use super::association::{Association, Identity};
use super::chunk::{Cause, Chunk, ChunkError};
use super::parameters::SctpParameters;
use super::wire::{Packet, WireError};
use bytes::Bytes;
use restp_base::flow::{Flow, FlowId, FlowStats, OpenError, Read, WriteError};
use restp_base::machine::{Datagram, Ecn, Event, Input, Machine, PathAddress, Wakeup};
use restp_base::observe::Loss;
use restp_base::random::Stream;
use restp_base::time::Time;
use restp_base::wakes::Wakes;
use restp_services::connection_management::{CookieMint, CookieParameters, EPHEMERAL, Ports};
use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// What a user sets for a whole host.
#[derive(Clone, Debug)]
pub struct SctpConfig {
    /// What its associations are made of.
    pub parameters: SctpParameters,
    /// The port it serves; none: it only opens.
    pub listen: Option<u16>,
    /// Associations held at once; further cookies are dropped and counted.
    pub max_associations: usize,
    /// What tags, first numbers and heartbeats are drawn from, another stream for whoever serves. Fixed, for simulation: an open
    /// network needs one that cannot be guessed (RFC 9260 §5.3.1).
    pub seed: u64,
    /// The first TSN of every association, for tests of the wrap at 2³²; none: drawn.
    pub first_tsn: Option<u32>,
    /// The key of its cookies.
    pub cookies: CookieParameters,
    /// Its addresses, which INIT ACK lists (RFC 9260 §5.1.2): a peer that sends to those alone that it was told of needs them. None: the
    /// peer learns them by what comes from there.
    pub addresses: Vec<IpAddr>,
}

impl SctpConfig {
    /// A host that opens associations with `parameters` and serves nothing.
    pub fn new(parameters: SctpParameters) -> Self {
        SctpConfig {
            parameters,
            listen: None,
            max_associations: 65_536,
            seed: 0,
            first_tsn: None,
            cookies: CookieParameters::default(),
            addresses: Vec::new(),
        }
    }
}

#[derive(Debug)]
struct Slot {
    association: Association,
    /// The application has let it go.
    released: bool,
    /// It waits for its turn to send.
    queued: bool,
    wakes_at: Option<Time>,
}

/// A host's SCTP.
#[derive(Debug)]
pub struct Sctp {
    config: SctpConfig,
    parameters: Arc<SctpParameters>,
    slots: BTreeMap<FlowId, Slot>,
    /// By our tag, which every packet of an association carries.
    by_tag: BTreeMap<u32, FlowId>,
    /// By addresses and ports, which INIT and COOKIE ECHO of a peer have that knows no tag, or another one.
    by_path: BTreeMap<(PathAddress, Ports), FlowId>,
    mint: CookieMint,
    chance: Stream,
    wakes: Wakes<FlowId>,
    /// Associations that may have something to send.
    turns: VecDeque<FlowId>,
    answers: VecDeque<(PathAddress, Packet)>,
    events: VecDeque<Event>,
    opened: u64,
    dropped: u64,
}

impl Sctp {
    /// A host without associations.
    pub fn new(config: SctpConfig) -> Self {
        let role = if config.listen.is_some() {
            "serves"
        } else {
            "opens"
        };
        Sctp {
            parameters: Arc::new(config.parameters.clone()),
            slots: BTreeMap::new(),
            by_tag: BTreeMap::new(),
            by_path: BTreeMap::new(),
            mint: CookieMint::new(config.cookies),
            chance: Stream::named(config.seed, &format!("sctp/{role}")),
            wakes: Wakes::default(),
            turns: VecDeque::new(),
            answers: VecDeque::new(),
            events: VecDeque::new(),
            opened: 0,
            dropped: 0,
            config,
        }
    }

    /// Packets dropped because they were malformed, damaged, of no association, or beyond a limit.
    pub fn dropped_packets(&self) -> u64 {
        self.dropped
    }

    fn on_datagram(&mut self, now: Time, datagram: &mut Datagram) {
        let (address, size) = (datagram.path, datagram.len());
        let packet = match Packet::parse(datagram) {
            Ok(packet) => packet,
            Err(error) => return self.on_malformed(address, error),
        };
        let ports = packet.header.ports();
        match &packet.chunks[..] {
            [Chunk::Init(init)] if packet.header.tag == 0 => return self.on_init(now, address, ports, init),
            // RFC 9260 §8.5.1 (A): nobody has the tag 0, so nothing but an INIT may have it.
            _ if packet.header.tag == 0 => return self.dropped += 1,
            [Chunk::CookieEcho(cookie), rest @ ..] if self.takes_cookies(address, ports) => {
                let rest = rest.iter().cloned().collect();
                return self.on_cookie(now, address, packet.header, cookie, rest);
            }
            _ => {}
        }
        let Some(flow) = self.flow_of(&packet, address, ports) else {
            return self.on_out_of_the_blue(address, ports, &packet);
        };
        let Some(slot) = self.slots.get_mut(&flow) else {
            return;
        };
        let paths = slot.association.path_count();
        match slot.association.path_of(now, address) {
            Some(path) => slot.association.handle(now, path, packet.chunks, size),
            None => self.dropped += 1,
        }
        if slot.association.path_count() != paths {
            self.register(flow);
        }
        self.touch(flow);
    }

    /// Who may have a cookie of ours: whoever opens to the port served, or the peer of an association that opened from here.
    fn takes_cookies(&self, address: PathAddress, ports: Ports) -> bool {
        self.config.listen == Some(ports.local) || self.existing(address, ports).is_some()
    }

    /// A packet of which nothing is believed. Where its lengths are wrong, and tag and addresses are those of an association, its peer has
    /// broken the rules (RFC 9260 §3.3.10.13).
    fn on_malformed(&mut self, address: PathAddress, error: WireError) {
        self.dropped += 1;
        let WireError::Chunk {
            header,
            error: error @ ChunkError::Short { .. },
        } = error
        else {
            return;
        };
        let of_tag = self.by_tag.get(&header.tag).copied();
        let found = of_tag.filter(|flow| self.existing(address, header.ports()) == Some(*flow));
        if let Some(flow) = found {
            let cause = Cause::protocol_violation(&error.to_string());
            self.with(flow, |association| association.abort_for(cause));
        }
    }

    /// The association that a packet speaks to: by our tag, or by the peer's where the peer knows no other and says so
    /// (RFC 9260 §8.5.1).
    fn flow_of(&self, packet: &Packet, address: PathAddress, ports: Ports) -> Option<FlowId> {
        let tag = packet.header.tag;
        let is_of_peer = |flow: &FlowId| {
            let slot = self.slots.get(flow);
            slot.is_some_and(|slot| slot.association.peer_tag() == tag)
        };
        let found = match &packet.chunks[..] {
            [chunk] if chunk.reflects_tag() => {
                let of_path = self.by_path.get(&(address, ports)).copied();
                of_path.filter(is_of_peer)
            }
            chunks if chunks.iter().any(Chunk::reflects_tag) => None,
            _ => self.by_tag.get(&tag).copied(),
        };
        let is_of_ports = |flow: &FlowId| {
            let slot = self.slots.get(flow);
            slot.is_some_and(|slot| slot.association.ports() == ports && !slot.association.is_closed())
        };
        found.filter(is_of_ports)
    }

    /// A tag that no association has. Never 0.
    fn fresh_tag(&mut self) -> u32 {
        loop {
            let tag = self.chance.bits() as u32;
            if tag != 0 && !self.by_tag.contains_key(&tag) {
                return tag;
            }
        }
    }

    fn first_tsn(&mut self) -> u32 {
        let drawn = self.chance.bits() as u32;
        self.config.first_tsn.unwrap_or(drawn)
    }

    /// Chance of one association.
    fn fork(&mut self) -> Stream {
        Stream::named(self.chance.bits(), "association")
    }

    fn insert(&mut self, association: Association) -> FlowId {
        let flow = FlowId(self.opened);
        self.opened += 1;
        self.by_tag.insert(association.local_tag(), flow);
        let slot = Slot {
            association,
            released: false,
            queued: false,
            wakes_at: None,
        };
        self.slots.insert(flow, slot);
        self.register(flow);
        self.touch(flow);
        flow
    }

    /// Notes between which addresses `flow` is. Those that another association has keep to that one.
    fn register(&mut self, flow: FlowId) {
        let Some(slot) = self.slots.get(&flow) else {
            return;
        };
        let ports = slot.association.ports();
        for address in slot.association.addresses() {
            if self.existing(address, ports).is_none() {
                self.by_path.insert((address, ports), flow);
            }
        }
    }

    /// They are free again.
    fn unregister(&mut self, flow: FlowId) {
        let Some(slot) = self.slots.get(&flow) else {
            return;
        };
        let tag = slot.association.local_tag();
        if self.by_tag.get(&tag) == Some(&flow) {
            self.by_tag.remove(&tag); // a cookie that came again may have opened another with the same tag
        }
        let ports = slot.association.ports();
        for address in slot.association.addresses() {
            if self.by_path.get(&(address, ports)) == Some(&flow) {
                self.by_path.remove(&(address, ports));
            }
        }
    }

    /// Something happened to `flow`: its notices become events, it gets a turn.
    fn touch(&mut self, flow: FlowId) {
        self.collect(flow);
        if let Some(slot) = self.slots.get_mut(&flow)
            && !std::mem::replace(&mut slot.queued, true)
        {
            self.turns.push_back(flow);
        }
    }

    fn collect(&mut self, flow: FlowId) {
        let Some(slot) = self.slots.get_mut(&flow) else {
            return;
        };
        while let Some(notice) = slot.association.poll_notice() {
            self.events.push_back(notice.of(flow));
        }
    }

    /// Ends the turn of the association in front: sets its next wake, or forgets it.
    fn end_turn(&mut self) {
        let Some(flow) = self.turns.pop_front() else {
            return;
        };
        self.collect(flow);
        let Some(slot) = self.slots.get_mut(&flow) else {
            return;
        };
        slot.queued = false;
        let deadline = slot.association.deadline().map(|(at, _)| at);
        if let Some(before) = std::mem::replace(&mut slot.wakes_at, deadline) {
            self.wakes.remove(before, flow);
        }
        if let Some(at) = deadline {
            self.wakes.insert(at, flow);
        }
        let (is_closed, released) = (slot.association.is_closed(), slot.released);
        if is_closed {
            self.unregister(flow);
        }
        if is_closed && released {
            self.slots.remove(&flow);
        }
    }

    fn on_deadlines(&mut self, now: Time) {
        while let Some((at, flow)) = self.wakes.first()
            && at <= now
        {
            self.wakes.remove(at, flow);
            if let Some(slot) = self.slots.get_mut(&flow) {
                slot.wakes_at = None;
                slot.association.on_deadline(now);
            }
            self.touch(flow);
        }
    }

    fn with<T>(&mut self, flow: FlowId, call: impl FnOnce(&mut Association) -> T) -> Option<T> {
        let result = call(&mut self.slots.get_mut(&flow)?.association);
        self.touch(flow);
        Some(result)
    }

    /// Ports towards `service` at `remote` that no association uses.
    fn free_ports(&self, remote: SocketAddr, service: u16) -> Option<Ports> {
        let ports = |local| Ports {
            local,
            remote: service,
        };
        let mut taken: Vec<_> = (self.slots.values())
            .filter(|slot| slot.association.addresses().any(|path| path.remote == remote))
            .map(|slot| slot.association.ports())
            .collect();
        taken.sort_unstable();
        let free =
            |local: &u16| self.config.listen != Some(*local) && taken.binary_search(&ports(*local)).is_err();
        EPHEMERAL.into_iter().find(free).map(ports)
    }
}

impl Machine for Sctp {
    fn handle(&mut self, now: Time, input: Input<'_>) {
        match input {
            Input::Datagram(datagram) => self.on_datagram(now, datagram),
            Input::Deadline => self.on_deadlines(now),
            Input::PathNotice { .. } | Input::Refused(_) => {} // SCTP finds out by itself
        }
    }

    fn poll_transmit(&mut self, now: Time, out: &mut Datagram) -> bool {
        (out.may_fragment, out.segment) = (false, None);
        if let Some((path, packet)) = self.answers.pop_front() {
            packet.emit(out);
            (out.path, out.ecn) = (path, Ecn::NotEct);
            return true;
        }
        while let Some(&flow) = self.turns.front() {
            let slot = self.slots.get_mut(&flow);
            if slot.is_some_and(|slot| slot.association.poll_transmit(now, out)) {
                return true;
            }
            self.end_turn();
        }
        false
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    fn next_deadline(&self) -> Option<(Time, Wakeup)> {
        let (at, flow) = self.wakes.first()?;
        let deadline = self.slots.get(&flow).and_then(|slot| slot.association.deadline());
        Some((at, deadline.map_or(Wakeup::Expiry, |(_, why)| why)))
    }

    fn held(&self) -> usize {
        self.slots.len()
    }
}

impl Flow for Sctp {
    fn open(&mut self, now: Time, path: PathAddress, port: u16) -> Result<FlowId, OpenError> {
        if self.slots.len() >= self.config.max_associations {
            let held = self.slots.len();
            return Err(OpenError::Unsupported(format!(
                "this host already holds its {held} associations; close one first"
            )));
        }
        let Some(ports) = self.free_ports(path.remote, port) else {
            return Err(OpenError::NoPort(path.remote));
        };
        let identity = Identity {
            ports,
            tag: self.fresh_tag(),
            tsn: self.first_tsn(),
        };
        let (parameters, chance) = (self.parameters.clone(), self.fork());
        Ok(self.insert(Association::open(now, parameters, path, identity, chance)))
    }

    fn add_path(
        &mut self,
        _now: Time,
        flow: FlowId,
        path: PathAddress,
        _backup: bool,
    ) -> Result<(), OpenError> {
        let gone = || OpenError::Unsupported("there is no such association".into());
        let added = self.with(flow, |association| association.add_path(path));
        self.register(flow);
        added.unwrap_or_else(|| Err(gone()))
    }

    fn write(&mut self, now: Time, flow: FlowId, data: Bytes) -> Result<(), WriteError> {
        self.with(flow, |association| association.write(now, data))
            .unwrap_or(Err(WriteError::Closed))
    }

    fn read(&mut self, _now: Time, flow: FlowId) -> Read {
        let Some(slot) = self.slots.get_mut(&flow) else {
            return Read::End;
        };
        let read = slot.association.read();
        if slot.association.owes_acknowledgement() {
            self.touch(flow);
        }
        read
    }

    fn finish(&mut self, now: Time, flow: FlowId) {
        self.with(flow, |association| association.finish(now));
    }

    fn abort(&mut self, _now: Time, flow: FlowId) {
        self.with(flow, Association::abort);
    }

    fn release(&mut self, now: Time, flow: FlowId) {
        if let Some(slot) = self.slots.get_mut(&flow) {
            slot.released = true;
            slot.association.discard(now);
            self.touch(flow);
        }
    }

    fn stats(&self, flow: FlowId) -> Option<FlowStats> {
        self.slots.get(&flow).map(|slot| slot.association.stats())
    }

    fn take_losses(&mut self, flow: FlowId, into: &mut Vec<Loss>) -> bool {
        if let Some(slot) = self.slots.get_mut(&flow) {
            slot.association.take_losses(into);
        }
        true
    }
}

#[cfg(test)]
mod tests;
