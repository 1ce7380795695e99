//! Why a connection was not opened, with the way out.

#[cfg(unix)]
use crate::known_hosts::KnownHostsError;
use restp_base::flow::{CloseReason, OpenError};
use restp_base::machine::PathAddress;
use restp_seal::PublicKey;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Why a connection was not opened.
#[derive(Debug, Error)]
pub enum ConnectError {
    /// No local socket reaches the peer.
    #[error(
        "{remote} cannot be reached: {source}; bind an address of the same IP version with a route to it"
    )]
    Unreachable {
        /// The peer.
        remote: SocketAddr,
        /// What the system says.
        source: io::Error,
    },
    /// No network of this host leads to the peer now; one may later.
    #[error("no network leads to {remote} now ({source})")]
    NoRoute {
        /// The peer.
        remote: SocketAddr,
        /// What the system says.
        source: io::Error,
    },
    /// No pair of a local and a remote address makes sense.
    #[error(
        "no address bound here reaches any of the peer's; bind one of the same IP version, and loopback for loopback only"
    )]
    NoPath,
    /// The host has another key than the one expected.
    #[error("{}", other_key(.remote, .expected, .told, .known.as_deref()))]
    OtherKey {
        /// Its address.
        remote: SocketAddr,
        /// The key that it must have.
        expected: PublicKey,
        /// The one it says it has.
        told: PublicKey,
        /// The file of known hosts, if that is where the key that is expected comes from.
        known: Option<PathBuf>,
    },
    /// The host does not serve this one.
    #[error(
        "{remote} does not serve this host's key, {own}; let it in there, or come with a key that it knows"
    )]
    Unwelcome {
        /// Its address.
        remote: SocketAddr,
        /// The key of this host.
        own: PublicKey,
    },
    /// The addresses of one connection are those of several hosts.
    #[error("the addresses are of several hosts, with the keys {}; open a connection to each", listed(.0))]
    SeveralHosts(Vec<PublicKey>),
    /// It was met for the first time, and cannot be remembered.
    #[cfg(unix)]
    #[error(transparent)]
    KnownHosts(#[from] KnownHostsError),
    /// The machine could not open it.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// It ended before it was established.
    #[error(transparent)]
    Closed(CloseReason),
    /// The endpoint's driver has ended, with its runtime or by a fault.
    #[error("the endpoint has stopped; bind a new one")]
    Stopped,
}

/// Both keys, and the way out.
fn other_key(remote: &SocketAddr, expected: &PublicKey, told: &PublicKey, known: Option<&Path>) -> String {
    let keys = format!("the key expected is {expected}, and it says it has {told}");
    match known.map(Path::display) {
        Some(file) => format!(
            "THE KEY OF {remote} HAS CHANGED: {keys}; somebody may be in between. If you know that the host has a new key, remove \
             its line from {file}, or say the new key (its ticket has it); if it is one of several hosts at that address, add a \
             line with port and key"
        ),
        None => format!(
            "{remote} is not the host that is meant: {keys}; say the key that the right host shows now"
        ),
    }
}

fn listed(keys: &[PublicKey]) -> String {
    let keys: Vec<_> = keys.iter().map(PublicKey::to_string).collect();
    keys.join(" and ")
}

impl ConnectError {
    /// The system names no source of datagrams to `remote`.
    pub(crate) fn unreached(remote: SocketAddr, source: io::Error) -> Self {
        let is_said_of_routes = matches!(
            source.kind(),
            io::ErrorKind::NetworkUnreachable | io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkDown
        );
        // An interface without an address has a route, but no source.
        let lacks_source =
            source.raw_os_error().is_some() && source.kind() == io::ErrorKind::AddrNotAvailable;
        if is_said_of_routes || lacks_source {
            ConnectError::NoRoute { remote, source }
        } else {
            ConnectError::Unreachable { remote, source }
        }
    }

    /// No socket is bound to the local address of `path`.
    pub(crate) fn not_bound(path: PathAddress) -> Self {
        let source = io::Error::new(
            io::ErrorKind::AddrNotAvailable,
            format!("{} is not bound here", path.local),
        );
        ConnectError::Unreachable {
            remote: path.remote,
            source,
        }
    }
}
