//! Relays: hosts that nobody can reach directly are reached through one, and leave it as soon as a direct path works.
//!
//! A host that serves registers at a relay and gets an address there. What others send to it the relay forwards, each of them from
//! a port of their own, so that to the protocol above a relayed path is a path like any other; datagrams stay sealed from end to end. The relay
//! also tells both ends how it sees the other: then each sends to the other directly, which opens their translators (RFC 5128 §3.3),
//! and the direct path joins the connection.
//!
//! | Module | Holds |
//! |---|---|
//! | [`wire`] | the messages between a relay and its users |
//! | `users` | who may use a relay, and how much |
//! | `peers` | who reaches one of them through it |
//! | [`server`] | a relay |

mod peers;
mod ports;
pub mod server;
mod users;

pub use crate::rendezvous::{Reached, wire};
pub use server::{Forwarded, Relay, RelayConfig, RelayOverview, RelayStats, RelayedHost};

use crate::endpoint::Endpoint;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;
use thiserror::Error;

/// Between two looks whether a relay has answered.
const LOOK: Duration = Duration::from_millis(20);

/// Why a relay does not let others reach this host.
#[derive(Debug, Error)]
pub enum RelayError {
    /// It cannot be reached from here.
    #[error("the relay {relay} cannot be reached: {source}")]
    Unreachable {
        /// Which.
        relay: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// It has no place.
    #[error("the relay {0} has no place for this host; try another one, or later")]
    Full(SocketAddr),
}

impl Endpoint {
    /// Registers this host at `relay`, for as long as the endpoint lasts, and waits until the relay says where others reach it. That
    /// takes two round trips; a relay that does not answer is asked again for ever.
    ///
    /// # Errors
    /// When no socket of this endpoint reaches the relay, or it has no place.
    pub async fn register(&self, relay: SocketAddr) -> Result<Reached, RelayError> {
        let unreachable = |source| RelayError::Unreachable { relay, source };
        let path = self.paths_to(&[relay]).into_iter().next();
        let path = path.ok_or_else(|| unreachable(io::ErrorKind::AddrNotAvailable.into()))?;
        let id = *crate::random::random().map_err(unreachable)?;
        {
            let mut core = self.shared.lock();
            let now = core.now();
            core.machine.rendezvous().register(now, path, id);
            core.wake_driver();
        }
        loop {
            if let Some(reached) = self.reached(relay) {
                return Ok(reached);
            }
            if self.shared.lock().machine.rendezvous().is_refused(relay) {
                return Err(RelayError::Full(relay));
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// How others reach this host through `relay`; `None` while it does not answer.
    pub fn reached(&self, relay: SocketAddr) -> Option<Reached> {
        self.shared.lock().machine.rendezvous().reached(relay)
    }

    /// Tells relays that nobody is to reach this host through them any more. They forget a host that is silent after a minute.
    pub fn leave_relays(&self) {
        let mut core = self.shared.lock();
        core.machine.rendezvous().release(|_| true);
        core.wake_driver();
    }

    /// Asks `relay` no more, and takes this host out of its register.
    pub fn leave_relay(&self, relay: SocketAddr) {
        let mut core = self.shared.lock();
        core.machine.rendezvous().release(|left| left == relay);
        core.wake_driver();
    }

    /// `addresses` are those of relays that stand for a host: connections of several paths that are opened there go on directly as soon
    /// as a direct path works.
    pub fn expect_relays(&self, addresses: &[SocketAddr]) {
        let mut core = self.shared.lock();
        for address in addresses {
            core.machine.rendezvous().expect(*address);
        }
    }
}
