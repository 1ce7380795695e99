//! TLS 1.3 for QUIC: a certificate made at every start, which the client is told on its command line.

use crate::arguments::Arguments;
use anyhow::Context;
use peers::from_hex;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use rustls::{ClientConfig, RootCertStore, ServerConfig, version::TLS13};
use std::sync::Arc;

const ALPN: &[u8] = b"path";

/// The client, which trusts the one certificate it was told.
pub fn client(arguments: &Arguments) -> anyhow::Result<ClientConfig> {
    let certificate = arguments
        .certificate
        .as_deref()
        .context("a client needs the server's --certificate")?;
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from(from_hex(certificate)?))?;
    let mut config = ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS13])?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![ALPN.to_vec()];
    config.enable_early_data = arguments.early;
    Ok(config)
}

/// The server, and its certificate.
pub fn server() -> anyhow::Result<(ServerConfig, CertificateDer<'static>)> {
    let identity = rcgen::generate_simple_self_signed(vec!["localhost".into()])?;
    let certificate = identity.cert.der().clone();
    let key = PrivatePkcs8KeyDer::from(identity.signing_key.serialize_der());
    let mut config = ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS13])?
        .with_no_client_auth()
        .with_single_cert(vec![certificate.clone()], key.into())?;
    config.alpn_protocols = vec![ALPN.to_vec()];
    config.max_early_data_size = u32::MAX; // QUIC's way of saying yes (RFC 9001 §4.6.1)
    Ok((config, certificate))
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}
