//! The driver's generic part, shown with a toy transport over loopback: what any machine may rely on.

use crate::common::connect;
use crate::toy::{CLOSED_PORT, FAULT, SEGMENT_BYTES, Toy};
use bytes::Bytes;
use restp::{CloseReason, ConnectError, Endpoint, SendError};
use restp_base::machine::PathAddress;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const PORT: u16 = 7;

fn loopback() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

fn endpoint() -> Endpoint<Toy> {
    Endpoint::with_machine(Toy::default(), &[loopback()]).expect("loopback can be bound")
}

async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), future)
        .await
        .unwrap_or_else(|_| panic!("{what}: waited 60 s"))
}

fn message(number: u32, len: usize) -> Bytes {
    let mut bytes = vec![number as u8; len];
    bytes[..4].copy_from_slice(&number.to_be_bytes());
    bytes.into()
}

#[tokio::test]
async fn messages_cross_in_order_and_both_sides_learn_of_the_end() {
    let (server, client) = (endpoint(), endpoint());
    let address = server.local_addr();
    let sender = tokio::spawn(async move {
        let connection = connect(&client, address, PORT).await.unwrap();
        for number in 0..5000 {
            connection.send(message(number, SEGMENT_BYTES)).await.unwrap();
        }
        assert_eq!(connection.close().await, CloseReason::Finished);
        client
    });
    let connection = within("accept", server.accept()).await.unwrap();
    for number in 0..5000 {
        let received = within("message", connection.recv()).await.expect("not over yet");
        assert_eq!(received, message(number, SEGMENT_BYTES));
    }
    assert_eq!(within("end", connection.recv()).await, None);
    assert_eq!(within("close", connection.close()).await, CloseReason::Finished);
    let client = within("sender", sender).await.unwrap();
    let stats = client.socket_stats();
    assert_eq!(stats.send_drops, 0);
    assert!(stats.sent_datagrams >= 5000, "{stats:?}");
    within("client end", client.close()).await;
    within("server end", server.close()).await;
}

#[tokio::test]
async fn bulk_leaves_in_batches() {
    let (server, client) = (endpoint(), endpoint());
    let connection = connect(&client, server.local_addr(), PORT).await.unwrap();
    let accepted = server.accept().await.unwrap();
    let reading = tokio::spawn(async move {
        let mut count = 0;
        while accepted.recv().await.is_some() {
            count += 1;
        }
        (count, accepted.close().await)
    });
    for number in 0..20_000 {
        connection.send(message(number, SEGMENT_BYTES)).await.unwrap();
    }
    assert_eq!(within("close", connection.close()).await, CloseReason::Finished);
    assert_eq!(
        within("reader", reading).await.unwrap(),
        (20_000, CloseReason::Finished)
    );
    let stats = client.socket_stats();
    if stats.send_calls * 2 > stats.sent_datagrams {
        // Some kernels have no segmentation offload; then there is a call for each.
        assert_eq!(stats.send_calls, stats.sent_datagrams, "{stats:?}");
        eprintln!("no segmentation offload here, batches not checked");
    }
}

/// The toy asserts that time never goes backwards; handles and driver are on different threads here.
#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn many_connections_share_two_sockets() {
    let (server, client) = (endpoint(), endpoint());
    let address = server.local_addr();
    let serving = tokio::spawn(async move {
        let mut tasks = tokio::task::JoinSet::new();
        for _ in 0..50 {
            let connection = server.accept().await.unwrap();
            tasks.spawn(async move {
                while let Some(data) = connection.recv().await {
                    connection.send(data).await.unwrap();
                }
                connection.close().await
            });
        }
        let ends = tasks.join_all().await;
        server.close().await;
        ends
    });
    let mut clients = tokio::task::JoinSet::new();
    let client = std::sync::Arc::new(client);
    for number in 0..50 {
        let client = client.clone();
        clients.spawn(async move {
            let connection = connect(&client, address, PORT).await.unwrap();
            for round in 0..20 {
                let sent = message(number * 1000 + round, 100);
                connection.send(sent.clone()).await.unwrap();
                assert_eq!(connection.recv().await, Some(sent));
            }
            connection.close().await
        });
    }
    assert_eq!(
        within("clients", clients.join_all()).await,
        vec![CloseReason::Finished; 50]
    );
    assert_eq!(
        within("server", serving).await.unwrap(),
        vec![CloseReason::Finished; 50]
    );
}

#[tokio::test]
async fn a_dropped_connection_is_broken_off_and_a_finished_one_still_delivers() {
    let (server, client) = (endpoint(), endpoint());
    let address = server.local_addr();
    drop(connect(&client, address, PORT).await.unwrap());
    let broken = within("first", server.accept()).await.unwrap();
    assert_eq!(within("reset", broken.closed()).await, CloseReason::Reset);
    assert_eq!(broken.recv().await, None);
    assert_eq!(
        broken.send(message(0, 4)).await,
        Err(SendError::Closed(Some(CloseReason::Reset)))
    );

    let connection = connect(&client, address, PORT).await.unwrap();
    for number in 0..500 {
        connection.send(message(number, 1000)).await.unwrap();
    }
    connection.finish();
    drop(connection);
    let accepted = within("second", server.accept()).await.unwrap();
    for number in 0..500 {
        assert_eq!(within("rest", accepted.recv()).await, Some(message(number, 1000)));
    }
    assert_eq!(within("end", accepted.close()).await, CloseReason::Finished);
    within("client end", client.close()).await;
}

