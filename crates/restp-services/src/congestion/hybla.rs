//! TCP Hybla: a path with a long round trip gets the rate, and the growth of the rate, of a reference path with a short
//! one. Caini, Firrincieli 2004 (Int. J. Satell. Commun. Network. 22); read its §3 first. Losses are answered as Reno
//! answers them.
//!
//! With ρ = RTT / RTT0, at least 1, initial window and first threshold count ρ times, slow start adds 2^ρ − 1 segments per
//! segment acknowledged, avoidance ρ² segments per window. On the reference path, and on shorter ones, it is NewReno.

use super::window::{CommonParams, Window, segment_of};
use super::{Congestion, CongestionEvent, CongestionSnapshot, Reno};
use crate::view::PathView;
use restp_base::time::Duration;
use restp_base::units::Rate;

/// Parameters of [`Hybla`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HyblaParams {
    /// Start and growth, as on the reference path. The first threshold is 65 535 bytes by default (RFC 2001 §1): without
    /// one, slow start on a path with ρ = 10 adds a thousand segments for each that arrives.
    pub common: CommonParams,
    /// RTT0: round trip of the reference path. Default 25 ms, that of the paper and of Linux.
    pub reference_rtt: Duration,
}

impl Default for HyblaParams {
    fn default() -> Self {
        HyblaParams {
            common: CommonParams {
                initial_threshold_bytes: 65_535,
                ..CommonParams::default()
            },
            reference_rtt: Duration::from_millis(25),
        }
    }
}

/// Slow start counts ρ up to this, as Linux does: 2^16 segments for one are more than any window.
const LARGEST_EXPONENT: f64 = 16.0;

/// ρ of a round trip of 60 s, which no timer waits for (RFC 6298 §2.5).
const LARGEST_RHO: f64 = 2400.0;

/// The Hybla controller.
#[derive(Clone, Copy, Debug)]
pub struct Hybla {
    params: HyblaParams,
    reno: Reno,
    /// The initial window and the first threshold still count once, because no round trip was measured yet.
    unscaled: bool,
}

impl Hybla {
    /// A controller at its initial window for segments of `segment_bytes`.
    pub fn new(params: &HyblaParams, segment_bytes: u64) -> Self {
        Hybla {
            params: *params,
            reno: Reno::new(&params.common, segment_bytes),
            unscaled: true,
        }
    }

    /// ρ of the shortest round trip: one that counted queues would grow faster the more it has queued.
    fn rho(&self, view: &PathView<'_>) -> f64 {
        let reference = self.params.reference_rtt.as_nanos().max(1) as f64;
        let rtt = view.min_rtt.map_or(0, Duration::as_nanos) as f64;
        (rtt / reference).clamp(1.0, LARGEST_RHO)
    }

    fn acked(&mut self, bytes: u64, view: &PathView<'_>) {
        let (rho, segment) = (self.rho(view), segment_of(view));
        if self.unscaled && view.min_rtt.is_some() {
            self.scale(rho);
        }
        let left = self.slow_start(rho, bytes, segment);
        if left > 0 {
            self.reno.grow_by(rho * rho, left, segment);
        }
    }

    /// The first acknowledgement brings what a start ρ times as wide would have had: the first flight itself stays at ten
    /// segments (OP-33).
    fn scale(&mut self, rho: f64) {
        let window = &mut self.reno.window;
        window.grow((window.bytes as f64 * (rho - 1.0)) as u64);
        window.threshold = (window.threshold as f64 * rho) as u64; // unlimited stays unlimited
        self.unscaled = false;
    }

    /// 2^ρ − 1 segments per segment up to the threshold; returns what is left of `acked` for avoidance.
    fn slow_start(&mut self, rho: f64, acked: u64, segment: u64) -> u64 {
        let window = &mut self.reno.window;
        if !window.in_slow_start() {
            return acked;
        }
        let worth = window.worth(acked, segment);
        let gain = power_of_two(rho.min(LARGEST_EXPONENT)) - 1.0;
        let room = window.threshold - window.bytes;
        let step = (worth as f64 * gain) as u64;
        window.grow(step.min(room));
        if step <= room {
            return 0;
        }
        worth.saturating_sub((room as f64 / gain) as u64)
    }
}

