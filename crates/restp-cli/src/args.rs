//! The command line as typed.

mod links;
mod rule;

use links::{FORWARD, PATHS, PIPE, SERVE};
pub use links::{Forward, HostArgs, LinkArgs, Pipe, Serve};
pub use rule::{Listen, Rule};

use clap::{Args, Parser, Subcommand};
use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Moves data over links that break, and shows how: transfers, emulated networks, experiments.
#[derive(Debug, Parser)]
#[command(name = "restp", version, max_term_width = 100, after_help = OVERVIEW)]
pub struct Arguments {
    /// Print results as JSON, one object per line, on standard output
    #[arg(long, global = true)]
    pub json: bool,
    #[command(subcommand)]
    pub command: Command,
}

const OVERVIEW: &str = "\
A first transfer, in two terminals:
  restp recv                          prints \"ticket: restp1-...\"
  restp send PATH restp1-...          sends a file or folder; exit code 0 means: verified at the other end

Exit codes: 0 done, 1 failed in operation, 2 bad usage or bad input file.
`restp help COMMAND` explains one command with examples.";

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Receive files
    #[command(after_help = RECV)]
    Recv(Recv),
    /// Send files and folders
    #[command(after_help = SEND)]
    Send(Send),
    /// Let others reach programs of this host
    #[command(after_help = SERVE)]
    Serve(Serve),
    /// Connect standard input and output to what a host serves
    #[command(after_help = PIPE)]
    Pipe(Pipe),
    /// Forward TCP ports to what a host serves, and its ports to this one
    #[command(after_help = FORWARD)]
    Forward(Forward),
    /// Show the links of this host and which of them are used
    #[command(after_help = PATHS)]
    Paths,
    /// Make a key that names this host
    #[command(after_help = KEYGEN)]
    Keygen(Keygen),
    /// Emulate network paths with rate, delay, loss and outages between UDP ports
    #[command(after_help = EMULATE)]
    Emulate(Emulate),
    /// Run an experiment in virtual time
    #[command(after_help = SIM)]
    Sim(Sim),
    /// Write a page of results, with tables and figures
    #[command(after_help = REPORT)]
    Report(Report),
    /// Run the published experiments and write a page with figures for each
    #[command(after_help = REPRODUCE)]
    Reproduce(Reproduce),
    /// Play random compositions in random networks with random faults, and hold laws against what happens
    #[command(after_help = CHAOS)]
    Chaos(Chaos),
    /// Show what a connection can be made of, and check compositions
    #[command(after_help = PROFILES)]
    Profiles(Profiles),
    /// Solve a model: what share of a path a scheme uses in the long run
    #[command(after_help = MODEL)]
    Model(Model),
    /// Print packets field by field
    #[command(after_help = DECODE)]
    Decode(Decode),
    /// Measure throughput and processor time on this machine
    #[command(after_help = BENCH)]
    Bench(Bench),
    /// Print what a shell needs to complete the words of this command
    #[command(after_help = COMPLETIONS)]
    Completions(Completions),
    /// Write the manual pages
    #[command(after_help = MAN)]
    Man(Man),
}

const RECV: &str = "\
Examples:
  restp recv                                    into this folder, until Ctrl-C
  restp recv --dir inbox --once                 one transfer, then exit
  restp recv --listen 4000                      at every address, port 4000
  restp recv --listen 192.0.2.1:4000 --json     at a fixed address, results for a program
  restp recv --dotfiles                         folders such as of git, with .git in them
  restp recv --open                             from everybody, also without the ticket
  restp recv --listen 192.0.2.1:0 --listen 198.51.100.1:0
                                                two paths: the ticket holds both, and the sender uses both

The ticket holds this host's public key: what is sent to it is for this host, and comes from the sender. With
`restp keygen --show` a sender prints its own key, for --allow.

Files appear under their names only when they are complete and verified. What exists is not overwritten unless
--overwrite is given.";

