//! What commands share that reach another host or are reached, pipes and forwards.

use super::content::ContentArgs;
use super::rule::{Listen, Rule};
use super::{CompositionArgs, MonitorArgs, SealArgs};
use crate::subnet::Subnet;
use crate::tunnel::device_name;
use clap::Args;
use restp::Local;
use std::num::NonZeroUsize;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::str::FromStr;

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
    #[command(flatten)]
    pub monitor: MonitorArgs,
    /// Serve only those with this public key, or those in this file, one a line, with the ticket or without; of `serve` also: what they
    /// may reach, as tcp:HOST:PORT, udp:HOST:PORT, listen:ADDRESS:PORT, listen-udp:ADDRESS:PORT or tunnel:ADDRESS/LENGTH; may be repeated [default: who has the ticket]
    #[arg(long, value_name = "KEY-or-FILE")]
    pub allow: Vec<String>,
    /// Be reached through this relay as well, where nobody can reach this host directly: HOST or HOST:PORT of a `restp relay`; may be repeated
    #[arg(long, value_name = "ADDR")]
    pub relay: Vec<String>,
    #[command(flatten)]
    pub content: ContentArgs,
    /// Show the ticket as a QR code as well, on standard error
    #[arg(long)]
    pub qr: bool,
    /// Serve everybody who reaches this host, with the ticket or without
    #[arg(long)]
    pub open: bool,
}

