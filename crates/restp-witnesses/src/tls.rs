//! TLS 1.3 for both QUICs, without chance: the same handshake in every run. Messages have the lengths of a handshake with
//! raw public keys (RFC 7250) and X25519; records are sealed and opened as shipped. The ends agree on their secrets
//! beforehand, since a simulated network has no eavesdropper.

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{
    ActiveKeyExchange, CryptoProvider, GetRandomFailed, KeyProvider, SecureRandom, SharedSecret,
    SupportedKxGroup, WebPkiSupportedAlgorithms, aws_lc_rs,
};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use rustls::server::{AlwaysResolvesServerRawPublicKeys, NoServerSessionStorage};
use rustls::sign::{CertifiedKey, SigningKey};
use rustls::time_provider::TimeProvider;
use rustls::{ClientConfig, DigitallySignedStruct, Error, NamedGroup, ServerConfig, SignatureScheme};
use std::sync::Arc;
use std::time::Duration;

/// Both ends of every connection. Everything in them is a constant, so nothing here can fail in one run and not in
/// another.
pub(crate) fn configs() -> (Arc<ClientConfig>, Arc<ServerConfig>) {
    let provider = Arc::new(CryptoProvider {
        cipher_suites: vec![aws_lc_rs::cipher_suite::TLS13_AES_128_GCM_SHA256],
        kx_groups: vec![&Agreed],
        signature_verification_algorithms: WebPkiSupportedAlgorithms {
            all: &[],
            mapping: &[],
        },
        secure_random: &Agreed,
        key_provider: &Agreed,
    });
    let versions = &[&rustls::version::TLS13];
    let mut client = ClientConfig::builder_with_details(provider.clone(), Arc::new(Agreed))
        .with_protocol_versions(versions)
        .expect(SUITE)
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Agreed))
        .with_no_client_auth();
    client.resumption = rustls::client::Resumption::disabled();
    let identity = AlwaysResolvesServerRawPublicKeys::new(Arc::new(identity(&provider)));
    let mut server = ServerConfig::builder_with_details(provider, Arc::new(Agreed))
        .with_protocol_versions(versions)
        .expect(SUITE)
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(identity));
    server.session_storage = Arc::new(NoServerSessionStorage {});
    server.send_tls13_tickets = 0;
    (Arc::new(client), Arc::new(server))
}

/// Why a QUIC takes these settings.
pub(crate) const SUITE: &str = "the suite that every QUIC has (RFC 9001 §5.3)";

/// The server's key, and its public half in the place of a certificate.
fn identity(provider: &CryptoProvider) -> CertifiedKey {
    let key = PrivatePkcs8KeyDer::from(&ED25519_KEY[..]).into();
    let key = provider
        .key_provider
        .load_private_key(key)
        .expect("32 bytes are a key of Ed25519");
    let public = key.public_key().expect("Ed25519 has one");
    CertifiedKey::new(vec![CertificateDer::from(public.as_ref().to_vec())], key)
}

/// The one value of everything that is secret or random.
const AGREED: u8 = 0x52;

/// Version, algorithm 1.3.101.112, and 32 bytes of seed (RFC 8410 §7).
const ED25519_KEY: [u8; 48] = {
    let head = [
        0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20,
    ];
    let mut key = [AGREED; 48];
    let mut at = 0;
    while at < head.len() {
        key[at] = head[at];
        at += 1;
    }
    key
};

/// What both ends settled before they met.
#[derive(Debug)]
struct Agreed;

impl SecureRandom for Agreed {
    fn fill(&self, bytes: &mut [u8]) -> Result<(), GetRandomFailed> {
        bytes.fill(AGREED);
        Ok(())
    }
}

impl KeyProvider for Agreed {
    fn load_private_key(&self, key: PrivateKeyDer<'static>) -> Result<Arc<dyn SigningKey>, Error> {
        match key {
            PrivateKeyDer::Pkcs8(key) => aws_lc_rs::sign::any_eddsa_type(&key),
            _ => Err(Error::General("the one key there is has another form".into())),
        }
    }
}

impl SupportedKxGroup for Agreed {
    fn start(&self) -> Result<Box<dyn ActiveKeyExchange>, Error> {
        Ok(Box::new(Agreed))
    }
    fn name(&self) -> NamedGroup {
        NamedGroup::X25519
    }
}

impl ActiveKeyExchange for Agreed {
    fn complete(self: Box<Self>, _theirs: &[u8]) -> Result<SharedSecret, Error> {
        Ok(SharedSecret::from(&[AGREED; 32][..]))
    }
    fn pub_key(&self) -> &[u8] {
        &[AGREED; 32]
    }
    fn group(&self) -> NamedGroup {
        NamedGroup::X25519
    }
}

impl TimeProvider for Agreed {
    fn current_time(&self) -> Option<UnixTime> {
        Some(UnixTime::since_unix_epoch(Duration::ZERO))
    }
}

impl ServerCertVerifier for Agreed {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }
    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(Error::General("QUIC is TLS 1.3".into()))
    }
    fn verify_tls13_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }
    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }
    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}
