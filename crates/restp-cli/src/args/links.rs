//! What commands share that reach another host or are reached, and pipes.

use super::{CompositionArgs, SealArgs};
use clap::Args;
use restp::Local;

/// How this host is reached, and by whom.
#[derive(Debug, Default, Args)]
pub struct HostArgs {
    /// Address to listen at, as HOST:PORT or PORT, port 0 for any free one; may be repeated [default: every address, port 7070, or
    /// any port if that is taken]
    #[arg(long, value_name = "ADDR")]
    pub listen: Vec<String>,
    #[command(flatten)]
    pub composition: CompositionArgs,
    #[command(flatten)]
    pub seal: SealArgs,
    /// Serve only those with this public key, or those in this file, one a line, with the ticket or without; may be repeated
    /// [default: who has the ticket]
    #[arg(long, value_name = "KEY-or-FILE")]
    pub allow: Vec<String>,
    /// Serve everybody who reaches this host, with the ticket or without
    #[arg(long)]
    pub open: bool,
}

pub const SERVE: &str = "\
Examples:
  restp serve --allow tcp:127.0.0.1:22          ssh to this host, for who has the ticket
  restp serve --allow tcp:127.0.0.1:22 --allow KEY
                                                for who has this key (`restp keygen --show` prints one's own)

At the other host: ssh -o ProxyCommand=\"restp pipe TICKET\" user@anything, and so scp, rsync and git.";

#[derive(Debug, Args)]
pub struct Serve {
    #[command(flatten)]
    pub host: HostArgs,
    /// Give a peer up after this long without an answer: 30, 5m, 1h
    #[arg(long, value_name = "TIME", default_value = "10m")]
    pub timeout: String,
}

pub const PIPE: &str = "\
Examples:
  ssh -o ProxyCommand=\"restp pipe TICKET\" user@host
  rsync -e \"ssh -o ProxyCommand='restp pipe TICKET'\" -a photos user@host:
  restp pipe TICKET --to tcp:127.0.0.1:80       another one of the targets that `restp serve` allows

Both ends bear outages and changes of address for as long as --timeout says.";

#[derive(Debug, Args)]
pub struct Pipe {
    /// Ticket that `restp serve` printed, or its address as HOST, HOST:PORT or PORT
    #[arg(value_name = "TICKET-or-ADDR")]
    pub server: String,
    /// Which of its targets [default: the first that it allows]
    #[arg(long, value_name = "tcp:HOST:PORT")]
    pub to: Option<String>,
    #[command(flatten)]
    pub link: LinkArgs,
    /// Give the server up after this long without an answer: 30, 5m, 1h
    #[arg(long, value_name = "TIME", default_value = "10m")]
    pub timeout: String,
}

/// How the other host is reached.
#[derive(Debug, Default, Args)]
pub struct LinkArgs {
    /// Address in the place of the ticket's; may be repeated
    #[arg(long, value_name = "ADDR")]
    pub address: Vec<String>,
    /// Address or interface of this host to send from, or "all"; may be repeated [default: as the routing table says]
    #[arg(long, value_name = "ADDR-or-INTERFACE")]
    pub bind: Vec<Local>,
    #[command(flatten)]
    pub composition: CompositionArgs,
    #[command(flatten)]
    pub seal: SealArgs,
}
