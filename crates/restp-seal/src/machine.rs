//! [`Sealed`]: a machine around a machine. What the inner one sends is sealed, what opens is handed to it, and it knows
//! nothing of either; it keeps its own set-up, whose first packets carry the handshake, so that no round trip is added.

use crate::arena::Arena;
use crate::config::SealConfig;
use crate::entropy::Entropy;
use crate::gate::Budget;
use crate::keys::PublicKey;
use crate::pass::{Pass, PassOffice};
use crate::peers::{Id, Peers};
use bytes::Bytes;
use restp_base::flow::{CloseReason, Flow, FlowId, FlowStats, OpenError, Read, WriteError};
use restp_base::machine::{Datagram, Event, Input, Machine, PathAddress, Wakeup};
use restp_base::time::Time;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::net::{IpAddr, SocketAddr};

/// What becomes of datagrams here. Counters only grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SealStats {
    /// Packets that opened.
    pub opened: u64,
    /// Datagrams that were not sealed, and were dropped.
    pub plain: u64,
    /// Datagrams of no known form.
    pub malformed: u64,
    /// Packets of no known session.
    pub unknown: u64,
    /// Packets and messages that are not genuine.
    pub forged: u64,
    /// Packets that were here before, or are too old to tell.
    pub replayed: u64,
    /// Packets and requests from an address that another peer holds.
    pub misplaced: u64,
    /// Packets of known paths from addresses that had not answered.
    pub elsewhere: u64,
    /// Paths whose peer answered at another address.
    pub moved: u64,
    /// Requests that came again.
    pub repeated_requests: u64,
    /// Requests meant for another key.
    pub for_others: u64,
    /// Requests with a ticket that opened, of clients that are served.
    pub resumed: u64,
    /// Requests with a ticket that did not open.
    pub stale_tickets: u64,
    /// Tickets shown here of which the host said that they do not open.
    pub refused_tickets: u64,
    /// Requests of clients that are not on the list.
    pub unwelcome: u64,
    /// Peers that were asked to prove their address first.
    pub retries: u64,
    /// Requests dropped because their source has too many unfinished handshakes.
    pub crowded: u64,
    /// Requests dropped because all sessions are in use.
    pub overflowed: u64,
    /// Datagrams not sent because an address that is not proved would get more than three times what came from it.
    pub withheld: u64,
    /// First flights with early data that were taken.
    pub early: u64,
    /// First flights whose early data was not taken: it came before, or with an old pass.
    pub early_refused: u64,
    /// Datagrams in requests that may not be taken twice.
    pub unsafe_requests: u64,
    /// Datagrams for addresses of no known peer, or of more than can wait.
    pub unsent: u64,
}

/// Why a peer cannot be talked to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It does not serve this host's key.
    Unwelcome,
    /// It has another key than the one it is known by, or says so.
    OtherKey {
        /// The one it is known by.
        expected: PublicKey,
        /// The one it says it has.
        told: PublicKey,
    },
}

/// A machine whose datagrams are sealed.
pub struct Sealed<M> {
    pub(crate) inner: M,
    pub(crate) config: SealConfig,
    pub(crate) own: PublicKey,
    pub(crate) entropy: Entropy,
    pub(crate) office: PassOffice,
    /// Handshakes with addresses that prove nothing.
    pub(crate) budget: Budget,
    /// The same with a ticket.
    pub(crate) resumed_budget: Budget,
    pub(crate) peers: Peers,
    /// Keys of hosts that may be opened to.
    expected: BTreeMap<SocketAddr, PublicKey>,
    pub(crate) passes: BTreeMap<PublicKey, Pass>,
    pub(crate) faults: BTreeMap<SocketAddr, Fault>,
    /// Flows broken off for such a fault.
    faulted: BTreeSet<FlowId>,
    /// Sealed datagrams that leave before what the machine has.
    pub(crate) queue: VecDeque<Datagram>,
    /// What arrives is opened in here, many packets to one allocation.
    pub(crate) arena: Arena,
    /// The machine writes here.
    pub(crate) scratch: Datagram,
    pub(crate) stats: SealStats,
}

