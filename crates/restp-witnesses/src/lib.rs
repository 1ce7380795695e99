//! Outside witnesses: transports that others wrote, behind the same [`Machine`](restp_base::machine::Machine) as ours, so
//! that they cross the very links of the simulator and meet the very losses that ours do. Comparing with oneself proves
//! little.
//!
//! | File | Witness | What it is |
//! |---|---|---|
//! | `smoltcp.rs` | `tcp:smoltcp` | TCP of smoltcp: Reno or CUBIC, duplicates only |
//! | `quinn.rs` | `quic:quinn` | QUIC of quinn-proto (RFC 9000, 9002) |
//! | `noq.rs` | `mpquic:noq` | multipath QUIC of noq-proto (draft-ietf-quic-multipath) |
//! | `sctp.rs` | `sctp:sctp-proto` | SCTP of sctp-proto (RFC 9260), one stream |
//! | `adapter.rs` | all | one connection as a machine: send buffer, events, counters |
//! | `clock.rs`, `tls.rs`, `quic.rs` | | instants of std; TLS without chance; what both QUICs share |
//! | `parameters.rs` | all | names, keys and their values |
//!
//! A witness runs as its authors ship it; where a key is set, that is said by the scenario. Two runs with one seed are the
//! same run: nothing here draws a number or reads a clock that has an influence (`clock.rs` says why it reads one).

mod adapter;
mod clock;
mod noq;
mod parameters;
mod quic;
mod quinn;
mod sctp;
mod smoltcp;
mod tls;

pub use parameters::{ParameterError, Witness};
