//! Sealed datagrams: a layer under any [`Machine`](restp_base::machine::Machine) that authenticates and encrypts what it
//! sends, and lets in only what its peers sealed. `docs/protocol/sealed.md` has the bytes and the key schedule, `threats.md` the threat
//! model; as everything below the drivers it has no clock, no socket and no chance of its own.
//!
//! ```text
//! socket ─► machine::receive ─► peers::Session ─► protection::Opener ─► machine
//! machine ─► machine::send ─► peers::Session ─► protection::Sealer ─► socket
//! ```
//!
//! | Module | Holds |
//! |---|---|
//! | [`secret`] | bytes that are wiped |
//! | `entropy` | chance from one seed |
//! | `curve` | the multiplications of a handshake |
//! | [`keys`] | public and secret keys, and their text |
//! | [`config`] | what a user sets |
//! | `limits` | how much is done for addresses that are not validated |
//! | [`replay`] | which numbers were here |
//! | `noise` | the two messages of a handshake |
//! | [`schedule`] | from a shared secret to the key of each packet |
//! | [`resumption`] | a handshake that stands on an earlier one |
//! | [`gate`] | a tag in proofs of addresses, for filters before a socket |
//! | `token` | proof of an address, and early data once |
//! | [`packet`] | the bytes |
//! | `reset` | a session that is not known any more |
//! | `path_room` | keys of paths that nobody has shown to have, and room for those of others |
//! | `protection` | sealing and opening between two hosts, path by path |
//! | `validation` | where the paths of a peer are |
//! | `known_hosts` | who hosts at addresses must be, and what they gave |
//! | `arena` | memory for what was opened |
//! | `peers` | whom datagrams go to and come from: sessions, handshakes, addresses |
//! | [`machine`] | [`Sealed`]: the machine around a machine |
//!
//! Each module uses only those above it.

mod arena;
pub mod config;
mod curve;
mod entropy;
pub mod gate;
pub mod keys;
mod known_hosts;
mod limits;
pub mod machine;
mod noise;
pub mod packet;
mod path_room;
mod peers;
mod protection;
pub mod replay;
mod reset;
pub mod resumption;
pub mod schedule;
pub mod secret;
mod token;
mod validation;

pub use config::{Clients, SealConfig};
pub use keys::{KeyError, PublicKey, SecretKey};
pub use machine::{Fault, SealStats, Sealed};
pub use resumption::Resumption;
pub use secret::Secret;
pub use token::Token;
