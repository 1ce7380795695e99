//! The command line.

use anyhow::{Context, bail};
use std::net::SocketAddr;

/// Which end this process is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Server,
    Client,
}

/// Everything a starter may say.
#[derive(Debug)]
pub struct Arguments {
    pub transport: String,
    pub task: String,
    pub side: Side,
    /// Where the server listens, or the client finds it.
    pub address: SocketAddr,
    /// Length of a measurement.
    pub seconds: f64,
    /// Congestion control of TCP and QUIC.
    pub congestion: String,
    /// Data in the first flight: TCP Fast Open, QUIC 0-RTT. ResTP has it in its composition.
    pub early: bool,
    /// Composition of ResTP, pair by pair.
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
            address: SocketAddr::from(([127, 0, 0, 1], 0)),
            seconds: 10.0,
            congestion: "cubic".into(),
            early: false,
            set: Vec::new(),
            certificate: None,
        };
        while let Some(name) = words.next() {
            if name == "--early" {
                arguments.early = true;
                continue;
            }
            let value = words.next().with_context(|| format!("{name} needs a value"))?;
            match name.as_str() {
                "--listen" | "--to" => {
                    arguments.address = value.parse().with_context(|| format!("{name} takes IP:PORT"))?
                }
                "--seconds" => arguments.seconds = value.parse().context("--seconds takes a number")?,
                "--congestion" => arguments.congestion = value,
                "--set" => {
                    let (key, value) = value.split_once('=').context("--set takes KEY=VALUE")?;
                    arguments.set.push((key.into(), value.into()));
                }
                "--certificate" => arguments.certificate = Some(value),
                _ => bail!(
                    "{name}: allowed are --listen, --to, --seconds, --congestion, --early, --set, --certificate"
                ),
            }
        }
        Ok(arguments)
    }
}
