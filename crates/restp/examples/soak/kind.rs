//! What kinds of connections there are.

use restp::{Composition, Preset};
use std::error::Error;

/// One kind of connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A stream over one path: CUBIC, SACK.
    Stream,
    /// The same with BBR and the handling of outages.
    Resilient,
    /// A stream over two paths.
    Multipath,
    /// Unreliable datagrams.
    Datagrams,
    /// Partially reliable frames in talk spurts.
    Voice,
}

/// Each of them.
pub const ALL: [Kind; 5] = [
    Kind::Stream,
    Kind::Resilient,
    Kind::Multipath,
    Kind::Datagrams,
    Kind::Voice,
];

impl Kind {
    /// The service it is reached at.
    pub fn port(self) -> u16 {
        self as u16 + 1
    }

    /// Is it one of bytes in a row, rather than of messages?
    pub fn is_stream(self) -> bool {
        matches!(self, Kind::Stream | Kind::Resilient | Kind::Multipath)
    }

    /// Some kind that checks what arrives as a connection of this composition has to.
    pub fn like(composition: &Composition) -> Option<Kind> {
        let alike = |kind: &Kind| {
            let ours = kind.composition();
            ours.is_ok_and(|ours| ours.reliability == composition.reliability)
        };
        ALL.into_iter().find(alike)
    }

    /// What it is composed of.
    pub fn composition(self) -> Result<Composition, Box<dyn Error>> {
        let name = match self {
            Kind::Stream => "default",
            Kind::Resilient => "resilient",
            Kind::Multipath => "multipath",
            Kind::Datagrams => "unrel",
            Kind::Voice => "par-arq",
        };
        let mut composition = Preset::named(name).ok_or("no such preset")?.composition();
        // What waits for a host that was killed is given up after two minutes, not after five, or a day: connections to
        // it would fill the soak. Not after one: a timer that doubles tries at 15, 31 and 63 s, and two flaps can take
        // the first two of these.
        if self == Kind::Resilient {
            composition.set("outage-timeout", "120 s")?;
        } else if self != Kind::Datagrams {
            composition.set("progress-timeout", "120 s")?;
        }
        Ok(composition)
    }
}
