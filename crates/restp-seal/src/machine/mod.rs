//! [`Sealed`]: a machine around a machine. What the inner one sends is sealed, what opens is handed to it, and it knows
//! nothing of either; it keeps its own set-up, whose first packets carry the handshake, so that no round trip is added.

mod answer;
mod events;
mod hello;
mod paths;
mod receive;
mod request;
mod send;
mod stats;

pub use crate::known_hosts::Fault;
pub use stats::SealStats;

use crate::arena::Arena;
use crate::config::SealConfig;
use crate::entropy::Entropy;
use crate::gate::Gate;
use crate::keys::PublicKey;
use crate::known_hosts::KnownHosts;
use crate::limits::{Failures, RateLimiter};
use crate::packet::ConnectionId;
use crate::peers::{Limits, PeerId, Peers};
use crate::protection::{Opener, Sealer};
use crate::reset::Resets;
use crate::schedule::Suite;
use crate::secret::Secret;
use crate::token::{Token, TokenIssuer};
use bytes::Bytes;
use restp_base::flow::{Change, ChangeError, Flow, FlowId, FlowStats, OpenError, Read, WriteError};
use restp_base::machine::{Datagram, Event, Input, Machine, PathAddress, Wakeup};
use restp_base::observe::{Changed, Loss};
use restp_base::streams::Streams;
use restp_base::time::Time;
use std::collections::{BTreeSet, VecDeque};
use std::fmt;
use std::net::SocketAddr;

/// A machine whose datagrams are sealed.
pub struct Sealed<M> {
    inner: M,
    config: SealConfig,
    own: PublicKey,
    entropy: Entropy,
    issuer: TokenIssuer,
    /// Handshakes with addresses that prove nothing.
    unproved: RateLimiter,
    /// The same with a ticket.
    unproved_resumed: RateLimiter,
    /// Of addresses that prove themselves.
    failures: Failures,
    resets: Resets,
    resets_said: RateLimiter,
    peers: Peers,
    hosts: KnownHosts,
    /// Flows broken off because their peer cannot be talked to.
    refused: BTreeSet<FlowId>,
    /// Sealed datagrams that leave before what the machine has.
    queue: VecDeque<Datagram>,
    /// What the machine has told.
    events: VecDeque<Event>,
    /// Flows that ended before it was certain who was there; nobody was told of them.
    unheard: Vec<FlowId>,
    /// What arrives is opened in here, many packets to one allocation.
    arena: Arena,
    stats: SealStats,
}

impl<M> fmt::Debug for Sealed<M> {
    /// What may be in a log: no key of a session, no seed, nothing that waits to be sealed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sealed")
            .field("own", &self.own)
            .field("sessions", &self.peers.sessions())
            .field("half_open", &self.peers.half_open())
            .field("stats", &self.stats)
            .finish_non_exhaustive()
    }
}

