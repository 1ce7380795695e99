//! The command line as typed.

mod content;
mod lab;
mod links;
mod rule;
mod shown;

use content::{CACHE, FETCH, PUBLISH};
pub use content::{CACHE_SIZE, Cache, ContentArgs, Fetch, Publish};
use lab::{BENCH, CHAOS, EMULATE, MODEL, REPORT, REPRODUCE, SIM};
pub use lab::{Bench, Carrier, Chaos, Emulate, Model, ModelName, QlogArgs, Report, Reproduce, Role, Sim};
use links::{FORWARD, PATHS, PIPE, RELAY, SERVE, TUNNEL};
pub use links::{Forward, HostArgs, LinkArgs, Pipe, Relay, Serve, Tunnel, one_or_more};
pub use rule::{Listen, Rule};
use shown::TOP;
pub use shown::{LogArgs, MonitorArgs, Top};

use clap::{Args, Parser, Subcommand};
use std::ffi::OsString;
use std::path::PathBuf;

/// Moves data over links that break, and shows how: transfers, emulated networks, experiments.
#[derive(Debug, Parser)]
#[command(name = "restp", version, max_term_width = 100, after_help = OVERVIEW)]
pub struct Arguments {
    /// Print results as JSON, one object per line, on standard output
    #[arg(long, global = true)]
    pub json: bool,
    #[command(flatten)]
    pub log: LogArgs,
    #[command(subcommand)]
    pub command: Command,
}

const OVERVIEW: &str = "\
A first transfer, in two terminals:
  restp recv                          prints \"ticket: restp2-...\"
  restp send PATH restp2-...          sends a file or folder; exit code 0: verified there

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
    /// Publish files and folders for any number of others to fetch
    #[command(after_help = PUBLISH)]
    Publish(Publish),
    /// Fetch what was published, from several sources at once
    #[command(after_help = FETCH)]
    Fetch(Fetch),
    /// Keep what others fetch, and give it to those who fetch it next
    #[command(after_help = CACHE)]
    Cache(Cache),
    /// Let others reach programs of this host
    #[command(after_help = SERVE)]
    Serve(Serve),
    /// Connect standard input and output to what a host serves
    #[command(after_help = PIPE)]
    Pipe(Pipe),
    /// Forward TCP and UDP ports to what a host serves, and its ports to this one
    #[command(after_help = FORWARD)]
    Forward(Forward),
    /// Make several links one, for everything that this host sends to networks behind another one
    #[command(after_help = TUNNEL)]
    Tunnel(Tunnel),
    /// Show the links of this host and which of them are used
    #[command(after_help = PATHS)]
    Paths,
    /// Show what the running commands do: paths, rates, losses
    #[command(after_help = TOP)]
    Top(Top),
    /// Forward what two hosts send that cannot reach each other, until they can
    #[command(after_help = RELAY)]
    Relay(Relay),
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
  restp recv --publish video.mkv                and lets others fetch a file, at the same port
  restp recv --listen 192.0.2.1:0 --listen 198.51.100.1:0
                                                two paths: the sender uses both

The ticket holds this host's public key: what is sent to it is for this host, and comes from the sender. With \
`restp keygen --show` a sender prints its own key, for --allow.

Files appear under their names only when they are complete and verified. What exists is not overwritten unless \
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
    /// Give a sender up after this long without progress: 30, 5m, 1h [default: the sender's --timeout where it has the ticket or
    /// an allowed key, and 30 s at least]
    #[arg(long, value_name = "TIME")]
    pub timeout: Option<String>,
    /// Keep what has come of a transfer that was cut off for so long, so that the same command goes on with it; 0 keeps nothing
    #[arg(long, value_name = "TIME", default_value = "7d")]
    pub keep: String,
}

const SEND: &str = "\
Examples:
  restp send video.mkv restp2-YSTA...           to the ticket that `restp recv` printed
  restp send photos notes.txt restp2-...        a folder with all that is in it, and a file
  tar -c photos | restp send - --name photos.tar restp2-...
                                                standard input
  restp send video.mkv example.org              to a name, of a receiver with --open or --allow
  restp send video.mkv restp2-... --address 198.51.100.7:4000
                                                through a relay or forwarded port
  restp send video.mkv restp2-... --bind wlan0 --bind wwan0
                                                over two interfaces; `--bind all`: over every one
  restp send video.mkv 192.0.2.1:4000 --profile arq-only --set \"flight-limit=700 segments\"
                                                keep the rate on a lossy link that is yours alone

A ticket holds the receiver's public key. An address alone does not: the key that answers there \
first is believed and kept in restp/known_peers, under XDG_DATA_HOME or ~/.local/share, and no \
other one is accepted there later.

What the receiver has already is not sent: after a transfer that was cut off, the same command goes \
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
    /// Leave out what cannot be sent of a folder, such as devices, links that lead out of it, and files that vanish or change on the
    /// way; say what, and send the rest
    #[arg(long)]
    pub skip: bool,
    /// Leave out what has such a name in a folder, such as .git or '*.tmp'; or, with / in it, such a path below the folder that was
    /// named. May be repeated
    #[arg(long, value_name = "PATTERN")]
    pub exclude: Vec<crate::transfer::Exclusion>,
    /// Send no more than this in a second, such as 20Mbit/s
    #[arg(long, value_name = "RATE")]
    pub limit: Option<String>,
    /// Give the receiver up after this long without progress: 30, 5m, 1h
    #[arg(long, value_name = "TIME", default_value = "30 s")]
    pub timeout: String,
    #[command(flatten)]
    pub qlog: QlogArgs,
}

#[derive(Clone, Debug, Default, Args)]
pub struct CompositionArgs {
    /// What the connection is made of: a preset, or a file of `service = "choice"` lines that ends in .toml [default:
    /// `default`, for one path and for several]
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

#[derive(Clone, Debug, Default, Args)]
pub struct SealArgs {
    /// File of this host's secret key [default: this user's, made when there is none]
    #[arg(long, value_name = "FILE", conflicts_with = "plain")]
    pub key: Option<PathBuf>,
    /// Neither encrypt nor authenticate: whoever is on the way can read and change everything. Both sides must say so
    #[arg(long)]
    pub plain: bool,
}

const PROFILES: &str = "\
Examples:
  restp profiles                                every preset, service and choice
  restp profiles 3wh-arq                        what it is made of, with its header bits
  restp profiles default --set congestion=newreno --set \"segment=1200 B\"
                                                a changed one: is it valid?
  restp profiles --for reliability=partial --for \"deadline=160 ms\"
                                                what a call needs, and the profile for it";

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

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }

    /// Lines that were broken by hand are broken again at the width of a terminal, in the middle of a sentence.
    #[test]
    fn examples_fit_and_sentences_are_broken_by_the_terminal() {
        let top = Arguments::command();
        for command in top.get_subcommands().chain([&top]) {
            let help = command
                .get_after_help()
                .map(ToString::to_string)
                .unwrap_or_default();
            let lines: Vec<_> = help.lines().collect();
            for (line, next) in lines.iter().zip(lines[1..].iter().chain([&""])) {
                let is_example = line.starts_with(' ');
                assert!(!is_example || line.chars().count() <= 100, "{line}");
                let ends = line.ends_with(['.', ':']) || next.is_empty() || next.starts_with(' ');
                assert!(line.is_empty() || is_example || ends, "{line}");
            }
        }
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
