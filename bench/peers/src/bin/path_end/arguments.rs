//! The command line.

use anyhow::{Context, bail};
use restp::Local;
use std::net::SocketAddr;

/// Which end this process is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Server,
    Client,
}

/// Everything a starter may say.
#[derive(Clone, Debug)]
pub struct Arguments {
    pub transport: String,
    pub task: String,
    pub side: Side,
    /// Where the server listens, or the client finds it; several for several paths.
    pub addresses: Vec<SocketAddr>,
    /// Interfaces or addresses that the client sends from; none: the routing table chooses.
    pub from: Vec<Local>,
    /// Length of a measurement.
    pub seconds: f64,
    /// Congestion control of TCP and QUIC.
    pub congestion: String,
    /// Data in the first flight: TCP Fast Open, QUIC 0-RTT. ResTP has it in its composition.
    pub early: bool,
    /// ResTP's paths: each --bind to the --to in its place, instead of every one to every one.
    pub pairs: bool,
    /// Composition of ResTP, key by key.
    pub set: Vec<(String, String)>,
    /// The QUIC server's, in hexadecimal digits.
    pub certificate: Option<String>,
}

impl Arguments {
    /// Reads the process's arguments.
    pub fn read() -> anyhow::Result<Self> {
        let mut words = std::env::args().skip(1);
        let mut word = |what| {
            words
                .next()
                .with_context(|| format!("TRANSPORT TASK server|client: {what} is missing"))
        };
        let (transport, task) = (word("TRANSPORT")?, word("TASK")?);
        let side = match word("side")?.as_str() {
            "server" => Side::Server,
            "client" => Side::Client,
            other => bail!("{other}: a side is server or client"),
        };
        let mut arguments = Arguments {
            transport,
            task,
            side,
            addresses: Vec::new(),
            from: Vec::new(),
            seconds: 10.0,
            congestion: "cubic".into(),
            early: false,
            pairs: false,
            set: Vec::new(),
            certificate: None,
        };
        while let Some(name) = words.next() {
            let flag = match name.as_str() {
                "--early" => Some(&mut arguments.early),
                "--pairs" => Some(&mut arguments.pairs),
                _ => None,
            };
            if let Some(flag) = flag {
                *flag = true;
                continue;
            }
            let value = words.next().with_context(|| format!("{name} needs a value"))?;
            match name.as_str() {
                "--listen" | "--to" => {
                    let address = value.parse().with_context(|| format!("{name} takes IP:PORT"))?;
                    arguments.addresses.push(address);
                }
                "--bind" => arguments.from.push(value.parse()?),
                "--seconds" => arguments.seconds = value.parse().context("--seconds takes a number")?,
                "--congestion" => arguments.congestion = value,
                "--set" => {
                    let (key, value) = value.split_once('=').context("--set takes KEY=VALUE")?;
                    arguments.set.push((key.into(), value.into()));
                }
                "--certificate" => arguments.certificate = Some(value),
                _ => bail!(
                    "{name}: allowed are --listen, --to, --bind, --seconds, --congestion, --early, --pairs, --set, --certificate"
                ),
            }
        }
        Ok(arguments)
    }

    /// The first address, which every transport needs.
    pub fn address(&self) -> anyhow::Result<SocketAddr> {
        self.addresses
            .first()
            .copied()
            .context("--listen or --to IP:PORT is missing")
    }
}
