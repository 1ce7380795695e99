//! CUBIC: the window is a cubic function of the time since the last reduction. RFC 9438; read its §4 first.
//!
//! The curve is computed in floating point by + − × ÷ alone, which IEEE 754 rounds alike everywhere, and K by
//! an integer cube root: two machines agree bit for bit.

use super::window::{Growth, Window, segment_of};
use super::{Congestion, CongestionEvent, CongestionSnapshot};
use crate::view::PathView;
use restp_base::numeric::cube_root;
use restp_base::time::{Duration, Time};
use restp_base::units::Rate;

/// C, in segments per cubic second (RFC 9438 §5).
const C: f64 = 0.4;
/// α of the Reno-friendly region, 3 (1 − β) / (1 + β) with β = 0.7 (RFC 9438 §4.3).
const ALPHA: f64 = 9.0 / 17.0;

/// Parameters of [`Cubic`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CubicParams {
    /// First window in segments, 1 to 10 (OP-33); values outside are taken as the nearest bound. Default 10
    /// (RFC 6928).
    pub initial_window_segments: u64,
    /// First slow start threshold in bytes. Default `u64::MAX`, arbitrarily high (RFC 5681 §3.1).
    pub initial_threshold_bytes: u64,
    /// Make room for new flows when the window shrinks from loss to loss (RFC 9438 §4.7). Default on.
    pub fast_convergence: bool,
    /// What an acknowledgement is worth. Default [`Growth::Bytes`].
    pub growth: Growth,
}

impl Default for CubicParams {
    fn default() -> Self {
        CubicParams {
            initial_window_segments: 10,
            initial_threshold_bytes: u64::MAX,
            fast_convergence: true,
            growth: Growth::default(),
        }
    }
}

/// The CUBIC controller.
#[derive(Clone, Copy, Debug)]
pub struct Cubic {
    fast_convergence: bool,
    state: State,
    /// The state before the last reduction (RFC 9438 §4.9).
    before: Option<State>,
    /// When acknowledgements last counted: silence after it does not move the curve.
    clock: Time,
}

#[derive(Clone, Copy, Debug)]
struct State {
    window: Window,
    /// The window before the last reduction in bytes, less when converging fast; 0 for none, so that the next
    /// stage of avoidance begins at the plateau.
    maximum: u64,
    /// The window when the threshold was last set: cwnd_prior.
    prior: u64,
    /// The running stage of congestion avoidance.
    stage: Option<Stage>,
}

/// One stage of congestion avoidance.
#[derive(Clone, Copy, Debug)]
struct Stage {
    began: Time,
    /// K in seconds: when the curve reaches its plateau.
    plateau_after: f64,
    /// W_max in bytes: the height of the plateau.
    plateau: f64,
    /// W_est in bytes: where Reno would be.
    estimate: f64,
    /// Growth owed, in bytes times the window.
    credit: u128,
}

impl Cubic {
    /// A controller at its initial window for segments of `segment_bytes`.
    pub fn new(params: &CubicParams, segment_bytes: u64) -> Self {
        let CubicParams {
            initial_window_segments,
            initial_threshold_bytes,
            fast_convergence,
            growth,
        } = *params;
        let window = Window::new(
            initial_window_segments,
            initial_threshold_bytes,
            growth,
            segment_bytes,
        );
        let state = State {
            window,
            maximum: 0,
            prior: 0,
            stage: None,
        };
        Cubic {
            fast_convergence,
            state,
            before: None,
            clock: Time::ZERO,
        }
    }

    fn acked(&mut self, bytes: u64, view: &PathView) {
        let segment = segment_of(view);
        let State {
            window,
            maximum,
            prior,
            stage,
        } = &mut self.state;
        let acked = window.slow_start(bytes, segment).min(window.bytes);
        if window.in_slow_start() {
            *stage = None;
        } else if acked > 0 {
            let stage = stage.get_or_insert_with(|| Stage::begin(view.now, window.bytes, *maximum, segment));
            stage.grow(window, acked, *prior, segment, view);
        }
    }

    /// RFC 9438 §4.6 and §4.7. `floor` is 1 segment for marks, 2 for losses: a mark tells of a queue, and with
    /// one segment it may still be too long.
    fn reduce(&mut self, view: &PathView, floor: u64) {
        self.before = Some(self.state);
        let State {
            window,
            maximum,
            prior,
            stage,
        } = &mut self.state;
        *prior = window.bytes;
        *maximum = if self.fast_convergence && window.bytes < *maximum {
            window.bytes * 17 / 20 // (1 + β) / 2
        } else {
            window.bytes
        };
        *stage = None;
        let target = beta(view.in_flight_bytes);
        window.cut(target, segment_of(view));
        window.bytes = window.bytes.min(target.max(floor));
    }

