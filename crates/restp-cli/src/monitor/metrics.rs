//! Counters of all connections in the format of OpenMetrics 1.0, over HTTP at `/metrics`.
//!
//! Labels are `connection` (its number in this process) and, of paths, `local` and `remote`: they last as long as a connection,
//! so a collector that forgets ended series sees no more of them than run at once.

use super::PAUSE;
use super::snapshot::{Causes, Connection, Observed, Path, Snapshot};
use bytes::Bytes;
use http_body_util::Full;
use hyper::header::CONTENT_TYPE;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

/// Requests at once; further ones wait in the kernel.
const MAX_REQUESTS: usize = 8;

/// A connection is over within this time: who does not read leaves room to others.
const OVER_WITHIN: Duration = Duration::from_secs(30);

/// A request has arrived within this time, or is none.
const ASKS_WITHIN: Duration = Duration::from_secs(10);

const FORMAT: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

type Labels = Vec<(&'static str, String)>;
type Counters = Family<Labels, Counter>;
type Gauges = Family<Labels, Gauge<f64, AtomicU64>>;

/// Until the task is dropped.
pub async fn serve(listener: TcpListener, observed: Arc<Observed>) {
    let mut requests = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept(), if requests.len() < MAX_REQUESTS => match accepted {
                Ok((stream, _)) => {
                    requests.spawn(serve_one(stream, observed.clone(), OVER_WITHIN));
                }
                // The system has no room for one more: it may have in a moment.
                Err(_) => sleep(PAUSE).await,
            },
            Some(_) = requests.join_next(), if !requests.is_empty() => {}
        }
    }
}

async fn serve_one(stream: impl AsyncRead + AsyncWrite + Unpin, observed: Arc<Observed>, within: Duration) {
    let service = service_fn(|request| std::future::ready(answer(&request, &observed)));
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(ASKS_WITHIN)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service);
    let _ = timeout(within, served).await; // who leaves early misses the answer
}

fn answer<B>(request: &Request<B>, observed: &Observed) -> Result<Response<Full<Bytes>>, Infallible> {
    let plain = |status, text: &'static str| {
        let mut response = Response::new(Full::from(text));
        *response.status_mut() = status;
        response
    };
    if request.method() != Method::GET {
        return Ok(plain(StatusCode::METHOD_NOT_ALLOWED, "only GET\n"));
    }
    if request.uri().path() != "/metrics" {
        return Ok(plain(StatusCode::NOT_FOUND, "metrics are at /metrics\n"));
    }
    let Some(text) = observed.look().and_then(|snapshot| text(&snapshot)) else {
        return Ok(plain(
            StatusCode::SERVICE_UNAVAILABLE,
            "the command is about to end\n",
        ));
    };
    let mut response = Response::new(Full::from(text));
    let format = hyper::header::HeaderValue::from_static(FORMAT);
    response.headers_mut().insert(CONTENT_TYPE, format);
    Ok(response)
}

/// `snapshot` as a collector reads it.
fn text(snapshot: &Snapshot) -> Option<String> {
    let mut registry = Registry::with_prefix("restp");
    let command: Counters = Family::default();
    registry.register(
        "forged_datagrams",
        "Datagrams that were not genuine",
        command.clone(),
    );
    let labels = vec![("command", snapshot.command.clone())];
    command.get_or_create(&labels).inc_by(snapshot.forged_datagrams);
    let open = Gauges::default();
    registry.register("connections", "Connections that exist", open.clone());
    open.get_or_create(&labels).set(snapshot.connections.len() as f64);
    for (name, help, value) in COUNTERS {
        let family = Counters::default();
        registry.register(*name, *help, family.clone());
        for connection in &snapshot.connections {
            family
                .get_or_create(&of_connection(connection))
                .inc_by(value(connection));
        }
    }
    for (name, help, value) in SECONDS {
        let family = Gauges::default();
        registry.register_with_unit(*name, *help, Unit::Seconds, family.clone());
        for connection in &snapshot.connections {
            if let Some(milliseconds) = value(connection) {
                family
                    .get_or_create(&of_connection(connection))
                    .set(milliseconds / 1e3);
            }
        }
    }
    let (window, streams) = (Gauges::default(), Gauges::default());
    registry.register_with_unit(
        "congestion_window",
        "Congestion window",
        Unit::Bytes,
        window.clone(),
    );
    registry.register("open_streams", "Streams that are open", streams.clone());
    for connection in &snapshot.connections {
        let labels = of_connection(connection);
        window.get_or_create(&labels).set(connection.window_bytes as f64);
        streams.get_or_create(&labels).set(connection.streams_open as f64);
    }
    paths(&mut registry, snapshot);
    let mut text = String::new();
    encode(&mut text, &registry).ok()?;
    Some(text)
}

