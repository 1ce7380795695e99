//! ResTP itself over real sockets, also through emulated paths.

use crate::common::{Line, PORT, loopback, noise, within};
use bytes::Bytes;
use restp::emulator::Report;
use restp::{Acceptance, CloseReason, Connection, Endpoint, EndpointConfig, Preset, Trust};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

fn config(preset: &str) -> EndpointConfig {
    let composition = Preset::named(preset).expect("a preset").composition();
    EndpointConfig::new(composition.check().expect("valid"))
}

fn pair(preset: &str) -> (Endpoint, Endpoint) {
    let bind = |config| Endpoint::bind(loopback(), config, Trust::Anybody).expect("loopback can be bound");
    (
        bind(config(preset)),
        bind(config(preset).listen(PORT, Acceptance::Any)),
    )
}

/// Sends `data` one way as a stream and returns what arrived, and how the sender's connection ended.
async fn transfer(sender: Connection, receiver: Connection, data: Bytes) -> (Vec<u8>, CloseReason) {
    let sending = tokio::spawn(async move {
        let mut stream = sender.into_stream();
        stream.write_all(&data).await.expect("open");
        stream.shutdown().await.expect("open");
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).await.expect("open");
        stream.connection().closed().await
    });
    let mut stream = receiver.into_stream();
    let mut received = Vec::new();
    within("data", stream.read_to_end(&mut received))
        .await
        .expect("a stream");
    stream.shutdown().await.expect("open");
    (received, within("end", sending).await.expect("no panic"))
}

#[tokio::test]
async fn a_file_arrives_unchanged() {
    for preset in ["default", "3wh-arq", "3wh-harq"] {
        let (client, server) = pair(preset);
        let connection = within("connect", client.connect(server.local_addr(), PORT))
            .await
            .expect("served");
        let data = noise(3_000_000);
        let accepted = within("accept", server.accept()).await.expect("running");
        let (received, end) = transfer(connection, accepted, data.clone()).await;
        assert_eq!(
            (received.len(), end),
            (data.len(), CloseReason::Finished),
            "{preset}"
        );
        assert!(received == data, "{preset}: not the same bytes");
    }
}

/// Runs a transfer over one emulated path and returns seconds and the counters.
async fn through(path: &str, preset: &str, len: usize) -> (f64, Report) {
    let (client, server) = pair(preset);
    let line = Line::start(server.local_addr(), path);
    let clock = restp::clock::Clock::start();
    let connection = within("connect", client.connect(line.address, PORT))
        .await
        .expect("served");
    let accepted = within("accept", server.accept()).await.expect("running");
    let (received, end) = transfer(connection, accepted, noise(len)).await;
    let seconds = clock.now().as_secs_f64();
    assert!(
        received == noise(len) && end == CloseReason::Finished,
        "{} bytes, {end}",
        received.len()
    );
    (seconds, line.stop().await)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_arrives_unchanged_through_loss_reordering_and_an_outage() {
    let path = "rate = \"40 Mbit/s\"\ndelay = \"5 ms\"\nloss = { rate = 0.01, direction = \"both\" }\n\
                reorder = { rate = 0.02, delay = \"2 ms\" }\nduplicate = { rate = 0.02 }\noutage = [\"300 ms..500 ms\"]";
    let (seconds, report) = through(path, "default", 1_500_000).await;
    eprintln!("{seconds:.2} s\n{report}");
    let forward = &report.paths[0].forward;
    assert!(forward.dropped_error > 0 && forward.duplicated > 0, "{report}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_arrives_unchanged_where_losses_are_rebuilt_first() {
    let path = "rate = \"20 Mbit/s\"\ndelay = \"10 ms\"\nloss = { rate = 0.02, direction = \"forward\" }";
    let (seconds, report) = through(path, "3wh-harq", 1_000_000).await;
    eprintln!("{seconds:.2} s\n{report}");
    assert!(report.paths[0].forward.dropped_error > 0, "{report}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "measures, and wants a machine of its own: make test-long"]
async fn a_clean_path_is_used_to_the_full() {
    let path = "rate = \"20 Mbit/s\"\ndelay = \"10 ms\"\nqueue = { drop_tail = \"bdp\" }";
    let (seconds, report) = through(path, "default", 5_000_000).await;
    let megabits = 5_000_000.0 * 8e-6 / seconds;
    eprintln!("{megabits:.2} of 20 Mbit/s\n{report}");
    // 1400 of about 1450 bytes are payload; the rest is the start of the window. A busy machine gets its share.
    assert!((10.0..20.0).contains(&megabits), "{megabits:.2} Mbit/s; {report}");
}

#[tokio::test]
async fn unreachable_services_and_dropped_connections_say_why() {
    let (client, server) = pair("default");
    let refused = within("refusal", client.connect(server.local_addr(), PORT + 1))
        .await
        .expect_err("nobody serves it");
    assert!(refused.to_string().contains("refused"), "{refused}");
    let connection = within("connect", client.connect(server.local_addr(), PORT))
        .await
        .expect("served");
    let accepted = within("accept", server.accept()).await.expect("running");
    assert!(connection.composition().is_some() && connection.path().is_some());
    drop(connection);
    assert_eq!(within("reset", accepted.closed()).await, CloseReason::Reset);
    within("close", client.close()).await;
    drop(accepted);
    within("close", server.close()).await;
}

#[tokio::test]
async fn hostile_datagrams_change_nothing_for_a_connection() {
    let (client, server) = pair("default");
    let address = server.local_addr();
    let connection = within("connect", client.connect(address, PORT))
        .await
        .expect("served");
    let accepted = within("accept", server.accept()).await.expect("running");
    let noisy = tokio::net::UdpSocket::bind(loopback()).await.expect("loopback");
    let bytes = noise(100_000);
    for (number, part) in bytes.chunks(97).enumerate() {
        noisy
            .send_to(&part[..number % 97], address)
            .await
            .expect("loopback");
    }
    let (received, end) = transfer(connection, accepted, noise(200_000)).await;
    assert!(received == noise(200_000));
    assert_eq!(end, CloseReason::Finished);
    let stats = server.seal_stats();
    assert!(
        stats.plain + stats.malformed + stats.unknown + stats.forged + stats.for_others > 100,
        "{stats:?}"
    );
}

/// What listens everywhere had no socket for IPv6: that one claimed the port of IPv4 as well.
#[tokio::test]
async fn ipv4_and_ipv6_listen_everywhere_at_the_same_port() {
    if std::net::UdpSocket::bind("[::1]:0").is_err() {
        eprintln!("skipped: a host without IPv6");
        return;
    }
    let bind = |at: SocketAddr| Endpoint::bind(at, config("default"), Trust::Anybody).expect("a free port");
    let four = bind((Ipv4Addr::UNSPECIFIED, 0).into());
    let six = bind((Ipv6Addr::UNSPECIFIED, four.local_addr().port()).into());
    assert_eq!(six.local_addr().port(), four.local_addr().port());
}
