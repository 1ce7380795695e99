//! Where marks of congestion begin.

/// Backlog from which on packets are marked instead of waiting unnoticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkThreshold {
    /// This many packets wait already.
    Packets(u64),
    /// This many bytes wait already.
    Bytes(u64),
}
