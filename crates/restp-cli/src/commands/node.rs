//! What publish, fetch and cache share: a node on sockets.

use super::host;
use crate::address;
use crate::content::ContentTicket;
use crate::failure::Failure;
use crate::plan;
use crate::transfer::Ticket;
use restp::{Endpoint, PathAddress};
use restp_base::units;
use restp_rivals::itp::node::{Node, NodeConfig};
use std::io;
use std::net::SocketAddr;

/// Sends no source more than `per_source`, as typed.
///
/// # Errors
/// When that is no rate, or the system gives no randomness.
pub fn config(per_source: Option<&str>) -> Result<NodeConfig, Failure> {
    let mut key = [0; 16];
    getrandom::fill(&mut key).map_err(|error| Failure::operation(format!("randomness: {error}")))?;
    let mut config = NodeConfig::new(key);
    config.per_source = per_source.map(plan::limit).transpose()?;
    Ok(config)
}

/// A node on sockets that listen where `listen` says.
///
/// # Errors
/// When there is none.
pub fn bind(listen: &[String], config: &NodeConfig) -> Result<Endpoint<Node>, Failure> {
    host::bind_by(listen, |addresses: &[SocketAddr]| {
        Endpoint::with_machine(Node::new(config.clone()), addresses)
    })
}

/// A node that only asks those at `remotes`.
///
/// # Errors
/// When the system gives no socket.
pub fn bind_to_ask(remotes: &[SocketAddr], config: NodeConfig) -> Result<Endpoint<Node>, Failure> {
    let families = [
        remotes
            .iter()
            .any(SocketAddr::is_ipv4)
            .then(|| SocketAddr::from(([0, 0, 0, 0], 0))),
        remotes
            .iter()
            .any(SocketAddr::is_ipv6)
            .then(|| SocketAddr::from(([0; 16], 0))),
    ];
    let locals: Vec<SocketAddr> = families.into_iter().flatten().collect();
    let bound: io::Result<_> = Endpoint::with_machine(Node::new(config), &locals);
    bound.map_err(|error| Failure::operation(format!("no socket: {error}")))
}

/// Makes the node of `endpoint` ask its disks again.
pub fn wake(endpoint: &Endpoint<Node>) -> impl Fn() + Send + 'static {
    let caller = endpoint.caller();
    move || _ = caller.call(Node::on_disk)
}

/// One path to each of `remotes` that the sockets can send to. Who asks does so from wherever this host is then: of a socket that is bound
/// to no address none is named, and the routing table chooses it for each datagram, once there is a route.
pub fn paths(endpoint: &Endpoint<Node>, remotes: &[SocketAddr]) -> Vec<PathAddress> {
    let bound = endpoint.local_addrs();
    let mut paths: Vec<PathAddress> = Vec::new();
    for &remote in remotes {
        let anywhere =
            |socket: &&SocketAddr| socket.ip().is_unspecified() && socket.is_ipv4() == remote.is_ipv4();
        let from_anywhere = bound
            .iter()
            .find(anywhere)
            .map(|&local| PathAddress { local, remote });
        let path = from_anywhere.or_else(|| endpoint.paths_to(&[remote]).first().copied());
        paths.extend(path.filter(|_| paths.iter().all(|known| known.remote != remote)));
    }
    paths
}

/// Addresses of others, as typed after `option`.
///
/// # Errors
/// When one is none.
pub fn addresses(option: &str, words: &[String]) -> Result<Vec<SocketAddr>, Failure> {
    let mut all = Vec::new();
    for word in words {
        if ContentTicket::is_one(word) || Ticket::is_one(word) {
            return Err(Failure::input(format!(
                "{option} {word}: this is a ticket; write an address of who publishes or caches, as HOST, HOST:PORT or PORT"
            )));
        }
        let found = address::to_send_to(word);
        all.extend(found.map_err(|why| why.of(&format!("{option} ")))?);
    }
    Ok(all)
}

/// A number of bytes, as typed after `option`.
///
/// # Errors
/// When it is none.
pub fn bytes(option: &str, text: &str) -> Result<u64, Failure> {
    units::bytes(text).map_err(|why| Failure::input(format!("{option} {why}")))
}
