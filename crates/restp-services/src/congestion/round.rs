//! Once per round trip: a round ends when what was in flight at its beginning has been acknowledged (RFC 9406 §4.2
//! counts rounds so).

/// Position in the round.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Round {
    left: u64,
}

impl Round {
    /// `bytes` were acknowledged, `in_flight` bytes are out now. True when that ends a round; the next one begins.
    pub fn ends(&mut self, bytes: u64, in_flight: u64) -> bool {
        self.left = self.left.saturating_sub(bytes);
        let ends = self.left == 0;
        if ends {
            self.left = in_flight.max(1);
        }
        ends
    }
}
