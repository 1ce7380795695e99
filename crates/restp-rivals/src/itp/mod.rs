//! ITP, a connection-free, receiver-driven transport, and its baseline NDN, as comparison protocols. A producer publishes an object:
//! chunks, and a manifest that names them. A consumer asks for each chunk with an Interest and keeps asking until it has them all. All
//! state of retransmission and congestion is the consumer's; the producer answers whoever asks and keeps nothing per consumer.
//!
//! Which Interests are lost, how many may be open, and when to ask again is decided by the same [`Sender`] as everywhere: an Interest is
//! a segment that weighs as much as the chunk it asks for, and it never leaves twice under one number.
//!
//! | File | Holds |
//! |---|---|
//! | [`wire`] | the header |
//! | [`manifest`] | what an object consists of; the tree of manifests |
//! | [`trust`] | who vouches for an object |
//! | [`parameters`] | what a user sets, by key |
//! | `publication` | a producer's object: its chunks, its manifests, its answers (the manifest control block) |
//! | `consumer` | one retrieval: who is asked for what (the Interest control block) |
//! | `holding` | what is held of an object, and what is asked for next |
//! | `lane` | the Interests to one producer |
//! | [`content_store`] | chunks by name, the least recently used forgotten first |
//! | [`cache`] | a box between consumers and producers that answers from its store |
//! | [`node`] | the machine of a host on real networks: it publishes, fetches and caches |
//! | [`host`] | the [`Machine`](restp_base::machine::Machine) of a host, which is producer and consumer |
//!
//! A flow is a dialogue of two objects at most: who opens it writes one, or asks for one with a request; the other end reads it. The
//! choices that ITP leaves open are listed in `docs/protocol/itp.md`.
//!
//! [`Sender`]: restp_services::sender::Sender

pub mod cache;
mod consumer;
pub mod content_store;
mod hash;
mod holding;
pub mod host;
mod lane;
pub mod manifest;
pub mod node;
pub mod parameters;
mod publication;
pub mod trust;
pub mod wire;

pub use cache::{Cache, CacheCounters};
pub use content_store::ContentStore;
pub use host::{Itp, ItpConfig};
pub use parameters::ItpParameters;
