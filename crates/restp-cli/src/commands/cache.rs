//! `restp cache`: what others fetch, kept for those who fetch it next.

use super::reach::listed;
use super::{host, node, run};
use crate::args::Cache;
use crate::content::{DiskStore, Kept, StoreStats};
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::monitor::Monitor;
use crate::monitor::content::Serving;
use crate::output::{self, Output};
use restp::Endpoint;
use restp_rivals::itp::node::{Node, RelayCounters, UpstreamReport};
use serde::Serialize;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
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
pub struct Served {
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
    let config = node::config(arguments.per_source.as_deref())?;
    let cache = Opened::open(
        ("--dir", &arguments.dir),
        ("--size", &arguments.size),
        &arguments.upstream,
    )?;
    run(async {
        let mut interrupt = Interrupt::watch()?;
        let endpoint = node::bind(&arguments.listen, &config)?;
        let running = cache.start(&endpoint)?;
        let shown = Serving(endpoint.caller());
        let _monitor = Monitor::start("cache", vec![Box::new(shown)], &arguments.monitor)?;
        let ready = Ready {
            addresses: host::reached_at(&endpoint.local_addrs()),
            chunks: running.0.chunks.load(Ordering::Relaxed),
            bytes: running.0.bytes.load(Ordering::Relaxed),
        };
        output.result(&ready, |ready| {
            let all: Vec<_> = ready.addresses.iter().map(SocketAddr::to_string).collect();
            format!("cache: {}", all.join(" "))
        })?;
        interrupt.wait().await;
        output.result(&running.served(&endpoint), Served::sentence)
    })
}

/// A store on disk, and who is asked for what is not there.
pub struct Opened {
    store: DiskStore,
    upstreams: Vec<SocketAddr>,
}

impl Opened {
    /// The store in the folder `dir`, of at most `size`; each with the option that says so.
    ///
    /// # Errors
    /// When there is none, or a word is no size or no address.
    pub fn open(dir: (&str, &Path), size: (&str, &str), upstreams: &[String]) -> Result<Self, Failure> {
        let bytes = node::bytes(size.0, size.1)?;
        if bytes < 4 << 20 {
            return Err(Failure::input(format!(
                "{} \"{}\" is too little; write 4 MiB at least",
                size.0, size.1
            )));
        }
        let upstreams = node::addresses("--upstream", upstreams)?;
        if upstreams.is_empty() {
            output::note("warning: without --upstream nothing comes into the store; what is there is served");
        }
        let store = DiskStore::open(dir.1, bytes).map_err(|error| {
            let (option, dir) = (dir.0, dir.1.display());
            Failure::input(match error.kind() {
                std::io::ErrorKind::WouldBlock => {
                    format!("{option} {dir}: another cache uses it; name another folder")
                }
                std::io::ErrorKind::DirectoryNotEmpty => {
                    format!("{option} {dir}: it holds other files; name an empty folder, or a new one")
                }
                _ => format!("{option} {dir}: {error}; name a folder that you may write to"),
            })
        })?;
        Ok(Opened { store, upstreams })
    }

    /// Answers from now on.
    ///
    /// # Errors
    /// When none of those above can be reached from `endpoint`.
    pub fn start(self, endpoint: &Endpoint<Node>) -> Result<Running, Failure> {
        let paths = node::paths(endpoint, &self.upstreams);
        if paths.is_empty() && !self.upstreams.is_empty() {
            return Err(Failure::input(format!(
                "--upstream {}: no address of it can be reached from --listen; listen at an address of the same kind",
                listed(&self.upstreams)
            )));
        }
        let stats = self.store.stats();
        let store = Kept::new(self.store, node::wake(endpoint)).map_err(Failure::operation)?;
        endpoint.call(|node, now| node.relay(now, Box::new(store), &paths));
        Ok(Running(stats))
    }
}

/// A cache that runs, and what its store counts.
pub struct Running(Arc<StoreStats>);

impl Running {
    /// What was done until now.
    pub fn served(&self, endpoint: &Endpoint<Node>) -> Served {
        let (counters, above) = endpoint.call(|node, _| node.relayed()).unwrap_or_default();
        served(counters, above, &self.0)
    }
}

impl Served {
    pub fn sentence(&self) -> String {
        let (given, taken) = (
            output::bytes(self.served_bytes),
            output::bytes(self.fetched_bytes),
        );
        format!("served {given}, of which {taken} had to be fetched")
    }
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
        address: report.path.remote,
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