/// 2^x for x ≥ 0 by squares and square roots: the same bits on every machine.
fn power_of_two(x: f64) -> f64 {
    let whole = x as u32;
    let mut power = (0..whole).fold(1.0, |power, _| 2.0 * power);
    let (mut fraction, mut root) = (x - f64::from(whole), 2.0_f64);
    for _ in 0..52 {
        (fraction, root) = (2.0 * fraction, root.sqrt());
        if fraction >= 1.0 {
            (fraction, power) = (fraction - 1.0, power * root);
        }
    }
    power
}

impl Congestion for Hybla {
    fn on(&mut self, event: &CongestionEvent, view: &PathView<'_>) {
        match *event {
            CongestionEvent::Acked { bytes, .. } if Window::may_grow(view) => self.acked(bytes, view),
            // What the network says counts more than a first guess.
            CongestionEvent::Lost { .. }
            | CongestionEvent::Marked { .. }
            | CongestionEvent::Timeout { .. } => self.unscaled = false,
            _ => {}
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
    use super::super::conformance::{acked, path};
    use super::*;

    const SEGMENT: u64 = 1000;

    /// A window and a threshold in segments, as on the reference path.
    fn controller(window: u64, threshold: u64) -> Hybla {
        let params = HyblaParams {
            common: CommonParams {
                initial_window_segments: window,
                initial_threshold_bytes: threshold.saturating_mul(SEGMENT),
                ..CommonParams::default()
            },
            ..HyblaParams::default()
        };
        Hybla::new(&params, SEGMENT)
    }

    fn after(rtt_ms: u64) -> PathView<'static> {
        let rtt = Some(Duration::from_millis(rtt_ms));
        PathView {
            smoothed_rtt: rtt,
            min_rtt: rtt,
            ..path(SEGMENT)
        }
    }

    /// A round trip: every segment of the window is acknowledged by itself. The window after it, in segments.
    fn round(hybla: &mut Hybla, rtt_ms: u64) -> u64 {
        for _ in 0..hybla.window_bytes() / SEGMENT {
            hybla.on(&acked(SEGMENT), &after(rtt_ms));
        }
        hybla.window_bytes() / SEGMENT
    }

    /// In avoidance from the start, with `window` segments on this path.
    fn in_avoidance(window: u64, rtt_ms: u64) -> Hybla {
        let mut hybla = controller(10, 1);
        hybla.unscaled = false;
        hybla.reno.window.bytes = window * SEGMENT;
        hybla.on(&CongestionEvent::Sent { bytes: SEGMENT }, &after(rtt_ms));
        hybla
    }

    #[test]
    fn powers_of_two_are_right() {
        for x in [0.0, 0.5, 1.0, 1.2, 4.0, 7.3, 15.999, 16.0] {
            assert!((power_of_two(x) / x.exp2() - 1.0).abs() < 1e-13, "{x}");
        }
        assert_eq!((power_of_two(1.0), power_of_two(16.0)), (2.0, 65_536.0));
    }

    /// Caini, Firrincieli 2004 (5): W(t) = ρ 2^(ρt/RTT) W(0). In a round trip the window counts 2^ρ times: ρ is 1, 2 and 4.
    #[test]
    fn slow_start_adds_two_to_the_rho_less_one_for_each_segment() {
        for (rtt, windows) in [(25, [4, 8, 16]), (50, [10, 40, 160]), (100, [38, 608, 9728])] {
            let mut hybla = controller(2, u64::MAX);
            assert_eq!([0; 3].map(|_| round(&mut hybla, rtt)), windows, "{rtt} ms");
        }
    }

    /// (5): in avoidance ρ² segments more per round trip.
    #[test]
    fn avoidance_adds_rho_squared_per_round_trip() {
        for (rtt, more) in [(25, 1), (50, 4), (75, 9), (250, 100), (600, 576)] {
            let mut hybla = in_avoidance(1000, rtt);
            hybla.on(&acked(1000 * SEGMENT), &after(rtt));
            assert_eq!(hybla.window_bytes(), (1000 + more) * SEGMENT, "{rtt} ms");
        }
    }

    /// The aim of the paper (§3.1): the rate W / RTT after the same time is the same whatever the round trip, in slow start
    /// and in avoidance. After 600 ms, from 2 segments on the reference path and a threshold of 40 there.
    #[test]
    fn the_rate_does_not_depend_on_the_round_trip() {
        let rate = |rtt_ms: u64| {
            let mut hybla = controller(2, 40);
            hybla.scale(hybla.rho(&after(rtt_ms)));
            for _ in 0..600 / rtt_ms {
                round(&mut hybla, rtt_ms);
            }
            hybla.window_bytes() as f64 / rtt_ms as f64
        };
        let reference = rate(25);
        for rtt_ms in [50, 100, 150, 300] {
            let share = rate(rtt_ms) / reference;
            assert!((0.85..1.15).contains(&share), "{rtt_ms} ms: {share}");
        }
    }

    #[test]
    fn window_and_threshold_begin_rho_times_as_wide() {
        let mut hybla = controller(2, 32);
        hybla.on(&CongestionEvent::Sent { bytes: SEGMENT }, &after(100));
        assert_eq!(
            hybla.window_bytes(),
            2 * SEGMENT,
            "the first flight waits for evidence"
        );
        hybla.on(&acked(1), &after(100));
        assert_eq!(hybla.snapshot().threshold_bytes, Some(4 * 32 * SEGMENT));
        assert_eq!(hybla.window_bytes(), 4 * 2 * SEGMENT + 15);
        hybla.on(&acked(1), &after(100));
        assert_eq!(hybla.window_bytes(), 4 * 2 * SEGMENT + 30, "once");
        let mut lost = controller(2, 32);
        let view = PathView {
            in_flight_bytes: 2 * SEGMENT,
            ..after(100)
        };
        lost.on(&CongestionEvent::Timeout { repeated: false }, &view);
        lost.on(&acked(1), &after(100));
        assert_eq!(
            lost.snapshot().threshold_bytes,
            Some(2 * SEGMENT),
            "a loss says more"
        );
    }

    #[test]
    fn slow_start_ends_at_the_threshold_and_the_rest_counts_for_avoidance() {
        let mut hybla = controller(2, 4);
        hybla.scale(2.0);
        hybla.on(&acked(4 * SEGMENT), &after(50)); // 4/3 segments lead from 4 to 8, 8/3 count four times
        assert_eq!(hybla.window_bytes(), 8 * SEGMENT + SEGMENT);
    }

    #[test]
    fn on_the_reference_path_and_on_shorter_ones_it_is_newreno() {
        for rtt_ms in [1, 10, 25] {
            let mut hybla = controller(4, 16);
            let mut reno = Reno::new(&hybla.params.common, SEGMENT);
            let mut lossy = restp_base::random::Stream::named(rtt_ms, "acknowledgements");
            for _ in 0..1000 {
                let bytes = lossy.below(3 * SEGMENT);
                let event = if lossy.chance(0.02) {
                    CongestionEvent::Lost { bytes }
                } else {
                    acked(bytes)
                };
                let view = PathView {
                    in_flight_bytes: hybla.window_bytes(),
                    ..after(rtt_ms)
                };
                hybla.on(&event, &view);
                reno.on(&event, &view);
                assert_eq!(hybla.snapshot(), reno.snapshot(), "{rtt_ms} ms, {event:?}");
            }
        }
    }

    #[test]
    fn a_loss_halves_and_before_a_round_trip_is_known_rho_is_one() {
        let mut hybla = in_avoidance(100, 600);
        let view = PathView {
            in_flight_bytes: 100 * SEGMENT,
            ..after(600)
        };
        hybla.on(&CongestionEvent::Lost { bytes: SEGMENT }, &view);
        assert_eq!(hybla.window_bytes(), 50 * SEGMENT);
        let mut unknown = controller(2, u64::MAX);
        unknown.on(&acked(2 * SEGMENT), &path(SEGMENT));
        assert_eq!(unknown.window_bytes(), 4 * SEGMENT);
    }
}
