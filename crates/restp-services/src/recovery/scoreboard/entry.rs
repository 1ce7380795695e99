//! What the scoreboard notes of one segment (RFC 6675 §4).

use super::super::delivery_rate::Transmission;
use super::lane_id::LaneId;
use restp_base::time::Time;

/// What we believe became of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    InFlight,
    Lost,
    Delivered,
    /// Delivered as far as reports on its neighbours allow a conclusion; a report on itself overrules that.
    Presumed,
    /// Not to be sent again, whether it arrived or not (RFC 3758 §3.5 calls it abandoned).
    GivenUp,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub(super) sent_at: Time,
    /// Position among all transmissions: which of two left later.
    pub(super) order: u64,
    pub(super) bytes: u32,
    /// By which it left last.
    pub(super) lane: LaneId,
    /// The lane that declared it lost before it left again.
    pub(super) blamed: LaneId,
    pub(super) kind: Kind,
    pub(super) fate: Fate,
}

impl Entry {
    /// It has left more than once.
    pub(super) fn retransmitted(&self) -> bool {
        self.kind != Kind::Once
    }

    pub(super) fn transmission(&self) -> Transmission {
        Transmission {
            order: self.order,
            sent_at: self.sent_at,
            bytes: u64::from(self.bytes),
        }
    }
}

/// What a lane carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// It left once.
    Once,
    /// It left again by the same lane.
    Again,
    /// It left by another lane before, or by an earlier path of this one.
    TakenOver,
}

impl Kind {
    pub(super) const ALL: [Kind; 3] = [Kind::Once, Kind::Again, Kind::TakenOver];
}
