//! QUIC by quinn: one bidirectional stream per connection, TLS 1.3, with or without 0-RTT.

use crate::arguments::Arguments;
use crate::channel::Channel;
use crate::tls;
use anyhow::{Context, bail};
use peers::{announce, to_hex, udp_socket};
use quinn::congestion::BbrConfig;
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::{ClientConfig, Connection, Endpoint, EndpointConfig, IdleTimeout, RecvStream, SendStream};
use quinn::{ServerConfig, TokioRuntime, TransportConfig};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

/// More than any path here holds.
const WINDOW_BYTES: u32 = 16 << 20;
/// The default of 30 s would end connections in the longest outage.
pub const IDLE: Duration = Duration::from_secs(180);

pub struct Client {
    endpoint: Endpoint,
    to: SocketAddr,
    early: bool,
}

impl Client {
    pub fn new(arguments: &Arguments) -> anyhow::Result<Self> {
        let tls = tls::client(arguments)?;
        let mut config = ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls)?));
        config.transport_config(transport(&arguments.congestion)?);
        let mut endpoint = endpoint(None, (Ipv4Addr::UNSPECIFIED, 0).into())?;
        endpoint.set_default_client_config(config);
        Ok(Client {
            endpoint,
            to: arguments.address()?,
            early: arguments.early,
        })
    }

    pub async fn open(&self) -> anyhow::Result<Channel> {
        let connecting = self.endpoint.connect(self.to, "localhost")?;
        let connection = if self.early {
            match connecting.into_0rtt() {
                Ok((connection, _)) => connection,
                Err(connecting) => connecting.await?, // the first visit
            }
        } else {
            connecting.await?
        };
        let streams = connection.open_bi().await?;
        Ok(channel(streams, connection))
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
        // A server may answer before the handshake is complete.
        let connection = match incoming.accept()?.into_0rtt() {
            Ok((connection, _)) => connection,
            Err(connecting) => connecting.await?,
        };
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
        "cubic" => {} // quinn's own
        "bbr" => {
            config.congestion_controller_factory(Arc::new(BbrConfig::default()));
        }
        other => bail!("quinn has no {other} here"),
    }
    config
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
