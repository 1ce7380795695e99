//! What is published, cached and fetched, and what a relay forwards, as connections: who moves data sees it in the same table.

use super::snapshot::{Connection, Path, Shown, Shows, milliseconds};
use restp::Caller;
use restp::relay::{RelayOverview, RelayedHost};
use restp_base::flow::{Flow, FlowId};
use restp_rivals::itp::node::{Node, NodeCounters, SourceReport, UpstreamReport};

/// One object that is fetched: a connection whose paths are its sources.
pub struct Fetching {
    pub node: Caller<Node>,
    pub flow: FlowId,
}

/// What is published and cached: those who ask are one connection, for they set none up, and each that a cache asks is another.
pub struct Serving(pub Caller<Node>);

impl Shown for Fetching {
    fn look(&self) -> Option<Shows> {
        let look = self.node.call(|node, _| {
            let stats = node.stats(self.flow).unwrap_or_default();
            (stats, node.sources(self.flow))
        });
        let (stats, sources) = look?;
        let path = |source: &SourceReport| Path {
            bytes_received: source.bytes,
            srtt_ms: source.srtt.map(milliseconds),
            ..Path::new(stats.path.map_or(source.remote, |path| path.local), source.remote)
        };
        let connection = Connection {
            established: sources.iter().any(|source| source.serves),
            paths: sources.iter().map(path).collect(),
            ..Connection::counted(&stats)
        };
        Some(Shows {
            connections: vec![connection],
            forged_datagrams: 0,
        })
    }
}

impl Shown for Serving {
    fn look(&self) -> Option<Shows> {
        let look = self.0.call(|node, _| (node.counters(), node.relayed()));
        let (counters, relayed) = look?;
        let above = relayed.map(|(_, above)| above).unwrap_or_default();
        let above = above.iter().zip(1..).map(|(report, id)| upstream(id, report));
        Some(Shows {
            connections: [consumers(counters)].into_iter().chain(above).collect(),
            forged_datagrams: 0,
        })
    }
}

fn consumers(counters: NodeCounters) -> Connection {
    Connection {
        established: true,
        bytes_sent: counters.answered_bytes,
        packets_sent: counters.answers,
        packets_received: counters.answers,
        ..Connection::default()
    }
}

fn upstream(id: u64, report: &UpstreamReport) -> Connection {
    Connection {
        id,
        established: report.srtt.is_some(),
        bytes_received: report.bytes,
        packets_received: report.answers,
        srtt_ms: report.srtt.map(milliseconds),
        paths: vec![Path::new(report.path.local, report.path.remote)],
        ..Connection::default()
    }
}

/// Each host at a relay, to which the relay sends. What is dropped because it has its share counts as sent and lost.
impl Shown for RelayOverview {
    fn look(&self) -> Option<Shows> {
        let hosts = RelayOverview::look(self)?;
        Some(Shows {
            connections: hosts.iter().map(host).collect(),
            forged_datagrams: 0,
        })
    }
}

fn host(host: &RelayedHost) -> Connection {
    Connection {
        id: host.id,
        established: true,
        bytes_sent: host.to_host.bytes,
        bytes_received: host.from_host.bytes,
        packets_sent: host.to_host.datagrams + host.over_limit,
        packets_received: host.from_host.datagrams,
        packets_lost: host.over_limit,
        paths: vec![Path::new(host.at.local, host.at.remote)],
        ..Connection::default()
    }
}
