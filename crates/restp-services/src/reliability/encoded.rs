//! What a code makes of packets, and gives back (ResTP §3.1.5).

use bytes::Bytes;

/// An encoded packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Encoded {
    /// Number of the first packet encoded in it.
    pub first: u64,
    /// FEC Range: what else is encoded in it ([`FecCode::covered`](super::FecCode::covered)).
    pub range: u32,
    /// Sum of their lengths and payloads (OP-39).
    pub payload: Bytes,
}

/// A packet that was rebuilt: its number, and its payload; the FIN has none.
pub type Rebuilt = (u64, Option<Bytes>);

/// So many packets from the `first` on, `stride` apart.
pub(super) fn numbers(first: u64, count: u64, stride: u64) -> impl DoubleEndedIterator<Item = u64> + Clone {
    (0..count).map(move |index| first.saturating_add(index * stride))
}
