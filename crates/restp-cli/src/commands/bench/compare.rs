//! ResTP and plain UDP taking turns, so that a change of the machine's load meets both alike. Each end is a
//! process of its own: its processor time is what the kernel accounts to it when it has ended.

use super::meter::{Announcement, Tally};
use crate::args::Bench;
use crate::failure::Failure;
use crate::output::{self, Output};
use nix::sys::resource::{Usage, UsageWho, getrusage};
use nix::sys::time::{TimeVal, TimeValLike};
use restp_lab::report;
use serde::Serialize;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::timeout;

/// Until a server listens.
const START_LIMIT: Duration = Duration::from_secs(10);

/// Beyond the transfer itself: handshake, what was queued, farewell.
const END_LIMIT: Duration = Duration::from_secs(20);

const CARRIERS: [&str; 2] = ["restp", "udp"];

/// One transfer. Processor time is that of one end, user and system, per 10^9 bytes that arrived.
#[derive(Clone, Debug, Serialize)]
struct Sample {
    carrier: &'static str,
    round: u32,
    bytes: u64,
    seconds: f64,
    goodput_bps: f64,
    packets_per_second: f64,
    cpu_sender_s_per_gb: f64,
    cpu_receiver_s_per_gb: f64,
    lost_packets: Option<u64>,
}

/// Medians over the rounds, and the share of the ceiling pair by pair.
#[derive(Debug, Serialize)]
struct Summary {
    summary: Medians,
}

#[derive(Debug, Serialize)]
struct Medians {
    carrier: &'static str,
    goodput_bps: f64,
    packets_per_second: f64,
    cpu_sender_s_per_gb: f64,
    cpu_receiver_s_per_gb: f64,
    share_of_udp: f64,
}

/// Runs all rounds and prints them.
pub async fn compare(arguments: &Bench, output: Output) -> Result<(), Failure> {
    let mut samples: Vec<Sample> = Vec::new();
    for round in 1..=arguments.rounds {
        for carrier in CARRIERS {
            let sample = transfer(arguments, carrier, round).await?;
            output::note(format!(
                "round {round}/{}: {carrier} {:.2} Gbit/s",
                arguments.rounds,
                sample.goodput_bps / 1e9
            ));
            if output.json {
                output.result(&sample, |_| String::new())?;
            }
            samples.push(sample);
        }
    }
    let medians = CARRIERS.map(|carrier| medians(&samples, carrier));
    if output.json {
        for summary in medians {
            output.result(&Summary { summary }, |_| String::new())?;
        }
        return Ok(());
    }
    output.text(&table(&medians))
}

async fn transfer(arguments: &Bench, carrier: &'static str, round: u32) -> Result<Sample, Failure> {
    let mut server = End::start(
        arguments,
        carrier,
        &["--role", "server", "--listen", "127.0.0.1:0"],
    )?;
    let ready: Announcement = server.line(START_LIMIT).await?;
    let (to, seconds) = (ready.listening.to_string(), arguments.seconds.to_string());
    let mut client = End::start(
        arguments,
        carrier,
        &["--role", "client", "--to", &to, "--seconds", &seconds],
    )?;
    let limit = Duration::from_secs_f64(arguments.seconds) + END_LIMIT;
    let sent: Tally = client.line(limit).await?;
    let cpu_sender = client.end(limit).await?;
    let received: Tally = server.line(limit).await?;
    let cpu_receiver = server.end(limit).await?;
    let gigabytes = received.bytes as f64 / 1e9;
    Ok(Sample {
        carrier,
        round,
        bytes: received.bytes,
        seconds: received.seconds,
        goodput_bps: received.goodput_bps,
        packets_per_second: received.packets as f64 / received.seconds,
        cpu_sender_s_per_gb: cpu_sender / gigabytes,
        cpu_receiver_s_per_gb: cpu_receiver / gigabytes,
        lost_packets: sent.lost,
    })
}

