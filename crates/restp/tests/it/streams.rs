//! Many streams of one connection, over real sockets.

use crate::common::{Line, PORT, loopback, noise, within};
use restp::{
    Acceptance, CloseReason, Connection, Endpoint, EndpointConfig, Preset, StreamReadError, StreamWriteError,
    Trust,
};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Wake, Waker};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

fn config(preset: &str, set: &[(&str, &str)]) -> EndpointConfig {
    let mut composition = Preset::named(preset).expect("a preset").composition();
    for (key, value) in set {
        composition.set(key, value).expect("a key");
    }
    EndpointConfig::new(composition.check().expect("valid"))
}

const STREAMS: &[(&str, &str)] = &[("framing", "streams"), ("ordering", "unordered")];

/// Both ends, and endpoints that have to stay.
async fn connected(
    path: Option<&str>,
) -> (
    Arc<Connection>,
    Arc<Connection>,
    (Endpoint, Endpoint, Option<Line>),
) {
    let bind = |config| Endpoint::bind(loopback(), config, Trust::Anybody).expect("loopback can be bound");
    let client = bind(config("default", STREAMS));
    let server = bind(config("default", &[]).listen(PORT, Acceptance::Any));
    let line = path.map(|path| Line::start(server.local_addr(), path));
    let to = line.as_ref().map_or(server.local_addr(), |line| line.address);
    let opened = within("connect", client.connect(to, PORT)).await.expect("served");
    let accepted = within("accept", server.accept()).await.expect("running");
    (Arc::new(opened), Arc::new(accepted), (client, server, line))
}

/// Answers each stream with what comes in it.
fn echo(connection: Arc<Connection>) -> tokio::task::JoinHandle<()> {
    tokio::spawn(async move {
        while let Some(stream) = connection.accept_stream().await {
            tokio::spawn(async move {
                while let Ok(Some(data)) = stream.recv().await {
                    if stream.send(data).await.is_err() {
                        return;
                    }
                }
                stream.finish();
            });
        }
    })
}

