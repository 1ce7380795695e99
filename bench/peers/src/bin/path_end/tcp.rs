//! Kernel TCP without delay of small writes (TCP_NODELAY), with or without Fast Open.

use crate::arguments::Arguments;
use crate::channel::Channel;
use anyhow::Context;
use nix::sys::socket::{setsockopt, sockopt};
use peers::announce;
use std::net::SocketAddr;
use tokio::net::{TcpListener, TcpSocket, TcpStream};

pub struct Client {
    to: SocketAddr,
    congestion: String,
    early: bool,
}

impl Client {
    pub fn new(arguments: &Arguments) -> anyhow::Result<Self> {
        Ok(Client {
            to: arguments.address,
            congestion: arguments.congestion.clone(),
            early: arguments.early,
        })
    }

    pub async fn open(&self) -> anyhow::Result<Channel> {
        let socket = TcpSocket::new_v4()?;
        control(&socket, &self.congestion)?;
        if self.early {
            setsockopt(&socket, sockopt::TcpFastOpenConnect, &true)?;
        }
        Ok(channel(socket.connect(self.to).await?))
    }
}

/// Whether it takes data in a SYN is up to `net.ipv4.tcp_fastopen` of its namespace.
pub struct Server {
    listener: TcpListener,
}

impl Server {
    pub fn bind(arguments: &Arguments) -> anyhow::Result<Self> {
        let socket = TcpSocket::new_v4()?;
        control(&socket, &arguments.congestion)?;
        socket.bind(arguments.address)?;
        let listener = socket.listen(16)?;
        announce(listener.local_addr()?, &[]);
        Ok(Server { listener })
    }

    pub async fn accept(&mut self) -> anyhow::Result<Channel> {
        let (stream, _) = self.listener.accept().await?;
        stream.set_nodelay(true)?;
        Ok(channel(stream))
    }
}

fn control(socket: &TcpSocket, congestion: &str) -> anyhow::Result<()> {
    socket.set_nodelay(true)?;
    socket2::SockRef::from(socket)
        .set_tcp_congestion(congestion.as_bytes())
        .with_context(|| format!("the kernel has no {congestion}"))
}

fn channel(stream: TcpStream) -> Channel {
    Channel {
        stream: Box::new(stream),
        keeps_boundaries: false,
        _keep: None,
    }
}