/// One end, a process of its own; killed when it is dropped.
struct End {
    process: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl End {
    fn start(arguments: &Bench, carrier: &str, role: &[&str]) -> Result<Self, Failure> {
        let failed = |error| Failure::operation(format!("the other process could not be started: {error}"));
        let mut command = Command::new(std::env::current_exe().map_err(failed)?);
        command.args(["bench", "--carrier", carrier]).args(role);
        if arguments.plain {
            command.arg("--plain");
        }
        if let Some(profile) = &arguments.composition.profile {
            command.args(["--profile", profile]);
        }
        for set in &arguments.composition.set {
            command.args(["--set", set]);
        }
        let mut process = command
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(failed)?;
        let stdout = process.stdout.take();
        let stdout = stdout.ok_or_else(|| Failure::operation("the other process has no standard output"))?;
        Ok(End {
            process,
            lines: BufReader::new(stdout).lines(),
        })
    }

    async fn line<T: serde::de::DeserializeOwned>(&mut self, limit: Duration) -> Result<T, Failure> {
        match timeout(limit, self.lines.next_line()).await {
            Ok(Ok(Some(line))) => {
                serde_json::from_str(&line).map_err(|error| Failure::operation(format!("{line}: {error}")))
            }
            Ok(_) => Err(Failure::operation(
                "one end of the transfer failed; it says why above",
            )),
            Err(_) => Err(Failure::operation(format!(
                "one end of the transfer said nothing for {limit:?}"
            ))),
        }
    }

    /// Waits for the end; returns its processor seconds. No other child ends meanwhile.
    async fn end(&mut self, limit: Duration) -> Result<f64, Failure> {
        let before = children_seconds()?;
        match timeout(limit, self.process.wait()).await {
            Ok(Ok(status)) if status.success() => Ok(children_seconds()? - before),
            Ok(Ok(status)) => Err(Failure::operation(format!(
                "one end of the transfer ended with {status}"
            ))),
            Ok(Err(error)) => Err(Failure::operation(error)),
            Err(_) => Err(Failure::operation(format!(
                "one end of the transfer did not end within {limit:?}"
            ))),
        }
    }
}

/// Processor seconds, user and system, of all children that have ended.
fn children_seconds() -> Result<f64, Failure> {
    let usage: Usage = getrusage(UsageWho::RUSAGE_CHILDREN).map_err(Failure::operation)?;
    let seconds = |time: TimeVal| time.num_microseconds() as f64 / 1e6;
    Ok(seconds(usage.user_time()) + seconds(usage.system_time()))
}

fn medians(samples: &[Sample], carrier: &'static str) -> Medians {
    let of = |value: fn(&Sample) -> f64| -> f64 {
        median(
            samples
                .iter()
                .filter(|sample| sample.carrier == carrier)
                .map(value)
                .collect(),
        )
    };
    let ceiling = |round| {
        samples
            .iter()
            .find(|sample| sample.carrier == "udp" && sample.round == round)
    };
    let own = samples.iter().filter(|sample| sample.carrier == carrier);
    let shares = own.filter_map(|sample| Some(sample.goodput_bps / ceiling(sample.round)?.goodput_bps));
    Medians {
        carrier,
        goodput_bps: of(|sample| sample.goodput_bps),
        packets_per_second: of(|sample| sample.packets_per_second),
        cpu_sender_s_per_gb: of(|sample| sample.cpu_sender_s_per_gb),
        cpu_receiver_s_per_gb: of(|sample| sample.cpu_receiver_s_per_gb),
        share_of_udp: median(shares.collect()),
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => f64::NAN,
        odd if odd % 2 == 1 => values[middle],
        _ => (values[middle - 1] + values[middle]) / 2.0,
    }
}

fn table(medians: &[Medians]) -> String {
    let headings = [
        "",
        "Gbit/s",
        "packets/s",
        "CPU s/GB sender",
        "CPU s/GB receiver",
        "of plain UDP",
    ];
    let mut rows = vec![headings.map(String::from).to_vec()];
    for row in medians {
        rows.push(vec![
            row.carrier.into(),
            format!("{:.2}", row.goodput_bps / 1e9),
            format!("{:.0}", row.packets_per_second),
            format!("{:.2}", row.cpu_sender_s_per_gb),
            format!("{:.2}", row.cpu_receiver_s_per_gb),
            format!("{:.0} %", row.share_of_udp * 100.0),
        ]);
    }
    report::plain(&rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_an_even_number_lies_between() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), 2.5);
    }
}