/// `count` streams at once, each of which gets back what it sends.
async fn exchange(path: Option<&str>, count: usize, size: usize) {
    let (opened, accepted, ends) = connected(path).await;
    let echo = echo(accepted);
    let data = noise(size + count);
    let streams = (0..count).map(|at| {
        let (connection, data) = (opened.clone(), data.slice(at..at + size));
        tokio::spawn(async move {
            let stream = connection.open_stream().await.expect("open");
            let (mut rx, mut tx) = tokio::io::split(stream);
            let sent = data.clone();
            let sending = tokio::spawn(async move {
                tx.write_all(&sent).await.expect("open");
                tx.shutdown().await.expect("open");
                tx
            });
            let mut got = Vec::new();
            rx.read_to_end(&mut got).await.expect("a stream");
            assert!(got == data, "{} of {} bytes", got.len(), data.len());
            sending.await.expect("no panic");
        })
    });
    for stream in streams.collect::<Vec<_>>() {
        within("a stream", stream).await.expect("no panic");
    }
    opened.finish();
    echo.abort();
    drop(ends);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_are_echoed_over_loopback() {
    exchange(None, 300, 20_000).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_are_echoed_through_loss_and_reordering() {
    let path = "rate = \"50 Mbit/s\"\ndelay = \"10 ms\"\nloss = { rate = 0.02, unit = \"packet\" }\njitter = { delay = \"5 ms\", reorder = true }";
    exchange(Some(path), 40, 30_000).await;
}

#[tokio::test]
async fn more_streams_than_the_peer_takes_wait_their_turn() {
    let (opened, accepted, _ends) = connected(None).await;
    let mut open = Vec::new();
    for _ in 0..1024 {
        let stream = within("a stream", opened.open_stream()).await.expect("open");
        stream.send("x".into()).await.expect("open");
        open.push(stream);
    }
    let waiting = {
        let opened = opened.clone();
        tokio::spawn(async move { opened.open_stream().await.map(|stream| stream.id()) })
    };
    let first = within("a stream", accepted.accept_stream()).await.expect("one");
    assert_eq!(first.id(), open[0].id());
    drop(first);
    drop(open.remove(0));
    let id = within("the next", waiting)
        .await
        .expect("no panic")
        .expect("open");
    assert_eq!(id.ordinal(), 1024);
}

#[tokio::test]
async fn a_reader_that_stalls_stalls_no_other() {
    let (opened, accepted, _ends) = connected(None).await;
    let (stalled, other) = (
        opened.open_stream().await.expect("open"),
        opened.open_stream().await.expect("open"),
    );
    let fill = tokio::spawn(async move { while stalled.send(noise(16_000)).await.is_ok() {} });
    let held = within("a stream", accepted.accept_stream()).await.expect("one");
    let sending = tokio::spawn(async move {
        for _ in 0..300 {
            other.send(noise(16_000)).await.expect("open");
        }
        other.finish();
        other.recv().await.expect("an answer")
    });
    let read = within("a stream", accepted.accept_stream()).await.expect("one");
    let mut bytes = 0;
    while let Some(data) = within("data", read.recv()).await.expect("a stream") {
        bytes += data.len();
    }
    read.finish();
    assert_eq!(bytes, 300 * 16_000);
    within("the end", sending).await.expect("no panic");
    assert!(!fill.is_finished());
    held.stop(3);
    within("its writer", fill).await.expect("no panic");
}

#[tokio::test]
async fn ends_are_told_with_their_codes() {
    let (opened, accepted, _ends) = connected(None).await;
    let stream = opened.open_stream().await.expect("open");
    stream.send("x".into()).await.expect("open");
    let other = within("a stream", accepted.accept_stream()).await.expect("one");
    stream.reset(11);
    assert_eq!(
        within("data", async {
            while other.recv().await?.is_some() {}
            Ok(())
        })
        .await,
        Err(StreamReadError::Reset(11))
    );
    other.stop(0);
    other.send("still".into()).await.expect("its own direction");
    assert_eq!(within("data", stream.recv()).await, Ok(Some("still".into())));
    stream.stop(12);
    let stopped = async {
        loop {
            if let Err(error) = other.send("more".into()).await {
                return error;
            }
            tokio::task::yield_now().await;
        }
    };
    assert_eq!(within("a stop", stopped).await, StreamWriteError::Stopped(12));
}

#[tokio::test]
async fn the_end_of_the_connection_ends_its_streams() {
    let (opened, accepted, _ends) = connected(None).await;
    let stream = opened.open_stream().await.expect("open");
    stream.send("x".into()).await.expect("open");
    let other = within("a stream", accepted.accept_stream()).await.expect("one");
    assert_eq!(within("data", other.recv()).await, Ok(Some("x".into())));
    let waits = tokio::spawn(async move { (stream.recv().await, stream.send("y".into()).await) });
    drop(Arc::into_inner(accepted));
    assert_eq!(within("an end", opened.closed()).await, CloseReason::Reset);
    assert_eq!(other.recv().await, Err(StreamReadError::Lost));
    let (read, sent) = within("both", waits).await.expect("no panic");
    assert_eq!(
        (read, sent),
        (Err(StreamReadError::Lost), Err(StreamWriteError::Closed))
    );
    assert!(opened.open_stream().await.is_err() && opened.accept_stream().await.is_none());
}

#[tokio::test]
async fn a_finished_connection_that_is_dropped_lets_its_streams_end() {
    let (opened, accepted, _ends) = connected(None).await;
    let stream = opened.open_stream().await.expect("open");
    opened.finish();
    drop(Arc::into_inner(opened));
    stream.send("late".into()).await.expect("it goes on");
    stream.finish();
    let other = within("a stream", accepted.accept_stream()).await.expect("one");
    assert_eq!(within("data", other.recv()).await, Ok(Some("late".into())));
    assert_eq!(within("data", other.recv()).await, Ok(None));
    other.send("answer".into()).await.expect("open");
    other.finish();
    assert_eq!(within("data", stream.recv()).await, Ok(Some("answer".into())));
    assert_eq!(within("data", stream.recv()).await, Ok(None));
    accepted.finish();
    assert_eq!(within("an end", accepted.closed()).await, CloseReason::Finished);
}

/// It waited for ever: nobody was left to wake it.
#[tokio::test]
async fn who_waits_for_a_stream_of_a_connection_without_a_handle_hears_of_its_end() {
    for is_finished in [true, false] {
        let (opened, accepted, _ends) = connected(None).await;
        let stream = opened.open_stream().await.expect("open");
        stream.send("x".into()).await.expect("open");
        let other = within("a stream", accepted.accept_stream()).await.expect("one");
        let waits = tokio::spawn(async move { stream.recv().await });
        tokio::time::sleep(Duration::from_millis(20)).await;
        if is_finished {
            opened.finish();
        }
        drop(Arc::into_inner(opened));
        accepted.abort();
        let read = within("the reader", waits).await.expect("no panic");
        assert_eq!(read, Err(StreamReadError::Lost), "{is_finished}");
        drop(other);
    }
}

/// It waited until the connection was over, which waited for it to finish.
#[tokio::test]
async fn who_waits_for_streams_hears_that_the_peer_has_finished() {
    let (opened, accepted, _ends) = connected(None).await;
    let waits = tokio::spawn({
        let accepted = accepted.clone();
        async move { accepted.accept_stream().await.is_none() }
    });
    tokio::time::sleep(Duration::from_millis(20)).await;
    opened.finish();
    assert!(within("no stream", waits).await.expect("no panic"));
    assert!(within("no other", accepted.accept_stream()).await.is_none());
    accepted.finish();
    assert_eq!(within("an end", opened.closed()).await, CloseReason::Finished);
}

#[tokio::test]
async fn who_waits_for_bytes_hears_that_reading_was_stopped() {
    let (opened, _accepted, _ends) = connected(None).await;
    let stream = Arc::new(opened.open_stream().await.expect("open"));
    let reader = tokio::spawn({
        let stream = stream.clone();
        async move { stream.recv().await }
    });
    tokio::time::sleep(Duration::from_millis(20)).await;
    stream.finish();
    stream.stop(0);
    let read = within("the reader", reader).await.expect("no panic");
    assert_eq!(read, Err(StreamReadError::Lost));
    assert_eq!(stream.recv().await, Err(StreamReadError::Lost), "it is no end");
}

/// Its waker stayed until the connection was over.
#[tokio::test]
async fn a_stream_forgets_who_waited() {
    struct Nobody;
    impl Wake for Nobody {
        fn wake(self: Arc<Self>) {}
    }
    let (opened, _accepted, _ends) = connected(None).await;
    let stream = opened.open_stream().await.expect("open");
    let nobody = Arc::new(Nobody);
    {
        let waker = Waker::from(nobody.clone());
        let mut recv = pin!(stream.recv());
        assert!(recv.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    }
    assert_eq!(Arc::strong_count(&nobody), 1);
}
