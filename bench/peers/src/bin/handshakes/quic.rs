//! QUIC's side: quinn-proto with rustls, as shipped. The server has a self-signed certificate, which clients trust; clients have
//! none. Both a full and a resumed handshake hand out tickets that the server need not remember, as ResTP's do.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use quinn_proto::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn_proto::{
    ClientConfig, Connection, ConnectionHandle, DatagramEvent, Endpoint, EndpointConfig, Event, ServerConfig,
    TransportConfig, VarInt,
};
use rustls::client::Resumption;
use rustls::crypto::{CryptoProvider, aws_lc_rs, ring};
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::server::ProducesTickets;
use rustls::version::TLS13;

use crate::{BATCH, address};

const NAME: &str = "localhost";

pub struct Meeting {
    resumed: bool,
    now: Instant,
    server: Endpoint,
    standing: Vec<(ConnectionHandle, Connection, bool)>,
    configs: Vec<ClientConfig>,
    clients: Vec<Client>,
    tickets: Arc<Counted>,
    /// Tickets opened before this batch.
    opened: usize,
    to_server: Vec<(SocketAddr, Vec<u8>)>,
    to_clients: Vec<(SocketAddr, Vec<u8>)>,
    visits: usize,
    bytes: [usize; 2],
}

struct Client {
    config: Option<ClientConfig>,
    endpoint: Endpoint,
    own: SocketAddr,
    connection: Option<(ConnectionHandle, Connection)>,
    connected: bool,
}

/// Tickets of the library, counted where one opens: a handshake that asked to be resumed and was.
#[derive(Debug)]
struct Counted {
    inner: Arc<dyn ProducesTickets>,
    opened: AtomicUsize,
}

impl ProducesTickets for Counted {
    fn enabled(&self) -> bool {
        self.inner.enabled()
    }
    fn lifetime(&self) -> u32 {
        self.inner.lifetime()
    }
    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        self.inner.encrypt(plain)
    }
    fn decrypt(&self, cipher: &[u8]) -> Option<Vec<u8>> {
        let plain = self.inner.decrypt(cipher);
        self.opened.fetch_add(plain.is_some().into(), Relaxed);
        plain
    }
}

impl Meeting {
    pub fn new(kind: &str, library: &str) -> anyhow::Result<Self> {
        let (mut provider, tickets) = match library {
            "ring" => (ring::default_provider(), ring::Ticketer::new()?),
            "aws-lc" => (aws_lc_rs::default_provider(), aws_lc_rs::Ticketer::new()?),
            _ => bail!("{library:?}: allowed are ring, aws-lc"),
        };
        let algorithm = match kind {
            "ecdsa" | "resumed" => &rcgen::PKCS_ECDSA_P256_SHA256,
            "ed25519" => &rcgen::PKCS_ED25519,
            _ => bail!("{kind:?}: allowed are ecdsa, ed25519, resumed"),
        };
        // The one curve of both protocols.
        provider
            .kx_groups
            .retain(|group| group.name() == rustls::NamedGroup::X25519);
        let provider = Arc::new(provider);
        let key = rcgen::KeyPair::generate_for(algorithm)?;
        let certificate = rcgen::CertificateParams::new(vec![NAME.into()])?.self_signed(&key)?;
        let tickets = Arc::new(Counted {
            inner: tickets,
            opened: AtomicUsize::new(0),
        });
        let private = PrivatePkcs8KeyDer::from(key.serialize_der());
        let mut tls = rustls::ServerConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(&[&TLS13])?
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], private.into())?;
        tls.ticketer = tickets.clone();
        tls.send_tls13_tickets = 1; // ResTP gives one
        let mut server = ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(tls)?));
        server.transport_config(transport());
        let configs = (0..BATCH).map(|_| client(provider.clone(), &certificate, kind == "resumed"));
        let mut meeting = Meeting {
            resumed: false,
            now: Instant::now(),
            server: Endpoint::new(
                Arc::new(EndpointConfig::default()),
                Some(Arc::new(server)),
                true,
                None,
            ),
            standing: Vec::new(),
            configs: configs.collect::<anyhow::Result<_>>()?,
            clients: Vec::new(),
            tickets,
            opened: 0,
            to_server: Vec::new(),
            to_clients: Vec::new(),
            visits: 0,
            bytes: [0; 2],
        };
        // A first visit, from which those who come again have their tickets.
        use crate::Meeting as _;
        meeting.gather()?;
        loop {
            meeting.clients()?;
            if meeting.server() {
                break;
            }
        }
        meeting.part()?;
        (meeting.resumed, meeting.bytes) = (kind == "resumed", [0; 2]);
        Ok(meeting)
    }
}

fn client(
    provider: Arc<CryptoProvider>,
    trusted: &rcgen::Certificate,
    resumes: bool,
) -> anyhow::Result<ClientConfig> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(trusted.der().clone())?;
    let mut tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13])?
        .with_root_certificates(roots)
        .with_no_client_auth();
    if !resumes {
        tls.resumption = Resumption::disabled();
    }
    let mut config = ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls)?));
    config.transport_config(transport());
    Ok(config)
}

