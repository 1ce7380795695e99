//! Handshakes without sockets: both ends are machines in this thread, and the processor time in which each is called is that
//! end's. A batch of clients goes through its handshakes together, so that the clock is read seldom.
//!
//! usage: handshakes CASE BATCHES
//!
//! Prints one line of JSON. `handshakes list` prints the cases.

mod quic;
mod sealed;

use std::net::{Ipv4Addr, SocketAddr};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, ensure};
use nix::time::{ClockId, clock_gettime};

/// Handshakes in a batch: few enough that no table of either server overflows.
pub const BATCH: usize = 60;

/// A server and clients that come to it in batches.
pub trait Meeting {
    /// The next batch of clients, none of which has begun.
    fn gather(&mut self) -> anyhow::Result<()>;
    /// Clients open and send, or take what arrived and send.
    fn clients(&mut self) -> anyhow::Result<()>;
    /// The server takes what arrived and sends; true when nothing did.
    fn server(&mut self) -> bool;
    /// All of the batch stand at both ends, and are then over.
    fn part(&mut self) -> anyhow::Result<()>;
    /// Bytes in UDP payloads from the clients and from the server.
    fn bytes(&self) -> [usize; 2];
}

fn main() -> ExitCode {
    match run() {
        Ok(line) => {
            println!("{line}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("handshakes: {error:#}");
            ExitCode::FAILURE
        }
    }
}

const CASES: [&str; 9] = [
    "restp ik",
    "restp ix",
    "restp resumed",
    "quic ecdsa ring",
    "quic ed25519 ring",
    "quic resumed ring",
    "quic ecdsa aws-lc",
    "quic ed25519 aws-lc",
    "quic resumed aws-lc",
];

fn run() -> anyhow::Result<String> {
    let mut arguments = std::env::args().skip(1);
    let case = arguments.next().context("name a case, or list")?;
    if case == "list" {
        return Ok(CASES.join("\n"));
    }
    let batches: usize = arguments.next().context("give a number of batches")?.parse()?;
    let words: Vec<_> = case.split(' ').collect();
    let mut meeting: Box<dyn Meeting> = match words[..] {
        ["restp", kind] => Box::new(sealed::Meeting::new(kind)?),
        ["quic", kind, library] => Box::new(quic::Meeting::new(kind, library)?),
        _ => anyhow::bail!("{case:?}: allowed are {}", CASES.join(", ")),
    };
    let (mut clients, mut server) = (Duration::ZERO, Duration::ZERO);
    for _ in 0..batches {
        meeting.gather()?;
        let mut rounds = 0;
        loop {
            let begin = thread_time()?;
            client_turn(&mut *meeting)?;
            let between = thread_time()?;
            let quiet = server_turn(&mut *meeting);
            clients += between - begin;
            server += thread_time()? - between;
            rounds += 1;
            ensure!(rounds < 20, "the batch does not come to rest");
            if quiet {
                break;
            }
        }
        meeting.part()?;
    }
    let count = (batches * BATCH) as f64;
    let micros = |time: Duration| time.as_secs_f64() * 1e6 / count;
    let [up, down] = meeting.bytes().map(|bytes| bytes as f64 / count);
    Ok(format!(
        r#"{{"case": "{case}", "count": {count}, "server_us": {:.3}, "client_us": {:.3}, "up": {up:.0}, "down": {down:.0}}}"#,
        micros(server),
        micros(clients)
    ))
}

/// What `valgrind --toggle-collect` counts.
#[inline(never)]
fn server_turn(meeting: &mut dyn Meeting) -> bool {
    std::hint::black_box(meeting.server())
}

/// As [`server_turn`].
#[inline(never)]
fn client_turn(meeting: &mut dyn Meeting) -> anyhow::Result<()> {
    std::hint::black_box(meeting.clients())
}

/// Processor time of this thread: what others do on a busy machine is not in it.
fn thread_time() -> anyhow::Result<Duration> {
    Ok(clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID)?.into())
}

/// An address that nobody else has.
pub fn address(number: usize) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::from(0x0A00_0000 + number as u32), 4000))
}
