//! What an async user holds of a host: it opens and accepts connections, many over the same sockets.

use crate::connect_error::ConnectError;
use crate::connection::Connection;
use crate::driver::shared::{FlowState, Shared};
use crate::driver::{Driver, Joining};
use crate::locals::{self, Local, Locals, Present, makes_sense};
use crate::netlink::Changes;
use crate::random::random;
use crate::socket::{Socket, SocketStats};
use crate::transport::{Identity, Security, Transport, Trust};
use crate::waiters::until;
use crate::watch;
use restp_base::machine::{Machine, PathAddress};
use restp_base::observe::Observer;
use restp_proto::{EndpointConfig, EndpointStats, InitialNumbers, KeptCookie};
use restp_seal::gate::Gate;
use restp_seal::{PublicKey, SealStats, Token};
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::sync::Arc;
use tracing::Instrument;

/// A host's transport on real sockets: ResTP, or any other [`Machine`].
///
/// Dropping it refuses new connections and leaves those that exist alone; [`Endpoint::close`] waits for them.
///
/// One socket carries many connections, and each may have a composition of its own kind:
///
/// ```
/// use restp::{Acceptance, Endpoint, EndpointConfig, Preset, Trust};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let config = |name| -> Result<EndpointConfig, Box<dyn std::error::Error>> {
///     let preset = Preset::named(name).ok_or("no such preset")?;
///     Ok(EndpointConfig::new(preset.composition().check()?))
/// };
/// let server = Endpoint::bind("127.0.0.1:0".parse()?, config("default")?.listen(7, Acceptance::Any), Trust::Nobody)?;
/// let key = server.public_key().ok_or("sealed")?;
/// let files = Endpoint::bind("127.0.0.1:0".parse()?, config("default")?, Trust::Key(key))?;
/// let telemetry = Endpoint::bind("127.0.0.1:0".parse()?, config("unrel")?, Trust::Key(key))?;
///
/// let reliable = files.connect(server.local_addr(), 7).await?;
/// let datagrams = telemetry.connect(server.local_addr(), 7).await?;
/// datagrams.send("21.5 °C".into()).await?;
///
/// let first = server.accept().await.ok_or("closed")?;
/// let second = server.accept().await.ok_or("closed")?;
/// let kinds = [&first, &second].map(|c| c.composition().map(|c| c.reliability.retransmits()));
/// assert!(kinds.contains(&Some(true)) && kinds.contains(&Some(false)));
/// # drop(reliable);
/// # Ok(())
/// # }
/// ```
pub struct Endpoint<M: Machine = Transport> {
    pub(crate) shared: Arc<Shared<M>>,
}

impl Endpoint {
    /// A ResTP host with one socket. Port 0 lets the system choose.
    ///
    /// Datagrams are authenticated and encrypted under a key of its own; `trust` says whom it reaches.
    /// [`Endpoint::bind_with`] takes a key that lasts.
    ///
    /// On real networks initial sequence numbers and cookies must not be guessed (OP-17, OP-30; RFC 6528): they are
    /// keyed with the system's randomness, whatever `config` says.
    ///
    /// # Errors
    /// When the address cannot be bound, the system gives no randomness, or there is no tokio runtime with I/O
    /// and time around.
    pub fn bind(local: SocketAddr, config: EndpointConfig, trust: Trust) -> io::Result<Self> {
        Self::bind_all(&[local], config, trust)
    }

    /// A ResTP host with one socket per local address.
    ///
    /// # Errors
    /// Those of [`Endpoint::bind`], or when there is no address.
    pub fn bind_all(local: &[SocketAddr], config: EndpointConfig, trust: Trust) -> io::Result<Self> {
        let locals: Vec<Local> = local.iter().copied().map(Local::Address).collect();
        Self::bind_locals(&locals, config, trust)
    }

    /// A ResTP host on addresses and interfaces. Where the kernel tells of changes (Linux), sockets follow the addresses
    /// of the interfaces, and so do the paths of connections made by [`Endpoint::open_to`]. Datagrams are sealed, under a
    /// key of its own.
    ///
    /// # Errors
    /// Those of [`Endpoint::bind`], or when no interface has an address.
    pub fn bind_locals(locals: &[Local], config: EndpointConfig, trust: Trust) -> io::Result<Self> {
        let identity = Identity::fresh()?;
        Self::bind_with(locals, config, Security::Sealed(Identity { trust, ..identity }))
    }

