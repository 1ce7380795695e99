//! How a connection begins and ends (ResTP §3.5.5). The connection asks the [`Handshake`] timer when to retransmit
//! a SYN or SYN-ACK, [`Exchange`] what may travel beside them, and [`Release`] what is left to do once either side has
//! finished. The endpoint mints, verifies and keeps cookies and asks the [`ReplayFilter`].

mod cookie;
mod join;
mod notice;
mod opportunistic;
mod ports;
mod release;
mod replay;
mod three_way;

pub use cookie::{Cookie, CookieCache, CookieLength, CookieMint, CookieParameters, KeptCookie};
pub use join::{JoinHash, Key, Keys, Nonce, first_long_number, first_number};
pub use notice::Notice;
pub use opportunistic::{EARLY_SEGMENTS, Exchange, Proof};
pub use ports::{EPHEMERAL, LocalPorts, Ports};
pub use release::{Release, TIME_WAIT};
pub use replay::{Flight, ReplayFilter};
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
    /// The same with the first data inside the SYN, as TCP Fast Open does it (RFC 7413; ResTP §4.2.1). The header
    /// does not tell them apart: it is the initiator's own policy.
    FastOpen,
}

impl Establishment {
    /// Every scheme with its name in compositions.
    pub const ALL: [(&'static str, Establishment); 4] = [
        ("connectionless", Establishment::Connectionless),
        ("three-way", Establishment::ThreeWay),
        ("opportunistic", Establishment::Opportunistic),
        ("fast-open", Establishment::FastOpen),
    ];

    /// Does a cookie let data travel before the exchange is complete?
    pub fn is_opportunistic(self) -> bool {
        matches!(self, Establishment::Opportunistic | Establishment::FastOpen)
    }
}