#[tokio::test]
async fn a_refused_or_unanswered_connection_says_so() {
    let (server, client) = (endpoint(), endpoint());
    let refused = within("refusal", connect(&client, server.local_addr(), CLOSED_PORT)).await;
    assert!(
        matches!(refused, Err(ConnectError::Closed(CloseReason::Refused))),
        "{refused:?}"
    );
    // Nobody is bound there: the kernel's ICMP answer is no reason to stop.
    let nobody = {
        std::net::UdpSocket::bind(loopback())
            .unwrap()
            .local_addr()
            .unwrap()
    };
    let silent = within("silence", connect(&client, nobody, PORT)).await;
    assert!(
        matches!(silent, Err(ConnectError::Closed(CloseReason::TimedOut(_)))),
        "{silent:?}"
    );
    let other_family: SocketAddr = "[::1]:9".parse().unwrap();
    assert!(matches!(
        client.open(other_family, PORT),
        Err(ConnectError::Unreachable { .. })
    ));
}

#[tokio::test]
async fn garbage_and_floods_are_dropped_and_counted() {
    let (server, client) = (endpoint(), endpoint());
    let address = server.local_addr();
    let noise = tokio::net::UdpSocket::bind(loopback()).await.unwrap();
    for size in [0, 1, 12, 13, 1472, 60_000] {
        noise.send_to(&vec![0xA5; size], address).await.unwrap();
    }
    let flood = tokio::spawn(async move {
        for _ in 0..20_000 {
            let _ = noise.try_send_to(&[0xFF; 40], address);
        }
    });
    let connection = within("connect", connect(&client, address, PORT)).await.unwrap();
    connection.send(message(1, 10)).await.unwrap();
    let accepted = within("accept", server.accept()).await.unwrap();
    assert_eq!(within("message", accepted.recv()).await, Some(message(1, 10)));
    flood.await.unwrap();
    let stats = server.socket_stats();
    assert!(
        stats.receive_drops >= 1 && stats.received_datagrams > 5,
        "{stats:?}"
    );
}

#[tokio::test]
async fn a_stream_carries_bytes_in_both_directions() {
    let (server, client) = (endpoint(), endpoint());
    let connection = connect(&client, server.local_addr(), PORT).await.unwrap();
    let mut ours = connection.into_stream();
    let accepted = server.accept().await.unwrap();
    let echo = tokio::spawn(async move {
        let (mut reader, mut writer) = tokio::io::split(accepted.into_stream());
        let copied = tokio::io::copy(&mut reader, &mut writer).await.unwrap();
        writer.shutdown().await.unwrap();
        copied
    });
    let sent: Vec<u8> = (0..1_000_000u32).map(|n| (n % 251) as u8).collect();
    let (mut reader, mut writer) = tokio::io::split(&mut ours);
    let mut received = Vec::new();
    let writing = async {
        writer.write_all(&sent).await.unwrap();
        writer.shutdown().await.unwrap();
    };
    within("copy", async {
        tokio::join!(writing, reader.read_to_end(&mut received))
    })
    .await
    .1
    .unwrap();
    assert_eq!(received, sent);
    assert_eq!(within("echo", echo).await.unwrap(), 1_000_000);
}

#[tokio::test]
async fn a_wildcard_socket_answers_from_the_address_it_was_asked_at() {
    let server = Endpoint::with_machine(Toy::default(), &["0.0.0.0:0".parse().unwrap()]).unwrap();
    let asked = SocketAddr::from(([127, 0, 0, 3], server.local_addr().port()));
    let client = Endpoint::with_machine(Toy::default(), &["0.0.0.0:0".parse().unwrap()]).unwrap();
    // The toy knows connections by address: an answer from elsewhere would find none.
    let connection = within("connect", connect(&client, asked, PORT)).await.unwrap();
    assert!(connection.established().await.is_ok());
}

#[test]
fn a_runtime_that_ends_leaves_nobody_waiting() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let (connection, server, client) = runtime.block_on(async {
        let (server, client) = (endpoint(), endpoint());
        (
            connect(&client, server.local_addr(), PORT).await.unwrap(),
            server,
            client,
        )
    });
    drop(runtime);
    let other = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    other.block_on(async {
        assert_eq!(connection.recv().await, None);
        assert_eq!(connection.closed().await, CloseReason::Aborted);
        assert!(connection.send(message(1, 4)).await.is_err());
        assert!(server.accept().await.is_none());
        assert!(matches!(
            client.open(loopback(), PORT),
            Err(ConnectError::Stopped)
        ));
        within("close", client.close()).await;
    });
}

