//! `restp fetch`: what was published, from several sources at once.

use super::reach::{SOON, listed, no_network};
use super::{node, run, std_duration};
use crate::args::Fetch;
use crate::content::{ContentTicket, Download, DownloadError};
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::monitor::Monitor;
use crate::monitor::content::Fetching;
use crate::output::{self, Output};
use crate::plan;
use crate::progress::{Line, Progress};
use crate::transfer::{Folder, Look, Manifest};
use bytes::Bytes;
use restp::clock::Clock;
use restp::{CloseReason, Connection, Endpoint};
use restp_base::flow::FlowId;
use restp_base::time::{Duration, Time};
use restp_rivals::itp::manifest::Core;
use restp_rivals::itp::node::{Item, Node, SourceReport};
use serde::Serialize;
use std::net::SocketAddr;
use tokio::time::timeout;

/// Chunks that are taken out of the machine in one turn.
const AT_ONCE: usize = 256;

/// What is printed at the end.
#[derive(Serialize)]
struct Fetched {
    name: String,
    files: u64,
    bytes: u64,
    /// Of these, what came now; the rest was there from before.
    fetched_bytes: u64,
    seconds: f64,
    goodput_bps: f64,
    refused_chunks: u64,
    sources: Vec<Origin>,
}

/// A source, and what it gave.
#[derive(Serialize)]
struct Origin {
    address: SocketAddr,
    bytes: u64,
    refused_chunks: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    complaint: Option<String>,
}

/// Fetches.
///
/// # Errors
/// Exit code 2 when it could not begin, 1 when not everything came.
pub fn execute(arguments: &Fetch, output: Output) -> Result<(), Failure> {
    let ticket: ContentTicket = arguments.ticket.parse().map_err(Failure::input)?;
    let user_timeout = plan::timeout(&arguments.timeout)?;
    let (from, named): (Vec<_>, Vec<_>) = arguments.from.iter().cloned().partition(|word| word != "ticket");
    let mut remotes = node::addresses("--from", &from)?;
    if from.is_empty() || !named.is_empty() {
        remotes.extend(ticket.addresses.iter().copied());
    }
    if remotes.is_empty() {
        return Err(Failure::input(
            "the ticket names no address; write --from ADDR, of a cache, say",
        ));
    }
    let mut folder = Folder::open(&arguments.dir, arguments.overwrite, arguments.fsync).map_err(|error| {
        let dir = arguments.dir.display();
        Failure::input(format!(
            "--dir {dir}: {error}; name a folder that you may write to"
        ))
    })?;
    folder.dotfiles = arguments.dotfiles;
    let config = node::config(None)?;
    run(async {
        let mut interrupt = Interrupt::watch()?;
        let endpoint = node::bind_to_ask(&remotes, config)?;
        let paths = node::paths(&endpoint, &remotes);
        let flow = endpoint.call(|node, now| {
            let flow = node.fetch(ticket.wanted);
            flow.inspect(|flow| {
                paths
                    .iter()
                    .for_each(|path| _ = node.add_source(now, *flow, *path))
            })
        });
        let flow = flow.map_err(Failure::operation)?;
        let shown = Fetching {
            node: endpoint.caller(),
            flow,
        };
        let _monitor = Monitor::start("fetch", vec![Box::new(shown)], &arguments.monitor)?;
        let fetch = Running {
            connection: endpoint.adopt(flow),
            endpoint,
            flow,
            user_timeout,
            progress: Progress::new(),
            clock: Clock::start(),
        };
        let fetched = fetch.all(&folder, &ticket, &mut interrupt).await?;
        output.result(&fetched, |fetched| {
            let rate = fetched.goodput_bps / 1e6;
            format!(
                "fetched {}: {} in {:.1} s, {rate:.1} Mbit/s",
                fetched.name,
                output::bytes(fetched.bytes),
                fetched.seconds
            )
        })
    })
}

struct Running {
    connection: Connection<Node>,
    endpoint: Endpoint<Node>,
    flow: FlowId,
    user_timeout: Duration,
    progress: Progress,
    clock: Clock,
}

/// What a turn brought.
struct Turn {
    arrived: Vec<(Item, Bytes)>,
    is_complete: bool,
}

impl Running {
    async fn all(
        &self,
        folder: &Folder,
        ticket: &ContentTicket,
        interrupt: &mut Interrupt,
    ) -> Result<Fetched, Failure> {
        let interrupted = || Failure::operation("interrupted; the same command goes on with it");
        let core = tokio::select! {
            core = self.root() => core?,
            () = interrupt.wait() => return Err(interrupted()),
        };
        let name = String::from_utf8_lossy(&core.name).into_owned();
        let mut download = Download::open(folder, &ticket.wanted, &core).map_err(refusal)?;
        let kept = download.kept().map_err(Failure::operation)?;
        self.endpoint.call(|node, now| node.start(now, self.flow, kept));
        let line = self
            .progress
            .line(&crate::transfer::printable(name.as_bytes()), Some(core.length));
        let received = tokio::select! {
            received = self.chunks(&mut download, &line) => received,
            () = interrupt.wait() => Err(interrupted()),
        };
        drop(line);
        if let Err(failure) = received {
            download.keep();
            return Err(failure);
        }
        let sources = self.endpoint.call(|node, _| node.sources(self.flow));
        self.complain(&sources);
        let placed = tokio::select! {
            placed = download.place() => placed.map_err(refusal),
            () = interrupt.wait() => Err(interrupted()),
        };
        let list = match placed {
            Ok(list) => list,
            Err(failure) => {
                download.keep();
                return Err(failure);
            }
        };
        Ok(self.fetched(&list, received.unwrap_or_default(), &sources))
    }