    /// RFC 9438 §4.8: as Reno, with β for the threshold; the next stage begins at its own plateau.
    fn timeout(&mut self, repeated: bool, view: &PathView) {
        if !repeated {
            self.before = Some(self.state);
            self.state.prior = self.state.window.bytes;
        }
        self.state.maximum = 0;
        self.state.stage = None;
        self.state
            .window
            .collapse((!repeated).then(|| beta(view.in_flight_bytes)), segment_of(view));
    }

    /// Time in which the window was not in use does not count for the curve (RFC 9438 §5.8).
    fn skip(&mut self, now: Time) {
        if let Some(stage) = &mut self.state.stage {
            stage.began += now.since(self.clock);
        }
        self.clock = now;
    }
}

impl Congestion for Cubic {
    fn on(&mut self, event: &CongestionEvent, view: &PathView) {
        let segment = segment_of(view);
        match *event {
            CongestionEvent::Sent { bytes } => {
                if view.in_flight_bytes <= bytes {
                    self.skip(view.now); // the first segment after a silence
                }
            }
            CongestionEvent::Acked { bytes, .. } => {
                if view.application_limited {
                    self.skip(view.now);
                }
                if Window::may_grow(view) {
                    self.acked(bytes, view);
                }
                self.clock = view.now;
            }
            CongestionEvent::Lost { .. } => self.reduce(view, 2 * segment),
            CongestionEvent::Marked { .. } => self.reduce(view, segment),
            CongestionEvent::RecoveryEnded => self.state.window.recovery_ended(),
            CongestionEvent::Timeout { repeated } => self.timeout(repeated, view),
            CongestionEvent::Idle { .. } => {
                self.skip(view.now);
                self.state.window.restart(segment);
            }
            CongestionEvent::Restored => {
                if let Some(before) = self.before.take() {
                    let now = self.state.window;
                    self.state = before;
                    self.state.window.restore(&now);
                }
            }
        }
        self.state.window.settle(view);
    }
    fn window_bytes(&self) -> u64 {
        self.state.window.bytes
    }
    fn pacing(&self) -> Option<Rate> {
        self.state.window.pacing()
    }
    fn snapshot(&self) -> CongestionSnapshot {
        self.state.window.snapshot()
    }
}

impl Stage {
    fn begin(now: Time, window: u64, maximum: u64, segment: u64) -> Self {
        Stage {
            began: now,
            plateau_after: seconds_to_climb(maximum.saturating_sub(window), segment),
            plateau: maximum.max(window) as f64,
            estimate: window as f64,
            credit: 0,
        }
    }

    /// W_cubic in bytes, `after` the beginning of the stage (RFC 9438 §4.2, Figure 1).
    fn curve(&self, after: Duration, segment: u64) -> f64 {
        let t = after.as_nanos() as f64 / 1e9 - self.plateau_after;
        self.plateau + C * t * t * t * segment as f64
    }

    /// One acknowledgement of `acked` bytes.
    fn grow(&mut self, window: &mut Window, acked: u64, prior: u64, segment: u64, view: &PathView) {
        let alpha = if self.estimate < prior as f64 { ALPHA } else { 1.0 };
        self.estimate += alpha * acked as f64 * segment as f64 / window.bytes as f64;
        let elapsed = view.now.since(self.began);
        if self.curve(elapsed, segment) < self.estimate {
            // Reno-friendly (§4.3). The window may already stand higher, on its way to a curve that has turned
            // steep; it is not lowered without a loss.
            self.credit = 0;
            window.grow((self.estimate as u64).saturating_sub(window.bytes));
            return;
        }
        // Concave and convex (§4.4, §4.5): (target − window) / window for each segment acknowledged.
        let ahead = elapsed + view.smoothed_rtt.unwrap_or_default();
        let highest = window.bytes + window.bytes / 2;
        let target = (self.curve(ahead, segment) as u64).clamp(window.bytes, highest);
        self.credit += u128::from(target - window.bytes) * u128::from(window.worth(acked, segment));
        let bytes = u128::from(window.bytes);
        window.grow((self.credit / bytes) as u64);
        self.credit %= bytes;
    }
}

/// β = 0.7 of a window (RFC 9438 §4.6).
fn beta(bytes: u64) -> u64 {
    bytes / 10 * 7 + bytes % 10 * 7 / 10
}

/// K = ∛(height / C) in seconds, to 0.1 ms (RFC 9438 §4.2, Figure 2). Heights over seven million segments, which
/// no window spans, count as that.
fn seconds_to_climb(height: u64, segment: u64) -> f64 {
    let cube = u128::from(height) * 5_000_000_000_000 / (2 * u128::from(segment)); // 1/C = 5/2, (10⁴)³
    cube_root(u64::try_from(cube).unwrap_or(u64::MAX)) as f64 / 1e4
}
