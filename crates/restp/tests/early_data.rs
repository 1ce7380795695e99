//! The opportunistic set-up over real sockets and emulated paths (ResTP §3.5.5). What it saves is time, which tests on
//! a shared machine do not measure: they look at who sent what.

use bytes::Bytes;
use restp::emulator::{Attachment, Emulator, NetConfig, Report};
use restp::{Acceptance, Endpoint, EndpointConfig, FlowStats, Preset};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::task::JoinHandle;

const PORT: u16 = 7;

fn loopback() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

/// Set-up packets are repeated after a minute: a test that waits for one fails.
fn config(connection: &str) -> EndpointConfig {
    let mut composition = Preset::named("opt-arq").expect("a preset").composition();
    composition.set("connection", connection).expect("a choice");
    composition.set("handshake-rto", "60 s").expect("a number");
    EndpointConfig::new(composition.check().expect("valid"))
}

async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(30), future)
        .await
        .unwrap_or_else(|_| panic!("{what}: waited 30 s"))
}

/// A service that answers every message in kind.
fn serve(config: EndpointConfig) -> (SocketAddr, JoinHandle<()>) {
    let server = Endpoint::bind(loopback(), config.listen(PORT, Acceptance::Any)).expect("loopback");
    let address = server.local_addr();
    let serving = tokio::spawn(async move {
        while let Some(connection) = server.accept().await {
            tokio::spawn(async move {
                while let Some(request) = connection.recv().await {
                    connection.send(request).await.expect("open");
                }
                connection.close().await;
            });
        }
    });
    (address, serving)
}

/// One path to `to` that drops what `loss` says.
fn lossy(to: SocketAddr, loss: &str) -> (SocketAddr, JoinHandle<Report>) {
    let text = format!(
        "[[path]]\nname = \"a\"\nlisten = \"127.0.0.1:0\"\nto = \"{to}\"\ndelay = \"5 ms\"\nloss = {{ {loss} }}\n"
    );
    let config = NetConfig::parse(&text).expect("a good network");
    let emulator = Emulator::from_config(&config, Attachment::Udp).expect("loopback ports");
    let address = emulator.ports()[0].listen.expect("a UDP path");
    (address, tokio::spawn(emulator.run(std::future::pending())))
}

/// Opens, writes at once, and waits for the answer.
async fn ask(client: &Endpoint, to: SocketAddr) -> FlowStats {
    let connection = client.open(to, PORT).expect("opened");
    let request = Bytes::from_static(b"request");
    connection
        .send(request.clone())
        .await
        .expect("taken before it is established");
    assert_eq!(within("an answer", connection.recv()).await, Some(request));
    let stats = connection.stats();
    within("the end", connection.close()).await;
    stats
}

/// A client that has been at `server` before, as seen from `path`.
async fn warm(connection: &str, server: SocketAddr, path: SocketAddr) -> Endpoint {
    let first = Endpoint::bind(loopback(), config(connection)).expect("loopback");
    ask(&first, server).await;
    let mut kept = first.cookies();
    assert_eq!(kept.len(), 1);
    kept[0].server = path;
    let client = Endpoint::bind(loopback(), config(connection)).expect("loopback");
    client.keep_cookie(kept[0]);
    client
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn set_up_packets_may_be_lost_and_nobody_waits_for_their_repeats() {
    let rows = [
        ("opportunistic", "drop = []"),
        ("opportunistic", "drop = [1]"),
        ("opportunistic", "drop = [1], direction = \"reverse\""),
        ("opportunistic", "drop = [1], direction = \"both\""),
        ("opportunistic", "drop = [2]"),
    ];
    for (connection, lost) in rows {
        let (server, serving) = serve(config(connection));
        let (path, network) = lossy(server, lost);
        let client = warm(connection, server, path).await;
        let stats = ask(&client, path).await;
        assert_eq!(stats.rejected_packets, 0, "{connection}, {lost}: {stats:?}");
        let first_data_lost = lost.contains('2');
        assert_eq!(
            stats.retransmitted_packets > 0,
            first_data_lost,
            "{connection}, {lost}"
        );
        network.abort();
        serving.abort();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cookie_of_another_process_is_replaced_and_the_data_sent_again() {
    let (server, serving) = serve(config("opportunistic"));
    let (other, also_serving) = serve(config("opportunistic"));
    let client = warm("opportunistic", server, other).await;
    let before = client.cookies()[0].cookie;
    let stats = ask(&client, other).await;
    assert_eq!((stats.timeouts, stats.lost_packets), (0, 0));
    assert_eq!(client.cookies().len(), 1);
    assert_ne!(client.cookies()[0].cookie, before);
    serving.abort();
    also_serving.abort();
}
