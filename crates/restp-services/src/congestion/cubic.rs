//! CUBIC: the window is a cubic function of the time since the last reduction. RFC 9438; read its §4 first.

use super::cubic_curve::Stage;
use super::cubic_rules::{CubicRules, Share};
use super::hystart::{Advice, HyStartChoice, SlowStart};
use super::window::{CommonParams, Window, segment_of};
use super::{Congestion, CongestionEvent, CongestionSnapshot};
use crate::view::PathView;
use restp_base::time::{Duration, Time};
use restp_base::units::Rate;

/// Parameters of [`Cubic`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CubicParams {
    /// Start and growth.
    pub common: CommonParams,
    /// Make room for new flows when the window shrinks from loss to loss (RFC 9438 §4.7). Default on.
    pub fast_convergence: bool,
    /// How the first slow start ends when round trips begin to take longer (RFC 9438 §4.10). Default RFC 9406.
    pub hystart: HyStartChoice,
    /// Where Linux departs from RFC 9438. Default the RFC.
    pub rules: CubicRules,
}

impl Default for CubicParams {
    fn default() -> Self {
        CubicParams {
            common: CommonParams::default(),
            fast_convergence: true,
            hystart: HyStartChoice::Rfc9406,
            rules: CubicRules::Rfc9438,
        }
    }
}

impl CubicParams {
    /// The same, where a mark costs less than a loss (RFC 8511).
    pub fn sparing_marks(mut self) -> Self {
        self.common.abe = true;
        self
    }
}

/// The CUBIC controller.
#[derive(Clone, Copy, Debug)]
pub struct Cubic {
    fast_convergence: bool,
    rules: CubicRules,
    ends_slow_start: HyStartChoice,
    /// While slow start may end by it.
    hystart: Option<SlowStart>,
    state: State,
    /// The state before the last reduction (RFC 9438 §4.9).
    before: Option<State>,
    /// Losses that were cut for are being repaired.
    recovering: bool,
    /// When acknowledgements last counted: silence after it does not move the curve.
    clock: Time,
    /// It is one of so many that together are one flow.
    parts: u32,
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

impl Cubic {
    /// A controller at its initial window for segments of `segment_bytes`.
    pub fn new(params: &CubicParams, segment_bytes: u64) -> Self {
        let CubicParams {
            common,
            fast_convergence,
            hystart,
            rules,
        } = *params;
        let window = Window::new(&common, segment_bytes);
        let state = State {
            window,
            maximum: 0,
            prior: 0,
            stage: None,
        };
        Cubic {
            fast_convergence,
            rules,
            ends_slow_start: hystart,
            hystart: SlowStart::new(hystart),
            state,
            before: None,
            recovering: false,
            clock: Time::ZERO,
            parts: 1,
        }
    }

    /// A controller with a window of `bytes`, which is what the path is known to hold: below the `threshold` in slow start, else at the
    /// plateau of its curve.
    pub(super) fn at(
        params: &CubicParams,
        bytes: u64,
        threshold: u64,
        segment: u64,
        view: &PathView<'_>,
    ) -> Self {
        let mut cubic = Cubic::new(params, segment);
        let window = &mut cubic.state.window;
        (window.bytes, window.threshold) = (bytes, threshold);
        window.settle(view);
        cubic.state.maximum = bytes;
        cubic.clock = view.now;
        cubic
    }

    /// Each timeout of silence is told.
    pub(super) fn fades(&self) -> bool {
        self.rules.fades()
    }

    /// The window has not been in use until now.
    pub(super) fn resume(&mut self, view: &PathView<'_>) {
        self.skip(view.now);
    }

    /// From now on it grows as one of so many `parts` of a flow: those that are cut together are one CUBIC flow, because each step
    /// of its curve and of Reno's is divided among them. The stage that runs begins anew.
    pub(super) fn set_parts(&mut self, parts: u32) {
        if self.parts != parts {
            (self.parts, self.state.stage) = (parts, None);
        }
    }

    fn acked(&mut self, bytes: u64, rtt: Option<Duration>, view: &PathView<'_>) {
        let segment = segment_of(view);
        let bytes = self.advised(bytes, rtt, view);
        let State {
            window,
            maximum,
            prior,
            stage,
        } = &mut self.state;
        if window.in_slow_start() {
            *stage = None; // after a timeout or silence the next stage begins anew
        }
        let acked = window.slow_start(bytes, segment);
        if !window.in_slow_start() && acked > 0 {
            let (at, parts, rules) = (window.bytes, self.parts, self.rules);
            let begin = || Stage::begin(view.now, at, *maximum, segment, parts, rules);
            let stage = stage.get_or_insert_with(begin);
            stage.grow(window, acked, *prior, segment, view);
        }
    }

