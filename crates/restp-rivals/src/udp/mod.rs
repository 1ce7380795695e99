//! The User Datagram Protocol (RFC 768) as a machine: one message, one datagram, no promise.

mod flow;
mod host;
pub mod wire;

pub use host::{Udp, UdpConfig};
