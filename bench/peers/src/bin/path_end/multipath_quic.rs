//! Multipath QUIC by noq: one bidirectional stream per connection over every address of the server.

use crate::arguments::Arguments;
use crate::channel::Channel;
use crate::quic::IDLE;
use crate::tls;
use anyhow::{Context, bail};
use noq::congestion::{Bbr3Config, CubicConfig};
use noq::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use noq::{ClientConfig, Connection, Endpoint, EndpointConfig, IdleTimeout, PathError, PathStatus};
use noq::{RecvStream, SendStream, ServerConfig, TokioRuntime, TransportConfig};
use peers::{announce, to_hex, udp_socket};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

/// Twice noq's own. With 16 MiB, as quinn has here, it ends a connection over unequal paths ("too many gaps in stream buffer").
const WINDOW_BYTES: u32 = 2_500_000;
/// As many as the server has addresses, and two in reserve.
const PATHS: u32 = 4;
/// The peer's connection identifiers for a further path come with or after the handshake.
const RETRY: Duration = Duration::from_millis(5);

pub struct Client {
    endpoint: Endpoint,
    to: Vec<SocketAddr>,
}

impl Client {
    pub fn new(arguments: &Arguments) -> anyhow::Result<Self> {
        let tls = tls::client(arguments)?;
        let mut config = ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls)?));
        config.transport_config(transport(&arguments.congestion)?);
        let endpoint = endpoint(None, (Ipv4Addr::UNSPECIFIED, 0).into())?;
        endpoint.set_default_client_config(config);
        Ok(Client {
            endpoint,
            to: arguments.addresses.clone(),
        })
    }

    pub async fn open(&self) -> anyhow::Result<Channel> {
        let (first, others) = self.to.split_first().context("--to IP:PORT is missing")?;
        let connection = self.endpoint.connect(*first, "localhost")?.await?;
        for &other in others {
            tokio::spawn(add_path(connection.clone(), other));
        }
        let streams = connection.open_bi().await?;
        Ok(channel(streams, connection))
    }
}

/// A path once open needs no keeping; one that never opens is seen by who counts packets.
async fn add_path(connection: Connection, to: SocketAddr) {
    loop {
        match connection.open_path(to, PathStatus::Available).await {
            Err(PathError::RemoteCidsExhausted) => tokio::time::sleep(RETRY).await,
            Err(error) => return eprintln!("{to}: {error}"),
            Ok(_) => return,
        }
    }
}

pub struct Server {
    endpoint: Endpoint,
}

impl Server {
    pub fn bind(arguments: &Arguments) -> anyhow::Result<Self> {
        let (tls, certificate) = tls::server()?;
        let mut config = ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(tls)?));
        config.transport_config(transport(&arguments.congestion)?);
        let endpoint = endpoint(Some(config), arguments.address()?)?;
        announce(
            endpoint.local_addr()?,
            &["--certificate".into(), to_hex(&certificate)],
        );
        Ok(Server { endpoint })
    }

    pub async fn accept(&mut self) -> anyhow::Result<Channel> {
        let incoming = self.endpoint.accept().await.context("the endpoint is closed")?;
        let connection = incoming.accept()?.await?;
        let streams = connection.accept_bi().await?;
        Ok(channel(streams, connection))
    }
}

fn endpoint(config: Option<ServerConfig>, at: SocketAddr) -> anyhow::Result<Endpoint> {
    let runtime = Arc::new(TokioRuntime);
    Ok(Endpoint::new(
        EndpointConfig::default(),
        config,
        udp_socket(at)?,
        runtime,
    )?)
}

fn transport(congestion: &str) -> anyhow::Result<Arc<TransportConfig>> {
    let mut config = TransportConfig::default();
    match congestion {
        "cubic" => config.congestion_controller_factory(Arc::new(CubicConfig::default())),
        "bbr3" => config.congestion_controller_factory(Arc::new(Bbr3Config::default())),
        other => bail!("noq has no {other} here"),
    };
    config
        .max_concurrent_multipath_paths(PATHS)
        .stream_receive_window(WINDOW_BYTES.into())
        .receive_window(WINDOW_BYTES.into())
        .send_window(WINDOW_BYTES.into())
        .max_idle_timeout(Some(IdleTimeout::try_from(IDLE)?));
    Ok(Arc::new(config))
}

fn channel((sending, receiving): (SendStream, RecvStream), connection: Connection) -> Channel {
    Channel {
        stream: Box::new(tokio::io::join(receiving, sending)),
        keeps_boundaries: false,
        _keep: Some(Box::new(connection)),
    }
}
