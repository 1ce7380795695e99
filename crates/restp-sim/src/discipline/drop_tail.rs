//! Drop-tail: the packet that finds the queue full is dropped.

/// How much may wait. The packet being sent has left the queue and does not count, as in a router whose
/// transmitter holds one packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QueueLimit {
    /// As much as comes.
    #[default]
    Unlimited,
    /// This many packets.
    Packets(u64),
    /// This many bytes.
    Bytes(u64),
    /// One bandwidth-delay product of the path, [resolved](QueueLimit::resolve) by whoever knows the path.
    Bdp,
}

impl QueueLimit {
    /// Puts the bytes of one bandwidth-delay product in the place of [`QueueLimit::Bdp`].
    #[must_use]
    pub const fn resolve(self, bdp_bytes: u64) -> QueueLimit {
        match self {
            QueueLimit::Bdp => QueueLimit::Bytes(bdp_bytes),
            given => given,
        }
    }

    /// Is there room for another `bytes` behind those waiting?
    pub(super) fn admits(self, packets_waiting: u64, bytes_waiting: u64, bytes: u32) -> bool {
        match self {
            QueueLimit::Unlimited => true,
            QueueLimit::Packets(limit) => packets_waiting < limit,
            QueueLimit::Bytes(limit) => bytes_waiting + u64::from(bytes) <= limit,
            QueueLimit::Bdp => unreachable!("DirectionSpec::check refuses an unresolved queue"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_and_bytes_are_limited_apart() {
        assert!(!QueueLimit::Packets(2).admits(2, 2000, 1));
        assert!(QueueLimit::Packets(3).admits(2, 2000, 1));
        assert!(QueueLimit::Bytes(2100).admits(2, 2000, 100));
        assert!(!QueueLimit::Bytes(2099).admits(2, 2000, 100));
        assert!(QueueLimit::Unlimited.admits(u64::MAX, 0, u32::MAX));
    }

    #[test]
    fn only_a_bandwidth_delay_product_needs_resolving() {
        assert_eq!(QueueLimit::Bdp.resolve(250_000), QueueLimit::Bytes(250_000));
        assert_eq!(QueueLimit::Packets(3).resolve(250_000), QueueLimit::Packets(3));
    }
}
