//! Parameters of BBR, with the values of draft-ietf-ccwg-bbr (BBRv3, 2024).

use super::{HEADROOM_PERCENT, LOSS_THRESHOLD_PERCENT, PACING_MARGIN_PERCENT};

/// Parameters of [`Bbr`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BbrParams {
    /// Version 3 of the draft to the letter: the rules below are the draft's, whatever they say. Default off.
    pub draft: bool,
    /// Losses in percent of what is in flight that do not count as congestion while round trips show no queue. Default
    /// 15: paths with damage of a few percent are what ResTP is for (ResTP §3.6), and chance brings 15 % of a window of
    /// 80 segments about once in ten minutes where 5 % are lost. The price: a queue that holds less than a quarter of a round
    /// trip is not seen, so there BBR bears that many. The draft's threshold is 2, with and without a queue.
    pub random_loss_percent: u32,
    /// Left of the upper bound to others where a queue stands although nothing probes, in percent (Headroom). Default 30: then
    /// others fill the buffer, and with the draft's 15 a CUBIC flow gets four tenths of a path whose buffer holds one
    /// bandwidth-delay product, with this one half.
    pub queue_headroom_percent: u32,
    /// How far the pace stays below the bandwidth where no queue stands, in percent (PacingMarginPercent). Default 0: the
    /// draft's 1 is there to drain a queue, and without one it only leaves the link idle.
    pub clear_margin_percent: u32,
    /// How many first windows leave in the second round at most. Default 4, as in SUSS (SIGCOMM 2024): where the first
    /// acknowledgements show that the path holds many windows, doubling wastes round trips. The draft doubles, as 1 and 2 do.
    pub leap: u32,
    /// Rounds of a probe without more bandwidth, beside a queue that was not there when it began, that end it. Default 2:
    /// the draft's 3 fill a queue of one bandwidth-delay product to the brim, and what it drops holds up all that follows in
    /// order.
    pub vain_rounds: u32,
}

impl Default for BbrParams {
    fn default() -> Self {
        BbrParams {
            draft: false,
            random_loss_percent: 15,
            queue_headroom_percent: 30,
            clear_margin_percent: 0,
            leap: 4,
            vain_rounds: 2,
        }
    }
}

impl BbrParams {
    /// What holds: with [`draft`](Self::draft), the draft's numbers.
    pub(super) fn in_force(self) -> Self {
        if !self.draft {
            return self;
        }
        BbrParams {
            draft: true,
            random_loss_percent: LOSS_THRESHOLD_PERCENT as u32,
            queue_headroom_percent: HEADROOM_PERCENT as u32,
            clear_margin_percent: PACING_MARGIN_PERCENT as u32,
            leap: 1,
            vain_rounds: u32::MAX, // only rounds without growth end a probe (§5.3.3.6)
        }
    }
}