impl<M: Machine> Sealed<M> {
    /// Seals what `inner` sends.
    pub fn new(inner: M, mut config: SealConfig) -> Self {
        let mut entropy = Entropy::new(&config.seed);
        config.seed = Secret::blank(); // whoever had it later would know all one-time keys

        let limits = Limits {
            half_open: config.max_half_open,
            sessions: config.max_sessions,
        };
        Sealed {
            inner,
            own: config.secret.public(),
            issuer: TokenIssuer::new(&mut entropy),
            entropy,
            unproved: RateLimiter::default(),
            unproved_resumed: RateLimiter::default(),
            failures: Failures::default(),
            resets: Resets::of(&config.secret),
            resets_said: RateLimiter::default(),
            config,
            peers: Peers::new(limits),
            hosts: KnownHosts::default(),
            refused: BTreeSet::new(),
            queue: VecDeque::new(),
            events: VecDeque::new(),
            unheard: Vec::new(),
            arena: Arena::default(),
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

    /// What the sockets of this host tell proofs of addresses by, with the same clock.
    pub fn gate(&self) -> &Gate {
        self.issuer.gate()
    }

    /// What was counted.
    pub fn seal_stats(&self) -> SealStats {
        self.stats
    }

    /// The host at `remote` has `key`: flows opened from now on reach it or nobody.
    pub fn expect(&mut self, remote: SocketAddr, key: PublicKey) {
        self.hosts.expect(remote, key);
    }

    /// The key that the host at `remote` must have, if one was said.
    pub fn expected(&self, remote: SocketAddr) -> Option<PublicKey> {
        self.hosts.expected(remote)
    }

    /// The key of the host at `remote`, once it has proved it and was heard from there.
    pub fn peer_key(&self, remote: SocketAddr) -> Option<PublicKey> {
        self.peers.key_at(remote)
    }

    /// The key of the host at the other end of `flow`, once it has proved it in the session that the flow began in.
    pub fn flow_key(&self, flow: FlowId) -> Option<PublicKey> {
        self.peers.flow_key(flow)
    }

    /// Why the host at `remote` could not be talked to; while it is still asked, what somebody says.
    pub fn fault(&self, remote: SocketAddr) -> Option<Fault> {
        (self.hosts.fault(remote)).or_else(|| self.peers.suspicion_at(remote))
    }

    /// Tokens that hosts gave, to be kept beyond this machine's life.
    pub fn tokens(&self) -> impl Iterator<Item = (PublicKey, Token)> {
        self.hosts.tokens()
    }

    /// Takes a token of an earlier life: data for the host `key` need not wait for a session.
    pub fn keep_token(&mut self, key: PublicKey, token: Token) {
        self.hosts.keep_token(key, token);
    }

    /// A token such as a session of `client` gets, and with it what Retry would prove `address` with, for hosts that hand them out by
    /// other means.
    pub fn token_for(&mut self, now: Time, address: SocketAddr, client: PublicKey) -> Token {
        Token {
            address: self.issuer.address_token(now, address),
            ..self.issuer.issue(now, client, None, &mut self.entropy)
        }
    }

    /// Handshakes that peers began and did not finish.
    pub fn half_open(&self) -> usize {
        self.peers.half_open()
    }

    /// Sessions with peers.
    pub fn sessions(&self) -> usize {
        self.peers.sessions()
    }

    /// The host at `remote` that a flow is opened to: one that has proved the key it must have, or is asked for it now.
    fn server_at(&mut self, remote: SocketAddr) -> Result<PeerId, OpenError> {
        let key = self.hosts.expected(remote);
        if let Some(peer) = self.peers.server_at(remote, key) {
            return Ok(peer);
        }
        if key.is_none() && !self.config.first_use {
            return Err(OpenError::Unsupported(format!(
                "the key of {remote} is not known, and this endpoint meets nobody for the first time: say which key is expected there"
            )));
        }
        Ok(self.peers.meet_server(key, remote))
    }

    /// What seals for a peer that calls the session `to`.
    fn sealer(&self, suite: Suite, secret: Secret, to: ConnectionId) -> Sealer {
        Sealer::new(suite, secret, to, false).lasting(self.config.packets_per_key)
    }

    /// What opens the peer's packets.
    fn opener(&self, suite: Suite, secret: Secret) -> Opener {
        Opener::new(suite, secret).lasting(self.config.packets_per_key)
    }

    /// Breaks off what was opened to `peer`, which cannot be talked to.
    fn give_up(&mut self, now: Time, peer: PeerId, fault: Fault) {
        let (addresses, flows) = self.peers.give_up(peer);
        for address in addresses {
            self.hosts.blame(address, fault);
        }
        for flow in flows {
            self.refused.insert(flow);
            self.inner.abort(now, flow);
        }
    }
}

impl<M: Machine> Flow for Sealed<M> {
    fn open(&mut self, now: Time, path: PathAddress, port: u16) -> Result<FlowId, OpenError> {
        let peer = self.server_at(path.remote)?;
        self.part_displaced(now);
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
        if let Some(peer) = self.peers.of_flow(flow) {
            if !self.peers.add_address(path.remote, peer) {
                let sentence = format!("{} belongs to another host than this flow", path.remote);
                return Err(OpenError::Unsupported(sentence));
            }
            self.part_displaced(now);
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

    fn streams(&mut self, now: Time, flow: FlowId) -> Option<&mut dyn Streams> {
        self.inner.streams(now, flow)
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

    fn take_losses(&mut self, flow: FlowId, into: &mut Vec<Loss>) -> bool {
        self.inner.take_losses(flow, into)
    }

    fn reconfigure(
        &mut self,
        now: Time,
        flow: FlowId,
        set: &[(String, String)],
    ) -> Result<Change, ChangeError> {
        self.inner.reconfigure(now, flow, set)
    }

    fn take_changes(&mut self, now: Time, flow: FlowId, into: &mut Vec<Changed>) -> bool {
        self.inner.take_changes(now, flow, into)
    }
}

impl<M: Machine> Machine for Sealed<M> {
    fn handle(&mut self, now: Time, input: Input<'_>) {
        match input {
            Input::Datagram(datagram) => {
                self.on_datagram(now, datagram);
                self.part_displaced(now);
            }
            Input::Deadline => {
                while let Some(peer) = self.peers.timers.pop_due(now) {
                    self.on_timer(now, peer);
                }
                while let Some(id) = self.peers.challenges.pop_due(now) {
                    self.repeat_challenges(now, id);
                }
                self.inner.handle(now, Input::Deadline);
                // A flow that nobody was told of may have ended, and nothing need come any more.
                self.collect(None);
                self.part_displaced(now);
            }
            other => self.inner.handle(now, other),
        }
    }

    fn poll_transmit(&mut self, now: Time, out: &mut Datagram) -> bool {
        let mut plain = Datagram::empty();
        loop {
            if let Some(datagram) = self.queue.pop_front() {
                *out = datagram;
                return true;
            }
            if !self.inner.poll_transmit(now, &mut plain) {
                return false;
            }
            if self.dispatch(now, &plain, out) {
                return true;
            }
        }
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.collect(None);
        self.events.pop_front()
    }

    fn next_deadline(&self) -> Option<(Time, Wakeup)> {
        let own = [self.peers.timers.next(), self.peers.challenges.next()];
        let own = own.into_iter().flatten().map(|at| (at, Wakeup::Retransmission));
        let all = self.inner.next_deadline().into_iter().chain(own);
        all.min_by_key(|(at, _)| *at)
    }

    fn held(&self) -> usize {
        self.inner.held()
    }
}
