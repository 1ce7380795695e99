//! ResTP with or without a seal under it: one machine for both, chosen when an endpoint is bound.

#[cfg(unix)]
use crate::known_hosts::KnownHosts;
use crate::random::random;
use crate::rendezvous::Rendezvous;
use crate::rendezvous::upgrade::Upgrade;
use crate::rendezvous::wire::is_message;
use bytes::Bytes;
use restp_base::flow::{Change, ChangeError, Flow, FlowId, FlowStats, OpenError, Read, WriteError};
use restp_base::machine::{Datagram, Event, Input, Machine, PathAddress, Wakeup};
use restp_base::observe::{Changed, Loss};
use restp_base::streams::Streams;
use restp_base::time::Time;
use restp_proto::wire::bare_request;
use restp_proto::{Composition, EndpointConfig};
use restp_seal::{Clients, PublicKey, SealConfig, Sealed, SecretKey};
use std::io;
use std::net::SocketAddr;

/// Who may be at the other end of a connection that a host opens.
#[derive(Clone, Debug)]
pub enum Trust {
    /// Nobody: whom this endpoint reaches is told to it address by address ([`Endpoint::expect`](crate::Endpoint::expect)). For
    /// hosts that only serve.
    Nobody,
    /// The host with this key.
    Key(PublicKey),
    /// The host that is known under the name of the address. Whoever is met under a new one is believed once, and remembered before
    /// anything is written to him ([`Endpoint::connect`](crate::Endpoint::connect)).
    #[cfg(unix)]
    KnownHosts(KnownHosts),
    /// Whoever answers, and nothing is remembered: somebody in between is not noticed, now or later.
    Anybody,
}

impl Trust {
    /// The key that the host at `remote` must have.
    fn key_of(&self, #[cfg_attr(not(unix), expect(unused))] remote: SocketAddr) -> Option<PublicKey> {
        match self {
            #[cfg(unix)]
            Trust::KnownHosts(hosts) => hosts.key_of(remote),
            Trust::Key(key) => Some(*key),
            Trust::Nobody | Trust::Anybody => None,
        }
    }
}

/// What a host shows of itself, and whom it talks to.
#[derive(Clone, Debug)]
pub struct Identity {
    /// Its name.
    pub secret: SecretKey,
    /// Whom it serves.
    pub clients: Clients,
    /// Whom it reaches when it opens a connection to an address that [`Endpoint::expect`](crate::Endpoint::expect) says nothing of.
    pub trust: Trust,
    /// Does it accept a connection only when the host at the other end has proved its key? Otherwise one that begins with early
    /// data is accepted before that, and [`Connection::peer_key`](crate::Connection::peer_key) is `None` until then.
    pub awaits_proof: bool,
}

impl Identity {
    /// A host with this name that serves everybody, and reaches those that it is told the keys of.
    pub fn of(secret: SecretKey) -> Self {
        Identity {
            secret,
            clients: Clients::All,
            trust: Trust::Nobody,
            awaits_proof: false,
        }
    }

    /// The same with a name of its own, which lasts as long as the endpoint.
    ///
    /// # Errors
    /// When the system gives no randomness.
    pub fn fresh() -> io::Result<Self> {
        Ok(Identity::of(SecretKey::from_chance(random()?)))
    }
}

/// Are datagrams sealed?
#[derive(Clone, Debug)]
pub enum Security {
    /// Authenticated and encrypted, under this identity.
    Sealed(Identity),
    /// Anybody on the way can read and change what is sent: for tests, and where something below protects it. Each endpoint
    /// says so once, as a warning of `tracing`.
    Plain,
}

/// ResTP over real sockets, with a word for relays beside it.
#[derive(Debug)]
pub struct Transport {
    layers: Layers,
    rendezvous: Rendezvous,
    upgrade: Upgrade,
}