impl<M> fmt::Debug for Sealed<M> {
    /// What may be in a log: no key of a session, no seed, nothing that waits to be sealed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sealed")
            .field("own", &self.own)
            .field("sessions", &self.peers.sessions.len())
            .field("half_open", &self.peers.half_open())
            .field("stats", &self.stats)
            .finish_non_exhaustive()
    }
}

impl<M: Machine> Sealed<M> {
    /// Seals what `inner` sends.
    pub fn new(inner: M, config: SealConfig) -> Self {
        let mut entropy = Entropy::new(config.seed);
        Sealed {
            inner,
            own: config.secret.public(),
            office: PassOffice::new(&mut entropy),
            entropy,
            budget: Budget::default(),
            resumed_budget: Budget::default(),
            config,
            peers: Peers::default(),
            expected: BTreeMap::new(),
            passes: BTreeMap::new(),
            faults: BTreeMap::new(),
            faulted: BTreeSet::new(),
            queue: VecDeque::new(),
            arena: Arena::default(),
            scratch: Datagram::empty(),
            stats: SealStats::default(),
        }
    }

    /// The machine inside.
    pub fn inner(&self) -> &M {
        &self.inner
    }

    /// The machine inside.
    pub fn inner_mut(&mut self) -> &mut M {
        &mut self.inner
    }

    /// This host's name.
    pub fn public_key(&self) -> PublicKey {
        self.own
    }

    /// What was counted.
    pub fn seal_stats(&self) -> SealStats {
        self.stats
    }

    /// The host at `remote` has `key`: flows opened from now on reach it or nobody.
    pub fn expect(&mut self, remote: SocketAddr, key: PublicKey) {
        self.expected.insert(remote, key);
    }

    /// The key of the host at `remote`, once it has proved it.
    pub fn peer_key(&self, remote: SocketAddr) -> Option<PublicKey> {
        let peer = self.peers.peers.get(&self.peers.at(remote)?)?;
        peer.key.filter(|_| peer.session.is_some())
    }

    /// The key of the host at the other end of `flow`.
    pub fn flow_key(&self, flow: FlowId) -> Option<PublicKey> {
        self.peers.peers.get(self.peers.flows.get(&flow)?)?.key
    }

    /// Why the host at `remote` could not be talked to.
    pub fn fault(&self, remote: SocketAddr) -> Option<Fault> {
        self.faults.get(&remote).copied()
    }

    /// Passes that hosts gave, to be kept beyond this machine's life.
    pub fn passes(&self) -> impl Iterator<Item = (PublicKey, Pass)> {
        self.passes.iter().map(|(key, pass)| (*key, *pass))
    }

    /// Takes a pass of an earlier life: data for the host `key` need not wait for a session.
    pub fn keep_pass(&mut self, key: PublicKey, pass: Pass) {
        self.passes.insert(key, pass);
    }

    /// A pass such as a session of `client` at `address` gets, for hosts that hand them out by other means.
    pub fn pass_for(&mut self, now: Time, address: IpAddr, client: PublicKey) -> Pass {
        self.office.pass(now, address, client, None, &mut self.entropy)
    }

    /// Handshakes that peers began and did not finish.
    pub fn half_open(&self) -> usize {
        self.peers.half_open()
    }

    /// Sessions with peers.
    pub fn sessions(&self) -> usize {
        self.peers.sessions.len()
    }

    fn peer_at(&mut self, remote: SocketAddr) -> Result<Id, OpenError> {
        if let Some(peer) = self.peers.at(remote) {
            return Ok(peer);
        }
        let key = self.expected.get(&remote).copied();
        if key.is_none() && !self.config.first_use {
            return Err(OpenError::Unsupported(format!(
                "the key of {remote} is not known; give it, or allow a first use"
            )));
        }
        let peer = self.peers.meet(key, true);
        self.peers.route(remote, peer);
        Ok(peer)
    }

    /// Breaks off what was opened to `peer`, which cannot be talked to.
    pub(crate) fn give_up(&mut self, now: Time, id: Id, fault: Fault) {
        let Some(peer) = self.peers.peers.get_mut(&id) else {
            return;
        };
        (peer.suspicion, peer.session) = (None, None);
        peer.requests.clear();
        for address in &peer.addresses {
            self.faults.insert(*address, fault);
        }
        self.peers
            .by_id
            .retain(|_, owner| *owner != crate::peers::Owner::Request(id));
        self.peers.set_alarm(id, None);
        let flows = self.peers.flows.iter().filter(|(_, of)| **of == id);
        for flow in flows.map(|(flow, _)| *flow).collect::<Vec<_>>() {
            self.faulted.insert(flow);
            self.inner.abort(now, flow);
        }
    }

