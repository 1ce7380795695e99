//! IP packets between TUN devices of two hosts, over all links between them (docs/protocol/datagrams.md, Tunnels).
//!
//! | Module | Holds |
//! |---|---|
//! | `carry` | packets both ways |
//! | `composition` | what carries them |
//! | `mss` | TCP connections that cross learn how large their segments may be |
//! | `outlet` | what waits to be sent |
//! | `pieces` | packets larger than a message |

mod carry;
mod composition;
mod mss;
mod outlet;
mod pieces;

pub use carry::{End, carry, device, device_name};
pub use composition::{check_fitness, prepare};

/// ResTP port at which `restp serve` takes packets.
pub const SERVICE_PORT: u16 = 7073;
