//! Associations over several paths on real sockets, each path through its own emulated line on loopback.

use bytes::Bytes;
use restp::emulator::{Attachment, Control, Emulator, NetConfig, Report};
use restp::{
    Acceptance, CloseReason, Composition, ConnectError, Connection, Endpoint, EndpointConfig, Local,
    PathAddress, PathEvent, PathState, PathStats, Preset, SendError, Trust,
};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::UdpSocket;
use tokio::task::JoinHandle;

const PORT: u16 = 7;

/// Two lines a test can tell apart by their round-trip times, and slow enough to be cut in the middle.
const LINE: &str = "rate = \"20 Mbit/s\"\ndelay = \"5 ms\"\nqueue = { drop_tail = \"200 packets\" }";

fn loopback(host: u8) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, host], 0))
}

fn config() -> EndpointConfig {
    config_with("per-path")
}

fn config_with(numbering: &str) -> EndpointConfig {
    let mut composition: Composition = Preset::named("cubic").expect("a preset").composition();
    for (key, choice) in [
        ("paths", "spreading"),
        ("scheduling", "fastest-rtt"),
        ("numbering", numbering),
    ] {
        composition.set(key, choice).expect("a choice");
    }
    EndpointConfig::new(composition.check().expect("valid"))
}

fn server(hosts: &[u8]) -> Endpoint {
    let locals: Vec<_> = hosts.iter().map(|host| loopback(*host)).collect();
    Endpoint::bind_all(&locals, config().listen(PORT, Acceptance::Any), Trust::Nobody).expect("loopback")
}

fn client(hosts: &[u8]) -> Endpoint {
    client_with(hosts, "per-path")
}

fn client_with(hosts: &[u8], numbering: &str) -> Endpoint {
    let locals: Vec<_> = hosts.iter().map(|host| loopback(*host)).collect();
    Endpoint::bind_all(&locals, config_with(numbering), Trust::Anybody).expect("loopback")
}

async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), future)
        .await
        .unwrap_or_else(|_| panic!("{what}: waited 60 s"))
}

fn noise(len: usize) -> Bytes {
    let mut state = 1u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    (0..len).map(|_| next()).collect()
}

/// Emulated lines, one to each of `to`.
struct Lines {
    addresses: Vec<SocketAddr>,
    control: Control,
    running: JoinHandle<Report>,
}

impl Lines {
    fn start(to: &[SocketAddr]) -> Lines {
        let path = |(number, to): (usize, &SocketAddr)| {
            format!("[[path]]\nname = \"{number}\"\nlisten = \"127.0.0.1:0\"\nto = \"{to}\"\n{LINE}\n")
        };
        let text: String = to.iter().enumerate().map(path).collect();
        let network = NetConfig::parse(&text).expect("a network");
        let emulator = Emulator::from_config(&network, Attachment::Udp).expect("loopback ports");
        let addresses = emulator.ports().iter().map(|port| port.listen.expect("UDP"));
        Lines {
            addresses: addresses.collect(),
            control: emulator.control(),
            running: tokio::spawn(emulator.run(std::future::pending())),
        }
    }

    fn cut(&self, number: usize) {
        self.control
            .execute(&format!("down {number}"))
            .expect("a command");
    }

    fn heal(&self, number: usize) {
        self.control.execute(&format!("up {number}")).expect("a command");
    }

    async fn stop(self) -> Report {
        self.control.quit();
        self.running.await.expect("no panic")
    }
}

/// Each local address of `client` towards the line of the same number.
fn pairs(client: &Endpoint, to: &[SocketAddr]) -> Vec<PathAddress> {
    let pair = |(local, remote): (SocketAddr, &SocketAddr)| PathAddress {
        local,
        remote: *remote,
    };
    client.local_addrs().into_iter().zip(to).map(pair).collect()
}

/// Waits until path `local` is `state`.
async fn until(connection: &Connection, local: SocketAddr, state: PathState) {
    within(&format!("{local} {state:?}"), async {
        while let Some(PathEvent { path, state: now }) = connection.path_event().await {
            if path.local == local && now == state {
                return;
            }
        }
        panic!("the connection ended before {local} was {state:?}");
    })
    .await;
}

/// Waits until each of `paths` has been up, in whatever order they come.
async fn all_up(connection: &Connection, paths: &[PathAddress]) {
    let mut waiting = paths.to_vec();
    while !waiting.is_empty() {
        let event = within("paths", connection.path_event()).await.expect("open");
        waiting.retain(|path| event.state != PathState::Up || event.path != *path);
    }
}

