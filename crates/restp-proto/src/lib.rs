//! ResTP itself: a composable, resilient transport protocol as one machine without clock, socket or simulator.
//!
//! ```text
//! datagram ─► endpoint ─► wire::Header::parse ─► connection/intake ─► services ─► events
//! write    ─► connection ─► connection/outlet ─► services ─► pdu_builder ─► wire::Header::emit ─► datagram
//! ```
//!
//! | Module | Holds |
//! |---|---|
//! | [`wire`] | every bit of a PDU: one parse, one emit |
//! | [`composition`] | which services a flow is made of, checked once |
//! | [`endpoint`] | [`Endpoint`]: the [`Machine`](restp_base::machine::Machine) of a host |
//! | [`config`] | what a user sets |

mod association;
pub mod composition;
pub mod config;
mod connection;
pub mod endpoint;
pub mod wire;

pub use composition::{Composition, ValidComposition};
pub use config::{Acceptance, EndpointConfig, InitialNumbers, Listener};
pub use endpoint::{Endpoint, EndpointStats};
pub use restp_services::connection_management::{
    Cookie, CookieLength, CookieMint, CookieParameters, KeptCookie,
};
pub use restp_services::framing::StreamCounts;
pub use restp_services::path_management::PathMode;
