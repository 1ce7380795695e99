//! How a connection begins and ends (ResTP §3.5.5). The connection asks the [`Handshake`] timer when to repeat
//! a SYN or SYN-ACK, and [`Release`] what is left to do once either side has finished.

mod join;
mod notice;
mod release;
mod three_way;

pub use join::{JoinHash, Key, Keys, Nonce, token};
pub use notice::Notice;
pub use release::{Release, TIME_WAIT};
pub use three_way::{Handshake, HandshakeParameters};

/// Scheme by which two ends agree to talk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Establishment {
    /// No exchange: data at once, no release (ResTP §3.5.5).
    Connectionless,
    /// SYN, SYN-ACK, ACK, and no data before the exchange ends (ResTP §3.5.5).
    ThreeWay,
    /// Data beside the SYN, authenticated by a cookie (ResTP §3.5.5).
    Opportunistic,
}

impl Establishment {
    /// Every scheme with its name in compositions.
    pub const ALL: [(&'static str, Establishment); 3] = [
        ("connectionless", Establishment::Connectionless),
        ("three-way", Establishment::ThreeWay),
        ("opportunistic", Establishment::Opportunistic),
    ];
}
