//! A packet as a link sees it.

use restp_base::machine::Ecn;

/// A packet as a direction sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parcel {
    /// Its size on the line.
    pub bytes: u32,
    /// Whether it can be marked.
    pub ecn: Ecn,
    /// Whether it may be cut into pieces where it is too long.
    pub may_fragment: bool,
    /// Packets of one flow share this number: its addresses and ports, say. Only FQ-CoDel asks.
    pub flow: u64,
    /// By which its owner knows it again when it is [decided on](crate::direction::Direction::decided)
    /// after a [`Verdict::Wait`](crate::direction::Verdict::Wait).
    pub tag: u64,
}
