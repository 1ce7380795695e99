//! Tahoe: slow start again after every loss. Jacobson 1988; TC §2.3.1, Figure 2.14. Its retransmissions are the work of
//! [`FastRecovery::None`](crate::recovery::FastRecovery): everything outstanding leaves again.

use super::window::{CommonParams, Window, segment_of};
use super::{Congestion, CongestionEvent, CongestionSnapshot, Reno};
use crate::view::PathView;
use restp_base::units::Rate;

/// The Tahoe controller.
#[derive(Clone, Copy, Debug)]
pub struct Tahoe {
    reno: Reno,
}

impl Tahoe {
    /// A controller at its initial window for segments of `segment_bytes`.
    pub fn new(params: &CommonParams, segment_bytes: u64) -> Self {
        Tahoe {
            reno: Reno::new(params, segment_bytes),
        }
    }
}

impl Congestion for Tahoe {
    fn on(&mut self, event: &CongestionEvent, view: &PathView<'_>) {
        let segment = segment_of(view);
        if let CongestionEvent::Acked { bytes, .. } = *event
            && Window::may_grow(view)
        {
            self.reno.grow(bytes, segment);
        }
        // Half the window, not half of what is in flight: Tahoe is older than that distinction (TC §2.3.1).
        let target = self.reno.window.bytes / 2;
        self.reno.react(event, view, target);
        if let CongestionEvent::Lost { .. } = event {
            // A mark halves only: nothing is missing, so there is nothing to start again (RFC 3168 §6.1.2).
            self.reno.window.bytes = segment;
        }
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

    /// In avoidance with a window of 20 segments.
    fn at_20_segments() -> Tahoe {
        let params = CommonParams {
            initial_threshold_bytes: 20 * SEGMENT,
            ..CommonParams::default()
        };
        let mut tahoe = Tahoe::new(&params, SEGMENT);
        tahoe.on(&acked(10 * SEGMENT), &path(SEGMENT));
        tahoe
    }

    fn state(tahoe: &Tahoe) -> (u64, Option<u64>, &str) {
        let snapshot = tahoe.snapshot();
        (snapshot.window_bytes, snapshot.threshold_bytes, snapshot.state)
    }

    #[test]
    fn a_loss_starts_again_from_one_segment_towards_half_the_window() {
        let mut tahoe = at_20_segments();
        assert_eq!(state(&tahoe), (20_000, Some(20_000), "avoidance"));
        let mut view = path(SEGMENT);
        view.in_flight_bytes = 17 * SEGMENT;
        tahoe.on(&CongestionEvent::Lost { bytes: SEGMENT }, &view);
        assert_eq!(state(&tahoe), (1000, Some(10_000), "slow-start"));
        let windows: Vec<u64> = (0..5)
            .map(|_| {
                tahoe.on(&acked(tahoe.window_bytes()), &path(SEGMENT));
                tahoe.window_bytes()
            })
            .collect();
        assert_eq!(windows, [2000, 4000, 8000, 10_000, 11_000]); // 6 of 8 left at the threshold, then 10 of 10
    }

    #[test]
    fn a_timeout_is_the_same_and_a_mark_halves() {
        let mut tahoe = at_20_segments();
        tahoe.on(&CongestionEvent::Timeout { repeated: false }, &path(SEGMENT));
        assert_eq!(state(&tahoe), (1000, Some(10_000), "slow-start"));
        let mut tahoe = at_20_segments();
        tahoe.on(&CongestionEvent::Marked { bytes: SEGMENT }, &path(SEGMENT));
        assert_eq!(state(&tahoe), (10_000, Some(10_000), "avoidance"));
    }

    #[test]
    fn the_threshold_has_a_floor_of_two_segments() {
        let params = CommonParams {
            initial_window_segments: 1,
            ..CommonParams::default()
        };
        let mut tahoe = Tahoe::new(&params, SEGMENT);
        tahoe.on(&CongestionEvent::Lost { bytes: SEGMENT }, &path(SEGMENT));
        assert_eq!(state(&tahoe), (1000, Some(2000), "slow-start"));
    }
}
