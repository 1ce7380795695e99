//! `restp forward`: ports here and there, joined through a server.

mod local;
mod remote;
mod room;
mod socks;
mod udp;

use super::client::{self, Client, Traffic};
use super::most_open_files;
use crate::args::{Forward, Rule};
use crate::failure::Failure;
use crate::links::Use;
use crate::output::Output;
use crate::plan;
use local::Local;
use remote::Remote;
use restp_base::time::Duration;
use room::Room;
use serde::Serialize;
use socks::Socks;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use udp::Udp;

/// Until a server that was lost is asked again.
pub const RETRY: std::time::Duration = std::time::Duration::from_secs(2);

/// Of use for less than this, nothing reaches anybody; for longer than the other bound, `-L` is what is wanted.
const DEADLINES: [Duration; 2] = [Duration::from_millis(5), Duration::from_secs(60)];

/// Forwards until it is interrupted.
///
/// # Errors
/// Exit code 2 when it could not begin, 1 when the server is not reached at first, or refuses.
pub fn execute(arguments: &Forward, output: Output) -> Result<(), Failure> {
    let traffic = traffic(arguments)?;
    let wanted = arguments.remote.iter().map(remote::Wanted::of);
    let wanted: Vec<remote::Wanted> = wanted.collect::<Result<_, _>>()?;
    let server = (&arguments.server[..], &arguments.timeout[..]);
    let room = Room::of(arguments.max_connections.get());
    most_open_files();
    client::run_all(
        &traffic,
        (Use::Forward, &arguments.link),
        server,
        Ok(()),
        async |clients| {
            // Streams come first in the list, datagrams last.
            let [streams, .., datagrams] = match clients {
                [one] => [one, one],
                [first, .., last] => [first, last],
                [] => return Ok(()),
            };
            let mut running = Ready::default();
            streams_of(arguments, wanted, (streams, &room), &mut running).await?;
            for udp in udp_of(arguments, datagrams).await? {
                running.add(udp.told(), udp.run(datagrams));
            }
            let Ready { forwards, tasks } = running;
            output.result(&Summary { forwards }, Summary::text)?;
            Err(first_to_end(tasks).await)
        },
    )
}

/// What kinds of traffic the rules need.
fn traffic(arguments: &Forward) -> Result<Vec<Traffic>, Failure> {
    let streams = !(arguments.local.is_empty() && arguments.remote.is_empty() && arguments.socks.is_empty());
    let datagrams = !(arguments.udp.is_empty() && arguments.udp_remote.is_empty());
    let deadline = match &arguments.deadline {
        None => None,
        Some(_) if !datagrams => {
            return Err(Failure::input(
                "--deadline is for datagrams; name some, such as --udp 5000:127.0.0.1:5000",
            ));
        }
        Some(text) => Some(deadline(text)?),
    };
    let composition = &arguments.link.composition;
    if streams && datagrams && (composition.profile.is_some() || !composition.set.is_empty()) {
        return Err(Failure::input(
            "--profile and --set are for TCP or for UDP, which need different services; start a `restp forward` for each",
        ));
    }
    let kinds = [
        (streams, Traffic::Streams),
        (datagrams, Traffic::Datagrams(deadline)),
    ];
    let wanted: Vec<Traffic> = kinds
        .into_iter()
        .filter(|(wanted, _)| *wanted)
        .map(|(_, kind)| kind)
        .collect();
    if wanted.is_empty() {
        return Err(Failure::input(
            "name what to forward, such as -L 8080:127.0.0.1:80 or --socks 1080; restp forward --help shows more",
        ));
    }
    Ok(wanted)
}

fn deadline(text: &str) -> Result<Duration, Failure> {
    let deadline = plan::time("--deadline", text)?;
    let [least, most] = DEADLINES;
    if (least..=most).contains(&deadline) {
        return Ok(deadline);
    }
    Err(Failure::input(format!(
        "--deadline \"{text}\": write 5 ms to 60 s, such as 250ms; what may take longer goes by TCP"
    )))
}

/// Has everything stand ready that carries streams.
async fn streams_of<'a>(
    arguments: &Forward,
    wanted: Vec<remote::Wanted>,
    (client, room): (&'a Arc<Client>, &'a Room),
    running: &mut Ready<'a>,
) -> Result<(), Failure> {
    let (mut locals, mut proxies) = (Vec::new(), Vec::new());
    for rule in &arguments.local {
        locals.push(Local::bind(rule).await?);
    }
    for listen in &arguments.socks {
        proxies.push(Socks::bind(listen).await?);
    }
    for local in locals {
        local.check(client).await?;
        running.add(local.told(), local.run(client, room));
    }
    for listener in wanted {
        let remote: Remote = listener.open(client).await?;
        running.add(remote.told(), remote.run(client, room));
    }
    for proxy in proxies {
        proxy.check(client).await?;
        running.add(proxy.told(), proxy.run(client, room));
    }
    Ok(())
}

/// The same for datagrams.
async fn udp_of(arguments: &Forward, client: &Client) -> Result<Vec<Udp>, Failure> {
    let mut wanted = Vec::new();
    for rule in &arguments.udp {
        wanted.push(udp::Wanted::local(rule).await?);
    }
    for rule in &arguments.udp_remote {
        wanted.push(udp::Wanted::remote(rule as &Rule).await?);
    }
    let mut ready = Vec::new();
    for one in wanted {
        ready.push(one.open(client).await?);
    }
    Ok(ready)
}

/// What stands ready, and runs.
#[derive(Default)]
struct Ready<'a> {
    forwards: Vec<Told>,
    tasks: Vec<Running<'a>>,
}

impl<'a> Ready<'a> {
    fn add(&mut self, told: Told, task: impl Future<Output = Failure> + 'a) {
        self.forwards.push(told);
        self.tasks.push(Box::pin(task));
    }
}

/// What is printed when all listeners stand.
#[derive(Serialize)]
struct Summary {
    forwards: Vec<Told>,
}

/// How a rule is carried out.
#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Kind {
    Local,
    Remote,
    Socks,
    Udp,
    UdpRemote,
}

/// One rule as it is carried out.
#[derive(Serialize)]
struct Told {
    kind: Kind,
    listen: String,
    target: String,
}

impl Summary {
    fn text(&self) -> String {
        let line = |Told { kind, listen, target }: &Told| match kind {
            Kind::Local => format!("{listen} here goes to {target} there"),
            Kind::Remote => format!("{listen} there goes to {target} here"),
            Kind::Socks => format!("{listen} here is a SOCKS proxy to {target} there"),
            Kind::Udp => format!("UDP to {listen} here goes to {target} there"),
            Kind::UdpRemote => format!("UDP to {listen} there goes to {target} here"),
        };
        let lines: Vec<_> = self.forwards.iter().map(line).collect();
        lines.join("\n")
    }
}

type Running<'a> = Pin<Box<dyn Future<Output = Failure> + 'a>>;

async fn first_to_end(mut running: Vec<Running<'_>>) -> Failure {
    poll_fn(|cx| {
        for one in &mut running {
            if let Poll::Ready(failure) = one.as_mut().poll(cx) {
                return Poll::Ready(failure);
            }
        }
        Poll::Pending
    })
    .await
}
