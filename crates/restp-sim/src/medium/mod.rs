//! Channels of IEEE 802.11 that stations share, beside the wires: the distributed coordination function with RTS and
//! CTS, virtual carrier sense, and exponential backoff.
//!
//! | File | Holds |
//! |---|---|
//! | `timing.rs` | how long frames take: one table of numbers per standard |
//! | `spec.rs`, `place.rs` | [`MediumSpec`]: a channel as its user describes it, and what can be wrong with that; where stations are |
//! | `hops.rs` | who reaches whom |
//! | `rates.rs`, `minstrel.rs` | which mode data frames take |
//! | `ear.rs` | what a radio hears: carriers, reservations, frames unspoilt |
//! | `backoff.rs` | the countdown, computed when it matters |
//! | `radio.rs` | one station: queue, contention, what it does now |
//! | `seen.rs` | frames, for whoever looks on |
//! | `channel.rs` | frames from station to station, attempts, and what becomes of packets |
//!
//! No event happens per slot or per hearer. Whoever begins to transmit writes the span into all stations it reaches, and
//! each computes anew when its backoff would be over (docs/adr/0002: a link is one call per packet where it is a wire; a
//! medium waits, says when it decides next, and decides).

mod backoff;
mod channel;
mod ear;
mod hops;
mod minstrel;
mod place;
mod radio;
mod rates;
mod seen;
mod spec;
#[cfg(test)]
mod tests;
pub mod timing;

pub(crate) use channel::{Medium, Outcome};
pub use hops::Pair;
pub use place::{Place, Station};
pub use radio::Kind as FrameKind;
pub use rates::Rates;
pub use seen::FrameSeen;
pub use spec::{MediumError, MediumSpec, Ranges};
pub use timing::{Mode, Timing};
