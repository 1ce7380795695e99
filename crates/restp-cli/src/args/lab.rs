//! Commands that measure and simulate: networks, experiments, models, random runs.

use super::CompositionArgs;
use crate::failure::Failure;
use crate::qlog::{Folder, Schema};
use clap::Args;
use std::net::SocketAddr;
use std::path::PathBuf;

pub const EMULATE: &str = "\
Examples:
  restp emulate demo/net.toml                   until Ctrl-C, then counters
  restp emulate net.toml --control              with commands on standard input:
                                                down PATH, up PATH, set PATH loss=0.05, stats, quit
  sudo restp emulate net.toml --tun             between network namespaces, for any IP traffic

A network of one path:
  [[path]]
  name = \"satellite\"
  listen = \"127.0.0.1:7001\"        # send here ...
  to = \"127.0.0.1:7002\"            # ... to get there
  rate = \"20 Mbit/s\"
  delay = \"25 ms\"
  queue = { drop_tail = \"bdp\" }
  loss = { rate = 0.01, direction = \"both\" }
  outage = [\"5 s..7 s\"]";

#[derive(Debug, Args)]
pub struct Emulate {
    /// The network
    #[arg(value_name = "NET.toml")]
    pub net: PathBuf,
    /// Attach to TUN devices in two network namespaces instead of UDP ports (Linux, root)
    #[arg(long)]
    pub tun: bool,
    /// Take commands from standard input; its end ends the emulator
    #[arg(long)]
    pub control: bool,
}

pub const SIM: &str = "\
Examples:
  restp sim scenarios/restp/bulk-lossy.toml
  restp sim scenarios/restp/e8.toml --runs 3 --check
                                                hold the scenario's claims against the results
  restp sim s.toml --set link.bottleneck.loss.rate=0.05 --json
                                                one value fixes a key ...
  restp sim s.toml --set 'flow.a.transport=[\"tcp:newreno\", \"restp:3wh-arq\"]'
                                                ... a list varies it";

#[derive(Debug, Args)]
pub struct Sim {
    /// The scenario
    #[arg(value_name = "SCENARIO.toml")]
    pub scenario: PathBuf,
    /// First seed, in the place of the scenario's
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = seed)]
    pub seed: Option<u64>,
    /// Runs per point, in the place of the scenario's
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = runs)]
    pub runs: Option<u64>,
    /// Set or vary a key of the scenario; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Hold the scenario's claims against the results; exit code 1 when one fails
    #[arg(long)]
    pub check: bool,
    /// Write every packet that enters a link into this file (pcapng, an interface per link); with one run only
    #[arg(long, value_name = "FILE")]
    pub pcap: Option<PathBuf>,
    #[command(flatten)]
    pub qlog: QlogArgs,
}

/// Traces of connections.
#[derive(Debug, Default, Args)]
pub struct QlogArgs {
    /// Write a trace (qlog, JSON-SEQ) of each end of each connection into this folder
    #[arg(long, value_name = "DIR")]
    pub qlog: Option<PathBuf>,
    /// Its schema: `current`, that of the drafts of 2025, or `0.3`, the newest that qvis opens
    #[arg(long, value_name = "NAME", default_value = "current", requires = "qlog")]
    pub qlog_schema: Schema,
}

impl QlogArgs {
    /// The folder asked for, made if need be; none when none was.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn folder(&self) -> Result<Option<Folder>, Failure> {
        Folder::of(self.qlog.as_deref(), self.qlog_schema)
    }
}

pub const REPRODUCE: &str = "\
Examples:
  restp reproduce                               every experiment: half an hour on two cores
  restp reproduce --list                        their names, folders and titles
  restp reproduce e8 tc-c1                      two of them
  restp reproduce cmt smt                       those of two folders; others: restp, adapt, air,
                                                witnesses, transfer_control, itp
  restp reproduce tc-e1 --runs 10 --output /tmp/results
                                                with ten seeds, pages elsewhere

Exit code 1: a claim does not hold, and its scenario does not say why.";

#[derive(Debug, Args)]
pub struct Reproduce {
    /// Experiments by their ids, folders of them (`cmt`, `smt`, …), or `all` [default: all]
    #[arg(value_name = "ID")]
    pub ids: Vec<String>,
    /// Print what there is, and run nothing
    #[arg(long)]
    pub list: bool,
    /// Folder with folders of scenarios [default: scenarios, or those that were installed with this command]
    #[arg(long, value_name = "DIR", env = "RESTP_SCENARIOS")]
    pub scenarios: Option<PathBuf>,
    /// Folder for pages and figures
    #[arg(long, value_name = "DIR", default_value = "docs/results")]
    pub output: PathBuf,
    /// Runs per point, in the place of each scenario's
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = runs)]
    pub runs: Option<u64>,
}

pub const REPORT: &str = "\
Examples:
  restp report results/loss                               the folder of a sweep: results/loss.html
  restp sim e5.toml --check --json > e5.jsonl
  restp report e5.jsonl --scenario e5.toml -o e5.html     what restp sim printed

The page is one file without anything from outside. The Python package of this project draws it: python3 must have it, or \
the interpreter that RESTP_PYTHON names.";