    /// The same with a key that lasts, or without a seal.
    ///
    /// # Errors
    /// Those of [`Endpoint::bind_locals`].
    pub fn bind_with(locals: &[Local], config: EndpointConfig, security: Security) -> io::Result<Self> {
        let (transport, gate) = Self::transport(config, security)?;
        Self::on_locals(transport, locals, gate)
    }

    /// The same over UDP sockets that are bound already, such as those that a service manager hands to a program that it starts.
    ///
    /// # Errors
    /// When there is none, one is not of UDP, or there is no tokio runtime with I/O and time around.
    pub fn on_sockets(
        sockets: Vec<std::net::UdpSocket>,
        config: EndpointConfig,
        security: Security,
    ) -> io::Result<Self> {
        let (transport, gate) = Self::transport(config, security)?;
        Self::start(transport, gate, |present| Locals::adopt(sockets, present))
    }

    fn transport(mut config: EndpointConfig, security: Security) -> io::Result<(Transport, Option<Gate>)> {
        config.initial_numbers = InitialNumbers::Keyed(*random()?);
        config.cookies.key = *random()?;
        let transport = Transport::new(config, security)?;
        let gate = transport.seal().map(|sealed| sealed.gate().clone());
        Ok((transport, gate))
    }

    /// This host's name; `None` without a seal.
    pub fn public_key(&self) -> Option<PublicKey> {
        Some(self.shared.lock().machine.seal()?.public_key())
    }

    /// Tokens that hosts gave, to be kept as cookies are: with both, data need not wait for a round trip.
    pub fn tokens(&self) -> Vec<(PublicKey, Token)> {
        let core = self.shared.lock();
        core.machine
            .seal()
            .map_or_else(Vec::new, |sealed| sealed.tokens().collect())
    }

    /// Takes a token of an earlier endpoint.
    pub fn keep_token(&self, key: PublicKey, token: Token) {
        if let Some(sealed) = self.shared.lock().machine.seal_mut() {
            sealed.keep_token(key, token);
        }
    }

    /// What was counted below the engine; zeros without a seal.
    pub fn seal_stats(&self) -> SealStats {
        let core = self.shared.lock();
        core.machine
            .seal()
            .map_or_else(SealStats::default, restp_seal::Sealed::seal_stats)
    }

    /// The cookies that servers have given, to be kept in a file, say, and shown by a later endpoint. Whoever has one
    /// can send early data from this address.
    pub fn cookies(&self) -> Vec<KeptCookie> {
        let mut core = self.shared.lock();
        let now = core.now();
        core.machine.engine().cookies(now).collect()
    }

    /// Takes a cookie of an earlier endpoint: with an opportunistic composition the next [`Endpoint::open`] to its
    /// server sends what is written at once beside the SYN.
    pub fn keep_cookie(&self, kept: KeptCookie) {
        let mut core = self.shared.lock();
        let now = core.now();
        core.machine.engine_mut().keep_cookie(now, kept);
    }

    /// What the engine counted besides its connections.
    pub fn endpoint_stats(&self) -> EndpointStats {
        self.shared.lock().machine.engine().endpoint_stats()
    }
}

