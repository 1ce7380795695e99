//! Sockets that a service manager has bound and hands over (sd_listen_fds(3)): those of a `.socket` unit of systemd.

use crate::failure::Failure;
use listenfd::ListenFd;
use std::net::UdpSocket;

/// All of them; empty where this process was started in another way.
///
/// # Errors
/// When one is no UDP socket.
pub fn sockets() -> Result<Vec<UdpSocket>, Failure> {
    let mut given = ListenFd::from_env();
    let mut sockets = Vec::new();
    for place in 0..given.len() {
        let socket = given.take_udp_socket(place).map_err(|error| {
            Failure::input(format!(
                "LISTEN_FDS: descriptor {}: {error}; write ListenDatagram=0.0.0.0:7070 in the .socket unit, and no other kind",
                place + 3
            ))
        })?;
        sockets.extend(socket);
    }
    Ok(sockets)
}
