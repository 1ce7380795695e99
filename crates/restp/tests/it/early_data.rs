//! The opportunistic set-up over real sockets and emulated paths: the survival table of ResTP §3.5.5 row by row. What it
//! saves is time, which tests on a shared machine do not measure: they look at who sent what.

use crate::common::{Line, PORT, loopback, within};
use bytes::Bytes;
use restp::{Acceptance, Connection, Endpoint, EndpointConfig, FlowStats, Local, Preset, Security};
use restp_base::time::Duration;
use std::net::SocketAddr;
use tokio::net::UdpSocket;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::task::JoinHandle;

/// A set-up packet is retransmitted after this long: a test that must not wait for one fails, and others do not take long.
const NEVER: &str = "60 s";
const SOON: &str = "200 ms";

fn config(connection: &str, handshake_rto: &str) -> EndpointConfig {
    with_timers(connection, handshake_rto, SOON)
}

/// Where no data is lost, none is retransmitted: with a timer of data that never expires a busy machine's late answers are not
/// taken for losses.
fn without_timeouts(connection: &str) -> EndpointConfig {
    with_timers(connection, NEVER, NEVER)
}

fn with_timers(connection: &str, handshake_rto: &str, rto_floor: &str) -> EndpointConfig {
    let mut composition = Preset::named("opt-arq").expect("a preset").composition();
    composition.set("connection", connection).expect("a choice");
    composition.set("handshake-rto", handshake_rto).expect("a number");
    composition.set("rto-floor", rto_floor).expect("a number");
    EndpointConfig::new(composition.check().expect("valid"))
}

/// Without a seal: the tests say which packets of ResTP are lost, by their places.
fn bind(config: EndpointConfig) -> Endpoint {
    Endpoint::bind_with(&[Local::Address(loopback())], config, Security::Plain).expect("loopback")
}

/// A service that answers every message in kind.
struct Service {
    address: SocketAddr,
    /// Of each connection, when its client has finished.
    ended: UnboundedReceiver<FlowStats>,
    serving: JoinHandle<()>,
}

fn serve(config: EndpointConfig) -> Service {
    let server = bind(config.listen(PORT, Acceptance::Any));
    let address = server.local_addr();
    let (note, ended) = unbounded_channel();
    let serving = tokio::spawn(async move {
        while let Some(connection) = server.accept().await {
            let note = note.clone();
            tokio::spawn(async move {
                while let Some(request) = connection.recv().await {
                    connection.send(request).await.expect("open");
                }
                let _ = note.send(connection.stats());
                connection.close().await;
            });
        }
    });
    Service {
        address,
        ended,
        serving,
    }
}

/// Sends `text` and waits for it to come back.
async fn exchange(connection: &Connection, text: &'static str) {
    let request = Bytes::from_static(text.as_bytes());
    connection.send(request.clone()).await.expect("taken at once");
    assert_eq!(within("an answer", connection.recv()).await, Some(request));
}

/// Opens, writes at once, and waits for the answer.
async fn ask(client: &Endpoint, to: SocketAddr) -> FlowStats {
    let connection = client.open(to, PORT).expect("opened");
    exchange(&connection, "request").await;
    let stats = connection.stats();
    within("the end", connection.close()).await;
    stats
}

/// A client that has been at `server` before, as seen from `path`.
async fn warm(config: &EndpointConfig, server: SocketAddr, path: SocketAddr) -> Endpoint {
    let first = bind(config.clone());
    ask(&first, server).await;
    let client = bind(config.clone());
    for mut kept in first.cookies() {
        kept.server = path;
        client.keep_cookie(kept);
    }
    client
}

/// A request and its answer over a path that loses what `loss` says, for a client that has been here before.
async fn ask_through(config: EndpointConfig, loss: &str) -> FlowStats {
    let service = serve(config.clone());
    let line = Line::start(service.address, &format!("delay = \"5 ms\"\nloss = {{ {loss} }}"));
    let client = warm(&config, service.address, line.address).await;
    let stats = ask(&client, line.address).await;
    line.stop().await;
    service.serving.abort();
    assert_eq!(stats.rejected_packets, 0, "{loss}: {stats:?}");
    stats
}

/// Rows one to five: nothing, SYN, SYN-ACK, both, and the first data packet of the client.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn set_up_packets_may_be_lost_and_nobody_waits_for_their_retransmissions() {
    for (row, loss, data_lost) in [
        ("nothing", "drop = []", false),
        ("SYN", "drop = [1]", false),
        ("SYN-ACK", "drop = [1], direction = \"reverse\"", false),
        ("SYN and SYN-ACK", "drop = [1], direction = \"both\"", false),
        ("first data", "drop = [2]", true),
    ] {
        let config = if data_lost {
            config("opportunistic", NEVER)
        } else {
            without_timeouts("opportunistic")
        };
        let stats = ask_through(config, loss).await;
        assert_eq!(stats.retransmitted_packets > 0, data_lost, "{row} lost");
    }
}

