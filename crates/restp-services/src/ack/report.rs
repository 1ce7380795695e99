//! The neutral form of feedback: whatever a codec received, this is what recovery works on
//! (ResTP §3.5.9: what an acknowledgement means).

use crate::reliability::Uncarried;
use restp_base::ranges::Ranges;
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
    /// Given up by the receiver: nothing in it that is missing can be repaired without a repeat (HARQ, OP-40).
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

/// In which order a receiver reports what it holds: the range with `newest` first, then the others from the highest
/// down, because those are the ones the sender has heard of least often (RFC 2018 §4).
pub fn newest_first(received: &Ranges, newest: u64) -> impl Iterator<Item = &Range<u64>> {
    let first = received.covering(newest);
    let others = received.iter().rev().filter(move |range| Some(*range) != first);
    first.into_iter().chain(others)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_range_comes_first_and_the_others_from_the_top() {
        let mut received = Ranges::new();
        for range in [14..16, 17..18, 20..21] {
            received.insert(range);
        }
        let order = |newest| newest_first(&received, newest).cloned().collect::<Vec<_>>();
        assert_eq!(order(15), [14..16, 20..21, 17..18]);
        assert_eq!(
            order(9),
            [20..21, 17..18, 14..16],
            "the newest is below all holes"
        );
    }
}
