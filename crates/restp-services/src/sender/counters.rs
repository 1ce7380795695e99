//! What a sender counts, for diagnostics (ResTP §3.5.8): nothing in a protocol reads it.

/// Counters of one sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SenderCounters {
    /// Payload bytes sent, retransmissions included.
    pub sent_payload_bytes: u64,
    /// Segments sent again.
    pub retransmitted_packets: u64,
    /// Their payload bytes.
    pub retransmitted_payload_bytes: u64,
    /// Encoded packets sent.
    pub encoded_packets: u64,
    /// Segments declared lost.
    pub lost_packets: u64,
    /// Those of them that the timer declared lost.
    pub timed_out_packets: u64,
    /// Times that the retransmission timer ran out.
    pub timeouts: u64,
}
