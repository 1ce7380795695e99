//! Illinois: losses say when to cut, the queueing delay how much, and how far to step. Liu, Başar, Srikant,
//! VALUETOOLS 2006. Below 15 segments it is Reno.

use super::round::Round;
use super::window::{CommonParams, Window, segment_of};
use super::{Congestion, CongestionEvent, CongestionSnapshot, Reno};
use crate::view::PathView;
use restp_base::time::Duration;
use restp_base::units::Rate;

/// α between these, in segments per round trip; β between these (§3.3 of the paper).
const LEAST_STEP: f64 = 0.3;
const MOST_STEP: f64 = 10.0;
const LEAST_CUT: f64 = 0.125;
const MOST_CUT: f64 = 0.5;
/// η₁, η₂, η₃: shares of the largest queueing delay that bound the parts of both curves.
const STEP_FROM: f64 = 0.01;
const CUT_FROM: f64 = 0.1;
const CUT_TO: f64 = 0.8;
/// θ: round trips with an empty queue before α is largest again.
const EMPTY_ROUNDS: u32 = 5;
/// W_thresh, in segments.
const LEGACY_SEGMENTS: u64 = 15;

/// α(d) for an average queueing delay `d` where `most` is the largest seen: κ₁ / (κ₂ + d) (equation 1).
fn step(d: f64, most: f64) -> f64 {
    let from = STEP_FROM * most;
    if d <= from {
        return MOST_STEP;
    }
    let span = (most - from) * LEAST_STEP / (MOST_STEP - LEAST_STEP);
    span * MOST_STEP / (span - from + d)
}

/// β(d): κ₃ + κ₄ d between its bounds (equation 2).
fn cut(d: f64, most: f64) -> f64 {
    let (from, to) = (CUT_FROM * most, CUT_TO * most);
    if d <= from {
        LEAST_CUT
    } else if d >= to {
        MOST_CUT
    } else {
        LEAST_CUT + (MOST_CUT - LEAST_CUT) * (d - from) / (to - from)
    }
}

/// The Illinois controller. Its parameters are the common ones.
#[derive(Clone, Copy, Debug)]
pub struct Illinois {
    reno: Reno,
    round: Round,
    /// Sum and number of the running round's samples.
    sum: Duration,
    samples: u64,
    /// Largest round trip seen.
    longest: Duration,
    /// Rounds in a row with an empty queue.
    empty_rounds: u32,
    step: f64,
    cut: f64,
}

impl Illinois {
    /// A controller at its initial window for segments of `segment_bytes`.
    pub fn new(params: &CommonParams, segment_bytes: u64) -> Self {
        Illinois {
            reno: Reno::new(params, segment_bytes),
            round: Round::default(),
            sum: Duration::ZERO,
            samples: 0,
            longest: Duration::ZERO,
            empty_rounds: 0,
            step: 1.0,
            cut: MOST_CUT,
        }
    }

    fn acked(&mut self, bytes: u64, rtt: Option<Duration>, view: &PathView<'_>) {
        if let Some(rtt) = rtt.map(|rtt| rtt.min(LONGEST)) {
            self.sum += rtt;
            self.samples += 1;
            self.longest = self.longest.max(rtt);
        }
        if self.round.ends(bytes, view.in_flight_bytes) {
            self.judge(view);
        }
        self.reno.grow_by(self.step, bytes, segment_of(view));
    }

    /// Once per round trip (§3.3).
    fn judge(&mut self, view: &PathView<'_>) {
        let (sum, samples) = (std::mem::take(&mut self.sum), std::mem::take(&mut self.samples));
        let (Some(base), true) = (view.min_rtt, samples > 0) else {
            return;
        };
        let seconds = |rtt: Duration| rtt.saturating_sub(base).as_nanos() as f64;
        let (d, most) = (seconds(sum / samples), seconds(self.longest));
        if self.reno.window.bytes < LEGACY_SEGMENTS * segment_of(view) {
            (self.step, self.cut) = (1.0, MOST_CUT);
            return;
        }
        self.cut = cut(d, most);
        let wanted = step(d, most);
        let empty = d <= STEP_FROM * most;
        self.empty_rounds = if empty { self.empty_rounds + 1 } else { 0 };
        // One short round trip among long ones is noise; a queue seen small for long is not.
        if !empty || self.empty_rounds >= EMPTY_ROUNDS || self.step == MOST_STEP {
            self.step = wanted;
        }
        self.empty_rounds = self.empty_rounds.min(EMPTY_ROUNDS);
    }
}

