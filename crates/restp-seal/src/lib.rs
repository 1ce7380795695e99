//! Sealed datagrams: a layer under any [`Machine`](restp_base::machine::Machine) that authenticates and encrypts what it
//! sends, and lets in only what its peers sealed. `docs/protocol/sealed.md` has the bytes, the key schedule and the threat
//! model; as everything below the drivers it has no clock, no socket and no chance of its own.
//!
//! ```text
//! socket ─► packet::parse ─► hello | incoming ─► session::Opener ─► machine
//! machine ─► outgoing ─► session::Sealer ─► packet ─► socket
//! ```
//!
//! | Module | Holds |
//! |---|---|
//! | [`keys`] | public and secret keys, and their text |
//! | [`config`] | what a user sets |
//! | `entropy` | chance from one seed |
//! | `gate` | how much is done for strangers |
//! | `curve` | the multiplications of a handshake |
//! | `noise` | the two messages of a handshake |
//! | [`schedule`] | from a shared secret to the key of each packet |
//! | [`replay`] | which numbers were here |
//! | [`packet`] | the bytes |
//! | `arena` | memory for what was opened |
//! | `session` | sealing and opening between two hosts, path by path |
//! | `pass` | proof of an address, and early data once |
//! | [`ticket`] | a handshake that stands on an earlier one |
//! | `hello` | requests of peers |
//! | `paths` | packets from other addresses |
//! | `validation` | where the paths of a peer are |
//! | `peers` | whom datagrams go to and come from |
//! | [`machine`] | [`Sealed`]: the machine around a machine |

mod arena;
pub mod config;
mod curve;
mod entropy;
mod gate;
mod hello;
mod incoming;
pub mod keys;
pub mod machine;
mod noise;
mod outgoing;
pub mod packet;
mod pass;
mod paths;
mod peers;
pub mod replay;
pub mod schedule;
mod session;
pub mod ticket;
mod validation;

pub use config::{Clients, SealConfig};
pub use keys::{KeyError, PublicKey, SecretKey};
pub use machine::{Fault, SealStats, Sealed};
pub use pass::Pass;
pub use ticket::Resumption;
