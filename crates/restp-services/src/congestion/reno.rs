//! Reno: additive increase, half on loss. RFC 5681 for the window; NewReno (RFC 6582) has the same window and
//! differs in when recovery ends ([`FastRecovery`](crate::recovery::FastRecovery)). Read RFC 5681 §3.1 first.
//!
//! Tahoe, Vegas, Westwood and Veno change one of these rules each and take the others from here.

use super::window::{CommonParams, Growth, Window, segment_of};
use super::{Congestion, CongestionEvent, CongestionSnapshot};
use crate::view::PathView;
use restp_base::units::Rate;

/// The controller of Reno and NewReno.
#[derive(Clone, Copy, Debug)]
pub struct Reno {
    pub(super) window: Window,
    growth: Growth,
    /// Bytes acknowledged in avoidance since the window last grew.
    credit: u64,
    /// The window before the last reduction.
    before: Option<Window>,
}

impl Reno {
    /// A controller at its initial window for segments of `segment_bytes`.
    pub fn new(params: &CommonParams, segment_bytes: u64) -> Self {
        Reno {
            window: Window::new(params, segment_bytes),
            growth: params.growth,
            credit: 0,
            before: None,
        }
    }

    /// Slow start up to the threshold, one segment per round trip from there on.
    pub(super) fn grow(&mut self, bytes: u64, segment: u64) {
        self.grow_by(1.0, bytes, segment);
    }

    /// The same with `step` segments per round trip.
    pub(super) fn grow_by(&mut self, step: f64, bytes: u64, segment: u64) {
        let left = self.window.slow_start(bytes, segment);
        if left == 0 {
            return;
        }
        match self.growth {
            // A step per window of bytes (RFC 5681 §3.1, RFC 3465 §2.1).
            Growth::Bytes => {
                self.credit += (left as f64 * step) as u64;
                if self.credit >= self.window.bytes {
                    let segments = self.credit / self.window.bytes;
                    self.credit %= self.window.bytes;
                    self.window.grow(segments * segment);
                }
            }
            // RFC 5681 (3).
            Growth::Acks => {
                let bytes = (segment * segment) as f64 * step / self.window.bytes as f64;
                self.window.grow((bytes as u64).max(1));
            }
        }
    }

    /// Everything but growth; `target` is the threshold of a reduction, in bytes.
    pub(super) fn react(&mut self, event: &CongestionEvent, view: &PathView<'_>, target: u64) {
        let segment = segment_of(view);
        match *event {
            // By the end of an episode the window has long stood at the threshold (RFC 6582 §3.2 step 3).
            CongestionEvent::Sent { .. }
            | CongestionEvent::Acked { .. }
            | CongestionEvent::RouteChanged
            | CongestionEvent::Duplicate
            | CongestionEvent::SegmentLost(_)
            | CongestionEvent::Corrupted { .. }
            | CongestionEvent::RecoveryEnded => {}
            CongestionEvent::Lost { .. } | CongestionEvent::Marked { .. } => {
                self.before = Some(self.window);
                self.credit = 0;
                self.window.cut(target, segment);
            }
            CongestionEvent::Timeout { repeated } => {
                if !repeated {
                    self.before = Some(self.window);
                }
                self.credit = 0;
                self.window.collapse((!repeated).then_some(target), segment);
            }
            CongestionEvent::Idle { .. } => {
                self.credit = 0;
                self.window.restart(segment);
            }
            CongestionEvent::Restored => {
                if let Some(before) = self.before.take() {
                    self.window.restore(&before);
                }
            }
        }
        self.window.settle(view);
    }
}

impl Congestion for Reno {
    fn on(&mut self, event: &CongestionEvent, view: &PathView<'_>) {
        if let CongestionEvent::Acked { bytes, .. } = *event
            && Window::may_grow(view)
        {
            self.grow(bytes, segment_of(view));
        }
        let spared = matches!(event, CongestionEvent::Marked { .. }) && self.window.spares_marks();
        let target = if spared {
            view.in_flight_bytes / 5 * 4 // RFC 8511 §3.1
        } else {
            view.in_flight_bytes / 2
        };
        self.react(event, view, target);
    }
    fn window_bytes(&self) -> u64 {
        self.window.bytes
    }
    fn pacing(&self) -> Option<Rate> {
        self.window.pacing()
    }
    fn snapshot(&self) -> CongestionSnapshot {
        self.window.snapshot()
    }
}

#[cfg(test)]
mod tests {
    use super::super::conformance::{acked, path};
    use super::*;
    use restp_base::time::Duration;

    const SEGMENT: u64 = 1000;

    fn controller(initial_window_segments: u64, threshold_segments: u64, growth: Growth) -> Reno {
        let initial_threshold_bytes = threshold_segments * SEGMENT;
        Reno::new(
            &CommonParams {
                initial_window_segments,
                initial_threshold_bytes,
                growth,
                ..CommonParams::default()
            },
            SEGMENT,
        )
    }

