//! What every transport is here: a stream of bytes in both directions, opened by a client and accepted by a server.

use crate::{multipath_quic, quic, restp_stream, tcp};
use std::any::Any;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};

/// Both directions of a connection.
pub trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}

/// A connection.
pub struct Channel {
    pub stream: Box<dyn Duplex>,
    /// One write is one message; otherwise frames carry their length.
    pub keeps_boundaries: bool,
    /// What has to live as long as the stream.
    pub _keep: Option<Box<dyn Any + Send>>,
}

/// The side that opens.
pub enum Client {
    Tcp(tcp::Client),
    Quic(quic::Client),
    MultipathQuic(multipath_quic::Client),
    Restp(restp_stream::Client),
}

impl Client {
    /// Opens a connection. Where data may go into the first flight, it returns before anything is established.
    pub async fn open(&self) -> anyhow::Result<Channel> {
        match self {
            Client::Tcp(client) => client.open().await,
            Client::Quic(client) => client.open().await,
            Client::MultipathQuic(client) => client.open().await,
            Client::Restp(client) => client.open(),
        }
    }
}

/// The side that accepts.
pub enum Server {
    Tcp(tcp::Server),
    Quic(quic::Server),
    MultipathQuic(multipath_quic::Server),
    Restp(restp_stream::Server),
}

impl Server {
    /// The next connection.
    pub async fn accept(&mut self) -> anyhow::Result<Channel> {
        match self {
            Server::Tcp(server) => server.accept().await,
            Server::Quic(server) => server.accept().await,
            Server::MultipathQuic(server) => server.accept().await,
            Server::Restp(server) => server.accept().await,
        }
    }
}

/// The clock both processes share: CLOCK_MONOTONIC is the same in every namespace.
pub fn now() -> anyhow::Result<Duration> {
    let now = nix::time::clock_gettime(nix::time::ClockId::CLOCK_MONOTONIC)?;
    Ok(now.into())
}
