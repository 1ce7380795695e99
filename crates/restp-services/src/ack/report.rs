//! The neutral form of feedback: whatever a codec received, this is what recovery works on
//! (ResTP §3.5.9: what an acknowledgement means).

use super::Uncarried;
use smallvec::SmallVec;
use std::ops::Range;

/// What one acknowledgement says, in 64-bit segment numbers and half-open ranges.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AckReport {
    /// The receiver's pointer: nothing below is needed (ResTP §3.5.9).
    pub cumulative: u64,
    /// Received beyond the pointer, in the order reported (SACK, SNACK vectors).
    pub received: SmallVec<[Range<u64>; 4]>,
    /// Reported missing (NACK, SNACK).
    pub missing: SmallVec<[Range<u64>; 2]>,
    /// Given up by the receiver: nothing in it that is missing can be repaired without a retransmission (HARQ, OP-40).
    pub lost: Range<u64>,
    /// Some of what no path has brought, and is not waited for: encoded packets have rebuilt it, or it was given up.
    pub uncarried: Uncarried,
    /// Packets that it answers, where that is told (DAC, CMT §2.5); otherwise 0.
    pub arrivals: u8,
    /// Segments that it says have arrived once more, where that is told (RFC 2883). They may lie below the pointer.
    pub duplicates: Range<u64>,
    /// It names everything beyond the pointer that the receiver holds: what it does not name was discarded, or never came
    /// (RFC 9260 §6.2.1).
    pub is_complete: bool,
}

impl AckReport {
    /// How many numbers beyond the pointer it names as received.
    pub fn named(&self) -> u64 {
        self.received.iter().map(|range| range.end - range.start).sum()
    }

    /// A report of the pointer alone.
    pub fn pointer(cumulative: u64) -> Self {
        AckReport {
            cumulative,
            received: SmallVec::new(),
            missing: SmallVec::new(),
            lost: 0..0,
            uncarried: Uncarried::default(),
            arrivals: 0,
            duplicates: 0..0,
            is_complete: false,
        }
    }
}