#[derive(Debug)]
enum Layers {
    /// The engine as it is.
    Plain(Box<restp_proto::Endpoint>),
    /// With a seal under it, which asks for the keys of the hosts that it trusts.
    Sealed(Box<Sealed<restp_proto::Endpoint>>, Trust),
}

impl Layers {
    fn seal(&self) -> Option<&Sealed<restp_proto::Endpoint>> {
        match self {
            Layers::Plain(_) => None,
            Layers::Sealed(sealed, _) => Some(sealed),
        }
    }
}

macro_rules! each {
    ($layers:expr, $machine:ident => $call:expr) => {
        match $layers {
            Layers::Plain($machine) => $call,
            Layers::Sealed($machine, _) => $call,
        }
    };
}

/// Payload of a segment where nothing else is said: with the seal and every header it stays below the 1500 bytes of an
/// Ethernet packet (1340 + 52 + 31 + 48).
const SEGMENT_BYTES: u32 = 1340;

impl Transport {
    pub(crate) fn new(config: EndpointConfig, security: Security) -> io::Result<Self> {
        let Security::Sealed(identity) = security else {
            tracing::warn!("without a seal: anybody on the way can read and change what this endpoint sends");
            return Ok(Layers::Plain(Box::new(restp_proto::Endpoint::new(config))).into());
        };
        let seal = SealConfig {
            clients: identity.clients,
            serves: !config.listeners.is_empty(),
            first_use: !matches!(identity.trust, Trust::Nobody),
            awaits_proof: identity.awaits_proof,
            fast_aes: has_fast_aes(),
            ..SealConfig::new(identity.secret, random()?, bare_request)
        };
        let engine = restp_proto::Endpoint::new(under_seal(config));
        Ok(Layers::Sealed(Box::new(Sealed::new(engine, seal)), identity.trust).into())
    }

    /// The engine, whatever is under it.
    pub fn engine(&self) -> &restp_proto::Endpoint {
        match &self.layers {
            Layers::Plain(engine) => engine,
            Layers::Sealed(sealed, _) => sealed.inner(),
        }
    }

    pub(crate) fn engine_mut(&mut self) -> &mut restp_proto::Endpoint {
        match &mut self.layers {
            Layers::Plain(engine) => engine,
            Layers::Sealed(sealed, _) => sealed.inner_mut(),
        }
    }

    pub(crate) fn seal(&self) -> Option<&Sealed<restp_proto::Endpoint>> {
        self.layers.seal()
    }

    pub(crate) fn seal_mut(&mut self) -> Option<&mut Sealed<restp_proto::Endpoint>> {
        match &mut self.layers {
            Layers::Plain(_) => None,
            Layers::Sealed(sealed, _) => Some(sealed),
        }
    }

    /// The key that the host at `remote` must have.
    pub(crate) fn expected(&self, remote: SocketAddr) -> Option<PublicKey> {
        match &self.layers {
            Layers::Plain(_) => None,
            Layers::Sealed(sealed, trust) => sealed.expected(remote).or_else(|| trust.key_of(remote)),
        }
    }

    /// What is said to relays.
    pub(crate) fn rendezvous(&mut self) -> &mut Rendezvous {
        &mut self.rendezvous
    }

    /// Goes from relayed paths to direct ones, and back.
    fn take_turn(&mut self, now: Time) {
        let (upgrade, rendezvous) = (&mut self.upgrade, &mut self.rendezvous);
        each!(&mut self.layers, machine => upgrade.turn(now, &mut **machine, rendezvous));
    }

    /// Where keys of hosts that are met for the first time are remembered.
    #[cfg(unix)]
    pub(crate) fn known_hosts(&self) -> Option<&KnownHosts> {
        match &self.layers {
            Layers::Sealed(_, Trust::KnownHosts(hosts)) => Some(hosts),
            _ => None,
        }
    }
}