fn paths(registry: &mut Registry, snapshot: &Snapshot) {
    let all = || {
        let connections = snapshot.connections.iter();
        connections.flat_map(|connection| connection.paths.iter().map(move |path| (connection, path)))
    };
    for (name, help, value) in PATH_COUNTERS {
        let family = Counters::default();
        registry.register(*name, *help, family.clone());
        for (connection, path) in all() {
            family
                .get_or_create(&of_path(connection, path))
                .inc_by(value(path));
        }
    }
    let family = Gauges::default();
    registry.register_with_unit(
        "path_round_trip",
        "Smoothed round trip of a path",
        Unit::Seconds,
        family.clone(),
    );
    for (connection, path) in all() {
        if let Some(milliseconds) = path.srtt_ms {
            family
                .get_or_create(&of_path(connection, path))
                .set(milliseconds / 1e3);
        }
    }
}

fn of_connection(connection: &Connection) -> Labels {
    vec![("connection", connection.id.to_string())]
}

fn of_path(connection: &Connection, path: &Path) -> Labels {
    let mut labels = of_connection(connection);
    labels.push(("local", path.local.to_string()));
    labels.push(("remote", path.remote.to_string()));
    labels
}

type Row<T, V> = (&'static str, &'static str, fn(&T) -> V);

const COUNTERS: &[Row<Connection, u64>] = &[
    ("sent_bytes", "Transport bytes sent", |c| c.bytes_sent),
    ("received_bytes", "Transport bytes received", |c| c.bytes_received),
    ("delivered_bytes", "Application bytes read here", |c| {
        c.bytes_delivered
    }),
    ("sent_packets", "Datagrams sent", |c| c.packets_sent),
    ("received_packets", "Datagrams received", |c| c.packets_received),
    ("lost_packets", "Segments declared lost", |c| c.packets_lost),
    ("retransmitted_packets", "Segments sent again", |c| {
        c.packets_retransmitted
    }),
    (
        "repaired_packets",
        "Segments rebuilt by forward error correction",
        |c| c.packets_repaired,
    ),
    ("timeouts", "Retransmission timers that ran out", |c| c.timeouts),
    ("opened_streams", "Streams opened by either end", |c| {
        c.streams_opened
    }),
];

const SECONDS: &[Row<Connection, Option<f64>>] = &[
    ("round_trip", "Smoothed round trip", |c| c.srtt_ms),
    ("retransmission_timeout", "Retransmission timeout in force", |c| {
        c.rto_ms
    }),
    ("handshake", "Until both sides knew of the connection", |c| {
        c.handshake_ms
    }),
];

const PATH_COUNTERS: &[Row<Path, u64>] = &[
    ("path_sent_bytes", "Transport bytes sent on a path", |p| {
        p.bytes_sent
    }),
    ("path_received_bytes", "Transport bytes received on a path", |p| {
        p.bytes_received
    }),
    ("path_sent_packets", "Datagrams sent on a path", |p| {
        p.packets_sent
    }),
    ("path_lost_packets", "Segments declared lost on a path", |p| {
        p.packets_lost
    }),
    ("path_suspicions", "Times a path was silent for too long", |p| {
        p.suspicions
    }),
    ("path_down_events", "Times a path was taken for dead", |p| {
        p.down_events
    }),
    (
        "path_congestion_losses",
        "Segments taken for lost by congestion on a path",
        |p| caused(p, |causes| causes.congestion),
    ),
    (
        "path_corruption_losses",
        "Segments taken for lost by corruption on a path",
        |p| caused(p, |causes| causes.corruption),
    ),
    (
        "path_outage_losses",
        "Segments taken for lost by an outage of a path",
        |p| caused(p, |causes| causes.outage),
    ),
    (
        "path_late_losses",
        "Segments of a path that came late and were taken for lost",
        |p| caused(p, |causes| causes.late),
    ),
];