#[derive(Debug, Args)]
pub struct Recv {
    #[command(flatten)]
    pub host: HostArgs,
    /// Folder for received files; made if it is missing
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub dir: PathBuf,
    /// Exit after one transfer: with code 0 when it is verified, 1 when it breaks off
    #[arg(long)]
    pub once: bool,
    /// Replace files that exist
    #[arg(long)]
    pub overwrite: bool,
    /// Take names that begin with a dot, such as .git: they hide from lists, and some programs run what is in them
    #[arg(long)]
    pub dotfiles: bool,
    /// Write files through to the disk before they are confirmed
    #[arg(long)]
    pub fsync: bool,
    /// Give a sender up after this long without progress: 30, 5m, 1h
    #[arg(long, value_name = "TIME", default_value = "30 s")]
    pub timeout: String,
    /// Keep what has come of a transfer that was cut off for so long, so that the same command goes on with it; 0 keeps nothing
    #[arg(long, value_name = "TIME", default_value = "7d")]
    pub keep: String,
}

const SEND: &str = "\
Examples:
  restp send video.mkv restp1-aeaq...           to the ticket that `restp recv` printed
  restp send photos notes.txt restp1-...        a folder with all that is in it, and a file
  tar -c photos | restp send - --name photos.tar restp1-...
                                                standard input
  restp send video.mkv example.org              to a name, of a receiver with --open or --allow
  restp send video.mkv restp1-... --address 198.51.100.7:4000
                                                through a relay or forwarded port
  restp send video.mkv restp1-... --bind wlan0 --bind wwan0
                                                over two interfaces at once; `--bind all`: over every one;
                                                several paths imply preset `multipath`
  restp send video.mkv 192.0.2.1:4000 --profile arq-only --set \"flight-limit=700 segments\"
                                                keep the rate on a lossy link that is yours alone

A ticket holds the receiver's public key. An address alone does not: the key that answers there
first is believed and kept in restp/known_peers, under XDG_DATA_HOME or ~/.local/share, and no
other one is accepted there later.

What the receiver has already is not sent: after a transfer that was cut off, the same command goes
on where it was, and a folder that is there takes only what differs.

`restp profiles` lists profiles, services and choices.";

#[derive(Debug, Args)]
pub struct Send {
    /// Files and folders to send, "-" for standard input, then the ticket of the receiver, or its address as HOST, HOST:PORT or PORT
    #[arg(required = true, value_name = "PATH... TICKET-or-ADDR")]
    pub words: Vec<OsString>,
    #[command(flatten)]
    pub link: LinkArgs,
    /// Name under which standard input arrives
    #[arg(long, value_name = "NAME", default_value = "stdin")]
    pub name: String,
    /// Send no more than this in a second, such as 20Mbit/s
    #[arg(long, value_name = "RATE")]
    pub limit: Option<String>,
    /// Give the receiver up after this long without progress: 30, 5m, 1h
    #[arg(long, value_name = "TIME", default_value = "30 s")]
    pub timeout: String,
    #[command(flatten)]
    pub qlog: QlogArgs,
}

#[derive(Debug, Default, Args)]
pub struct CompositionArgs {
    /// What the connection is made of: a preset, or a file of `service = "choice"` lines that ends in .toml [default:
    /// `default`, and `multipath` where `send` is given several paths]
    #[arg(long, value_name = "NAME-or-FILE.toml")]
    pub profile: Option<String>,
    /// Change one service or number of it; may be repeated
    #[arg(long, value_name = "SERVICE=CHOICE")]
    pub set: Vec<String>,
}

const KEYGEN: &str = "\
Examples:
  restp keygen                                  this user's key, if there is none yet
  restp keygen --show                           prints the public one, for the other side's --allow
  restp keygen backup.key                       one more, for --key backup.key

The file holds the secret key and is readable for its owner alone.";

#[derive(Debug, Args)]
pub struct Keygen {
    /// File to write [default: restp/key in XDG_DATA_HOME or ~/.local/share]
    pub file: Option<PathBuf>,
    /// Write nothing: print the public key of the one that is there
    #[arg(long)]
    pub show: bool,
}

#[derive(Debug, Default, Args)]
pub struct SealArgs {
    /// File of this host's secret key [default: this user's, made when there is none]
    #[arg(long, value_name = "FILE", conflicts_with = "plain")]
    pub key: Option<PathBuf>,
    /// Neither encrypt nor authenticate: whoever is on the way can read and change everything. Both sides must say so
    #[arg(long)]
    pub plain: bool,
}

