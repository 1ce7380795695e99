//! Weighted Vegas: each path keeps its share of a common number of segments in queues, by its share of the rate; paths
//! with longer queues lose segments to the others (Cao, Xu, Fu, ICNP 2012). Losses are answered as Reno answers them.
//! Read [`Vegas`](super::super::Vegas) first: what a round trip delivers and what waits are measured as there.

use super::super::vegas::{Cycle, Cycles};
use super::super::window::{CommonParams, Window, segment_of};
use super::super::{Congestion, CongestionEvent, CongestionSnapshot, Reno};
use super::Paths;
use crate::view::PathView;
use restp_base::time::Duration;
use restp_base::units::Rate;

/// Parameters of [`WVegas`]; values of the paper and its authors' code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WVegasParams {
    /// Start and growth.
    pub common: CommonParams,
    /// Segments that all paths together keep queued. Default 10.
    pub total_alpha_segments: u64,
    /// With more segments queued slow start ends. Default 1.
    pub gamma_segments: u64,
}

impl Default for WVegasParams {
    fn default() -> Self {
        WVegasParams {
            common: CommonParams::default(),
            total_alpha_segments: 10,
            gamma_segments: 1,
        }
    }
}

/// A path keeps this many segments queued however small its share is.
const LEAST_ALPHA: f64 = 2.0;

/// The controller of one of several paths.
#[derive(Clone, Copy, Debug)]
pub struct WVegas {
    params: WVegasParams,
    reno: Reno,
    cycles: Cycles,
    /// Segments this path may keep queued.
    alpha: f64,
    /// The shortest queueing delay since the queue was last drained.
    least_queueing: Option<Duration>,
}

impl WVegas {
    /// A controller at its initial window for segments of `segment_bytes`.
    pub fn new(params: &WVegasParams, segment_bytes: u64) -> Self {
        WVegas {
            params: *params,
            reno: Reno::new(&params.common, segment_bytes),
            cycles: Cycles::default(),
            alpha: LEAST_ALPHA,
            least_queueing: None,
        }
    }

    fn acked(&mut self, bytes: u64, rtt: Option<Duration>, view: &PathView<'_>) {
        match self.cycles.on_acked(bytes, rtt) {
            None => {
                self.reno.window.slow_start(bytes, segment_of(view));
            }
            Some(cycle) if cycle.is_measured() => self.adjust(&cycle, bytes, view),
            Some(_) => self.reno.grow(bytes, segment_of(view)),
        }
    }

    /// Once per round trip.
    fn adjust(&mut self, cycle: &Cycle, bytes: u64, view: &PathView<'_>) {
        let segment = segment_of(view);
        let queued = self.reno.window.bytes.saturating_sub(cycle.actual());
        let queued_segments = queued as f64 / segment as f64;
        if self.reno.window.in_slow_start() {
            if queued <= self.params.gamma_segments.saturating_mul(segment) {
                self.reno.window.slow_start(bytes, segment);
            } else {
                self.reno.window.shrink(queued.saturating_sub(segment), segment);
            }
            return;
        }
        if queued_segments >= self.alpha {
            let paths = Paths::new(self.reno.window.bytes, 0, view);
            let weight = paths.own().rate() / paths.total_rate();
            self.alpha = (weight * self.params.total_alpha_segments as f64).max(LEAST_ALPHA);
        }
        if queued_segments > self.alpha {
            self.reno.window.shrink(segment, segment);
        } else if queued_segments < self.alpha {
            self.reno.window.grow(segment);
        }
        if queued_segments >= self.alpha {
            self.drain(cycle, segment);
        }
    }

    /// A queue twice as long as the shortest seen is drained, so that the shortest round trip stays true: otherwise
    /// whoever comes later takes others' queues for the length of the path. Only queues that hold this path's share count:
    /// beside the empty one of a path that nobody else uses, a packet's own transmission is twice as long.
    fn drain(&mut self, cycle: &Cycle, segment: u64) {
        let base = cycle.base;
        let queueing = cycle.smallest.saturating_sub(base);
        if queueing == Duration::ZERO {
            return;
        }
        let least = *self
            .least_queueing
            .insert(self.least_queueing.unwrap_or(queueing).min(queueing));
        if queueing >= least * 2 {
            let kept = base.as_nanos() as f64 / (2.0 * cycle.smallest.as_nanos() as f64);
            let lost = self.reno.window.bytes as f64 * (1.0 - kept);
            self.reno.window.shrink(lost as u64, segment);
            self.least_queueing = None;
        }
    }
}