/// What a seal below changes: addresses are proved, and segments of the default size a little smaller; sizes that somebody chose stay.
fn under_seal(mut config: EndpointConfig) -> EndpointConfig {
    config.addresses_proved = true;
    let default = Composition::default().segment_bytes;
    let shrink = |composition: &mut Composition| {
        if composition.segment_bytes == default {
            composition.segment_bytes = SEGMENT_BYTES;
        }
    };
    let mut opened = Composition::clone(&config.composition);
    shrink(&mut opened);
    if let Ok(smaller) = opened.check() {
        config.composition = smaller;
    }
    for listener in &mut config.listeners {
        shrink(&mut listener.composition);
    }
    config
}

fn has_fast_aes() -> bool {
    #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
    return std::arch::is_x86_feature_detected!("aes");
    #[cfg(target_arch = "aarch64")]
    return std::arch::is_aarch64_feature_detected!("aes");
    #[cfg(not(any(target_arch = "x86", target_arch = "x86_64", target_arch = "aarch64")))]
    false
}

impl Flow for Transport {
    fn open(&mut self, now: Time, path: PathAddress, port: u16) -> Result<FlowId, OpenError> {
        let expected = self.expected(path.remote);
        if let (Some(sealed), Some(key)) = (self.seal_mut(), expected) {
            sealed.expect(path.remote, key);
        }
        let flow = each!(&mut self.layers, machine => machine.open(now, path, port))?;
        self.upgrade.on_opened(flow);
        Ok(flow)
    }
    fn add_path(
        &mut self,
        now: Time,
        flow: FlowId,
        path: PathAddress,
        backup: bool,
    ) -> Result<(), OpenError> {
        each!(&mut self.layers, machine => machine.add_path(now, flow, path, backup))
    }
    fn remove_path(&mut self, now: Time, flow: FlowId, path: PathAddress) -> Result<(), OpenError> {
        each!(&mut self.layers, machine => machine.remove_path(now, flow, path))
    }
    fn write(&mut self, now: Time, flow: FlowId, data: Bytes) -> Result<(), WriteError> {
        each!(&mut self.layers, machine => machine.write(now, flow, data))
    }
    fn write_on(
        &mut self,
        now: Time,
        flow: FlowId,
        data: Bytes,
        path: PathAddress,
    ) -> Result<(), WriteError> {
        each!(&mut self.layers, machine => machine.write_on(now, flow, data, path))
    }
    fn read(&mut self, now: Time, flow: FlowId) -> Read {
        each!(&mut self.layers, machine => machine.read(now, flow))
    }
    fn finish(&mut self, now: Time, flow: FlowId) {
        each!(&mut self.layers, machine => machine.finish(now, flow));
    }
    fn streams(&mut self, now: Time, flow: FlowId) -> Option<&mut dyn Streams> {
        each!(&mut self.layers, machine => machine.streams(now, flow))
    }
    fn abort(&mut self, now: Time, flow: FlowId) {
        each!(&mut self.layers, machine => machine.abort(now, flow));
    }
    fn release(&mut self, now: Time, flow: FlowId) {
        self.upgrade.forget(flow);
        each!(&mut self.layers, machine => machine.release(now, flow));
    }
    fn stats(&self, flow: FlowId) -> Option<FlowStats> {
        each!(&self.layers, machine => machine.stats(flow))
    }
    fn take_losses(&mut self, flow: FlowId, into: &mut Vec<Loss>) -> bool {
        each!(&mut self.layers, machine => machine.take_losses(flow, into))
    }
    fn reconfigure(
        &mut self,
        now: Time,
        flow: FlowId,
        set: &[(String, String)],
    ) -> Result<Change, ChangeError> {
        each!(&mut self.layers, machine => machine.reconfigure(now, flow, set))
    }
    fn take_changes(&mut self, now: Time, flow: FlowId, into: &mut Vec<Changed>) -> bool {
        each!(&mut self.layers, machine => machine.take_changes(now, flow, into))
    }
}