    /// A round trip: every segment of the window is acknowledged, `per_ack` at a time.
    fn round(reno: &mut Reno, per_ack: u64) -> u64 {
        let mut left = reno.window_bytes() / SEGMENT;
        while left > 0 {
            let segments = left.min(per_ack);
            reno.on(&acked(segments * SEGMENT), &path(SEGMENT));
            left -= segments;
        }
        reno.window_bytes()
    }

    #[test]
    fn slow_start_doubles_per_round_trip_up_to_the_threshold_then_adds_one_segment() {
        let mut reno = controller(2, 16, Growth::Bytes);
        let windows: Vec<u64> = (0..6).map(|_| round(&mut reno, 1)).collect();
        assert_eq!(windows, [4000, 8000, 16_000, 17_000, 18_000, 19_000]);
    }

    #[test]
    fn coalesced_acknowledgements_cost_nothing_by_bytes_and_half_by_acks() {
        let mut bytes = controller(2, 16, Growth::Bytes);
        assert_eq!(
            [round(&mut bytes, 2), round(&mut bytes, 2), round(&mut bytes, 4)],
            [4000, 8000, 16_000]
        );
        // RFC 5681 (2): one segment per acknowledgement of two, that is × 1.5 per round trip.
        let mut acks = controller(4, 100, Growth::Acks);
        assert_eq!(
            [round(&mut acks, 2), round(&mut acks, 2), round(&mut acks, 2)],
            [6000, 9000, 14_000]
        );
    }

    #[test]
    fn what_slow_start_leaves_at_the_threshold_counts_for_avoidance() {
        let mut reno = controller(10, 12, Growth::Bytes);
        reno.on(&acked(10 * SEGMENT), &path(SEGMENT)); // 2 to the threshold, 8 on account
        assert_eq!(reno.window_bytes(), 12_000);
        reno.on(&acked(3 * SEGMENT), &path(SEGMENT));
        assert_eq!(reno.window_bytes(), 12_000);
        reno.on(&acked(SEGMENT), &path(SEGMENT));
        assert_eq!(reno.window_bytes(), 13_000);
    }

    #[test]
    fn avoidance_by_acks_adds_segment_squared_over_window() {
        let mut reno = controller(10, 10, Growth::Acks);
        let mut windows = Vec::new();
        for _ in 0..3 {
            reno.on(&acked(2 * SEGMENT), &path(SEGMENT));
            windows.push(reno.window_bytes());
        }
        // RFC 5681 (3): 10⁶/10000 = 100, 10⁶/10100 = 99, 10⁶/10199 = 98.
        assert_eq!(windows, [10_100, 10_199, 10_297]);
    }

    #[test]
    fn a_loss_halves_what_was_in_flight_and_recovery_does_not_grow() {
        let mut reno = controller(10, 1000, Growth::Bytes);
        let mut view = path(SEGMENT);
        view.in_flight_bytes = 9000;
        view.in_recovery = true;
        reno.on(&CongestionEvent::Lost { bytes: 1000 }, &view);
        assert_eq!(
            (reno.window_bytes(), reno.snapshot().threshold_bytes),
            (4500, Some(4500))
        );
        assert_eq!(reno.snapshot().state, "recovery");
        reno.on(&acked(9000), &view);
        assert_eq!(reno.window_bytes(), 4500);
        reno.on(&CongestionEvent::RecoveryEnded, &path(SEGMENT));
        assert_eq!((reno.window_bytes(), reno.snapshot().state), (4500, "avoidance"));
        reno.on(&acked(4500), &path(SEGMENT));
        assert_eq!(reno.window_bytes(), 5500);
    }

    #[test]
    fn the_threshold_has_a_floor_of_two_segments() {
        let mut reno = controller(10, 1000, Growth::Bytes);
        let mut view = path(SEGMENT);
        view.in_flight_bytes = 3000;
        reno.on(&CongestionEvent::Marked { bytes: 1000 }, &view);
        assert_eq!((reno.window_bytes(), reno.snapshot().state), (2000, "avoidance"));
    }

    #[test]
    fn a_mark_in_avoidance_may_cost_a_fifth_where_a_loss_costs_half() {
        let kept = |abe: bool, threshold_segments: u64, event| {
            let params = CommonParams {
                initial_threshold_bytes: threshold_segments * SEGMENT,
                abe,
                ..CommonParams::default()
            };
            let mut reno = Reno::new(&params, SEGMENT);
            let mut view = path(SEGMENT);
            view.in_flight_bytes = 10 * SEGMENT;
            reno.on(&event, &view);
            reno.window_bytes()
        };
        let marked = CongestionEvent::Marked { bytes: SEGMENT };
        assert_eq!(kept(true, 10, marked), 8000, "RFC 8511 §3.1");
        assert_eq!(kept(true, 11, marked), 5000, "in slow start");
        assert_eq!(kept(false, 10, marked), 5000);
        assert_eq!(kept(true, 10, CongestionEvent::Lost { bytes: SEGMENT }), 5000);
    }

