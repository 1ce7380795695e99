//! ResTP, with the composition that the command line describes. Plain: what is compared is how the transports use their
//! paths, and kernel TCP has no seal either.

use crate::arguments::Arguments;
use crate::channel::Channel;
use anyhow::Context;
use peers::announce;
use restp::{Acceptance, Composition, Connection, Endpoint, EndpointConfig, Local, PathAddress, Security};
use std::net::{Ipv4Addr, SocketAddr};

const PORT: u16 = 7;

pub struct Client {
    endpoint: Endpoint,
    to: Vec<SocketAddr>,
    is_paired: bool,
    keeps_boundaries: bool,
}

impl Client {
    pub fn new(arguments: &Arguments) -> anyhow::Result<Self> {
        let (config, keeps_boundaries) = config(arguments)?;
        let from = match arguments.from.as_slice() {
            [] => vec![Local::Address((Ipv4Addr::UNSPECIFIED, 0).into())],
            named => named.to_vec(),
        };
        Ok(Client {
            endpoint: Endpoint::bind_with(&from, config, Security::Plain)?,
            to: arguments.addresses.clone(),
            is_paired: arguments.pairs,
            keeps_boundaries,
        })
    }

    pub fn open(&self) -> anyhow::Result<Channel> {
        let connection = if self.is_paired {
            let pairs = self.endpoint.local_addrs().into_iter().zip(&self.to);
            let paths: Vec<_> = pairs
                .map(|(local, &remote)| PathAddress { local, remote })
                .collect();
            self.endpoint.open_paths(&paths, PORT)?
        } else {
            self.endpoint.open_to(&self.to, PORT)?
        };
        Ok(channel(connection, self.keeps_boundaries))
    }
}

pub struct Server {
    endpoint: Endpoint,
    keeps_boundaries: bool,
}

impl Server {
    pub fn bind(arguments: &Arguments) -> anyhow::Result<Self> {
        let (config, keeps_boundaries) = config(arguments)?;
        let locals: Vec<_> = arguments.addresses.iter().copied().map(Local::Address).collect();
        let endpoint = Endpoint::bind_with(&locals, config.listen(PORT, Acceptance::Any), Security::Plain)?;
        announce(endpoint.local_addr(), &[]);
        Ok(Server {
            endpoint,
            keeps_boundaries,
        })
    }

    pub async fn accept(&mut self) -> anyhow::Result<Channel> {
        let connection = self.endpoint.accept().await.context("the socket has failed")?;
        Ok(channel(connection, self.keeps_boundaries))
    }
}

fn config(arguments: &Arguments) -> anyhow::Result<(EndpointConfig, bool)> {
    let pairs = arguments
        .set
        .iter()
        .map(|(key, value)| (key.as_str(), value.as_str()));
    let composition = Composition::from_pairs(Composition::default(), pairs)?;
    let keeps_boundaries = composition
        .services()
        .iter()
        .any(|(key, choice, _)| (*key, choice.as_str()) == ("framing", "fixed"));
    Ok((EndpointConfig::new(composition.check()?), keeps_boundaries))
}

fn channel(connection: Connection, keeps_boundaries: bool) -> Channel {
    Channel {
        stream: Box::new(connection.into_stream()),
        keeps_boundaries,
        _keep: None,
    }
}
