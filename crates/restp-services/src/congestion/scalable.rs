//! Scalable TCP: a hundredth of what is acknowledged, an eighth less on loss, so that the time between losses does not
//! depend on the rate. Kelly 2003 (CCR 33/2). Below 16 segments it is Reno.

use super::window::{CommonParams, Window, segment_of};
use super::{Congestion, CongestionEvent, CongestionSnapshot, Reno};
use crate::view::PathView;
use restp_base::units::Rate;

/// a = 0.01: growth per byte acknowledged is one over this (§3).
const GROWTH_DIVISOR: u64 = 100;
/// b = 0.125: a loss takes one over this (§3).
const LOSS_DIVISOR: u64 = 8;
/// The legacy window in segments: what Reno reaches at a loss rate of about 1 % is left to it (§3.1).
const LEGACY_SEGMENTS: u64 = 16;

/// The Scalable controller. Its parameters are the common ones.
#[derive(Clone, Copy, Debug)]
pub struct Scalable {
    reno: Reno,
    /// Hundredths of a byte that the window has not grown by yet.
    rest: u64,
}

impl Scalable {
    /// A controller at its initial window for segments of `segment_bytes`.
    pub fn new(params: &CommonParams, segment_bytes: u64) -> Self {
        Scalable {
            reno: Reno::new(params, segment_bytes),
            rest: 0,
        }
    }

    fn acked(&mut self, bytes: u64, segment: u64) {
        let window = &mut self.reno.window;
        if window.in_slow_start() || window.bytes < LEGACY_SEGMENTS * segment {
            return self.reno.grow(bytes, segment);
        }
        self.rest += window.worth(bytes, segment);
        window.grow(self.rest / GROWTH_DIVISOR);
        self.rest %= GROWTH_DIVISOR;
    }

    fn target(&self, event: &CongestionEvent, view: &PathView<'_>) -> u64 {
        let in_flight = view.in_flight_bytes;
        let timeout = matches!(event, CongestionEvent::Timeout { .. });
        if timeout || self.reno.window.bytes <= LEGACY_SEGMENTS * segment_of(view) {
            in_flight / 2
        } else {
            in_flight - in_flight / LOSS_DIVISOR
        }
    }
}

impl Congestion for Scalable {
    fn on(&mut self, event: &CongestionEvent, view: &PathView<'_>) {
        if let CongestionEvent::Acked { bytes, .. } = *event
            && Window::may_grow(view)
        {
            self.acked(bytes, segment_of(view));
        }
        let target = self.target(event, view);
        self.reno.react(event, view, target);
    }
    fn window_bytes(&self) -> u64 {
        self.reno.window_bytes()
    }
    fn pacing(&self) -> Option<Rate> {
        self.reno.pacing()
    }
    fn snapshot(&self) -> CongestionSnapshot {
        self.reno.snapshot()
    }
}

#[cfg(test)]
mod tests {
    use super::super::conformance::{acked, path};
    use super::*;

    const SEGMENT: u64 = 1000;

    fn at_window(segments: u64) -> Scalable {
        let params = CommonParams {
            initial_threshold_bytes: segments * SEGMENT,
            ..CommonParams::default()
        };
        let mut scalable = Scalable::new(&params, SEGMENT);
        while scalable.window_bytes() < segments * SEGMENT {
            let missing = segments * SEGMENT - scalable.window_bytes();
            scalable.on(&acked(missing), &path(SEGMENT));
        }
        scalable
    }
    fn lose(scalable: &mut Scalable) -> u64 {
        let view = PathView {
            in_flight_bytes: scalable.window_bytes(),
            ..path(SEGMENT)
        };
        scalable.on(&CongestionEvent::Lost { bytes: SEGMENT }, &view);
        scalable.window_bytes()
    }

    #[test]
    fn a_window_of_acknowledgements_adds_a_hundredth_and_a_loss_takes_an_eighth() {
        let mut scalable = at_window(200);
        for _ in 0..200 {
            scalable.on(&acked(SEGMENT), &path(SEGMENT));
        }
        assert_eq!(scalable.window_bytes(), 202_000);
        assert_eq!(lose(&mut scalable), 176_750);
    }

    /// Kelly 2003 §3: from a loss back to the old window takes log(8/7) / log(1.01) = 13.4 round trips at any rate.
    #[test]
    fn the_time_to_recover_is_the_same_at_every_window() {
        for segments in [100, 1000, 100_000] {
            let mut scalable = at_window(segments);
            lose(&mut scalable);
            let mut rounds = 0;
            while scalable.window_bytes() < segments * SEGMENT {
                let window = scalable.window_bytes();
                scalable.on(&acked(window), &path(SEGMENT));
                rounds += 1;
            }
            assert_eq!(rounds, 14, "{segments}");
        }
    }

    #[test]
    fn below_sixteen_segments_it_is_reno() {
        let mut scalable = at_window(12);
        scalable.on(&acked(12 * SEGMENT), &path(SEGMENT));
        assert_eq!(scalable.window_bytes(), 13 * SEGMENT);
        assert_eq!(lose(&mut scalable), 6500);
    }
}