const EMULATE: &str = "\
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

const SIM: &str = "\
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
    pub qlog_schema: crate::qlog::Schema,
}

const REPRODUCE: &str = "\
Examples:
  restp reproduce                               every experiment: under ten minutes on two cores
  restp reproduce e8 tc-c1                      two of them
  restp reproduce tc-e1 --runs 10 --output /tmp/results
                                                with ten seeds, pages elsewhere

Exit code 1: a claim does not hold, and its scenario does not say why.";

#[derive(Debug, Args)]
pub struct Reproduce {
    /// Experiments by their ids, or `all` [default: all]
    #[arg(value_name = "ID")]
    pub ids: Vec<String>,
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

const REPORT: &str = "\
Examples:
  restp report results/loss                                  the folder of a sweep: results/loss.html
  restp sim e5.toml --check --json > e5.jsonl
  restp report e5.jsonl --scenario e5.toml -o e5.html        what restp sim printed

The page is one file without anything from outside. The Python package of this project draws it: python3 must have it, or
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

const CHAOS: &str = "\
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
}

const PROFILES: &str = "\
Examples:
  restp profiles                                every preset, service and choice
  restp profiles 3wh-arq                        what it is made of, with its header bits
  restp profiles default --set congestion=newreno --set \"segment=1200 B\"
                                                a changed one: is it valid?
  restp profiles --for reliability=partial --for \"deadline=160 ms\"
                                                what a call needs, and the profile file that gives it";

#[derive(Debug, Args)]
pub struct Profiles {
    /// Preset or profile file to show
    #[arg(value_name = "NAME", conflicts_with = "needs")]
    pub name: Option<String>,
    /// What the application needs, or its paths may suffer: reliability, ordering, deadline, frame, early-start, bandwidth,
    /// loss, failures; may be repeated
    #[arg(long = "for", value_name = "NEED=VALUE")]
    pub needs: Vec<String>,
    /// Change one service or number of it; may be repeated
    #[arg(long, value_name = "SERVICE=CHOICE")]
    pub set: Vec<String>,
}

const DECODE: &str = "\
Examples:
  restp decode 06025040 01110000 C3500050 00400000 00000000 00000000
  restp decode capture.pcapng                   every UDP payload of a capture ...
  restp decode capture.pcapng --port 4000       ... that has this port
  echo 0300000000010000C3500050 | restp decode -";

#[derive(Debug, Args)]
pub struct Decode {
    /// One PDU in hexadecimal digits, or files: binary, pcap or pcapng; `-` reads hexadecimal digits from standard input
    #[arg(required = true, value_name = "HEX-or-FILE")]
    pub input: Vec<String>,
    /// From captures, only UDP datagrams from or to this port
    #[arg(long, value_name = "PORT")]
    pub port: Option<u16>,
}

const BENCH: &str = "\
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

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn every_command_shows_examples() {
        for command in Arguments::command().get_subcommands() {
            let help = command.get_after_help().map(ToString::to_string);
            assert!(
                help.is_some_and(|help| help.contains("Example")),
                "{}",
                command.get_name()
            );
        }
    }
}

const MODEL: &str = "\
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
    /// Chance that a packet is missing; may be repeated [default: 0 to 0.09]
    #[arg(long, value_name = "P")]
    pub missing: Vec<f64>,
    /// Share of missing packets that are late rather than lost
    #[arg(long, value_name = "SHARE", default_value = "0.9")]
    pub late: f64,
    /// Chance that a late packet is still missing after one more report
    #[arg(long, value_name = "P", default_value = "0.5")]
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

const COMPLETIONS: &str = "\
Examples:
  restp completions bash > ~/.local/share/bash-completion/completions/restp
  restp completions zsh > ~/.zfunc/_restp       in a folder of $fpath
  restp completions fish > ~/.config/fish/completions/restp.fish";

#[derive(Debug, Args)]
pub struct Completions {
    /// Shell to complete for
    pub shell: clap_complete::Shell,
}

const MAN: &str = "\
Examples:
  restp man ~/.local/share/man/man1             one page per command; then: man restp-send";

#[derive(Debug, Args)]
pub struct Man {
    /// Folder for the pages, such as ~/.local/share/man/man1; made if it is missing
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,
}
