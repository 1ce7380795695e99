//! Drop-tail: the packet that finds the queue full is dropped.

use super::Backlog;

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

    pub(super) fn admits(self, waiting: &Backlog, bytes: u32) -> bool {
        match self {
            QueueLimit::Unlimited => true,
            QueueLimit::Packets(limit) => waiting.packets() < limit,
            QueueLimit::Bytes(limit) => waiting.bytes() + u64::from(bytes) <= limit,
            QueueLimit::Bdp => unreachable!("DirectionSpec::check refuses an unresolved queue"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use restp_base::time::Time;

    #[test]
    fn packets_and_bytes_are_counted_until_their_transmission_begins() {
        let at = Time::from_nanos;
        let mut waiting = Backlog::default();
        waiting.push(at(10), 1500);
        waiting.push(at(20), 500);
        assert!(!QueueLimit::Packets(2).admits(&waiting, 1));
        assert!(QueueLimit::Packets(3).admits(&waiting, 1));
        assert!(QueueLimit::Bytes(2100).admits(&waiting, 100));
        assert!(!QueueLimit::Bytes(2099).admits(&waiting, 100));
        waiting.advance(at(10));
        assert_eq!((waiting.packets(), waiting.bytes()), (1, 500));
        assert!(QueueLimit::Packets(2).admits(&waiting, 1));
        assert!(QueueLimit::Unlimited.admits(&waiting, u32::MAX));
    }

    #[test]
    fn only_a_bandwidth_delay_product_needs_resolving() {
        assert_eq!(QueueLimit::Bdp.resolve(250_000), QueueLimit::Bytes(250_000));
        assert_eq!(QueueLimit::Packets(3).resolve(250_000), QueueLimit::Packets(3));
    }
}