#[tokio::test]
async fn one_host_is_reached_at_all_its_addresses() {
    let addresses: Vec<SocketAddr> = ["127.0.0.1:0", "127.0.0.2:0", "[::1]:0"]
        .map(|text| text.parse().unwrap())
        .into();
    // Some machines have no IP version 6.
    let usable: Vec<SocketAddr> = addresses
        .into_iter()
        .filter(|address| std::net::UdpSocket::bind(address).is_ok())
        .collect();
    let bind = || Endpoint::with_machine(Toy::default(), &usable).unwrap();
    let (server, client) = (bind(), bind());
    for (local, remote) in client.local_addrs().into_iter().zip(server.local_addrs()) {
        let connection = client.open_on(PathAddress { local, remote }, PORT).unwrap();
        connection.send(message(1, 100)).await.unwrap();
        let accepted = within("accept", server.accept()).await.unwrap();
        assert_eq!(within("message", accepted.recv()).await, Some(message(1, 100)));
    }
    let elsewhere = PathAddress {
        local: "127.0.0.9:1".parse().unwrap(),
        remote: server.local_addr(),
    };
    assert!(
        client
            .open_on(elsewhere, PORT)
            .unwrap_err()
            .to_string()
            .contains("127.0.0.9:1 is not bound")
    );
}

#[tokio::test]
async fn what_has_arrived_can_be_read_after_the_endpoint_is_closed() {
    let (server, client) = (endpoint(), endpoint());
    let connection = connect(&client, server.local_addr(), PORT).await.unwrap();
    let accepted = within("accept", server.accept()).await.unwrap();
    connection.send(message(1, 100)).await.unwrap();
    accepted.finish();
    assert_eq!(within("end", connection.close()).await, CloseReason::Finished);
    // The handle still exists, but its flow is over: closing does not wait for it.
    within("close", server.close()).await;
    assert_eq!(accepted.closed().await, CloseReason::Finished);
    assert_eq!(accepted.recv().await, Some(message(1, 100)));
    assert_eq!(accepted.recv().await, None);
}

#[tokio::test]
async fn a_fault_in_the_machine_ends_its_endpoint_and_leaves_nobody_waiting() {
    let (server, client) = (endpoint(), endpoint());
    let address = server.local_addr();
    let connection = std::sync::Arc::new(connect(&client, address, PORT).await.unwrap());
    let reading = tokio::spawn({
        let connection = connection.clone();
        async move { connection.recv().await }
    });
    tokio::task::yield_now().await;
    let faulty = tokio::spawn({
        let connection = connection.clone();
        async move { connection.send(Bytes::from_static(FAULT)).await }
    });
    assert!(within("fault", faulty).await.unwrap_err().is_panic());
    assert_eq!(within("closed", connection.closed()).await, CloseReason::Aborted);
    assert_eq!(within("reader", reading).await.unwrap(), None);
    assert!(matches!(client.open(address, PORT), Err(ConnectError::Stopped)));
    within("close", client.close()).await;
}

#[test]
fn an_endpoint_outside_of_a_runtime_is_an_error() {
    assert!(Endpoint::with_machine(Toy::default(), &[loopback()]).is_err());
}

/// The machine is busy for a while, as if the system had withheld the processor, and a datagram comes meanwhile. Its time is
/// not one before it was sent: round trips would look shorter than the path allows.
#[tokio::test]
async fn a_datagram_is_never_older_than_the_moment_it_was_sent() {
    const BUSY: Duration = Duration::from_millis(30);
    let (seen, times) = std::sync::mpsc::channel();
    let peer = std::net::UdpSocket::bind(loopback()).expect("loopback");
    let late = peer.try_clone().expect("a socket");
    let (tell, address) = std::sync::mpsc::channel::<SocketAddr>();
    let mut first = true;
    let mut toy = Toy::default();
    toy.observer = Some(Box::new(move |now| {
        if std::mem::take(&mut first) {
            #[expect(
                clippy::disallowed_methods,
                reason = "the machine of this test keeps its driver busy"
            )]
            std::thread::sleep(BUSY);
            let to = address.recv().expect("told");
            late.send_to(&[2], to).expect("loopback");
        }
        let _ = seen.send(now);
    }));
    let server = Endpoint::with_machine(toy, &[loopback()]).expect("loopback can be bound");
    tell.send(server.local_addr()).expect("waits");
    peer.send_to(&[1], server.local_addr()).expect("loopback");
    let waiting = tokio::task::spawn_blocking(move || [times.recv(), times.recv()].map(Result::unwrap));
    let [busy_since, came] = within("both datagrams", waiting).await.expect("no panic");
    assert!(
        came.since(busy_since).as_nanos() >= BUSY.as_nanos() as u64,
        "{came:?} is less than {BUSY:?} after {busy_since:?}"
    );
}