pub const SERVE: &str = "\
Examples:
  restp serve --allow tcp:127.0.0.1:22          ssh to this host, for who has the ticket
  restp serve --allow tcp:127.0.0.1:22 --allow KEY
                                                for who has this key, as `restp keygen --show` says
  restp serve --allow 'tcp:*:443' --allow 'listen:127.0.0.1:*'
                                                every host's port 443, and ports here for clients
  restp serve --config /etc/restp/serve.toml    as a file says:
    listen = [\"0.0.0.0:7070\", \"[::]:7070\"]
    allow = [\"tcp:127.0.0.1:22\", \"udp:127.0.0.1:53\"]
    keys = [\"authorized_keys\"]                  # or the ticket is asked for
    timeout = \"10m\"

At the other host: ssh -o ProxyCommand=\"restp pipe TICKET\" user@anything, and so scp, rsync and git.";

#[derive(Debug, Args)]
pub struct Serve {
    #[command(flatten)]
    pub host: HostArgs,
    /// File of what options say: listen, allow, keys, key, open, relay, publish, cache, cache-size, upstream, metrics, timeout, max-connections, profile, set; options stand on top of it
    #[arg(long, value_name = "FILE.toml")]
    pub config: Option<PathBuf>,
    /// Connections at once; once half of them are taken no client gets more than an eighth [default: 512]
    #[arg(long, value_name = "N", value_parser = one_or_more)]
    pub max_connections: Option<NonZeroUsize>,
    /// Give a peer up after this long without an answer: 30, 5m, 1h [default: 10m]
    #[arg(long, value_name = "TIME")]
    pub timeout: Option<String>,
}

pub const FORWARD: &str = "\
Examples:
  restp forward TICKET -L 8080:127.0.0.1:80     port 8080 here is port 80 of the other host
  restp forward TICKET -L 5432:db.internal:5432 and of one that it reaches
  restp forward TICKET -L 2222                  port 2222 here is the first target allowed there
  restp forward TICKET -R 8080:127.0.0.1:3000   port 8080 there is port 3000 here
  restp forward TICKET --socks 1080             a SOCKS proxy here: browsers reach what it reaches
  restp forward TICKET --udp 5004:127.0.0.1:5004 --deadline 250ms
                                                live media: repaired in time, or dropped

`restp serve` says what is allowed: --allow tcp:HOST:PORT for -L and --socks ('tcp:*:443': every host's port 443), \
--allow listen:127.0.0.1:PORT for -R, udp:HOST:PORT for --udp, listen-udp:127.0.0.1:PORT for --udp-remote. Connections bear \
outages and changes of address for as long as --timeout says.";

#[derive(Debug, Args)]
pub struct Forward {
    /// Ticket that `restp serve` printed, or its address as HOST, HOST:PORT or PORT
    #[arg(value_name = "TICKET-or-ADDR")]
    pub server: String,
    /// Listen here, at 127.0.0.1 unless BIND says otherwise, and connect from there to HOST:HOSTPORT [default: the first target that is
    /// allowed]; may be repeated
    #[arg(short = 'L', long, value_name = "[BIND:]PORT[:HOST:HOSTPORT]")]
    pub local: Vec<Rule>,
    /// Listen there, and connect from here to HOST:HOSTPORT; may be repeated
    #[arg(short = 'R', long, value_name = "[BIND:]PORT:HOST:HOSTPORT")]
    pub remote: Vec<Rule>,
    /// Be a SOCKS proxy here, at 127.0.0.1 unless BIND says otherwise: who connects says where to go from the server, which looks names up;
    /// may be repeated
    #[arg(long, value_name = "[BIND:]PORT")]
    pub socks: Vec<Listen>,
    /// Take datagrams of UDP here, at 127.0.0.1 unless BIND says otherwise, and send them from there to HOST:HOSTPORT; may be repeated
    #[arg(long, value_name = "[BIND:]PORT:HOST:HOSTPORT")]
    pub udp: Vec<Rule>,
    /// Take datagrams of UDP there, and send them from here to HOST:HOSTPORT; may be repeated
    #[arg(long, value_name = "[BIND:]PORT:HOST:HOSTPORT")]
    pub udp_remote: Vec<Rule>,
    /// How long datagrams are of use: what is lost is repaired within it, over all links that are named, what would come later is dropped
    /// [default: each is sent once, over one link]
    #[arg(long, value_name = "TIME")]
    pub deadline: Option<String>,
    /// TCP connections at once; further ones wait
    #[arg(long, value_name = "N", default_value = "256", value_parser = one_or_more)]
    pub max_connections: NonZeroUsize,
    #[command(flatten)]
    pub link: LinkArgs,
    /// Give the server up after this long without an answer: 30, 5m, 1h
    #[arg(long, value_name = "TIME", default_value = "10m")]
    pub timeout: String,
}

pub const TUNNEL: &str = "\
Examples:
  restp tunnel TICKET --bind wlan0 --bind wwan0 both links as one, to the server and back
  restp tunnel TICKET --bind wlan0 --bind wwan0 --route 0.0.0.0/0
                                                everything goes that way
  restp tunnel TICKET --address 10.9.0.2/30 --route 192.168.7.0/24
                                                a network behind the server

--address with a length is the address of this host in the tunnel; without --address it is the other one of the server's network, \
where that has two. The server allows it with --allow tunnel:10.9.0.1/30, its address in the tunnel. Both ends need the right CAP_NET_ADMIN, as root has.
Device and routes vanish with the command, however it ends.";

#[derive(Debug, Args)]
pub struct Tunnel {
    /// Ticket that `restp serve` printed, or its address as HOST, HOST:PORT or PORT
    #[arg(value_name = "TICKET-or-ADDR")]
    pub server: String,
    /// Network to reach through the tunnel; may be repeated
    #[arg(long, value_name = "NETWORK/LENGTH")]
    pub route: Vec<Subnet>,
    /// Name of the device [default: tun0, or the next that is free]
    #[arg(long, value_name = "NAME", value_parser = device_name)]
    pub device: Option<String>,
    #[command(flatten)]
    pub link: LinkArgs,
    /// Give the server up after this long without an answer, and ask again: 30, 5m, 1h
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

pub const RELAY: &str = "\
Examples:
  restp relay                                   at every address, port 7071
  restp relay --limit 50Mbit/s --max-hosts 20
  restp recv --relay relay.example.org          a receiver behind a NAT: its ticket has the relay

A relay sees who sends to whom, and how much; what it forwards is sealed from end to end. It tells both ends \
where the other one is: they go on without it as soon as a direct path works.

Each host, and each of its peers, is given a UDP port of the relay (--ports), beside the one that it listens at: let \
these through its firewall. As a rule a host gets the same port again from a relay that has started again.";

#[derive(Debug, Args)]
pub struct Relay {
    /// Address to listen at, as HOST:PORT or PORT [default: every address, port 7071]
    #[arg(long, value_name = "ADDR")]
    pub listen: Option<String>,
    /// Forward no more than this in a second for each host
    #[arg(long, value_name = "RATE", default_value = "20Mbit/s")]
    pub limit: String,
    /// Hosts at once; a source has 16 of these places at most
    #[arg(long, value_name = "N", default_value = "1000", value_parser = one_or_more)]
    pub max_hosts: NonZeroUsize,
    /// Ports for hosts and their peers, which a firewall has to let through [default: 32768-65535]
    #[arg(long, value_name = "FIRST-LAST")]
    pub ports: Option<PortRange>,
    #[command(flatten)]
    pub monitor: MonitorArgs,
}

/// Ports that follow each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortRange(pub RangeInclusive<u16>);

impl FromStr for PortRange {
    type Err = &'static str;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let ports = text.split_once('-');
        let ports = ports.and_then(|(first, last)| Some(first.parse().ok()?..=last.parse().ok()?));
        ports
            .filter(|ports: &RangeInclusive<u16>| *ports.start() > 0 && !ports.is_empty())
            .map(PortRange)
            .ok_or("write the first and the last port, such as 50000-50999")
    }
}

pub const PATHS: &str = "\
Examples:
  restp paths                                   links of this host: state, addresses, who uses them
  restp send video.mkv TICKET --use wlan0,wwan0 --paths 1
                                                over the first of the two that is up

What --use and --paths say may stand in restp/paths.toml, under XDG_CONFIG_HOME or ~/.config. It \
holds where no option speaks; what a command's own table says replaces what stands above:
  use = [\"wlan0\", \"wwan0\"]
  paths = 2
  [forward]
  use = [\"eth0\"]";

/// How the other host is reached.
#[derive(Clone, Debug, Default, Args)]
pub struct LinkArgs {
    /// Address in the place of the ticket's; may be repeated
    #[arg(long, value_name = "ADDR")]
    pub address: Vec<String>,
    /// Address or interface of this host to send from, or "all"; may be repeated [default: as the routing table says]
    #[arg(long, value_name = "ADDR-or-INTERFACE")]
    pub bind: Vec<Local>,
    /// Links to use, the preferred first, such as wlan0,wwan0 [default: as paths.toml says, see `restp help paths`]
    #[arg(
        long = "use",
        value_name = "LINK,...",
        value_delimiter = ',',
        conflicts_with = "bind"
    )]
    pub links: Vec<String>,
    /// Use at most so many links, of those that are up
    #[arg(long, value_name = "N", conflicts_with = "bind", value_parser = one_or_more)]
    pub paths: Option<NonZeroUsize>,
    #[command(flatten)]
    pub composition: CompositionArgs,
    #[command(flatten)]
    pub seal: SealArgs,
    #[command(flatten)]
    pub monitor: MonitorArgs,
}

/// Reads a number of links, connections or hosts, which is not 0.
pub fn one_or_more(text: &str) -> Result<NonZeroUsize, String> {
    text.parse()
        .map_err(|_| "write a whole number from 1 on".to_owned())
}
