//! Addresses of this host that come and go under an endpoint, told by the kernel. Needs root for a network namespace
//! of its own, and the `ip` tool; where these are missing the test says so and shows nothing.
#![cfg(target_os = "linux")]

use restp::{Acceptance, Composition, Endpoint, EndpointConfig, Local, PathEvent, PathState, Trust};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::File;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd;
use std::process::Command;
use std::time::Duration;

const PORT: u16 = 7;

/// A namespace with a unique name, gone when the test is over, however it ends.
struct Namespace(String);

impl Namespace {
    fn create() -> Result<Self, String> {
        let name = format!("restp-{}-addresses", std::process::id());
        ip(&["netns", "add", &name])?;
        Ok(Namespace(name))
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let _ = ip(&["netns", "delete", &self.0]);
    }
}

fn ip(arguments: &[&str]) -> Result<(), String> {
    let output = Command::new("ip").args(arguments).output();
    let output = output.map_err(|error| format!("ip: {error}"))?;
    if output.status.success() {
        Ok(())
    } else {
        Err(String::from_utf8_lossy(&output.stderr).trim().into())
    }
}

fn config() -> EndpointConfig {
    let mut composition = Composition::default();
    for (key, choice) in [("paths", "spreading"), ("scheduling", "fastest-rtt")] {
        composition.set(key, choice).expect("a choice");
    }
    EndpointConfig::new(composition.check().expect("valid"))
}

fn address(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), future)
        .await
        .unwrap_or_else(|_| panic!("{what}: waited 60 s"))
}

/// The kernel sends to 10.9.0.1 from `source`.
fn leave_from(source: &str) {
    let route = [
        "route", "replace", "local", "10.9.0.1", "dev", "lo", "table", "local", "src", source,
    ];
    ip(&route).expect("root");
}

/// Its local address is replaced in mid-connection: it goes on from the next one, under the old name.
async fn an_unbound_connection_follows_the_routes() {
    let any = "0.0.0.0:0".parse().expect("an address");
    let config = || EndpointConfig::new(Composition::default().check().expect("valid"));
    let server = Endpoint::bind(
        "10.9.0.1:0".parse().expect("an address"),
        config().listen(PORT, Acceptance::Any),
        Trust::Nobody,
    );
    let server = server.expect("bound");
    let client = Endpoint::bind(any, config(), Trust::Anybody).expect("bound");
    change("add", "10.9.0.2");
    leave_from("10.9.0.2");
    let connection = within("set-up", client.connect(server.local_addr(), PORT)).await;
    let connection = connection.expect("served");
    let accepted = within("accept", server.accept()).await.expect("running");
    let before = connection.path().expect("open").local.ip();
    assert_eq!(before, address("10.9.0.2"));
    for word in ["one", "two", "three"] {
        connection.send(word.into()).await.expect("open");
        assert_eq!(
            within("data", accepted.recv()).await.as_deref(),
            Some(word.as_bytes())
        );
    }
    for (gone, next) in [("10.9.0.2", "10.9.0.3"), ("10.9.0.3", "10.9.0.4")] {
        change("del", gone);
        change("add", next);
        leave_from(next);
        connection.send(next.into()).await.expect("open");
        let got = within("data from the next address", accepted.recv()).await;
        assert_eq!(got.as_deref(), Some(next.as_bytes()));
        accepted.send(next.into()).await.expect("open");
        let back = within("an answer at the next address", connection.recv()).await;
        assert_eq!(back.as_deref(), Some(next.as_bytes()));
        assert_eq!(connection.path().expect("open").local.ip(), before);
    }
    change("del", "10.9.0.4");
    leave_from("10.9.0.1");
}

/// The socket of `ip`, once there is one, or once there is none.
async fn bound(endpoint: &Endpoint, ip: IpAddr, wanted: bool) -> Option<SocketAddr> {
    within(&format!("{ip} bound: {wanted}"), async {
        loop {
            let found = endpoint.local_addrs().into_iter().find(|local| local.ip() == ip);
            if found.is_some() == wanted {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await
}

#[test]
fn sockets_and_paths_follow_the_addresses_of_an_interface() {
    let namespace = match Namespace::create() {
        Ok(namespace) => namespace,
        Err(reason) => {
            eprintln!("SKIPPED: no network namespace here ({reason}); run as root to see this test");
            return;
        }
    };
    let file = File::open(format!("/run/netns/{}", namespace.0)).expect("just made");
    let inside = std::thread::spawn(move || {
        move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network)).expect("root");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(story());
    });
    inside.join().expect("no panic");
}

async fn story() {
    ip(&["link", "set", "lo", "up"]).expect("root");
    change("add", "10.9.0.1");
    an_unbound_connection_follows_the_routes().await;
    let any = "0.0.0.0:0".parse().expect("an address");
    let server = Endpoint::bind(any, config().listen(PORT, Acceptance::Any), Trust::Nobody).expect("bound");
    let client =
        Endpoint::bind_locals(&[Local::Interface("lo".into())], config(), Trust::Anybody).expect("bound");
    let remote = SocketAddr::new(address("10.9.0.1"), server.local_addr().port());
    let connection = within("set-up", client.connect_to(&[remote], PORT))
        .await
        .expect("served");
    let accepted = within("accept", server.accept()).await.expect("running");

    let guest = client.share_port(crate::toy::Toy::default(), 1..=6);
    change("add", "10.9.0.2");
    let second = bound(&client, address("10.9.0.2"), true).await.expect("bound");
    let joins = async {
        while let Some(PathEvent { path, state }) = connection.path_event().await {
            if path.local == second && state == PathState::Up {
                return;
            }
        }
    };
    within("the new address joins", joins).await;
    assert_eq!(guest.local_addrs(), client.local_addrs(), "one place for both");

    change("del", "10.9.0.2");
    bound(&client, address("10.9.0.2"), false).await;
    let falls = async {
        while let Some(PathEvent { path, state }) = connection.path_event().await {
            if path.local == second && state == PathState::Down {
                return;
            }
        }
    };
    within("the path is down", falls).await;
    connection.send("over the other".into()).await.expect("open");
    assert_eq!(
        within("data", accepted.recv()).await,
        Some("over the other".into())
    );

    change("add", "10.9.0.2");
    assert_eq!(
        bound(&client, address("10.9.0.2"), true).await,
        Some(second),
        "the same port"
    );
}

fn change(action: &str, address: &str) {
    ip(&["address", action, &format!("{address}/32"), "dev", "lo"]).expect("root");
}