    /// What slow start may make of an acknowledgement; avoidance, all of it.
    fn advised(&mut self, bytes: u64, rtt: Option<Duration>, view: &PathView<'_>) -> u64 {
        let window = &mut self.state.window;
        if !self.rules.judges_every_slow_start() && window.threshold != u64::MAX {
            self.hystart = None;
        }
        if let Some(start) = self.hystart.as_mut().filter(|_| !window.in_slow_start()) {
            start.rest();
        }
        let judge = self.hystart.as_mut().filter(|_| window.in_slow_start());
        match judge.map(|start| start.advise(view, bytes, rtt, window.bytes)) {
            None => bytes,
            Some(Advice::Grow(bytes)) => bytes,
            Some(Advice::Stop) => {
                self.hystart = None;
                window.threshold = window.bytes;
                bytes
            }
        }
    }

    /// RFC 9438 §4.6 and §4.7. `floor` is 1 segment for marks, 2 for losses: a mark tells of a queue, and with one segment it may
    /// still be too long.
    fn reduce(&mut self, view: &PathView<'_>, kept: Share, floor: u64) {
        self.before = Some(self.state);
        let segment = segment_of(view);
        let State {
            window,
            maximum,
            prior,
            stage,
        } = &mut self.state;
        *prior = window.bytes;
        let (whole, target) = self
            .rules
            .reduced(window.bytes, view.in_flight_bytes, kept, segment);
        *maximum = if self.fast_convergence && whole < *maximum {
            self.rules.converged(whole, kept, segment)
        } else {
            whole
        };
        *stage = None;
        window.cut(target, segment);
        window.bytes = window.bytes.min(target.max(floor));
    }

    /// RFC 9438 §4.8: as Reno, with β for the threshold; the next stage begins at its own plateau.
    fn timeout(&mut self, repeated: bool, view: &PathView<'_>) {
        let (segment, kept) = (segment_of(view), self.rules.beta());
        let window = self.state.window.bytes;
        let (_, target) = self.rules.reduced(window, view.in_flight_bytes, kept, segment);
        let cuts = self.rules.timeout_cuts(repeated, self.recovering);
        if cuts {
            self.before = Some(self.state);
            self.state.prior = window;
        } else if !repeated {
            self.before = None; // what the episode had lost is lost, however needless this timeout was
        }
        self.recovering = false;
        self.state.maximum = 0;
        self.state.window.collapse(cuts.then_some(target), segment);
        if self.rules.judges_every_slow_start() {
            self.hystart = SlowStart::new(self.ends_slow_start);
        }
    }

    /// The reduction was for nothing. Linux gives the window back and begins the next stage below the maximum of that reduction.
    fn restore(&mut self, before: State) {
        let now = self.state.window;
        if self.rules.restores_the_curve() {
            self.state = before;
            self.state.window.restore(&now);
        } else {
            self.state.window.restore(&before.window);
            self.state.stage = None;
        }
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
    fn on(&mut self, event: &CongestionEvent, view: &PathView<'_>) {
        let segment = segment_of(view);
        match *event {
            CongestionEvent::Sent { bytes } => {
                if view.in_flight_bytes <= bytes {
                    self.skip(view.now); // the first segment after a silence
                }
            }
            CongestionEvent::Acked { bytes, rtt, .. } => {
                if view.application_limited {
                    self.skip(view.now);
                }
                if Window::may_grow(view) {
                    self.acked(bytes, rtt, view);
                }
                self.clock = view.now;
            }
            CongestionEvent::Lost { .. } => {
                self.reduce(view, self.rules.beta(), 2 * segment);
                self.recovering = true;
            }
            CongestionEvent::Marked { .. } => {
                let spared = self.state.window.spares_marks().then_some(BETA_OF_MARKS);
                let floor = self.rules.floor_of_marks() * segment;
                self.reduce(view, spared.unwrap_or(self.rules.beta()), floor);
            }
            // The episode is what counts; the next acknowledgement begins the stage of avoidance.
            CongestionEvent::Duplicate
            | CongestionEvent::RouteChanged
            | CongestionEvent::SegmentLost(_)
            | CongestionEvent::Corrupted { .. } => {}
            CongestionEvent::RecoveryEnded => self.recovering = false,
            CongestionEvent::Timeout { repeated } => self.timeout(repeated, view),
            CongestionEvent::Idle { .. } => {
                self.skip(view.now);
                self.rules.rest(&mut self.state.window, segment);
            }
            CongestionEvent::Restored => {
                if let Some(before) = self.before.take() {
                    self.restore(before);
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

/// What a mark leaves where it costs less than a loss (RFC 8511 §3.1).
const BETA_OF_MARKS: Share = Share::new(850, 1000);

#[cfg(test)]
mod tests;
