//! Names of lanes (split fast retransmit of CMT: Iyengar, Amer and Stewart, ToN 14(5), 2006).

/// Which lane of a board.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct LaneId(pub(super) u8);

impl LaneId {
    /// The lane that every board has.
    pub const FIRST: LaneId = LaneId(0);
    /// No lane.
    pub(super) const NONE: LaneId = LaneId(u8::MAX);

    /// Its position among the lanes of a board, from 0.
    pub fn index(self) -> usize {
        usize::from(self.0)
    }

    /// The lane at `index`, which is below 255.
    pub(crate) fn nth(index: usize) -> Self {
        debug_assert!(index < usize::from(u8::MAX), "a board has 255 lanes at most");
        LaneId(index as u8)
    }
}