    fn note(&mut self, event: Event) -> Event {
        match event {
            Event::Accepted(flow) => {
                let path_of = |stats: FlowStats| stats.path.or(stats.paths.first().map(|path| path.path));
                let path = self.inner.stats(flow).and_then(path_of);
                let peer = path.and_then(|path| self.peers.at(path.remote));
                if let Some(peer) = peer {
                    self.peers.enter(flow, peer);
                }
            }
            Event::Closed(flow, _) => {
                self.peers.leave(flow);
                if self.faulted.remove(&flow) {
                    return Event::Closed(flow, CloseReason::Refused);
                }
            }
            _ => {}
        }
        event
    }
}

impl<M: Machine> Flow for Sealed<M> {
    fn open(&mut self, now: Time, path: PathAddress, port: u16) -> Result<FlowId, OpenError> {
        let peer = self.peer_at(path.remote)?;
        let flow = self.inner.open(now, path, port)?;
        self.peers.enter(flow, peer);
        Ok(flow)
    }

    fn add_path(
        &mut self,
        now: Time,
        flow: FlowId,
        path: PathAddress,
        backup: bool,
    ) -> Result<(), OpenError> {
        if !self.peers.routes.contains_key(&path.remote)
            && let Some(peer) = self.peers.flows.get(&flow)
        {
            self.peers.route(path.remote, *peer);
        }
        self.inner.add_path(now, flow, path, backup)
    }

    fn remove_path(&mut self, now: Time, flow: FlowId, path: PathAddress) -> Result<(), OpenError> {
        self.inner.remove_path(now, flow, path)
    }

    fn write(&mut self, now: Time, flow: FlowId, data: Bytes) -> Result<(), WriteError> {
        self.inner.write(now, flow, data)
    }

    fn write_on(
        &mut self,
        now: Time,
        flow: FlowId,
        data: Bytes,
        path: PathAddress,
    ) -> Result<(), WriteError> {
        self.inner.write_on(now, flow, data, path)
    }

    fn read(&mut self, now: Time, flow: FlowId) -> Read {
        self.inner.read(now, flow)
    }

    fn finish(&mut self, now: Time, flow: FlowId) {
        self.inner.finish(now, flow);
    }

    fn abort(&mut self, now: Time, flow: FlowId) {
        self.inner.abort(now, flow);
    }

    fn release(&mut self, now: Time, flow: FlowId) {
        self.inner.release(now, flow);
        self.peers.leave(flow);
    }

    fn stats(&self, flow: FlowId) -> Option<FlowStats> {
        self.inner.stats(flow)
    }
}

impl<M: Machine> Machine for Sealed<M> {
    fn handle(&mut self, now: Time, input: Input<'_>) {
        match input {
            Input::Datagram(datagram) => self.on_datagram(now, datagram),
            Input::Deadline => {
                while let Some((_, id)) = self.peers.alarms.first().copied().filter(|(at, _)| *at <= now) {
                    self.peers.set_alarm(id, None);
                    self.on_alarm(now, id);
                }
                self.inner.handle(now, Input::Deadline);
            }
            other => self.inner.handle(now, other),
        }
    }

    fn poll_transmit(&mut self, now: Time, out: &mut Datagram) -> bool {
        loop {
            if let Some(datagram) = self.queue.pop_front() {
                *out = datagram;
                return true;
            }
            if !self.inner.poll_transmit(now, &mut self.scratch) {
                return false;
            }
            if self.dispatch(now, out) {
                return true;
            }
        }
    }

    fn poll_event(&mut self) -> Option<Event> {
        let event = self.inner.poll_event()?;
        Some(self.note(event))
    }

    fn next_deadline(&self) -> Option<(Time, Wakeup)> {
        let own = self
            .peers
            .alarms
            .first()
            .map(|(at, _)| (*at, Wakeup::Retransmission));
        [self.inner.next_deadline(), own]
            .into_iter()
            .flatten()
            .min_by_key(|(at, _)| *at)
    }
}
