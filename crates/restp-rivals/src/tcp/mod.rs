//! TCP (RFC 9293) as a comparison protocol: a codec, its state transitions and the order of calls. Which segments are
//! lost, what happens to the window, when to acknowledge and retransmit is decided by the same services that ResTP uses.
//!
//! | File | Holds |
//! |---|---|
//! | [`wire`], [`options`], [`nak`], [`snack`], [`fast_open`] | every byte of a header |
//! | `numbers` | TCP numbers bytes, the sender numbers segments |
//! | [`parameters`] | what a user sets, by key |
//! | `connection` | one connection: intake, outlet, transitions, timers |
//!
//! The [`Machine`](restp_base::machine::Machine) of a host is [`Tcp`](crate::host::Tcp).
//!
//! Left out, because no comparison here turns on it: simultaneous open, urgent data, data in SYN segments without a cookie, keep-alive
//! (off unless asked for, RFC 9293 §3.8.4), ECN, Nagle's algorithm.

pub(crate) mod connection;
pub mod fast_open;
pub mod nak;
pub(crate) mod numbers;
pub mod options;
mod outgoing;
pub mod parameters;
pub mod snack;
pub mod wire;

pub use parameters::{ParameterError, TcpParameters};
