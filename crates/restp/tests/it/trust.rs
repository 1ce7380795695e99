//! Who is at the other end of a connection that is opened: said beforehand, known from an earlier meeting, or anybody; never
//! silently.

#![allow(clippy::unwrap_used, reason = "in a test a failed unwrap is a failed test")]

use crate::common::{PORT, loopback, within};
use restp::{
    Acceptance, ConnectError, Connection, Endpoint, EndpointConfig, KnownHosts, Preset, PublicKey, Trust,
};
use std::net::SocketAddr;
use std::path::Path;

fn config() -> EndpointConfig {
    let composition = Preset::named("default").unwrap().composition();
    EndpointConfig::new(composition.check().unwrap())
}

fn server() -> Endpoint {
    Endpoint::bind(loopback(), config().listen(PORT, Acceptance::Any), Trust::Nobody).unwrap()
}

fn client(trust: Trust) -> Endpoint {
    Endpoint::bind(loopback(), config(), trust).unwrap()
}

/// A new client that knows what the file at `path` says.
fn knowing(path: &Path) -> Endpoint {
    client(Trust::KnownHosts(KnownHosts::load(path).unwrap()))
}

async fn dial(client: &Endpoint, remote: SocketAddr) -> Result<Connection, ConnectError> {
    within("connect", client.connect(remote, PORT)).await
}

fn names_both(error: &ConnectError, expected: PublicKey, told: PublicKey) -> String {
    let said = error.to_string();
    let both = said.contains(&expected.to_string()) && said.contains(&told.to_string());
    assert!(both, "{said}");
    said
}

#[tokio::test]
async fn who_trusts_nobody_opens_nothing_that_was_not_said() {
    let server = server();
    let (remote, key) = (server.local_addr(), server.public_key().unwrap());
    let client = client(Trust::Nobody);
    let refused = dial(&client, remote).await.unwrap_err().to_string();
    assert!(refused.contains("say which key is expected"), "{refused}");
    client.expect(remote, key);
    assert_eq!(dial(&client, remote).await.unwrap().peer_key(), Some(key));
}

#[tokio::test]
async fn a_first_meeting_is_remembered_and_holds_for_every_port() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("known_peers");
    let (first, second) = (server(), server());
    let (one, two) = (first.public_key().unwrap(), second.public_key().unwrap());
    let meeting = knowing(&path);
    drop(dial(&meeting, first.local_addr()).await.unwrap());
    assert_eq!(
        std::fs::read_to_string(&path).unwrap(),
        format!("127.0.0.1 {one}\n")
    );
    for client in [meeting, knowing(&path)] {
        assert!(dial(&client, first.local_addr()).await.is_ok());
        let changed = dial(&client, second.local_addr()).await.unwrap_err();
        let said = names_both(&changed, one, two);
        assert!(
            said.contains("HAS CHANGED") && said.contains(path.to_str().unwrap()),
            "{said}"
        );
    }
    // The way out that it names.
    let line = format!("127.0.0.1 {one}\n{} {two}\n", second.local_addr());
    std::fs::write(&path, line).unwrap();
    let client = knowing(&path);
    assert_eq!(
        dial(&client, second.local_addr()).await.unwrap().peer_key(),
        Some(two)
    );
    assert_eq!(
        dial(&client, first.local_addr()).await.unwrap().peer_key(),
        Some(one)
    );
}

#[tokio::test]
async fn a_meeting_that_cannot_be_remembered_is_no_connection() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("known_peers");
    let server = server();
    let client = knowing(&path);
    std::fs::create_dir(&path).unwrap();
    let refused = dial(&client, server.local_addr()).await.unwrap_err();
    assert!(matches!(refused, ConnectError::KnownHosts(_)), "{refused}");
    let other = client_key();
    std::fs::remove_dir(&path).unwrap();
    std::fs::write(&path, format!("127.0.0.1 {other}\n")).unwrap();
    let doubted = dial(&client, server.local_addr()).await.unwrap_err();
    names_both(&doubted, other, server.public_key().unwrap());
}

fn client_key() -> PublicKey {
    client(Trust::Nobody).public_key().unwrap()
}

#[tokio::test]
async fn a_key_that_was_said_is_reached_or_nobody_and_nothing_is_remembered() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("known_peers");
    let server = server();
    let (remote, key, other) = (server.local_addr(), server.public_key().unwrap(), client_key());
    assert!(dial(&client(Trust::Key(key)), remote).await.is_ok());
    let meant = dial(&client(Trust::Key(other)), remote).await.unwrap_err();
    names_both(&meant, other, key);
    let pinned = knowing(&path);
    pinned.expect(remote, key);
    assert!(dial(&pinned, remote).await.is_ok() && !path.exists());
    assert!(dial(&client(Trust::Anybody), remote).await.is_ok());
}

#[tokio::test]
async fn the_addresses_of_one_connection_are_of_one_host() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("known_peers");
    let server = server();
    let (key, other) = (server.public_key().unwrap(), client_key());
    let elsewhere: SocketAddr = ([127, 0, 0, 9], 9).into();
    std::fs::write(&path, format!("127.0.0.1 {other}\n127.0.0.9 {key}\n")).unwrap();
    let both = [server.local_addr(), elsewhere];
    let several = knowing(&path).connect_to(&both, PORT).await.unwrap_err();
    names_both(&several, key, other);
    // What is known of one address is expected at all of them.
    std::fs::write(&path, format!("127.0.0.9 {other}\n")).unwrap();
    let meant = within("refusal", knowing(&path).connect_to(&both, PORT)).await;
    assert!(meant.is_err(), "an impostor at the first address");
}
