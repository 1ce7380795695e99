//! ResTP on real networks: tokio, UDP, many connections.
//!
//! | Module | Holds |
//! |---|---|
//! | [`clock`] | the only reading of a clock |
//! | `socket` | batches in and out, congestion marks, several local addresses |
//! | `driver` | the loop of the simulator's host, over sockets: generic over [`Machine`](restp_base::machine::Machine) |
//! | [`emulator`] | the simulator's links in real time, between UDP ports or namespaces |
//! | [`endpoint`], [`connection`], [`stream`] | what an async user holds |

pub mod clock;
pub mod connection;
mod driver;
#[cfg(unix)]
pub mod emulator;
pub mod endpoint;
mod socket;
pub mod stream;

pub use connection::{ConnectError, Connection, SendError};
pub use endpoint::Endpoint;
pub use restp_base::flow::{CloseReason, FlowStats};
pub use socket::SocketStats;
pub use stream::Stream;
