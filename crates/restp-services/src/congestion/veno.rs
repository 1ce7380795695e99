//! Veno: Reno that takes a loss for random while Vegas' measure finds no queue. Fu, Liew 2003, §III.

use super::window::{CommonParams, Window, segment_of};
use super::{Congestion, CongestionEvent, CongestionSnapshot, Reno};
use crate::view::PathView;
use restp_base::time::Duration;
use restp_base::units::Rate;

/// Parameters of [`Veno`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VenoParams {
    /// Start and growth.
    pub common: CommonParams,
    /// β: from so many segments in the queue on, the path is taken for congested. Default 3, which the authors found
    /// by experiment.
    pub beta_segments: u64,
}

impl Default for VenoParams {
    fn default() -> Self {
        VenoParams {
            common: CommonParams::default(),
            beta_segments: 3,
        }
    }
}

/// The Veno controller.
#[derive(Clone, Copy, Debug)]
pub struct Veno {
    beta_segments: u64,
    reno: Reno,
    /// The smallest round-trip time since the last loss, because the traffic of others changes (§III.A).
    base: Option<Duration>,
    /// The last acknowledgement on a congested path counted, so the next does not.
    counted: bool,
}

impl Veno {
    /// A controller at its initial window for segments of `segment_bytes`.
    pub fn new(params: &VenoParams, segment_bytes: u64) -> Self {
        Veno {
            beta_segments: params.beta_segments,
            reno: Reno::new(&params.common, segment_bytes),
            base: None,
            counted: false,
        }
    }

    /// N ≥ β, with N = cwnd · (RTT − BaseRTT) / RTT. Without a measurement every loss is congestion.
    fn is_congested(&self, view: &PathView<'_>) -> bool {
        let (Some(base), Some(rtt)) = (self.base, view.smoothed_rtt) else {
            return true;
        };
        let beyond = u128::from(rtt.as_nanos().saturating_sub(base.as_nanos()));
        let queued = u128::from(self.reno.window.bytes) * beyond / u128::from(rtt.as_nanos().max(1));
        queued >= u128::from(self.beta_segments) * u128::from(segment_of(view))
    }

    fn acked(&mut self, bytes: u64, view: &PathView<'_>) {
        // On a congested path every other acknowledgement counts (§III.B). Slow start is Reno's.
        let slow = !self.reno.window.in_slow_start() && self.base.is_some() && self.is_congested(view);
        self.counted = slow && !self.counted;
        if !slow || self.counted {
            self.reno.grow(bytes, segment_of(view));
        }
    }

    /// The threshold of a reduction (§III.C): a random loss costs a fifth, anything else half.
    fn target(&self, event: &CongestionEvent, view: &PathView<'_>) -> u64 {
        let lost = matches!(event, CongestionEvent::Lost { .. });
        if lost && !self.is_congested(view) {
            view.in_flight_bytes - view.in_flight_bytes / 5
        } else {
            view.in_flight_bytes / 2
        }
    }
}

impl Congestion for Veno {
    fn on(&mut self, event: &CongestionEvent, view: &PathView<'_>) {
        if let CongestionEvent::Acked { bytes, rtt, .. } = *event {
            if let Some(rtt) = rtt {
                self.base = Some(self.base.map_or(rtt, |base| base.min(rtt)));
            }
            if Window::may_grow(view) {
                self.acked(bytes, view);
            }
        }
        let target = self.target(event, view);
        self.reno.react(event, view, target);
        if let CongestionEvent::Lost { .. } | CongestionEvent::Timeout { .. } = event {
            self.base = None;
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
    use super::super::conformance::{acked_after, path};
    use super::*;

    const SEGMENT: u64 = 1000;
    const BASE: Duration = Duration::from_millis(100);

    /// In avoidance with a window of 20 segments and a shortest round trip of 100 ms.
    fn at_20_segments() -> Veno {
        let params = VenoParams {
            common: CommonParams {
                initial_threshold_bytes: 20 * SEGMENT,
                ..CommonParams::default()
            },
            ..VenoParams::default()
        };
        let mut veno = Veno::new(&params, SEGMENT);
        veno.on(&acked_after(10 * SEGMENT, BASE), &view(100));
        assert_eq!(veno.window_bytes(), 20 * SEGMENT);
        veno
    }

    fn view(rtt_ms: u64) -> PathView<'static> {
        PathView {
            smoothed_rtt: Some(Duration::from_millis(rtt_ms)),
            in_flight_bytes: 20 * SEGMENT,
            ..path(SEGMENT)
        }
    }

    #[test]
    fn a_loss_without_a_queue_costs_a_fifth_and_with_one_half() {
        // N = 20 · 17/117 = 2.9 and 20 · 18/118 = 3.05, against β = 3.
        for (rtt_ms, window) in [(100, 16_000), (117, 16_000), (118, 10_000), (200, 10_000)] {
            let mut veno = at_20_segments();
            veno.on(&CongestionEvent::Lost { bytes: SEGMENT }, &view(rtt_ms));
            assert_eq!(veno.window_bytes(), window, "{rtt_ms} ms");
        }
    }

    #[test]
    fn with_a_queue_the_window_grows_half_as_fast() {
        let rounds = |rtt_ms: u64| {
            let mut veno = at_20_segments();
            for _ in 0..40 {
                veno.on(&acked_after(SEGMENT, BASE), &view(rtt_ms));
            }
            veno.window_bytes()
        };
        // 40 segments: 20 for the first step, 20 of 21 for the second; on the congested path half of them.
        assert_eq!((rounds(100), rounds(200)), (21_000, 21_000));
        let mut veno = at_20_segments();
        for _ in 0..20 {
            veno.on(&acked_after(SEGMENT, BASE), &view(200));
        }
        assert_eq!(veno.window_bytes(), 20_000, "a round trip is not enough");
        let mut veno = at_20_segments();
        for _ in 0..20 {
            veno.on(&acked_after(SEGMENT, BASE), &view(100));
        }
        assert_eq!(veno.window_bytes(), 21_000);
    }

    #[test]
    fn marks_and_timeouts_are_congestion_whatever_the_queue() {
        let mut veno = at_20_segments();
        veno.on(&CongestionEvent::Marked { bytes: SEGMENT }, &view(100));
        assert_eq!(veno.window_bytes(), 10_000);
        let mut veno = at_20_segments();
        veno.on(&CongestionEvent::Timeout { repeated: false }, &view(100));
        assert_eq!(
            (veno.window_bytes(), veno.snapshot().threshold_bytes),
            (1000, Some(10_000))
        );
    }

    #[test]
    fn the_base_is_measured_anew_after_a_loss() {
        let mut veno = at_20_segments();
        veno.on(&CongestionEvent::Lost { bytes: SEGMENT }, &view(100));
        veno.on(&acked_after(SEGMENT, Duration::from_millis(190)), &view(200));
        let mut later = view(200);
        later.in_flight_bytes = 15 * SEGMENT;
        veno.on(&CongestionEvent::Lost { bytes: SEGMENT }, &later); // N = 16 · 10/200 = 0.8
        assert_eq!(veno.window_bytes(), 12_000);
        veno.on(&CongestionEvent::Lost { bytes: SEGMENT }, &later);
        assert_eq!(veno.window_bytes(), 7500, "nothing measured since, so congestion");
    }
}