    #[test]
    fn a_timeout_starts_from_one_segment_and_its_retransmissions_keep_the_threshold() {
        let mut reno = controller(10, 1000, Growth::Bytes);
        let mut view = path(SEGMENT);
        view.in_flight_bytes = 8000;
        reno.on(&CongestionEvent::Timeout { repeated: false }, &view);
        assert_eq!(
            (reno.window_bytes(), reno.snapshot().threshold_bytes),
            (1000, Some(4000))
        );
        view.in_flight_bytes = 1000;
        reno.on(&CongestionEvent::Timeout { repeated: true }, &view);
        assert_eq!(
            (reno.window_bytes(), reno.snapshot().threshold_bytes),
            (1000, Some(4000))
        );
        let windows: Vec<u64> = (0..3).map(|_| round(&mut reno, 1)).collect();
        assert_eq!(windows, [2000, 4000, 5000]);
        assert_eq!(reno.snapshot().state, "avoidance");
    }

    #[test]
    fn a_spurious_timeout_is_taken_back_once_its_retransmissions_included() {
        let mut reno = controller(10, 1000, Growth::Bytes);
        let mut view = path(SEGMENT);
        view.in_flight_bytes = 8000;
        reno.on(&CongestionEvent::Timeout { repeated: false }, &view);
        reno.on(&CongestionEvent::Timeout { repeated: true }, &view);
        reno.on(&CongestionEvent::Restored, &view);
        assert_eq!(
            (reno.window_bytes(), reno.snapshot().threshold_bytes),
            (10_000, Some(1_000_000))
        );
        reno.on(&CongestionEvent::Lost { bytes: 1000 }, &view);
        reno.on(&CongestionEvent::Restored, &view);
        reno.on(&CongestionEvent::Timeout { repeated: true }, &view);
        reno.on(&CongestionEvent::Restored, &view);
        assert_eq!(reno.window_bytes(), 1000, "nothing was left to take back");
    }

    #[test]
    fn silence_restarts_from_the_initial_window_and_remembers_the_threshold() {
        let mut reno = controller(4, 16, Growth::Bytes);
        while round(&mut reno, 1) < 20_000 {}
        reno.on(
            &CongestionEvent::Idle {
                gap: Duration::from_secs(2),
            },
            &path(SEGMENT),
        );
        assert_eq!((reno.window_bytes(), reno.snapshot().state), (4000, "slow-start"));
        assert_eq!(
            [round(&mut reno, 1), round(&mut reno, 1), round(&mut reno, 1)],
            [8000, 16_000, 17_000]
        );
    }

    #[test]
    fn credit_for_the_next_segment_ends_with_the_window_it_was_earned_in() {
        let events = [
            CongestionEvent::Lost { bytes: SEGMENT },
            CongestionEvent::Timeout { repeated: false },
            CongestionEvent::Idle {
                gap: Duration::from_secs(2),
            },
        ];
        for event in events {
            let mut reno = controller(4, 10, Growth::Bytes);
            for segments in [4, 2, 9] {
                reno.on(&acked(segments * SEGMENT), &path(SEGMENT)); // 8, 10, and 9 of 10 on account
            }
            let mut view = path(SEGMENT);
            view.in_flight_bytes = 10 * SEGMENT;
            reno.on(&event, &view);
            let threshold = reno.snapshot().threshold_bytes.expect("a threshold");
            while reno.window_bytes() < threshold {
                let missing = threshold - reno.window_bytes();
                reno.on(&acked(missing.min(reno.window_bytes())), &path(SEGMENT));
            }
            reno.on(&acked(threshold - SEGMENT), &path(SEGMENT));
            assert_eq!(reno.window_bytes(), threshold, "{event:?}");
            reno.on(&acked(SEGMENT), &path(SEGMENT));
            assert_eq!(reno.window_bytes(), threshold + SEGMENT, "{event:?}");
        }
    }

    #[test]
    fn a_window_the_application_does_not_use_does_not_grow() {
        let mut reno = controller(10, 1000, Growth::Bytes);
        let mut view = path(SEGMENT);
        view.application_limited = true;
        reno.on(&acked(10_000), &view);
        assert_eq!(reno.window_bytes(), 10_000);
    }

    #[test]
    fn pacing_is_twice_the_window_per_round_trip_in_slow_start_and_a_fifth_above_it_later() {
        let mut reno = controller(10, 20, Growth::Bytes);
        assert_eq!(reno.pacing(), None, "no round-trip time is known yet");
        let mut view = path(SEGMENT);
        view.smoothed_rtt = Some(Duration::from_millis(100));
        reno.on(&CongestionEvent::Sent { bytes: SEGMENT }, &view);
        assert_eq!(reno.pacing(), Some(Rate::from_bps(1_600_000)));
        reno.on(&acked(10_000), &view);
        assert_eq!(reno.pacing(), Some(Rate::from_bps(1_920_000)));
    }
}