impl Congestion for WVegas {
    fn on(&mut self, event: &CongestionEvent, view: &PathView<'_>) {
        match *event {
            CongestionEvent::Sent { bytes } => self.cycles.on_sent(bytes, view),
            CongestionEvent::Acked { bytes, rtt, .. } if Window::may_grow(view) => {
                self.acked(bytes, rtt, view)
            }
            CongestionEvent::Duplicate
            | CongestionEvent::SegmentLost(_)
            | CongestionEvent::Corrupted { .. } => {}
            CongestionEvent::Acked { .. }
            | CongestionEvent::Lost { .. }
            | CongestionEvent::Marked { .. }
            | CongestionEvent::RecoveryEnded
            | CongestionEvent::Timeout { .. }
            | CongestionEvent::Idle { .. }
            | CongestionEvent::Restored => self.cycles.forget(),
            CongestionEvent::RouteChanged => self.cycles = Cycles::default(),
        }
        self.reno.react(event, view, view.in_flight_bytes / 2);
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
    use super::super::super::conformance::{acked_after, path};
    use super::*;
    use crate::view::Sibling;

    const SEGMENT: u64 = 1000;

    /// A round trip of `rtt_ms` over a path of 100 ms beside another one; the window after it.
    fn cycle(wvegas: &mut WVegas, rtt_ms: u64, other_window: u64) -> u64 {
        cycle_beside(wvegas, rtt_ms, other_window, 100)
    }

    /// The same with a round trip of `other_ms` on the other.
    fn cycle_beside(wvegas: &mut WVegas, rtt_ms: u64, other_window: u64, other_ms: u64) -> u64 {
        let window = wvegas.window_bytes();
        let siblings = [Sibling {
            window_bytes: other_window * SEGMENT,
            smoothed_rtt: Duration::from_millis(other_ms),
            ..Sibling::default()
        }];
        let view = PathView {
            in_flight_bytes: window,
            smoothed_rtt: Some(Duration::from_millis(100)),
            min_rtt: Some(Duration::from_millis(100)),
            siblings: &siblings,
            ..path(SEGMENT)
        };
        wvegas.on(&CongestionEvent::Sent { bytes: window }, &view);
        for part in [1, window / SEGMENT - 3, 1, 1] {
            wvegas.on(&acked_after(part * SEGMENT, Duration::from_millis(rtt_ms)), &view);
        }
        wvegas.window_bytes() / SEGMENT
    }

    fn at(segments: u64) -> WVegas {
        let mut wvegas = WVegas::new(&WVegasParams::default(), SEGMENT);
        (wvegas.reno.window.bytes, wvegas.reno.window.threshold) = (segments * SEGMENT, SEGMENT);
        wvegas.cycles.base = Some(Duration::from_millis(100));
        wvegas
    }

    #[test]
    fn a_path_keeps_its_share_of_ten_segments_queued() {
        // Window 40: of 140 ms 40 wait, 11.4 segments. Weight 40/(40+40): 5 are allowed, so one fewer.
        assert_eq!(cycle(&mut at(40), 140, 40), 39);
        // 1.9 of 40 segments wait at 105 ms: fewer than the least of 2.
        assert_eq!(cycle(&mut at(40), 105, 40), 41);
        // Weight 40/(40+10) = 0.8: eight are allowed, and 125 ms mean exactly 8 segments.
        assert_eq!(cycle(&mut at(40), 125, 10), 40);
    }

    /// ICNP 2012: a path's weight is its share of the rate, not of the windows.
    #[test]
    fn a_slower_path_with_the_same_window_has_half_the_weight() {
        // Of 119 ms 19 wait: 6.4 of 40 segments. Rates of 400 and 200 segments a second: 6.7 are allowed; by windows, 5.
        assert_eq!(cycle_beside(&mut at(40), 119, 40, 200), 41);
        // Beside a path of 50 ms, a third: 3.3; of 110 ms 3.6 segments wait.
        assert_eq!(cycle_beside(&mut at(40), 110, 40, 50), 39);
    }

    /// γ = 1: with more waiting slow start ends, at what the path holds and one segment.
    #[test]
    fn slow_start_ends_with_more_than_one_segment_queued() {
        let slow_start = |rtt_ms| {
            let mut wvegas = at(20);
            wvegas.reno.window.threshold = u64::MAX;
            let view = PathView {
                in_flight_bytes: 20 * SEGMENT,
                ..path(SEGMENT)
            };
            wvegas.on(&CongestionEvent::Sent { bytes: 39 * SEGMENT }, &view);
            for segments in [1, 17, 1, 1] {
                wvegas.on(
                    &acked_after(segments * SEGMENT, Duration::from_millis(rtt_ms)),
                    &view,
                );
            }
            (wvegas.window_bytes(), wvegas.snapshot().state)
        };
        // The window is 39 when the cycle ends; 39 · 100/102 = 38.2 and 39 · 100/105 = 37.1 of it are on the path.
        assert_eq!(slow_start(102), (40_000, "slow-start"));
        assert_eq!(slow_start(105), (38_142, "avoidance"));
    }

    #[test]
    fn a_loss_leaves_half_of_what_was_in_flight() {
        let mut wvegas = at(40);
        let view = PathView {
            in_flight_bytes: 30 * SEGMENT,
            ..path(SEGMENT)
        };
        wvegas.on(&CongestionEvent::Lost { bytes: SEGMENT }, &view);
        assert_eq!(wvegas.window_bytes(), 15 * SEGMENT);
    }

    #[test]
    fn a_queue_that_has_doubled_is_drained() {
        let mut wvegas = at(40);
        assert_eq!(cycle(&mut wvegas, 115, 40), 39, "5.2 wait, 5 may");
        // Queueing went from 15 to 30 ms: 100/260 of the window is kept, after the step of one segment.
        assert_eq!(cycle(&mut wvegas, 130, 40), (39 - 1) * 100 / 260);
    }

    #[test]
    fn a_queue_below_its_share_is_no_queue_to_drain() {
        let mut wvegas = at(40);
        assert_eq!(cycle(&mut wvegas, 101, 40), 41);
        assert_eq!(
            cycle(&mut wvegas, 104, 40),
            42,
            "four times as long, and yet 1.6 segments of two"
        );
    }
}
