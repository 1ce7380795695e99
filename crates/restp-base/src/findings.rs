//! What a sender finds out about its flow: losses and their causes, services that have changed.

use crate::datagram::{PathAddress, Transmitted};
use crate::time::Time;

/// A transmission that its sender does not expect to arrive any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loss {
    /// The path that it left by, as the sender sees it.
    pub path: PathAddress,
    /// Which one.
    pub segment: Transmitted,
    /// What the sender takes for its cause.
    pub cause: Cause,
}

/// Why a segment does not arrive when it is expected (ResTP §3.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// A queue was full, or kept short.
    Congestion,
    /// The wire changed or lost it.
    Corruption,
    /// The link was down.
    Outage,
    /// It was not lost at all.
    Late,
}

/// A service of a flow that is not what it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changed {
    /// Since when.
    pub at: Time,
    /// Which: the key of a composition, or `mode` for what a controller makes of it by itself.
    pub key: &'static str,
    /// What it was.
    pub from: String,
    /// What it is.
    pub to: String,
    /// Who wanted it.
    pub why: Why,
}

/// Who wanted a change of services.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// The application at this end.
    Application,
    /// The peer, and this end agreed.
    Peer,
    /// The application, and the peer refused: nothing has changed.
    Refused,
    /// The application, when the peer's own proposal came between: nothing has changed.
    Overtaken,
    /// What was found on the path.
    Path,
}

impl Why {
    /// The word for it in results and traces.
    pub fn name(self) -> &'static str {
        match self {
            Why::Application => "application",
            Why::Peer => "peer",
            Why::Refused => "refused",
            Why::Overtaken => "overtaken",
            Why::Path => "path",
        }
    }
}