fn caused(path: &Path, of: impl Fn(&Causes) -> u64) -> u64 {
    path.loss_causes.as_ref().map_or(0, of)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "in a test a failed unwrap is a failed test")]

    use super::*;
    use restp::{Composition, Endpoint, EndpointConfig, Trust};
    use tokio::io::{AsyncWriteExt, duplex};

    #[tokio::test]
    async fn who_does_not_read_his_answer_leaves_room_to_others() {
        let config = EndpointConfig::new(Composition::default().check().unwrap());
        let endpoint = Endpoint::bind(([127, 0, 0, 1], 0).into(), config, Trust::Nobody).unwrap();
        let observed = Arc::new(Observed {
            command: "recv",
            shown: vec![Box::new(endpoint.overview())],
            clock: restp::clock::Clock::start(),
        });
        // Less room than any answer needs.
        let (mut collector, stream) = duplex(16);
        let served = serve_one(stream, observed, Duration::from_millis(50));
        let asked = collector.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
        let both = async { tokio::join!(served, asked) };
        assert!(timeout(Duration::from_secs(60), both).await.is_ok());
    }

    #[test]
    fn a_collector_reads_counters_of_connections_and_paths() {
        let path = Path {
            local: "192.0.2.1:1".parse().unwrap(),
            remote: "192.0.2.2:2".parse().unwrap(),
            bytes_sent: 70,
            bytes_received: 0,
            packets_sent: 3,
            packets_lost: 1,
            srtt_ms: Some(20.0),
            suspicions: 0,
            down_events: 2,
            mode: None,
            loss_causes: Some(Causes {
                congestion: 4,
                ..Causes::default()
            }),
        };
        let connection = Connection {
            id: 5,
            bytes_sent: 100,
            srtt_ms: Some(40.0),
            streams_open: 3,
            streams_opened: 8,
            paths: vec![path],
            ..Connection::default()
        };
        let snapshot = Snapshot {
            command: "send".into(),
            pid: 1,
            seconds: 2.0,
            forged_datagrams: 9,
            connections: vec![connection],
        };
        let text = text(&snapshot).unwrap();
        for line in [
            "restp_sent_bytes_total{connection=\"5\"} 100",
            "restp_round_trip_seconds{connection=\"5\"} 0.04",
            "restp_open_streams{connection=\"5\"} 3.0",
            "restp_opened_streams_total{connection=\"5\"} 8",
            "restp_path_sent_bytes_total{connection=\"5\",local=\"192.0.2.1:1\",remote=\"192.0.2.2:2\"} 70",
            "restp_path_congestion_losses_total{connection=\"5\",local=\"192.0.2.1:1\",remote=\"192.0.2.2:2\"} 4",
            "restp_path_outage_losses_total{connection=\"5\",local=\"192.0.2.1:1\",remote=\"192.0.2.2:2\"} 0",
            "restp_path_down_events_total{connection=\"5\",local=\"192.0.2.1:1\",remote=\"192.0.2.2:2\"} 2",
            "restp_path_round_trip_seconds{connection=\"5\",local=\"192.0.2.1:1\",remote=\"192.0.2.2:2\"} 0.02",
            "restp_forged_datagrams_total{command=\"send\"} 9",
            "restp_connections{command=\"send\"} 1.0",
        ] {
            assert!(
                text.lines().any(|found| found == line),
                "{line} is not in\n{text}"
            );
        }
        assert!(text.ends_with("# EOF\n"));
        assert!(
            !text.contains("handshake_seconds{"),
            "what is not known is no number"
        );
    }
}