/// Without probes for larger datagrams, which are no part of a handshake.
fn transport() -> Arc<TransportConfig> {
    let mut transport = TransportConfig::default();
    transport.mtu_discovery_config(None);
    Arc::new(transport)
}

/// What `connection` has to send, in datagrams.
fn transmit(now: Instant, connection: &mut Connection, mut send: impl FnMut(SocketAddr, Vec<u8>)) {
    let mut buffer = Vec::new();
    while let Some(sent) = connection.poll_transmit(now, 1, &mut buffer) {
        send(sent.destination, buffer[..sent.size].to_vec());
        buffer.clear();
    }
}

/// News between `connection` and its endpoint, and whether it stands now.
fn settle(endpoint: &mut Endpoint, handle: ConnectionHandle, connection: &mut Connection) -> bool {
    while let Some(event) = connection.poll_endpoint_events() {
        if let Some(event) = endpoint.handle_event(handle, event) {
            connection.handle_event(event);
        }
    }
    let mut connected = false;
    while let Some(event) = connection.poll() {
        connected |= matches!(event, Event::Connected);
    }
    connected
}

impl crate::Meeting for Meeting {
    fn gather(&mut self) -> anyhow::Result<()> {
        self.now += Duration::from_secs(1);
        for config in &self.configs {
            self.visits += 1;
            self.clients.push(Client {
                config: Some(config.clone()),
                endpoint: Endpoint::new(Arc::new(EndpointConfig::default()), None, true, None),
                own: address(self.visits),
                connection: None,
                connected: false,
            });
        }
        Ok(())
    }

    fn clients(&mut self) -> anyhow::Result<()> {
        self.to_clients.sort_by_key(|(to, _)| *to); // one client after another takes its own
        let mut arriving = self.to_clients.drain(..).peekable();
        let (now, mut scratch) = (self.now, Vec::new());
        for client in &mut self.clients {
            if let Some(config) = client.config.take() {
                client.connection = Some(client.endpoint.connect(now, config, address(0), NAME)?);
            }
            let (handle, connection) = client.connection.as_mut().context("it has begun")?;
            while let Some((_, bytes)) = arriving.next_if(|(to, _)| *to == client.own) {
                let event =
                    client
                        .endpoint
                        .handle(now, address(0), None, None, bytes[..].into(), &mut scratch);
                if let Some(DatagramEvent::ConnectionEvent(_, event)) = event {
                    connection.handle_event(event);
                }
            }
            client.connected |= settle(&mut client.endpoint, *handle, connection);
            transmit(now, connection, |_, bytes| {
                self.bytes[0] += bytes.len();
                self.to_server.push((client.own, bytes));
            });
        }
        Ok(())
    }

    fn server(&mut self) -> bool {
        let quiet = self.to_server.is_empty();
        let (now, mut scratch) = (self.now, Vec::new());
        for (from, bytes) in self.to_server.drain(..) {
            let event = self
                .server
                .handle(now, from, None, None, bytes[..].into(), &mut scratch);
            let place = match event {
                Some(DatagramEvent::NewConnection(incoming)) => {
                    let Ok((handle, connection)) = self.server.accept(incoming, now, &mut scratch, None)
                    else {
                        continue;
                    };
                    self.standing.push((handle, connection, false));
                    Some(self.standing.len() - 1)
                }
                Some(DatagramEvent::ConnectionEvent(handle, event)) => {
                    let place = self.standing.iter().position(|(other, ..)| *other == handle);
                    if let Some(place) = place {
                        self.standing[place].1.handle_event(event);
                    }
                    place
                }
                _ => None,
            };
            if let Some((handle, connection, connected)) = place.map(|place| &mut self.standing[place]) {
                *connected |= settle(&mut self.server, *handle, connection);
                transmit(now, connection, |to, bytes| {
                    self.bytes[1] += bytes.len();
                    self.to_clients.push((to, bytes));
                });
            }
        }
        quiet
    }

    fn part(&mut self) -> anyhow::Result<()> {
        let connected = self.clients.iter().filter(|client| client.connected).count();
        let standing = self.standing.iter().filter(|(.., connected)| *connected).count();
        ensure!(
            (connected, standing) == (BATCH, BATCH),
            "{connected} clients and {standing} at the server"
        );
        let opened = self.tickets.opened.load(Relaxed) - std::mem::take(&mut self.opened);
        ensure!(opened == if self.resumed { BATCH } else { 0 }, "{opened} resumed");
        self.opened = self.tickets.opened.load(Relaxed);
        self.clients.clear();
        for (handle, mut connection, _) in self.standing.drain(..) {
            connection.close(self.now, VarInt::from_u32(0), Default::default());
            while connection.poll_transmit(self.now, 1, &mut Vec::new()).is_some() {}
            // Until its draining period is over.
            while let Some(at) = connection.poll_timeout() {
                connection.handle_timeout(at);
            }
            settle(&mut self.server, handle, &mut connection);
        }
        Ok(())
    }

    fn bytes(&self) -> [usize; 2] {
        self.bytes
    }
}
