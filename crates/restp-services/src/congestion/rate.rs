//! Open loop: a configured rate, whatever the network says (ResTP §3.5.9, as SCPS-TP's fixed rate). For links whose
//! capacity is known and nobody else's, together with delayed acknowledgements. Needs pacing.

use super::window::{LARGEST_SEGMENT, LARGEST_WINDOW, segment_of};
use super::{Congestion, CongestionEvent, CongestionSnapshot};
use crate::view::PathView;
use restp_base::time::Duration;
use restp_base::units::Rate;

/// Parameters of [`FixedRate`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateParams {
    /// Payload per second. Default 1 Mbit/s: most links carry it, and who knows better says so.
    pub rate: Rate,
}

impl Default for RateParams {
    fn default() -> Self {
        RateParams {
            rate: Rate::from_bps(1_000_000),
        }
    }
}

/// Round trips, and time beyond them for an acknowledgement that is held back, that the window holds. It bounds memory
/// when the peer is silent; it is no means of control.
const ROUND_TRIPS: u64 = 4;
const HELD_BACK: Duration = Duration::from_secs(1);
/// In place of them before the first sample.
const UNKNOWN: Duration = Duration::from_secs(10);
/// Segments that fit at any rate.
const LEAST_SEGMENTS: u64 = 4;

/// The open loop.
#[derive(Clone, Copy, Debug)]
pub struct FixedRate {
    rate: Rate,
    window: u64,
}

impl FixedRate {
    /// A loop at the rate of `params` for segments of `segment_bytes`.
    pub fn new(params: &RateParams, segment_bytes: u64) -> Self {
        let mut fixed = FixedRate {
            rate: params.rate,
            window: 0,
        };
        fixed.open(UNKNOWN, segment_bytes.clamp(1, LARGEST_SEGMENT));
        fixed
    }

    fn open(&mut self, span: Duration, segment: u64) {
        let bytes = self.rate.bytes_in(span).min(LARGEST_WINDOW);
        self.window = bytes.max(LEAST_SEGMENTS * segment);
    }
}

impl Congestion for FixedRate {
    /// Only how long a segment is on its way counts, and how large it is.
    fn on(&mut self, _: &CongestionEvent, view: &PathView<'_>) {
        let span = match view.smoothed_rtt {
            Some(rtt) => rtt * ROUND_TRIPS + HELD_BACK,
            None => UNKNOWN,
        };
        self.open(span, segment_of(view));
    }
    fn window_bytes(&self) -> u64 {
        self.window
    }
    fn pacing(&self) -> Option<Rate> {
        Some(self.rate)
    }
    fn delivers(&self) -> Option<Rate> {
        Some(self.rate)
    }
    fn snapshot(&self) -> CongestionSnapshot {
        CongestionSnapshot {
            window_bytes: self.window,
            threshold_bytes: None,
            state: "fixed",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::conformance::path;
    use super::*;

    #[test]
    fn nothing_moves_the_rate_and_the_window_holds_four_round_trips_and_a_second() {
        let params = RateParams {
            rate: Rate::from_bps(8_000_000),
        };
        let mut fixed = FixedRate::new(&params, 1000);
        assert_eq!(fixed.window_bytes(), 10_000_000);
        let view = PathView {
            smoothed_rtt: Some(Duration::from_millis(500)),
            in_flight_bytes: 9_000_000,
            ..path(1000)
        };
        for event in [
            CongestionEvent::Lost { bytes: 1000 },
            CongestionEvent::Timeout { repeated: false },
            CongestionEvent::Idle {
                gap: Duration::from_secs(9),
            },
        ] {
            fixed.on(&event, &view);
            assert_eq!(
                (fixed.pacing(), fixed.window_bytes()),
                (Some(params.rate), 3_000_000)
            );
        }
    }
}
