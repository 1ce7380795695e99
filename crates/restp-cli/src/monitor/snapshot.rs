//! One look at all connections of a command. `restp top --json` prints these, and reads them from other processes.

use crate::transfer::diagnosis;
use restp::clock::Clock;
use restp::{ConnectionView, FlowStats, Overview, PathAddress, PathStats};
use restp_base::time::{Duration, Time};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// What is looked at.
pub struct Observed {
    pub command: &'static str,
    /// One or more.
    pub shown: Vec<Box<dyn Shown>>,
    /// Since the command began to show itself.
    pub clock: Clock,
}

/// What has connections, or something like them.
pub trait Shown: Send + Sync {
    /// A look; `None` once it is gone.
    fn look(&self) -> Option<Shows>;
}

/// What a look shows. Each connection has a number that no other of the same has had.
#[derive(Debug, Default)]
pub struct Shows {
    pub connections: Vec<Connection>,
    pub forged_datagrams: u64,
}

/// All connections of one process. Counters only grow; rates are the reader's business.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    pub command: String,
    pub pid: u32,
    /// When, since the command began to show itself.
    pub seconds: f64,
    /// Datagrams that were not genuine, since the beginning.
    pub forged_datagrams: u64,
    pub connections: Vec<Connection>,
}

/// One connection.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Connection {
    /// No other connection of the process has had it.
    pub id: u64,
    /// Public key of the other end; `null` without a seal, or before it is proved.
    pub key: Option<String>,
    pub established: bool,
    /// Service and choice, as negotiated.
    pub composition: BTreeMap<String, String>,
    pub handshake_ms: Option<f64>,
    pub srtt_ms: Option<f64>,
    pub rto_ms: Option<f64>,
    /// Congestion window.
    pub window_bytes: u64,
    pub bytes_sent: u64,
    pub bytes_received: u64,
    /// Application bytes that were read here.
    pub bytes_delivered: u64,
    pub packets_sent: u64,
    pub packets_received: u64,
    pub packets_lost: u64,
    pub packets_retransmitted: u64,
    /// Rebuilt here by forward error correction.
    pub packets_repaired: u64,
    pub timeouts: u64,
    /// Not over; with `streams_opened` 0 where a connection carries no streams.
    pub streams_open: u64,
    /// By either end, so far.
    pub streams_opened: u64,
    /// Segments on their way.
    pub in_flight: u64,
    pub paths: Vec<Path>,
    /// What was found on the paths since the beginning, in words.
    #[serde(default)]
    pub found: Vec<String>,
}

/// One path of a connection.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Path {
    pub local: SocketAddr,
    pub remote: SocketAddr,
    pub bytes_sent: u64,
    pub bytes_received: u64,
    pub packets_sent: u64,
    pub packets_lost: u64,
    pub srtt_ms: Option<f64>,
    /// Times it was silent for too long, and what it carried was retransmitted elsewhere.
    pub suspicions: u64,
    /// Times it was taken for dead.
    pub down_events: u64,
    /// What the adaptive controller takes it for; `null` of other controllers.
    #[serde(default)]
    pub mode: Option<String>,
    /// Segments that did not arrive in time, by what they were taken for; `null` where nobody infers that.
    #[serde(default)]
    pub loss_causes: Option<Causes>,
}

/// Segments by cause (docs/services/adaptation.md).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Causes {
    pub congestion: u64,
    pub corruption: u64,
    pub outage: u64,
    /// Not lost at all; they count above, too.
    pub late: u64,
}

impl Observed {
    /// A look; `None` once the endpoints are gone.
    pub fn look(&self) -> Option<Snapshot> {
        let looks = self.shown.iter().enumerate();
        let shows: Vec<_> = looks
            .filter_map(|(nth, shown)| Some((nth as u64, shown.look()?)))
            .collect();
        if shows.is_empty() {
            return None;
        }
        let all = self.shown.len() as u64;
        let forged_datagrams = shows.iter().map(|(_, shows)| shows.forged_datagrams).sum();
        let connections = shows.into_iter().flat_map(|(nth, shows)| {
            shows.connections.into_iter().map(move |connection| Connection {
                id: connection.id.wrapping_mul(all).wrapping_add(nth), // each counts for itself
                ..connection
            })
        });
        Some(Snapshot {
            command: self.command.into(),
            pid: std::process::id(),
            seconds: self.clock.now().since(Time::ZERO).as_secs_f64(),
            forged_datagrams,
            connections: connections.collect(),
        })
    }
}

impl Shown for Overview {
    fn look(&self) -> Option<Shows> {
        let view = Overview::look(self)?;
        Some(Shows {
            connections: view.connections.iter().map(Connection::of).collect(),
            forged_datagrams: view.seal.forged,
        })
    }
}

impl Connection {
    fn of(view: &ConnectionView) -> Self {
        let composition = view
            .composition
            .iter()
            .flat_map(|composition| composition.services());
        Connection {
            id: view.id.0,
            key: view.peer_key.map(|key| key.to_string()),
            established: view.established,
            composition: composition
                .map(|(service, choice, _)| (service.to_owned(), choice))
                .collect(),
            streams_open: view.streams.map_or(0, |streams| streams.open),
            streams_opened: view.streams.map_or(0, |streams| streams.opened),
            ..Connection::counted(&view.stats)
        }
    }

    /// What is counted and estimated.
    pub fn counted(stats: &FlowStats) -> Self {
        Connection {
            handshake_ms: stats.handshake.map(milliseconds),
            srtt_ms: stats.srtt.map(milliseconds),
            rto_ms: stats.rto.map(milliseconds),
            window_bytes: stats.congestion_window_bytes,
            bytes_sent: stats.sent_bytes,
            bytes_received: stats.received_bytes,
            bytes_delivered: stats.delivered_bytes,
            packets_sent: stats.sent_packets,
            packets_received: stats.received_packets,
            packets_lost: stats.lost_packets,
            packets_retransmitted: stats.retransmitted_packets,
            packets_repaired: stats.repaired_packets,
            timeouts: stats.timeouts,
            in_flight: stats.in_flight_segments,
            paths: stats.paths.iter().map(Path::of).collect(),
            found: diagnosis::since_the_beginning(&stats.paths),
            ..Connection::default()
        }
    }
}

impl Path {
    /// Nothing has passed on it.
    pub fn new(local: SocketAddr, remote: SocketAddr) -> Self {
        Path::of(&PathStats::new(PathAddress { local, remote }))
    }

    fn of(stats: &PathStats) -> Self {
        Path {
            local: stats.path.local,
            remote: stats.path.remote,
            bytes_sent: stats.sent_bytes,
            bytes_received: stats.received_bytes,
            packets_sent: stats.sent_packets,
            packets_lost: stats.lost_packets,
            srtt_ms: stats.srtt.map(milliseconds),
            suspicions: stats.suspicions,
            down_events: stats.down_events,
            mode: stats.mode.map(str::to_owned),
            loss_causes: stats.causes.map(|causes| Causes {
                congestion: causes.congestion.segments,
                corruption: causes.corruption.segments,
                outage: causes.outage.segments,
                late: causes.late.segments,
            }),
        }
    }
}

pub fn milliseconds(span: Duration) -> f64 {
    span.as_secs_f64() * 1e3
}