/// Rows six and seven: with a set-up packet its stand-in is lost, and both leave again after the set-up timer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_the_stand_in_is_lost_as_well_both_leave_again() {
    for (row, loss) in [
        ("SYN and first data", "drop = [1, 2]"),
        ("SYN-ACK and response", "drop = [1, 2], direction = \"reverse\""),
    ] {
        let stats = ask_through(config("opportunistic", SOON), loss).await;
        // Not earlier: a lower bound holds on the busiest machine.
        assert!(
            stats.handshake >= Some(Duration::from_millis(200)),
            "{row} lost: {stats:?}"
        );
    }
}

/// The other column: with three steps each lost packet costs a set-up timer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_steps_wait_for_the_set_up_timer() {
    for (row, loss) in [
        ("SYN", "drop = [1]"),
        ("SYN-ACK", "drop = [1], direction = \"reverse\""),
        ("SYN and SYN-ACK", "drop = [1], direction = \"both\""),
    ] {
        let stats = ask_through(config("three-way", SOON), loss).await;
        assert!(
            stats.handshake >= Some(Duration::from_millis(200)),
            "{row} lost: {stats:?}"
        );
        assert_eq!(stats.early_segments, 0, "{row}");
    }
}

/// Row eight. The packet of the client that acknowledges the SYN-ACK and nothing else is lost; the next one completes the
/// server's side.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_final_acknowledgement_is_made_good_by_the_next_packet() {
    for (connection, third) in [("opportunistic", 3), ("three-way", 2)] {
        let config = without_timeouts(connection);
        let mut service = serve(config.clone());
        let line = Line::start(
            service.address,
            &format!("delay = \"5 ms\"\nloss = {{ drop = [{third}] }}"),
        );
        let client = warm(&config, service.address, line.address).await;
        within("the first visit's end", service.ended.recv()).await;
        let connection = client.open(line.address, PORT).expect("opened");
        exchange(&connection, "request").await;
        exchange(&connection, "more").await;
        within("the end", connection.close()).await;
        let server = within("its end", service.ended.recv()).await.expect("it serves");
        assert!(server.handshake.is_some(), "{server:?}");
        let report = line.stop().await;
        assert_eq!(report.paths[0].forward.dropped_error, 1, "{report}");
        service.serving.abort();
    }
}

/// Row nine. The SYN is held back until the answer to the request has passed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_syn_that_comes_after_the_answer_changes_nothing() {
    let config = without_timeouts("opportunistic");
    let service = serve(config.clone());
    let relay = UdpSocket::bind(loopback()).await.expect("loopback");
    let address = relay.local_addr().expect("bound");
    let client = warm(&config, service.address, address).await;
    let relaying = tokio::spawn(hold_back_the_first(relay, service.address));
    let connection = client.open(address, PORT).expect("opened");
    exchange(&connection, "request").await;
    exchange(&connection, "another, after the SYN").await;
    let stats = connection.stats();
    assert_eq!(
        (stats.retransmitted_packets, stats.rejected_packets),
        (0, 0),
        "{stats:?}"
    );
    within("the end", connection.close()).await;
    relaying.abort();
    service.serving.abort();
}

/// Carries datagrams between one client and `server`; the first of the client arrives after the first data of the server.
async fn hold_back_the_first(relay: UdpSocket, server: SocketAddr) {
    let (mut held, mut client): (Option<Vec<u8>>, _) = (None, None);
    let mut buffer = [0; 2048];
    loop {
        let (len, from) = relay.recv_from(&mut buffer).await.expect("loopback");
        let datagram = &buffer[..len];
        if from == server {
            relay
                .send_to(datagram, client.expect("it asked"))
                .await
                .expect("loopback");
            if let Some(syn) = held.take_if(|_| datagram.ends_with(b"request")) {
                relay.send_to(&syn, server).await.expect("loopback");
            }
        } else if client.replace(from).is_none() {
            held = Some(datagram.to_vec());
        } else {
            relay.send_to(datagram, server).await.expect("loopback");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cookie_of_another_process_is_replaced_and_the_data_sent_again() {
    let config = without_timeouts("opportunistic");
    let [service, other] = [config.clone(), config.clone()].map(serve);
    let client = warm(&config, service.address, other.address).await;
    let before = client.cookies()[0].cookie;
    let stats = ask(&client, other.address).await;
    assert_eq!((stats.timeouts, stats.lost_packets), (0, 0));
    assert_eq!(client.cookies().len(), 1);
    assert_ne!(client.cookies()[0].cookie, before);
    service.serving.abort();
    other.serving.abort();
}