impl Machine for Transport {
    fn handle(&mut self, now: Time, input: Input<'_>) {
        match input {
            Input::Datagram(datagram) if first_byte(datagram).is_some_and(is_message) => {
                self.rendezvous
                    .on_datagram(now, datagram.path, &datagram.to_vec());
            }
            Input::Deadline => {
                self.rendezvous.on_deadline(now);
                each!(&mut self.layers, machine => machine.handle(now, Input::Deadline));
            }
            other => each!(&mut self.layers, machine => machine.handle(now, other)),
        }
        self.take_turn(now);
    }
    fn poll_transmit(&mut self, now: Time, out: &mut Datagram) -> bool {
        if self.rendezvous.poll_transmit(out) {
            return true;
        }
        let leaves = each!(&mut self.layers, machine => machine.poll_transmit(now, out));
        if leaves {
            let (seal, to) = (self.layers.seal(), out.path.remote);
            let is_proved = || seal.is_some_and(|seal| seal.peer_key(to).is_some());
            self.rendezvous.on_sent(now, out, is_proved);
        }
        leaves
    }
    fn poll_event(&mut self) -> Option<Event> {
        let event = each!(&mut self.layers, machine => machine.poll_event())?;
        self.upgrade.on_event(&event, &self.rendezvous);
        Some(event)
    }
    fn next_deadline(&self) -> Option<(Time, Wakeup)> {
        if self.upgrade.is_due() {
            return Some((Time::ZERO, Wakeup::Probe));
        }
        let layers = each!(&self.layers, machine => machine.next_deadline());
        layers
            .into_iter()
            .chain(self.rendezvous.deadline())
            .min_by_key(|(at, _)| *at)
    }
    fn held(&self) -> usize {
        each!(&self.layers, machine => machine.held())
    }
}

impl From<Layers> for Transport {
    fn from(layers: Layers) -> Self {
        Transport {
            layers,
            rendezvous: Rendezvous::default(),
            upgrade: Upgrade::default(),
        }
    }
}

fn first_byte(datagram: &Datagram) -> Option<u8> {
    datagram.head.first().or_else(|| datagram.body.first()).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a sealed endpoint with the key `secret` sends first.
    fn first_word(secret: &SecretKey) -> Vec<u8> {
        let config = EndpointConfig::new(Composition::default().check().expect("valid"));
        let security = Security::Sealed(Identity {
            trust: Trust::Key(SecretKey::from_chance([2; 32]).public()),
            ..Identity::of(secret.clone())
        });
        let mut transport = Transport::new(config, security).expect("chance");
        let path = PathAddress {
            local: ([127, 0, 0, 1], 1).into(),
            remote: ([127, 0, 0, 1], 2).into(),
        };
        transport.open(Time::ZERO, path, 7).expect("a port");
        let mut out = Datagram::empty();
        assert!(transport.poll_transmit(Time::ZERO, &mut out));
        out.to_vec()
    }

    /// Names of sessions, one-time keys and everything else that nobody may foresee follow from it.
    #[test]
    fn each_endpoint_draws_its_chance_from_the_system() {
        let secret = SecretKey::from_chance([1; 32]);
        let (one, other) = (first_word(&secret), first_word(&secret));
        assert_eq!((one[0], one.len()), (other[0], other.len()));
        assert_ne!(one[1..9], other[1..9], "the name of the session");
        assert_ne!(one[25..57], other[25..57], "the one-time key");
    }

    /// Nobody would notice a call that is not handed on: an engine need not tell of its losses.
    #[test]
    fn losses_are_asked_of_the_engine_under_the_seal_or_without() {
        let config = || EndpointConfig::new(Composition::default().check().expect("valid"));
        let identity = Identity::of(SecretKey::from_chance([1; 32]));
        for security in [Security::Plain, Security::Sealed(identity)] {
            let mut transport = Transport::new(config(), security).expect("chance");
            assert!(transport.take_losses(FlowId(0), &mut Vec::new()));
        }
    }
}
