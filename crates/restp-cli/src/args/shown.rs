//! How much commands say of themselves, and to whom.

use clap::{ArgAction, Args};

/// Of every command.
#[derive(Clone, Copy, Debug, Args)]
pub struct LogArgs {
    /// Say more of what happens, on standard error; twice for still more. RUST_LOG chooses by module, such as RUST_LOG=restp=trace
    #[arg(short, long, global = true, action = ArgAction::Count, conflicts_with = "quiet")]
    pub verbose: u8,
    /// Say nothing but results and errors
    #[arg(short, long, global = true)]
    pub quiet: bool,
}

/// Of commands with connections.
#[derive(Clone, Debug, Default, Args)]
pub struct MonitorArgs {
    /// Serve metrics of the connections at http://ADDR/metrics in the format of OpenMetrics; a port alone is for this host only
    #[arg(long, value_name = "ADDR-or-PORT")]
    pub metrics: Option<String>,
}

pub const TOP: &str = "\
Examples:
  restp top                                     every connection of this user's commands, until q
  restp top 4711                                of one process
  restp top --json                              a line a second for each command, for programs
  sudo restp top /run/restp-recv/restp/812.sock of a service

out and in are what passes on the wire; lost is the share of the last second.";

#[derive(Debug, Args)]
pub struct Top {
    /// Process, or the socket of one [default: all of this user]
    #[arg(value_name = "PID-or-SOCKET")]
    pub from: Option<String>,
    /// Print once and exit, as where standard output is no terminal
    #[arg(long)]
    pub once: bool,
}
