//! SCTP (RFC 9260) as a comparison protocol.
//!
//! | File | Holds |
//! |---|---|
//! | [`wire`], [`chunk`] | every byte of a packet |

pub mod chunk;
pub mod wire;
