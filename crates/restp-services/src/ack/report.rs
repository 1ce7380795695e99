//! The neutral form of feedback: whatever a codec received, this is what recovery works on
//! (ResTP §3.5.9: what an acknowledgement means).

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
}

impl AckReport {
    /// A report of the pointer alone.
    pub fn pointer(cumulative: u64) -> Self {
        AckReport {
            cumulative,
            ..Default::default()
        }
    }
}
