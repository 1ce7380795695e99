//! Content by name: publish, fetch, cache.

use super::MonitorArgs;
use clap::Args;
use std::path::PathBuf;

/// Bytes of a store where nobody says otherwise.
pub const CACHE_SIZE: &str = "10GiB";

pub const PUBLISH: &str = "\
Examples:
  restp publish video.mkv                       prints \"ticket: restpc2-...\", serves until Ctrl-C
  restp publish photos report.pdf               folders and files as one
  restp publish video.mkv --listen 4000 --per-source 20Mbit/s
                                                at port 4000; nobody gets more than 20 Mbit/s

Whoever has the ticket can fetch it, from here or from a cache. It is not encrypted. The ticket names the \
content by its digest and this host by its key, which is that of `restp keygen`: nothing else passes for it.";

#[derive(Debug, Args)]
pub struct Publish {
    /// Files and folders
    #[arg(required = true, value_name = "FILE-or-DIR")]
    pub paths: Vec<PathBuf>,
    /// Address to listen at, as HOST:PORT or PORT, port 0 for any free one; may be repeated [default: every address, port 7070, or
    /// any port if that is taken]
    #[arg(long, value_name = "ADDR")]
    pub listen: Vec<String>,
    /// File with the secret key that vouches for it [default: this user's, made when there is none]
    #[arg(long, value_name = "FILE")]
    pub key: Option<PathBuf>,
    /// Bytes of a chunk, which is what one packet carries: with 48 bytes of headers it should fit every link on the way
    #[arg(long, value_name = "SIZE", default_value = "1384 B")]
    pub chunk: String,
    /// No source address gets more than this in a second, such as 20Mbit/s [default: no limit]
    #[arg(long, value_name = "RATE")]
    pub per_source: Option<String>,
    #[command(flatten)]
    pub monitor: MonitorArgs,
}

pub const FETCH: &str = "\
Examples:
  restp fetch restpc2-ASTA...                   into this folder, from the addresses in the ticket
  restp fetch restpc2-... --from 192.0.2.7      from a cache instead
  restp fetch restpc2-... --from 192.0.2.7 --from ticket
                                                from a cache and the publisher at once
  restp fetch restpc2-... --dir inbox --json    the result for a program

Every chunk is held against its digest when it comes. A source that sends something else is named, and asked no \
more; the others go on. After an interruption the same command goes on with what has come. Files appear under \
their names only when everything is there.";

#[derive(Debug, Args)]
pub struct Fetch {
    /// The word after "ticket:" that `restp publish` printed
    #[arg(value_name = "TICKET")]
    pub ticket: String,
    /// Ask there, as HOST, HOST:PORT or PORT, instead of at the addresses in the ticket, which "ticket" stands for; may be repeated
    #[arg(long, value_name = "ADDR")]
    pub from: Vec<String>,
    /// Folder for what is fetched; made if it is missing
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub dir: PathBuf,
    /// Replace files that exist
    #[arg(long)]
    pub overwrite: bool,
    /// Take names that begin with a dot
    #[arg(long)]
    pub dotfiles: bool,
    /// Write files through to the disk before they get their names
    #[arg(long)]
    pub fsync: bool,
    /// Give up after this long without anything new: 30, 5m, 1h
    #[arg(long, value_name = "TIME", default_value = "30 s")]
    pub timeout: String,
    #[command(flatten)]
    pub monitor: MonitorArgs,
}

pub const CACHE: &str = "\
Examples:
  restp cache --upstream 192.0.2.1 --dir /var/cache/restp
                                                for what is published at 192.0.2.1, port 7070
  restp cache --size 50GiB --upstream 192.0.2.1 --upstream 198.51.100.1:4000
                                                two above; each is asked for what the other has not

Then: restp fetch TICKET --from THIS-HOST. Nobody has to trust a cache: what it sends is held against the digests \
in the ticket.";

#[derive(Debug, Args)]
pub struct Cache {
    /// Most bytes on disk; what was used least recently goes first. A store needs about 20 MB of memory for each GB
    #[arg(long, value_name = "SIZE", default_value = CACHE_SIZE)]
    pub size: String,
    /// Folder of the store; made if it is missing
    #[arg(long, value_name = "DIR", default_value = "restp-cache")]
    pub dir: PathBuf,
    /// Who is asked for what is not there, as HOST, HOST:PORT or PORT: publishers or other caches; may be repeated
    #[arg(long, value_name = "ADDR")]
    pub upstream: Vec<String>,
    /// Address to listen at, as HOST:PORT or PORT, port 0 for any free one; may be repeated [default: every address, port 7070, or
    /// any port if that is taken]
    #[arg(long, value_name = "ADDR")]
    pub listen: Vec<String>,
    /// No source address gets more than this in a second, such as 20Mbit/s [default: no limit]
    #[arg(long, value_name = "RATE")]
    pub per_source: Option<String>,
    #[command(flatten)]
    pub monitor: MonitorArgs,
}

/// Content at the port of a host that does something else as well.
#[derive(Clone, Debug, Default, Args)]
pub struct ContentArgs {
    /// Publish this as well, at the same port, as `restp publish` does: who has the ticket of it can fetch it, unencrypted; may be repeated
    #[arg(long, value_name = "FILE-or-DIR")]
    pub publish: Vec<PathBuf>,
    /// Be a cache as well, at the same port, as `restp cache` is, with its store in this folder
    #[arg(long, value_name = "DIR")]
    pub cache: Option<PathBuf>,
    /// Of a cache: most bytes on disk [default: 10GiB]
    #[arg(long, value_name = "SIZE")]
    pub cache_size: Option<String>,
    /// Of a cache: who is asked for what is not there, as HOST, HOST:PORT or PORT; may be repeated
    #[arg(long, value_name = "ADDR")]
    pub upstream: Vec<String>,
}