/// Sends `data` in pieces, and calls `at_half` after half of it.
async fn send(connection: &Connection, data: &Bytes, at_half: impl FnOnce()) {
    let mut at_half = Some(at_half);
    for start in (0..data.len()).step_by(50_000) {
        if start * 2 >= data.len()
            && let Some(act) = at_half.take()
        {
            act();
        }
        let piece = data.slice(start..data.len().min(start + 50_000));
        within("room to send", connection.send(piece))
            .await
            .expect("open");
    }
}

/// Reads everything until the end.
fn receive(connection: Connection) -> JoinHandle<(Vec<u8>, CloseReason)> {
    tokio::spawn(async move {
        let mut received = Vec::new();
        while let Some(data) = connection.recv().await {
            received.extend_from_slice(&data);
        }
        (received, connection.close().await)
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn data_goes_on_over_one_line_when_the_other_dies_and_uses_both_when_it_returns() {
    a_line_dies_and_returns("per-path").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn so_it_does_where_the_lines_share_their_numbers() {
    a_line_dies_and_returns("shared").await;
}

async fn a_line_dies_and_returns(numbering: &str) {
    let server = server(&[1, 2]);
    let lines = Lines::start(&server.local_addrs());
    let client = client_with(&[3, 4], numbering);
    let paths = pairs(&client, &lines.addresses);
    let connection = client.open_paths(&paths, PORT).expect("bound");
    within("set-up", connection.established()).await.expect("served");
    all_up(&connection, &paths).await;
    let received = receive(within("accept", server.accept()).await.expect("running"));
    let data = noise(3_000_000);
    send(&connection, &data, || lines.cut(0)).await;
    until(&connection, paths[0].local, PathState::Down).await;
    lines.heal(0);
    until(&connection, paths[0].local, PathState::Up).await;
    let before = counters(&connection, paths[0]).sent_bytes;
    let mut pieces = 1;
    // How much it takes until it is used again is up to the scheduler, and the machine's load.
    let used = async {
        while counters(&connection, paths[0]).sent_bytes < before + 500_000 {
            send(&connection, &data, || ()).await;
            pieces += 1;
        }
    };
    within("the healed line is used", used).await;
    let [first, second] = [0, 1].map(|number| counters(&connection, paths[number]));
    assert!(first.down_events > 0, "{first:?}");
    assert!(second.sent_bytes > 500_000 && second.srtt.is_some(), "{second:?}");
    assert_eq!(within("end", connection.close()).await, CloseReason::Finished);
    let (bytes, end) = within("data", received).await.expect("no panic");
    assert_eq!((bytes.len(), end), (pieces * data.len(), CloseReason::Finished));
    assert!(bytes == data.repeat(pieces), "not the same bytes");
    eprintln!("{}", lines.stop().await);
}

/// What `connection` counts for `path`, which it has set up.
fn counters(connection: &Connection, path: PathAddress) -> PathStats {
    let stats = connection.stats();
    let found = stats.paths.iter().find(|counted| counted.path == path);
    found.unwrap_or_else(|| panic!("{stats:?}")).clone()
}

/// A path may be suspect for a moment on a busy machine, and another carries the data then; with time each has its share.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn data_goes_on_the_path_that_the_application_chooses() {
    let server = server(&[1, 2]);
    let client = client(&[3, 4]);
    let to = server.local_addrs();
    let [first, second] = pairs(&client, &to)[..] else {
        panic!("two pairs")
    };
    let paths = [first, second];
    let connection = client.open_paths(&paths, PORT).expect("bound");
    within("set-up", connection.established()).await.expect("served");
    for path in &paths {
        until(&connection, path.local, PathState::Up).await;
    }
    let received = receive(within("accept", server.accept()).await.expect("running"));
    for path in paths {
        let carried = || {
            let of_path = |stats: restp::FlowStats| stats.paths.into_iter().find(|seen| seen.path == path);
            of_path(connection.stats()).expect("it lives").sent_bytes
        };
        let before = carried();
        within("its share", async {
            while carried() < before + 50_000 {
                connection.send_on(noise(1000), path).await.expect("open");
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        })
        .await;
    }
    let elsewhere = PathAddress {
        local: SocketAddr::from(([127, 0, 0, 9], 9)),
        ..paths[0]
    };
    let refused = connection.send_on(noise(1000), elsewhere).await;
    assert_eq!(refused, Err(SendError::NotBound(elsewhere)));
    assert_eq!(within("end", connection.close()).await, CloseReason::Finished);
    within("data", received).await.expect("no panic");
}

#[tokio::test]
async fn every_pair_that_makes_sense_becomes_a_path() {
    let server = server(&[1, 2]);
    let client = client(&[3, 4]);
    let remotes = server.local_addrs();
    let connection = within("set-up", client.connect_to(&remotes, PORT))
        .await
        .expect("served");
    let mut up = Vec::new();
    while up.len() < 4 {
        let event = within("a path", connection.path_event()).await.expect("open");
        if event.state == PathState::Up && !up.contains(&event.path) {
            up.push(event.path);
        }
    }
    let expected = client.paths_to(&remotes);
    assert!(expected.iter().all(|path| up.contains(path)));
    assert_eq!(
        expected[..2].iter().map(|path| path.remote).collect::<Vec<_>>(),
        remotes
    );
}

#[tokio::test]
async fn the_second_pair_shares_no_end_with_the_first() {
    let client = client(&[3, 4]);
    let locals = client.local_addrs();
    let remotes: Vec<SocketAddr> = [1, 2, 5]
        .map(|host| SocketAddr::from(([127, 0, 0, host], 7)))
        .to_vec();
    let paths = client.paths_to(&remotes);
    let indices = paths.iter().map(|path| {
        let local = locals.iter().position(|local| *local == path.local);
        (local, remotes.iter().position(|remote| *remote == path.remote))
    });
    let expected = [(0, 0), (1, 1), (0, 2), (1, 0), (0, 1), (1, 2)];
    let expected = expected.map(|(local, remote)| (Some(local), Some(remote)));
    assert_eq!(indices.collect::<Vec<_>>(), expected);
}

#[tokio::test]
async fn a_dead_first_address_does_not_hold_up_the_set_up() {
    let server = server(&[1]);
    let silent = UdpSocket::bind(loopback(5)).await.expect("loopback");
    let client = client(&[3]);
    let remotes = [silent.local_addr().expect("bound"), server.local_addr()];
    let connection = within("set-up", client.connect_to(&remotes, PORT))
        .await
        .expect("served");
    assert_eq!(connection.path().expect("a path").remote, remotes[1]);
}

#[tokio::test]
async fn a_pair_that_the_kernel_refuses_costs_the_others_nothing() {
    let server = server(&[1]);
    let client = client(&[3, 4]);
    // Broadcasts are forbidden, or there is no route to them.
    let nowhere = SocketAddr::from(([255, 255, 255, 255], 9));
    let paths = pairs(&client, &[nowhere, server.local_addr()]);
    let connection = client.open_paths(&paths, PORT).expect("bound");
    within("set-up", connection.established()).await.expect("served");
    let received = receive(within("accept", server.accept()).await.expect("running"));
    let data = noise(1_000_000);
    send(&connection, &data, || ()).await;
    assert_eq!(within("end", connection.close()).await, CloseReason::Finished);
    assert!(within("data", received).await.expect("no panic").0 == data);
    let stats = client.socket_stats();
    assert!(stats.refusals > 0 && stats.send_drops > 0, "{stats:?}");
}

#[tokio::test]
async fn a_path_is_taken_away_in_mid_transfer_and_the_last_one_is_not() {
    let server = server(&[1, 2]);
    let client = client(&[3, 4]);
    let paths = pairs(&client, &server.local_addrs());
    let connection = client.open_paths(&paths, PORT).expect("bound");
    within("set-up", connection.established()).await.expect("served");
    let received = receive(within("accept", server.accept()).await.expect("running"));
    until(&connection, paths[1].local, PathState::Up).await;
    let data = noise(2_000_000);
    let mut removed = None;
    send(&connection, &data, || {
        removed = Some(connection.remove_path(paths[0]))
    })
    .await;
    assert!(matches!(removed, Some(Ok(()))), "{removed:?}");
    let last = connection.remove_path(paths[1]);
    let refused = |error: &ConnectError| error.to_string().contains("only one");
    assert!(
        last.as_ref().is_err_and(refused),
        "{last:?}, {:?}",
        connection.stats()
    );
    assert_eq!(within("end", connection.close()).await, CloseReason::Finished);
    assert!(within("data", received).await.expect("no panic").0 == data);
}

#[tokio::test]
async fn an_interface_is_bound_with_every_address_it_has() {
    let server = server(&[1]);
    let client =
        Endpoint::bind_locals(&[Local::Interface("lo".into())], config(), Trust::Anybody).expect("loopback");
    let connection = within("set-up", client.connect_to(&[server.local_addr()], PORT))
        .await
        .expect("served");
    let path = connection.path().expect("a path");
    assert!(path.local.ip().is_loopback() && client.local_addrs().contains(&path.local));
}

#[tokio::test]
async fn what_cannot_be_opened_is_said() {
    let client = client(&[3]);
    let v6: SocketAddr = "[::1]:9".parse().expect("an address");
    let why = client.open_to(&[v6], PORT).expect_err("no IPv6").to_string();
    assert!(why.contains("same IP version"), "{why}");
    let elsewhere = PathAddress {
        local: loopback(9),
        remote: loopback(1),
    };
    let why = client
        .open_paths(&[elsewhere], PORT)
        .expect_err("not bound")
        .to_string();
    assert!(why.contains("127.0.0.9") && why.contains("not bound"), "{why}");
    let single = EndpointConfig::new(
        Preset::named("default")
            .expect("a preset")
            .composition()
            .check()
            .expect("valid"),
    );
    let single = Endpoint::bind(loopback(3), single, Trust::Anybody).expect("loopback");
    let two = [loopback(1), loopback(2)].map(|mut address| {
        address.set_port(9);
        address
    });
    let why = single.open_to(&two, PORT).expect_err("one path").to_string();
    assert!(why.contains("one path"), "{why}");
    let nowhere = Local::Interface("nowhere0".into());
    let why = Endpoint::bind_locals(&[nowhere], config(), Trust::Anybody)
        .expect_err("no such interface")
        .to_string();
    assert!(why.contains("nowhere0"), "{why}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_vanished_peer_is_noticed_on_every_path() {
    let server = server(&[1, 2]);
    let lines = Lines::start(&server.local_addrs());
    let mut composition: Composition = (*config().composition).clone();
    composition.set("progress-timeout", "2 s").expect("a time");
    let client = EndpointConfig::new(composition.check().expect("valid"));
    let client = Endpoint::bind_all(&[loopback(3), loopback(4)], client, Trust::Anybody).expect("loopback");
    let paths = pairs(&client, &lines.addresses);
    let connection = client.open_paths(&paths, PORT).expect("bound");
    within("set-up", connection.established()).await.expect("served");
    lines.cut(0);
    lines.cut(1);
    connection.send(noise(100_000)).await.expect("open");
    let end = within("the end", connection.closed()).await;
    assert!(matches!(end, CloseReason::TimedOut(_)), "{end}");
    lines.stop().await;
}

/// A relay in front of `to` that gives its client another outside port whenever it is asked.
async fn relay(to: SocketAddr, mut change: tokio::sync::mpsc::Receiver<()>) -> SocketAddr {
    let inside = UdpSocket::bind(loopback(1)).await.expect("loopback");
    let address = inside.local_addr().expect("bound");
    tokio::spawn(async move {
        let mut outside = UdpSocket::bind(loopback(1)).await.expect("loopback");
        let mut client = None;
        let (mut there, mut back) = ([0; 2048], [0; 2048]);
        loop {
            tokio::select! {
                Ok((len, from)) = inside.recv_from(&mut there) => {
                    client = Some(from);
                    let _ = outside.send_to(&there[..len], to).await;
                }
                Ok(len) = outside.recv(&mut back) => if let Some(client) = client {
                    let _ = inside.send_to(&back[..len], client).await;
                },
                asked = change.recv() => match asked {
                    Some(()) => outside = UdpSocket::bind(loopback(1)).await.expect("loopback"),
                    None => return,
                },
            }
        }
    });
    address
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_path_survives_a_translator_that_changes_its_port_in_mid_transfer() {
    let server = server(&[1, 2]);
    let (change, asked) = tokio::sync::mpsc::channel(1);
    let direct = server.local_addrs();
    let relayed = relay(direct[0], asked).await;
    let client = client(&[3, 4]);
    let paths = pairs(&client, &[relayed, direct[1]]);
    let connection = client.open_paths(&paths, PORT).expect("bound");
    within("set-up", connection.established()).await.expect("served");
    all_up(&connection, &paths).await;
    let received = receive(within("accept", server.accept()).await.expect("running"));
    let piece = noise(2_000_000);
    send(&connection, &piece, || {
        change.try_send(()).expect("the relay runs")
    })
    .await;
    let mut pieces = 1;
    // How much it takes until the path by way of the relay is used again is up to the scheduler, and the machine's load.
    let moved = async {
        while server.endpoint_stats().rebound == 0 {
            send(&connection, &piece, || ()).await;
            pieces += 1;
        }
    };
    within("a packet from the new port", moved).await;
    assert_eq!(within("end", connection.close()).await, CloseReason::Finished);
    let (bytes, _) = within("data", received).await.expect("no panic");
    assert!(bytes == piece.repeat(pieces), "not the same bytes");
}
