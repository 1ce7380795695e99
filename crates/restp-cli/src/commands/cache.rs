//! `restp cache`: what others fetch, kept for those who fetch it next.

use super::{host, node, run};
use crate::args::Cache;
use crate::content::{DiskStore, StoreStats};
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::output::{self, Output};
use restp_rivals::itp::node::{RelayCounters, UpstreamReport};
use serde::Serialize;
use std::net::SocketAddr;
use std::sync::atomic::Ordering;

/// What is printed first.
#[derive(Serialize)]
struct Ready {
    addresses: Vec<SocketAddr>,
    chunks: u64,
    bytes: u64,
}

/// What was done until the user ended it.
#[derive(Serialize)]
struct Served {
    hits: u64,
    joined: u64,
    misses: u64,
    busy: u64,
    served_bytes: u64,
    fetched_bytes: u64,
    damaged_chunks: u64,
    evicted_chunks: u64,
    failed_chunks: u64,
    bytes: u64,
    upstreams: Vec<Above>,
}

/// One of those that were asked.
#[derive(Serialize)]
struct Above {
    address: SocketAddr,
    bytes: u64,
    refused_chunks: u64,
}

/// Caches until interrupted.
///
/// # Errors
/// Exit code 2 when it could not begin.
pub fn execute(arguments: &Cache, output: Output) -> Result<(), Failure> {
    let size = node::bytes("--size", &arguments.size)?;
    if size < 4 << 20 {
        return Err(Failure::input(format!(
            "--size \"{}\" is too little; write 4 MiB at least",
            arguments.size
        )));
    }
    let config = node::config(arguments.per_source.as_deref())?;
    let upstreams = node::addresses("--upstream", &arguments.upstream)?;
    if upstreams.is_empty() {
        output::note("warning: without --upstream nothing comes into the store; what is there is served");
    }
    let store = DiskStore::open(&arguments.dir, size).map_err(|error| {
        let dir = arguments.dir.display();
        Failure::input(match error.kind() {
            std::io::ErrorKind::WouldBlock => {
                format!("--dir {dir}: another cache uses it; name another folder")
            }
            _ => format!("--dir {dir}: {error}; name a folder that you may write to"),
        })
    })?;
    let stats = store.stats();
    run(async {
        let mut interrupt = Interrupt::watch()?;
        let endpoint = node::bind(&arguments.listen, &config)?;
        let paths = node::paths(&endpoint, &upstreams);
        if paths.is_empty() && !upstreams.is_empty() {
            return Err(Failure::input(format!(
                "--upstream {}: no address of it can be reached from --listen; listen at an address of the same kind",
                arguments.upstream.join(", ")
            )));
        }
        endpoint.call(|node, now| node.relay(now, Box::new(store), &paths));
        let ready = Ready {
            addresses: host::reached_at(&endpoint.local_addrs()),
            chunks: stats.chunks.load(Ordering::Relaxed),
            bytes: stats.bytes.load(Ordering::Relaxed),
        };
        output.result(&ready, |ready| {
            let all: Vec<_> = ready.addresses.iter().map(SocketAddr::to_string).collect();
            format!("cache: {}", all.join(" "))
        })?;
        interrupt.wait().await;
        let (counters, above) = endpoint.call(|node, _| node.relayed()).unwrap_or_default();
        output.result(&served(counters, above, &stats), |served| {
            let (given, taken) = (
                output::bytes(served.served_bytes),
                output::bytes(served.fetched_bytes),
            );
            format!("served {given}, of which {taken} had to be fetched")
        })
    })
}

fn served(counters: RelayCounters, above: Vec<UpstreamReport>, stats: &StoreStats) -> Served {
    let RelayCounters {
        hits,
        joined,
        misses,
        busy,
        fetched_bytes,
        served_bytes,
    } = counters;
    let upstream = |report: UpstreamReport| Above {
        address: report.remote,
        bytes: report.bytes,
        refused_chunks: report.refused,
    };
    Served {
        hits,
        joined,
        misses,
        busy,
        served_bytes,
        fetched_bytes,
        damaged_chunks: stats.damaged.load(Ordering::Relaxed),
        evicted_chunks: stats.evicted.load(Ordering::Relaxed),
        failed_chunks: stats.failed.load(Ordering::Relaxed),
        bytes: stats.bytes.load(Ordering::Relaxed),
        upstreams: above.into_iter().map(upstream).collect(),
    }
}
