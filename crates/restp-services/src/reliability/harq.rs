//! HARQ, receiver (ResTP §3.5.8, OP-40, OP-41): forward error correction first; what it could not repair is
//! reported as a range from RCV.NXT to the last packet lost, and the sender retransmits it at once.
//!
//! The report stands in every acknowledgement until the pointer has passed it, so that a lost acknowledgement does
//! not cost a timeout; 0 means that nothing is outstanding.

/// The largest FEC Range the header can say (24 bits, ResTP §3.1.5).
const RANGE_MAX: u64 = (1 << 24) - 1;

/// What forward error correction gave up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LossReport {
    /// First number above everything given up.
    end: u64,
}

impl LossReport {
    /// Too much of a group is missing; `last_missing` is the last of it.
    pub fn give_up(&mut self, last_missing: u64) {
        self.end = self.end.max(last_missing.saturating_add(1));
    }

    /// The loss range beside the pointer RCV.NXT: inclusive, so that one loss at the pointer is 1 (OP-40).
    pub fn range(&self, next: u64) -> u32 {
        self.end.saturating_sub(next).min(RANGE_MAX) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// ResTP §11.3, the vectors.
    #[test]
    fn the_range_is_the_last_loss_less_the_pointer_plus_one() {
        let mut report = LossReport::default();
        assert_eq!(report.range(24), 0, "only 21 lost: rebuilt");
        report.give_up(22);
        assert_eq!(report.range(21), 2, "21 and 22 lost");
        report.give_up(23);
        assert_eq!(report.range(21), 3, "21 and 23 lost");
        report.give_up(22);
        assert_eq!(report.range(23), 1);
        assert_eq!((report.range(24), report.range(u64::MAX)), (0, 0));
        report.give_up(u64::MAX);
        assert_eq!(report.range(0), 0x00FF_FFFF);
    }
}
