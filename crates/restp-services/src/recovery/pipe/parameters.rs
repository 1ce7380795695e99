//! What the pipe rule takes for a loss: published rules (RFC 6675, RFC 8985, CCSDS 714.0-B-2) differ in how early a hole, or a
//! retransmission, counts as lost.

use super::Reordering;
use crate::ack::{Detail, NakMode};

/// When a hole counts as lost that three later segments have not overtaken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holes {
    /// Never: the threshold decides alone (OP-44, RFC 6675 §2).
    Overtaken,
    /// When it is reported, once the third duplicate has begun a loss episode (TC §3.2.2.1).
    InRecovery,
    /// When it is reported: the first report begins an episode (CCSDS 714.0-B-2 §3.3; OP-44 under partial reliability).
    AtOnce,
}

/// When a hole that is still reported although it was retransmitted leaves once more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Again {
    /// When three later transmissions have overtaken the retransmission.
    Overtaken,
    /// Also when the retransmission is older than SRTT + 4·RTTVAR.
    Late,
    /// Just when the retransmission is older than SRTT: one copy per hole and round trip (OP-49).
    RoundTrip,
    /// Never: what is lost twice waits for the retransmission timer (RFC 6675 §4 NextSeg (1.a)).
    Timer,
}

/// How a retransmission that is lost again is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LostRetransmissions {
    /// From what is reported after it, as [`Again`] says.
    Evidence,
    /// By the retransmission timer: RFC 6675 to the letter, and the algorithms published with ResTP.
    Timer,
}

impl LostRetransmissions {
    /// Both with their names in compositions.
    pub const ALL: [(&'static str, LostRetransmissions); 2] = [
        ("evidence", LostRetransmissions::Evidence),
        ("timer", LostRetransmissions::Timer),
    ];
}

/// What the peer's reports are, and what they are taken for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PipeParameters {
    /// Default by detail: the threshold for SACK, which names no holes, and `InRecovery` for NAK and SNACK.
    pub holes: Holes,
    /// Default `Overtaken`.
    pub again: Again,
    /// One report names one hole at most, and this often. None: each report shows all that is known.
    pub single: Option<NakMode>,
    /// Default `Threshold`.
    pub reordering: Reordering,
    /// A duplicate that names nothing new tells of an arrival all the same. Default for NAK and SNACK; the first block of a
    /// SACK names each arrival (RFC 2018 §4), so one that comes again tells nothing.
    pub leaves_arrivals_out: bool,
}

impl PipeParameters {
    /// The defaults for reports of this detail. NAKs count as unreliable; the peer may promise more.
    pub fn new(detail: Detail) -> Self {
        PipeParameters {
            holes: match detail {
                Detail::Pointer | Detail::Sack { .. } => Holes::Overtaken,
                Detail::Nak | Detail::Snack => Holes::InRecovery,
            },
            again: Again::Overtaken,
            single: (detail == Detail::Nak).then_some(NakMode::Unreliable),
            reordering: Reordering::default(),
            leaves_arrivals_out: matches!(detail, Detail::Nak | Detail::Snack),
        }
    }

    /// Reported holes are retransmitted at once, at most once per round trip: what a partially reliable flow has to gain
    /// before its reader gives up (ResTP §3.7, OP-49).
    pub fn in_time(self) -> Self {
        PipeParameters {
            holes: Holes::AtOnce,
            again: Again::RoundTrip,
            ..self
        }
    }

    /// The same, with retransmissions that are lost found as chosen.
    pub fn with_lost_retransmissions(self, lost_retransmissions: LostRetransmissions) -> Self {
        match lost_retransmissions {
            LostRetransmissions::Evidence => self,
            LostRetransmissions::Timer => PipeParameters {
                again: Again::Timer,
                ..self
            },
        }
    }
}