    /// The root manifest, from whoever is the first to show it.
    async fn root(&self) -> Result<Core, Failure> {
        let there = self.connection.until(|node, _| node.root(self.flow).cloned());
        let asking = async {
            tokio::time::sleep(SOON).await;
            let sources = self.endpoint.call(|node, _| node.sources(self.flow));
            let remotes: Vec<SocketAddr> = sources.iter().map(|source| source.remote).collect();
            if self.endpoint.paths_to(&remotes).is_empty() {
                output::note(no_network(&remotes));
            }
            let _line = self.progress.trying(&format!("asking {}", listed(&remotes)));
            std::future::pending::<std::convert::Infallible>().await
        };
        let answered = tokio::select! {
            answered = timeout(std_duration(self.user_timeout), there) => answered,
            never = asking => match never {},
        };
        match answered {
            Ok(Ok(core)) => Ok(core),
            Ok(Err(reason)) => Err(self.ended(&reason)),
            Err(_) => Err(self.nobody()),
        }
    }

    /// Everything else; how many bytes of chunks came.
    async fn chunks(&self, download: &mut Download, line: &Line) -> Result<u64, Failure> {
        let mut fetched = 0;
        loop {
            let turn = self.connection.until(|node, _| {
                let mut arrived = Vec::new();
                while arrived.len() < AT_ONCE
                    && let Some(next) = node.take_arrived(self.flow)
                {
                    arrived.push(next);
                }
                let is_complete = arrived.len() < AT_ONCE && node.is_complete(self.flow);
                (is_complete || !arrived.is_empty()).then_some(Turn { arrived, is_complete })
            });
            let turn = match timeout(std_duration(self.user_timeout), turn).await {
                Ok(Ok(turn)) => turn,
                Ok(Err(reason)) => return Err(self.ended(&reason)),
                // What is looked at again after a start is news as well.
                Err(_) if self.endpoint.call(|node, _| node.is_recalling(self.flow)) => continue,
                Err(_) => return Err(self.nobody()),
            };
            for (item, payload) in turn.arrived {
                if let Item::Chunk(_) = item {
                    fetched += payload.len() as u64;
                }
                download
                    .put(item, payload)
                    .map_err(|error| refusal(error.into()))?;
            }
            line.show(Look {
                bytes: self.endpoint.call(|node, _| node.held_bytes(self.flow)),
                down_for: None,
                paths: Vec::new(),
                found: Vec::new(),
            });
            if turn.is_complete {
                return Ok(fetched);
            }
        }
    }

    fn ended(&self, reason: &CloseReason) -> Failure {
        match reason {
            CloseReason::Refused => Failure::operation(format!("no source is left: {}", self.complaints())),
            other => Failure::operation(other),
        }
    }

    fn nobody(&self) -> Failure {
        Failure::operation(format!(
            "nothing came for {}: {}; the same command goes on with what has come",
            output::span(self.user_timeout),
            self.complaints()
        ))
    }

    fn complaints(&self) -> String {
        let sources = self.endpoint.call(|node, _| node.sources(self.flow));
        let each: Vec<_> = sources
            .iter()
            .map(|source| {
                let is_away = source.bytes == 0 && self.endpoint.paths_to(&[source.remote]).is_empty();
                let why = if is_away {
                    "no network leads there now".into()
                } else {
                    complaint(source)
                };
                format!("{}: {why}", source.remote)
            })
            .collect();
        match each.is_empty() {
            true => "no address can be reached from here".into(),
            false => each.join("; "),
        }
    }

    /// Names those who sent something else.
    fn complain(&self, sources: &[SourceReport]) {
        for source in sources.iter().filter(|source| source.refused > 0) {
            self.progress.note(format!(
                "warning: {}: {} chunks had other digests and were refused",
                source.remote, source.refused
            ));
        }
    }

    fn fetched(&self, list: &Manifest, fetched_bytes: u64, sources: &[SourceReport]) -> Fetched {
        let seconds = self.clock.now().since(Time::ZERO).as_secs_f64();
        let origin = |source: &SourceReport| Origin {
            address: source.remote,
            bytes: source.bytes,
            refused_chunks: source.refused,
            complaint: source.complaint.map(|complaint| complaint.to_string()),
        };
        Fetched {
            name: list.title(),
            files: list.files().count() as u64,
            bytes: list.bytes().unwrap_or_default(),
            fetched_bytes,
            seconds,
            goodput_bps: fetched_bytes as f64 * 8.0 / seconds.max(1e-9),
            refused_chunks: sources.iter().map(|source| source.refused).sum(),
            sources: sources.iter().map(origin).collect(),
        }
    }
}

fn complaint(source: &SourceReport) -> String {
    match source.complaint {
        Some(complaint) if source.refused > 0 => format!("{complaint} ({} were refused)", source.refused),
        Some(complaint) => complaint.to_string(),
        None if source.bytes > 0 => "it answers no more".into(),
        None => "it does not answer".into(),
    }
}

fn refusal(error: DownloadError) -> Failure {
    Failure::operation(error)
}
