//! Kernel TCP without delay of small writes (TCP_NODELAY), with or without Fast Open; and Multipath TCP, whose further
//! paths are a matter of the namespaces (`ip mptcp`).

use crate::arguments::Arguments;
use crate::channel::Channel;
use anyhow::Context;
use nix::sys::socket::{setsockopt, sockopt};
use peers::announce;
use socket2::{Domain, Protocol, Socket, Type};
use std::net::SocketAddr;
use tokio::net::{TcpListener, TcpSocket, TcpStream};

pub struct Client {
    to: SocketAddr,
    arguments: Arguments,
}

impl Client {
    pub fn new(arguments: &Arguments) -> anyhow::Result<Self> {
        Ok(Client {
            to: arguments.address()?,
            arguments: arguments.clone(),
        })
    }

    pub async fn open(&self) -> anyhow::Result<Channel> {
        let socket = socket(&self.arguments)?;
        if self.arguments.early {
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
        let socket = socket(arguments)?;
        socket.bind(arguments.address()?)?;
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

fn socket(arguments: &Arguments) -> anyhow::Result<TcpSocket> {
    let (transport, congestion) = (&arguments.transport, &arguments.congestion);
    let protocol = if transport == "mptcp" {
        Protocol::MPTCP
    } else {
        Protocol::TCP
    };
    let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(protocol))
        .with_context(|| format!("the kernel has no {transport}"))?;
    socket.set_nonblocking(true)?;
    socket.set_tcp_nodelay(true)?;
    socket
        .set_tcp_congestion(congestion.as_bytes())
        .with_context(|| format!("the kernel has no {congestion}"))?;
    Ok(TcpSocket::from_std_stream(socket.into()))
}

fn channel(stream: TcpStream) -> Channel {
    Channel {
        stream: Box::new(stream),
        keeps_boundaries: false,
        _keep: None,
    }
}