#[derive(Debug, Args)]
pub struct Report {
    /// Folder of a sweep, or file of what `restp sim --json` printed
    pub results: PathBuf,
    /// Where the page goes [default: beside the results, with .html at the end]
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Scenario file of such lines, to have its text on the page
    #[arg(long, value_name = "FILE")]
    pub scenario: Option<PathBuf>,
}

pub const CHAOS: &str = "\
Examples:
  restp chaos                                   1000 runs, from seed 1
  restp chaos --seed 17 --runs 1                one run once more
  restp chaos scenarios/chaos/*.toml            cases that were kept

What breaks a law is made as small as possible and printed as a case, which a file can keep.";

#[derive(Debug, Args)]
pub struct Chaos {
    /// Cases to play in the place of random ones
    #[arg(value_name = "CASE.toml", conflicts_with_all = ["seed", "runs"])]
    pub cases: Vec<PathBuf>,
    /// First seed
    #[arg(long, value_name = "N", default_value = "1", allow_negative_numbers = true, value_parser = seed)]
    pub seed: u64,
    /// Runs, each with the next seed
    #[arg(long, value_name = "N", default_value = "1000", allow_negative_numbers = true, value_parser = runs)]
    pub runs: u64,
    /// Of what broke a law, how much of what happened before is shown
    #[arg(long, value_name = "N", default_value_t = 12)]
    pub records: usize,
}

pub const BENCH: &str = "\
Examples:
  restp bench                                   ResTP, sealed, beside plain UDP
  restp bench --plain                           what the seal costs
  restp bench --seconds 10 --set congestion=newreno";

#[derive(Debug, Args)]
pub struct Bench {
    /// Length of one transfer
    #[arg(long, default_value_t = 4.0, value_name = "S")]
    pub seconds: f64,
    /// Transfers of each, taking turns
    #[arg(long, default_value_t = 3, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub rounds: u32,
    /// Measure without the seal
    #[arg(long)]
    pub plain: bool,
    #[command(flatten)]
    pub composition: CompositionArgs,
    /// One end of a transfer: server or client
    #[arg(long, hide = true)]
    pub role: Option<Role>,
    /// What carries it
    #[arg(long, hide = true, default_value = "restp")]
    pub carrier: Carrier,
    /// Of the server
    #[arg(long, hide = true, value_name = "ADDR", default_value = "127.0.0.1:0")]
    pub listen: SocketAddr,
    /// Where the client finds the server
    #[arg(long, hide = true, value_name = "ADDR", required_if_eq("role", "client"))]
    pub to: Option<SocketAddr>,
}

/// One end of a measured transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Role {
    Server,
    Client,
}

/// What carries a measured transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Carrier {
    Restp,
    Udp,
}

fn seed(text: &str) -> Result<u64, String> {
    text.parse()
        .map_err(|_| format!("a seed is a whole number from 0 to {}, such as 7", u64::MAX))
}

fn runs(text: &str) -> Result<u64, String> {
    match text.parse() {
        Ok(0) | Err(_) => Err("write a whole number of at least 1".into()),
        Ok(runs) => Ok(runs),
    }
}

pub const MODEL: &str = "\
Examples:
  restp model smt                               CMT, MFR and AMFR from 0 to 9 % missing packets
  restp model smt --missing 0.05 --rate 10Mbit/s --delay 20ms
  restp model smt --missing 0.05 --draw 20000s --seed 7
                                                drawn instead of solved";

#[derive(Debug, Args)]
pub struct Model {
    /// Which one
    #[arg(value_enum)]
    pub name: ModelName,
    /// Chance that a packet is missing, such as 0.05 or 5%; may be repeated [default: 0 to 0.09]
    #[arg(long, value_name = "P", value_parser = share, allow_negative_numbers = true)]
    pub missing: Vec<f64>,
    /// Share of missing packets that are late rather than lost
    #[arg(long, value_name = "SHARE", default_value = "0.9", value_parser = share, allow_negative_numbers = true)]
    pub late: f64,
    /// Chance that a late packet is still missing after one more report
    #[arg(long, value_name = "P", default_value = "0.5", value_parser = share, allow_negative_numbers = true)]
    pub still_late: f64,
    /// Rounds that a late packet holds the receive buffer where it is not repeated
    #[arg(long, value_name = "ROUNDS", default_value = "10")]
    pub blocked_rounds: f64,
    /// Propagation delay of a round
    #[arg(long, value_name = "TIME", default_value = "45ms")]
    pub delay: String,
    /// Rate of the path
    #[arg(long, value_name = "RATE", default_value = "1Mbit/s")]
    pub rate: String,
    /// Receive buffer in packets
    #[arg(long, value_name = "PACKETS", default_value = "43")]
    pub buffer: u32,
    /// Draw so much time instead of solving
    #[arg(long, value_name = "TIME")]
    pub draw: Option<String>,
    /// Seed of what is drawn
    #[arg(long, value_name = "N", default_value = "1")]
    pub seed: u64,
}

/// Models there are.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub enum ModelName {
    /// SMT on one path, a Markov chain
    Smt,
}

/// A share as a number or in percent; what it may be, the model says.
fn share(text: &str) -> Result<f64, String> {
    let (number, unit) = match text.strip_suffix('%') {
        Some(number) => (number.trim_end(), 100.0),
        None => (text, 1.0),
    };
    let number: f64 = number
        .parse()
        .map_err(|_| "write a number such as 0.05, or 5%".to_owned())?;
    Ok(number / unit)
}