impl<M: Machine + Send + Unpin + 'static> Endpoint<M> {
    /// Runs any [`Machine`] over UDP, with one socket per local address. Port 0 lets the system choose.
    ///
    /// # Errors
    /// When an address cannot be bound, none is given, or there is no tokio runtime with I/O and time around.
    pub fn with_machine(machine: M, local: &[SocketAddr]) -> io::Result<Self> {
        let locals: Vec<Local> = local.iter().copied().map(Local::Address).collect();
        Self::on_locals(machine, &locals, None)
    }

    fn on_locals(machine: M, wanted: &[Local], gate: Option<Gate>) -> io::Result<Self> {
        Self::start(machine, gate, |present| Locals::bind(wanted, present))
    }

    fn start(
        machine: M,
        gate: Option<Gate>,
        bind: impl FnOnce(&[Present]) -> io::Result<Locals>,
    ) -> io::Result<Self> {
        let runtime = tokio::runtime::Handle::try_current().map_err(io::Error::other)?;
        // Subscribed before the first look, so that nothing falls between.
        let changes = Changes::subscribe();
        let present = locals::present().unwrap_or_default();
        let shared = Shared::new(machine, bind(&present)?);
        let local = shared.lock().sockets.first().map(|socket| socket.local());
        let span = tracing::info_span!("endpoint", local = local.map(tracing::field::display));
        runtime.spawn(Driver::new(shared.clone(), gate).instrument(span));
        match changes {
            Ok(changes) => drop(runtime.spawn(watch::follow(shared.clone(), changes))),
            Err(error) => tracing::debug!(%error, "changes of this host's addresses are not noticed"),
        }
        Ok(Endpoint { shared })
    }

    /// Runs one more machine at the ports of this endpoint: it gets the datagrams that begin with one of `first_bytes`, and this
    /// endpoint the others. Its own endpoint lasts no longer than this one. Each has its turn, and each its own room for what
    /// arrives where the kernel tells them apart (Linux; of several such machines the first has it), so that neither waits long for the
    /// other. Of machines that want the same byte, the first gets it as long as it lasts. None of them is told of changes of addresses.
    ///
    /// ```
    /// use restp::{Acceptance, Endpoint, EndpointConfig, Preset, Trust};
    /// use restp_rivals::itp::node::{FIRST_BYTES, Node, NodeConfig};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let preset = Preset::named("default").ok_or("no such preset")?;
    /// let config = EndpointConfig::new(preset.composition().check()?).listen(7, Acceptance::Any);
    /// let connections = Endpoint::bind("127.0.0.1:0".parse()?, config, Trust::Nobody)?;
    /// let content = connections.share_port(Node::new(NodeConfig::new([7; 16])), FIRST_BYTES);
    /// assert_eq!(content.local_addr(), connections.local_addr());
    /// # Ok(())
    /// # }
    /// ```
    pub fn share_port<N: Machine + Send + Unpin + 'static>(
        &self,
        machine: N,
        first_bytes: RangeInclusive<u8>,
    ) -> Endpoint<N> {
        let mut core = self.shared.lock();
        let shared = Shared::beside(machine, core.sockets.clone(), core.clock());
        if core.stopped {
            shared.lock().stop();
        } else {
            core.joining.push(Joining {
                machine: shared.clone(),
                first_bytes,
            });
            core.wake_driver();
        }
        drop(core);
        Endpoint { shared }
    }

    /// Shows `observer` every datagram that passes, as it is on the wire, and what every flow took for lost and its
    /// counters after each turn of the driver. It is called under the endpoint's lock: it must be quick, and must not call the endpoint.
    pub fn observe(&self, observer: Observer) {
        self.shared.lock().observer = Some(observer);
    }

    /// The bound addresses, with the ports the system chose.
    pub fn local_addrs(&self) -> Vec<SocketAddr> {
        let sockets = self.sockets();
        sockets.iter().flat_map(|socket| socket.bound()).collect()
    }

    /// The first bound address; the unspecified one while this host has lost all that were bound.
    pub fn local_addr(&self) -> SocketAddr {
        self.local_addrs()
            .first()
            .copied()
            .unwrap_or(PathAddress::UNSET.local)
    }

    fn sockets(&self) -> Arc<[Arc<Socket>]> {
        self.shared.lock().sockets.clone()
    }

    /// The pairs of a bound address and one of `remotes` that make sense: of one family, and from loopback to loopback
    /// only. For a wildcard the routing table chooses the address now. In the order of `remotes`, so that each of them and
    /// each bound address is tried before any is tried twice: where both ends have an address on each of two links, the
    /// second pair already avoids the first link.
    pub fn paths_to(&self, remotes: &[SocketAddr]) -> Vec<PathAddress> {
        let sockets = self.sockets();
        let mut paths: Vec<(usize, PathAddress)> = Vec::new();
        for &remote in remotes {
            let same_family = |socket: &&Arc<Socket>| socket.has_family_of(remote.ip());
            let sources = sockets.iter().filter(same_family);
            let locals = sources.filter_map(|socket| socket.source_for(remote).ok());
            let mut locals: Vec<_> = locals.filter(|local| makes_sense(*local, remote)).collect();
            let same_family = |path: &PathAddress| path.remote.is_ipv4() == remote.is_ipv4();
            let earlier = paths
                .iter()
                .filter(|(turn, path)| *turn == 0 && same_family(path));
            let first = earlier.count() % locals.len().max(1);
            locals.rotate_left(first);
            let made = locals.into_iter().map(|local| PathAddress { local, remote });
            paths.extend(made.enumerate());
        }
        paths.sort_by_key(|(turn, _)| *turn);
        paths.into_iter().map(|(_, path)| path).collect()
    }

    /// Opens one connection over exactly these paths, in this order, and returns at once.
    ///
    /// # Errors
    /// When there is none, a local address is not bound, or there are several and the composition has one path.
    pub fn open_paths(&self, paths: &[PathAddress], port: u16) -> Result<Connection<M>, ConnectError> {
        let Some((&first, others)) = paths.split_first() else {
            return Err(ConnectError::NoPath);
        };
        let connection = self.open_on(first, port)?;
        for &path in others {
            connection.add_path(path, false)?;
        }
        Ok(connection)
    }

    /// Opens a connection to the service `port` of the host at `remote` and returns at once: what is written now
    /// goes with the first datagrams where the composition allows it (opportunistic set-up, towards a server whose cookie this endpoint
    /// has). [`Connection::established`] tells when both sides know of it, [`Endpoint::confirm`] also who the other side is.
    ///
    /// # Errors
    /// When no local socket reaches `remote` or the machine cannot open the flow.
    pub fn open(&self, remote: SocketAddr, port: u16) -> Result<Connection<M>, ConnectError> {
        let local = self.source_for(remote)?;
        self.open_on(PathAddress { local, remote }, port)
    }

    /// Where datagrams to `remote` leave from now.
    pub(crate) fn source_for(&self, remote: SocketAddr) -> Result<SocketAddr, ConnectError> {
        let unreached = |source| ConnectError::unreached(remote, source);
        let sockets = self.sockets();
        if let Some(socket) = sockets.iter().find(|socket| socket.has_family_of(remote.ip())) {
            return socket.source_for(remote).map_err(unreached);
        }
        let rule = "no local address of the same IP version is bound";
        let source = io::Error::new(io::ErrorKind::AddrNotAvailable, rule);
        Err(match self.shared.lock().follows_links() {
            true => ConnectError::NoRoute { remote, source },
            false => unreached(source),
        })
    }

    /// Opens a connection from a certain local address, one of [`Endpoint::local_addrs`] (or, where that is the
    /// wildcard, any address of this host with its port), and returns at once.
    ///
    /// # Errors
    /// When no socket is bound to the local address or the machine cannot open the flow.
    pub fn open_on(&self, path: PathAddress, port: u16) -> Result<Connection<M>, ConnectError> {
        let mut core = self.shared.lock();
        if core.stopped {
            return Err(ConnectError::Stopped);
        }
        if !core.sockets.iter().any(|socket| socket.serves(&path)) {
            return Err(ConnectError::not_bound(path));
        }
        let now = core.now();
        let flow = core.machine.open(now, path, port)?;
        core.flows.insert(flow, FlowState::default());
        core.wake_driver();
        drop(core);
        Ok(Connection::new(self.shared.clone(), flow))
    }

    /// Waits for a connection that a peer opened. `None` when the endpoint has stopped.
    pub async fn accept(&self) -> Option<Connection<M>> {
        until(|| {
            let mut core = self.shared.lock();
            if let Some(flow) = core.backlog.pop_front() {
                return Ok(Some(Connection::new(self.shared.clone(), flow)));
            }
            if core.stopped {
                Ok(None)
            } else {
                Err(core.acceptors.wait())
            }
        })
        .await
    }

    /// What became of datagrams at the sockets.
    pub fn socket_stats(&self) -> SocketStats {
        self.shared.lock().socket_stats
    }

    /// Takes no new connections, waits until those that exist are over, answers late repetitions for a moment
    /// and gives the sockets back. Connections end when their handles close or drop them, or their peers do.
    pub async fn close(self) {
        self.shared.lock().close();
        until(|| {
            let core = self.shared.lock();
            if core.stopped {
                Ok(())
            } else {
                Err(core.stop_watchers.wait())
            }
        })
        .await;
    }
}

impl<M: Machine> fmt::Debug for Endpoint<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint")
            .field("sockets", &self.shared.lock().sockets)
            .finish_non_exhaustive()
    }
}

impl<M: Machine> Drop for Endpoint<M> {
    fn drop(&mut self) {
        let mut core = self.shared.lock();
        if !core.stopped {
            core.close();
        }
    }
}
