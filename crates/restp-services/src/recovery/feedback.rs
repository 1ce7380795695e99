//! What applying an acknowledgement to the scoreboard yields, and why one may be refused (RFC 6675 §5, RFC 9293
//! §3.10.7.4: an acknowledgement of what was never sent is not believed).

use super::delivery_rate::RateSample;
use restp_base::time::Duration;
use thiserror::Error;

/// What an acknowledgement changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Feedback {
    /// Numbers the receiver's pointer passed.
    pub advanced: u64,
    /// The lowest number outstanding has arrived: the retransmission timer begins afresh (RFC 9260 §6.3.2, R3).
    pub head_arrived: bool,
    /// Those of them that were sent more than once, and were not known to have arrived.
    pub advanced_retransmissions: u64,
    /// The last transmission of the lowest of them, which filled the hole there, if there was one.
    pub filled_by: u64,
    /// Segments delivered for the first time to our knowledge, by pointer or by block.
    pub delivered: u64,
    /// Their bytes.
    pub delivered_bytes: u64,
    /// Those of them that were declared lost and had only been late: the report came before they left again, or sooner
    /// after that than any other answer. Also those that the peer names as arrived twice ([`AckReport::duplicates`]).
    ///
    /// [`AckReport::duplicates`]: crate::ack::AckReport::duplicates
    pub late: u64,
    /// The lowest of those that the peer names as arrived twice. An earlier loss episode may have taken it for lost.
    pub lowest_duplicate: Option<u64>,
    /// Round trip of the latest of them, unless it was sent more than once (Karn's rule) or waited at the receiver
    /// for a retransmission.
    pub rtt: Option<Duration>,
    /// The pointer stands where it stood while data is outstanding; the caller clears this for packets that
    /// carried data or changed the window (RFC 5681 §2).
    pub duplicate: bool,
    /// How fast the network delivers, when something was.
    pub rate: Option<RateSample>,
    /// Segments now lost because the receiver has given them up.
    pub reported: u64,
}

impl Feedback {
    /// The peer has got something it had not reported before.
    pub fn is_progress(&self) -> bool {
        self.delivered > 0 || self.advanced > 0
    }
}

/// A report that cannot be true: nothing of it is believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum FalseReport {
    /// The peer reports on a number that was never sent.
    #[error("reported on {reported}, but only numbers below {next} were sent")]
    Unsent {
        /// What it reported on.
        reported: u64,
        /// The first number not sent.
        next: u64,
    },
    /// The peer expects a number next and reports it received.
    #[error("expects {pointer} next, and reports it received")]
    Contradiction {
        /// The receiver's pointer.
        pointer: u64,
    },
}
