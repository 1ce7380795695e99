//! QUIC by quinn: one unidirectional stream, TLS 1.3 with AES-128-GCM of ring, its default, or of aws-lc, the library's own
//! CUBIC and batching.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use peers::{Meter, Role, UDP_PAYLOAD, announce, to_hex, udp_socket};
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::{ClientConfig, Endpoint, EndpointConfig, MtuDiscoveryConfig, ServerConfig, TokioRuntime};
use quinn::{TransportConfig, VarInt};
use rustls::crypto::{CryptoProvider, aws_lc_rs, ring};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};

/// The window quinn is fastest with here, of 1, 4, 16 and 64 MiB: larger ones leave the cache and overflow the socket.
const WINDOW_BYTES: u32 = 4 << 20;
const WRITE_BYTES: usize = 256 << 10;
const ALPN: &[u8] = b"bulk";

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let aws_lc = arguments.first().is_some_and(|first| first == "--aws-lc");
    if aws_lc {
        arguments.remove(0);
    }
    let provider = provider(aws_lc);
    match Role::parse(arguments)? {
        Role::Server { listen } => serve(listen, provider).await,
        Role::Client {
            to,
            seconds,
            certificate,
        } => {
            let certificate = certificate.context("a client needs the server's --certificate")?;
            send(to, Duration::from_secs_f64(seconds), certificate, provider).await
        }
    }
}

async fn serve(listen: SocketAddr, provider: Arc<CryptoProvider>) -> anyhow::Result<()> {
    let identity = rcgen::generate_simple_self_signed(vec!["localhost".into()])?;
    let certificate = identity.cert.der().clone();
    let key = PrivatePkcs8KeyDer::from(identity.signing_key.serialize_der());
    let mut tls = rustls::ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_no_client_auth()
        .with_single_cert(vec![certificate.clone()], key.into())?;
    tls.alpn_protocols = vec![ALPN.to_vec()];
    let mut config = ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(tls)?));
    config.transport_config(transport()?);

    let socket = udp_socket(listen)?;
    let endpoint = Endpoint::new(
        EndpointConfig::default(),
        Some(config),
        socket,
        Arc::new(TokioRuntime),
    )?;
    announce(
        endpoint.local_addr()?,
        &["--certificate".into(), to_hex(&certificate)],
    );

    let connection = endpoint.accept().await.context("endpoint closed")?.await?;
    let mut stream = connection.accept_uni().await?;
    let mut meter = Meter::default();
    while let Some(chunk) = stream.read_chunk(usize::MAX, true).await? {
        meter.add(chunk.bytes.len());
    }
    let mut reply = connection.open_uni().await?;
    reply.write_all(&meter.bytes().to_be_bytes()).await?;
    reply.finish()?;
    connection.closed().await;
    meter.report("quinn", "server", "")
}

async fn send(
    to: SocketAddr,
    duration: Duration,
    certificate: Vec<u8>,
    provider: Arc<CryptoProvider>,
) -> anyhow::Result<()> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from(certificate))?;
    let mut tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_root_certificates(roots)
        .with_no_client_auth();
    tls.alpn_protocols = vec![ALPN.to_vec()];
    let mut config = ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls)?));
    config.transport_config(transport()?);

    let socket = udp_socket((Ipv4Addr::UNSPECIFIED, 0).into())?;
    let endpoint = Endpoint::new(EndpointConfig::default(), None, socket, Arc::new(TokioRuntime))?;
    let connection = endpoint.connect_with(config, to, "localhost")?.await?;
    let mut stream = connection.open_uni().await?;
    let data = vec![0x5a; WRITE_BYTES];
    let mut meter = Meter::default();
    let end = Instant::now() + duration;
    while Instant::now() < end {
        stream.write_all(&data).await?;
        meter.add(data.len());
    }
    stream.finish()?;
    let mut reply = connection.accept_uni().await?;
    let mut received = [0; 8];
    reply.read_exact(&mut received).await?;
    anyhow::ensure!(
        u64::from_be_bytes(received) == meter.bytes(),
        "the server got another number of bytes"
    );
    let path = connection.stats().path;
    connection.close(VarInt::from_u32(0), b"");
    endpoint.wait_idle().await;
    let extra = format!(
        "\"udp_payload\": {}, \"packets\": {}, \"packets_lost\": {}",
        path.current_mtu, path.sent_packets, path.lost_packets
    );
    meter.report("quinn", "client", &extra)
}

fn transport() -> anyhow::Result<Arc<TransportConfig>> {
    let mut discovery = MtuDiscoveryConfig::default();
    discovery.upper_bound(UDP_PAYLOAD);
    let mut config = TransportConfig::default();
    config
        .initial_mtu(UDP_PAYLOAD)
        .mtu_discovery_config(Some(discovery))
        .stream_receive_window(WINDOW_BYTES.into())
        .receive_window(WINDOW_BYTES.into())
        .send_window(WINDOW_BYTES.into());
    Ok(Arc::new(config))
}

/// The cheapest suite both ends have: the comparison is not to be won by a longer key.
fn provider(aws_lc: bool) -> Arc<CryptoProvider> {
    let mut provider = if aws_lc {
        aws_lc_rs::default_provider()
    } else {
        ring::default_provider()
    };
    provider
        .cipher_suites
        .retain(|suite| suite.suite() == rustls::CipherSuite::TLS13_AES_128_GCM_SHA256);
    Arc::new(provider)
}
