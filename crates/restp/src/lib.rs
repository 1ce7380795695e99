//! ResTP on real networks: tokio, UDP, many connections.
//!
//! | Module | Holds |
//! |---|---|
//! | [`clock`] | the only reading of a clock |
//! | `socket` | batches in and out, congestion marks, several local addresses |
//! | `locals` | which addresses are bound, and what becomes of them when they come and go |
//! | `netlink` | tells when links, addresses or routes of this host change |
//! | `shared` | the machine behind the lock that driver and handles share |
//! | `driver` | the loop of the simulator's host, over sockets, for any [`Machine`](restp_base::machine::Machine), and for several at one port |
//! | `transport` | ResTP with or without a seal under it |
//! | [`known_hosts`], [`files`] | hosts that were met before, and files that several processes share |
//! | [`emulator`] | the simulator's links in real time, between UDP ports or namespaces |
//! | `tun` | IP packets of this host, on Linux |
//! | `watch` | keeps sockets and paths in step with this host's addresses |
//! | [`endpoint`], [`connection`], [`stream`], [`bi_stream`] | what an async user holds |
//! | [`overview`] | what an endpoint does, for somebody who only looks |
//! | [`relay`] | hosts that nobody can reach directly, and relays for them |
//! | `call` | what a machine can do besides flows |
//! | `dial` | connections that an endpoint opens, and who is at their other end |
//! | [`algorithms`] | what congestion control or a scheduler of one's own is made of |

//!
//! ```
//! use restp::{Acceptance, CloseReason, Endpoint, EndpointConfig, Preset, Trust};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let preset = Preset::named("3wh-arq").ok_or("no such preset")?;
//! let config = EndpointConfig::new(preset.composition().check()?);
//!
//! let server = Endpoint::bind("127.0.0.1:0".parse()?, config.clone().listen(7, Acceptance::Any), Trust::Nobody)?;
//! let key = server.public_key().ok_or("sealed")?;
//! let address = server.local_addr();
//! let serving = tokio::spawn(async move {
//!     while let Some(connection) = server.accept().await {
//!         while let Some(data) = connection.recv().await {
//!             connection.send(data).await?;
//!         }
//!         connection.close().await;
//!     }
//!     Ok::<(), restp::SendError>(())
//! });
//!
//! let client = Endpoint::bind("127.0.0.1:0".parse()?, config, Trust::Key(key))?;
//! let connection = client.connect(address, 7).await?;
//! connection.send("hello".into()).await?;
//! assert_eq!(connection.recv().await, Some("hello".into()));
//! assert_eq!(connection.close().await, CloseReason::Finished);
//! # serving.abort();
//! # Ok(())
//! # }
//! ```

pub mod algorithms;
pub mod bi_stream;
mod call;
pub mod clock;
mod connect_error;
pub mod connection;
mod dial;
mod driver;
#[cfg(unix)]
pub mod emulator;
pub mod endpoint;
#[cfg(unix)]
pub mod files;
#[cfg(unix)]
pub mod known_hosts;
mod locals;
mod netlink;
pub mod overview;
pub mod packet;
mod random;
pub mod relay;
mod rendezvous;
mod socket;
pub mod stream;
mod transport;
#[cfg(target_os = "linux")]
pub mod tun;
mod waiters;
mod watch;

pub use bi_stream::{BiStream, StreamReadError};
pub use call::Caller;
pub use connect_error::ConnectError;
pub use connection::{Connection, SendError};
pub use driver::shared::PathEvent;
pub use endpoint::Endpoint;
#[cfg(unix)]
pub use known_hosts::{KnownHosts, KnownHostsError};
pub use locals::{Local, LocalError};
pub use overview::{ConnectionView, EndpointView, Overview};
pub use restp_base::flow::{Change, ChangeError, CloseReason, FlowStats, PathState, PathStats};
pub use restp_base::machine::PathAddress;
pub use restp_base::observe::{Changed, Why};
pub use restp_base::streams::{StreamId, StreamOpenError, StreamWriteError};
pub use restp_proto::composition::Preset;
pub use restp_proto::{Acceptance, Composition, EndpointConfig, EndpointStats, ValidComposition};
pub use restp_proto::{Cookie, KeptCookie, PathMode, StreamCounts};
pub use restp_seal::{Clients, Fault, KeyError, PublicKey, Resumption, SealStats, Secret, SecretKey, Token};
pub use socket::{ReplySocket, SocketStats};
pub use stream::Stream;
pub use transport::{Identity, Security, Transport, Trust};