/// Longer samples are taken as this one, so that no sum of them overflows.
const LONGEST: Duration = Duration::from_secs(60);

impl Congestion for Illinois {
    fn on(&mut self, event: &CongestionEvent, view: &PathView<'_>) {
        let target = match *event {
            CongestionEvent::Acked { bytes, rtt, .. } if Window::may_grow(view) => {
                self.acked(bytes, rtt, view);
                0
            }
            CongestionEvent::Lost { .. } | CongestionEvent::Marked { .. } => {
                (view.in_flight_bytes as f64 * (1.0 - self.cut)) as u64
            }
            _ => view.in_flight_bytes / 2,
        };
        if let CongestionEvent::Timeout { .. } = event {
            (self.step, self.cut, self.empty_rounds) = (1.0, MOST_CUT, 0);
        }
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
    use super::super::conformance::{acked_after, path};
    use super::*;

    const SEGMENT: u64 = 1000;

    #[test]
    fn the_curves_meet_their_bounds() {
        assert_eq!((step(0.0, 100.0), step(1.0, 100.0)), (10.0, 10.0));
        assert!((step(100.0, 100.0) - 0.3).abs() < 1e-9);
        // κ₁ = 99 · 3 / 9.7 = 30.619, κ₂ = 99 · 0.3 / 9.7 − 1 = 2.0619: α(10) = 30.619 / 12.0619.
        assert!((step(10.0, 100.0) - 2.5385).abs() < 1e-4);
        assert!(step(1.000_001, 100.0) > 9.99, "no jump");
        assert_eq!((cut(10.0, 100.0), cut(80.0, 100.0)), (0.125, 0.5));
        assert!((cut(45.0, 100.0) - 0.3125).abs() < 1e-12, "half way");
    }

    /// In avoidance with 100 segments; shortest round trip 100 ms.
    fn at_100_segments() -> Illinois {
        let mut illinois = Illinois::new(&CommonParams::default(), SEGMENT);
        (illinois.reno.window.bytes, illinois.reno.window.threshold) = (100 * SEGMENT, 100 * SEGMENT);
        illinois
    }
    fn view(illinois: &Illinois) -> PathView<'static> {
        PathView {
            min_rtt: Some(Duration::from_millis(100)),
            in_flight_bytes: illinois.window_bytes(),
            ..path(SEGMENT)
        }
    }
    fn round(illinois: &mut Illinois, ms: u64) {
        let (bytes, view) = (illinois.window_bytes(), view(illinois));
        illinois.on(&acked_after(bytes, Duration::from_millis(ms)), &view);
    }

    #[test]
    fn a_full_queue_means_small_steps_and_a_large_cut() {
        let mut illinois = at_100_segments();
        round(&mut illinois, 200);
        assert!((illinois.step - 0.3).abs() < 1e-9 && illinois.cut == 0.5);
        let view = view(&illinois);
        illinois.on(&CongestionEvent::Lost { bytes: SEGMENT }, &view);
        assert_eq!(illinois.window_bytes(), view.in_flight_bytes / 2);
    }

    #[test]
    fn an_empty_queue_means_large_steps_once_five_rounds_say_so_and_a_small_cut() {
        let mut illinois = at_100_segments();
        round(&mut illinois, 200);
        for _ in 1..5 {
            round(&mut illinois, 100);
            assert!(illinois.step < 1.0, "noise, perhaps");
        }
        round(&mut illinois, 100);
        assert_eq!((illinois.step, illinois.cut), (10.0, 0.125));
        let before = illinois.window_bytes();
        round(&mut illinois, 100);
        assert_eq!(illinois.window_bytes() - before, 10 * SEGMENT);
    }

    #[test]
    fn below_fifteen_segments_it_is_reno() {
        let mut illinois = at_100_segments();
        illinois.reno.window.bytes = 12 * SEGMENT;
        illinois.reno.window.threshold = 12 * SEGMENT;
        round(&mut illinois, 100);
        assert_eq!((illinois.step, illinois.cut), (1.0, 0.5));
    }
}
