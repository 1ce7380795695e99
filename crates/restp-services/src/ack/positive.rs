//! Positive acknowledgement (ResTP §3.5.9): every second packet, every packet while an out-of-order queue
//! exists, and a lone packet after at most 40 ms (OP-45).

use restp_base::time::Duration;

/// How often to acknowledge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PositiveParameters {
    /// In-order packets per acknowledgement (ResTP §3.5.9).
    pub every: u32,
    /// Longest wait of a lone packet (OP-45).
    pub delay: Duration,
    /// The same of one that its sender says does not hurry ([`AckRatio::UNHURRIED`](super::AckRatio)), where that is longer. Default zero.
    pub unhurried: Duration,
    /// In-order packets at first that are each acknowledged at once, so that the peer's window opens sooner (Linux:
    /// quick acknowledgements). Default none.
    pub quick: u32,
    /// Acknowledge as seldom as the peer asks for ([`AckRatio`](super::AckRatio)), and ask it to do so. Default off.
    pub thins: bool,
    /// What comes out of order waits for its acknowledgement like anything else: a sender that counts arrivals per path needs no
    /// duplicates (DAC, CMT §2.5). Default off.
    pub delays_reordered: bool,
}

impl Default for PositiveParameters {
    fn default() -> Self {
        PositiveParameters {
            every: 2,
            delay: Duration::from_millis(40),
            unhurried: Duration::ZERO,
            quick: 0,
            thins: false,
            delays_reordered: false,
        }
    }
}
