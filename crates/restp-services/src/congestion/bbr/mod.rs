//! BBR version 3: sends at the rate the path was seen to deliver, with about what it holds in flight.
//! draft-ietf-ccwg-bbr; read its §3 and the state machine of §5.3 first. Needs pacing and selective acknowledgements.
//!
//! Ours, for the reasons in `docs/services/congestion.md`, and each a parameter ([`BbrParams`]): what losses mean where round
//! trips show no queue, how much is left to others beside one, how far the pace stays below the bandwidth without one, how
//! far the first round may leap (`startup.rs`), and when a probe that only queues ends (`cycle.rs`).
//! [`BbrParams::draft`] takes all of them back.

mod cycle;
pub(super) mod filter;
pub(super) mod model;
mod params;
mod round_trip;
pub(super) mod startup;
#[cfg(test)]
mod tests;

use super::window::{LARGEST_WINDOW, segment_of};
use super::{Congestion, CongestionEvent, CongestionSnapshot};
use crate::recovery::{LostSegment, RateSample};
use crate::view::PathView;
use cycle::{Cycle, Phase};
use filter::RecentMax;
use model::{
    Aggregation, LOSS_THRESHOLD_PERCENT, LowerBounds, NONE, RoundTrip, Rounds, beta, in_flight_at_threshold,
    part,
};
pub use params::BbrParams;
use restp_base::time::{Duration, Time};
use restp_base::units::Rate;
use startup::{FirstTrain, FullPipe};

/// When no round trip of late is shorter than the shortest and this share, there is a queue. ProbeBW_UP fills a quarter on purpose.
const QUEUE_SEEN: (u64, u64) = (5, 4);
/// A queue of this share, the least that HyStart believes (RFC 9406 §4.2), is one that the pace should drain, though it says
/// nothing about losses. The rate seen delivered errs by a few thousandths, and what it is too high adds up until the pace
/// gives way.
const QUEUE_STANDS: (u64, u64) = (9, 8);
/// First window in segments (RFC 6928).
const INITIAL_SEGMENTS: u64 = 10;
/// MinPipeCwnd, in segments.
const LEAST_SEGMENTS: u64 = 4;
/// Where a queue stands, the pace stays so far below the bandwidth, so that it drains (PacingMarginPercent).
const PACING_MARGIN_PERCENT: u64 = 1;
/// Left of the upper bound to others outside probes, in percent (Headroom).
const HEADROOM_PERCENT: u64 = 15;
/// What a driver may send at once (§5.6.3).
const QUANTUM_TIME: Duration = Duration::from_millis(1);
const LARGEST_QUANTUM: u64 = 64 << 10;

/// Gains, in thousandths.
const ONE: u64 = 1000;
const STARTUP_PACING: u64 = 2773; // 4 ln 2

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Startup,
    Drain,
    ProbeBw(Phase),
    ProbeRtt,
}

/// The BBR controller.
#[derive(Clone, Debug)]
pub struct Bbr {
    params: BbrParams,
    segment: u64,
    state: State,
    /// Largest rate delivered in this and the last cycle of probing, in bit/s (max_bw).
    bandwidth: RecentMax,
    rounds: Rounds,
    round_trip: RoundTrip,
    aggregation: Aggregation,
    lower: LowerBounds,
    /// What in flight caused too much loss (inflight_longterm).
    upper: u64,
    pipe: FullPipe,
    first_train: FirstTrain,
    cycle: Cycle,
    probe_rtt: round_trip::Probe,
    window: u64,
    pacing: Option<Rate>,
    /// Bytes delivered so far.
    delivered: u64,
    /// The window and bounds before the last reduction.
    before: Option<Before>,
    /// Within the first round of an episode only what leaves the network may be replaced.
    conserving: bool,
    /// Sending begins again after the application paused.
    restarting: bool,
}

#[derive(Clone, Copy, Debug)]
struct Before {
    window: u64,
    upper: u64,
}

impl Bbr {
    /// A controller at its initial window for segments of `segment_bytes`.
    pub fn new(params: &BbrParams, segment_bytes: u64) -> Self {
        let segment = segment_bytes.clamp(1, super::window::LARGEST_SEGMENT);
        Bbr {
            params: params.in_force(),
            segment,
            state: State::Startup,
            bandwidth: RecentMax::default(),
            rounds: Rounds::default(),
            round_trip: RoundTrip::default(),
            aggregation: Aggregation::default(),
            lower: LowerBounds::default(),
            upper: NONE,
            pipe: FullPipe::default(),
            first_train: FirstTrain::default(),
            cycle: Cycle::default(),
            probe_rtt: round_trip::Probe::default(),
            window: INITIAL_SEGMENTS * segment,
            pacing: None,
            delivered: 0,
            before: None,
            conserving: false,
            restarting: false,
        }
    }

    /// Pacing and window gain of the state (§5.6.1).
    fn gains(&self) -> (u64, u64) {
        match self.state {
            State::Startup => (STARTUP_PACING, 2000),
            State::Drain => (500, 2000),
            State::ProbeBw(Phase::Down) => (900, 2000),
            State::ProbeBw(Phase::Cruise | Phase::Refill) => (ONE, 2000),
            State::ProbeBw(Phase::Up) => (1250, 2250),
            State::ProbeRtt => (ONE, 500),
        }
    }

    /// The bandwidth used: the largest seen, unless losses bound it.
    fn usable_bandwidth(&self) -> Rate {
        Rate::from_bps(self.bandwidth.get().min(self.lower.bandwidth))
    }

    /// `gain` times what the path holds.
    fn in_flight_at(&self, gain: u64) -> u64 {
        match self.round_trip.shortest {
            Some(rtt) => part(self.usable_bandwidth().bytes_in(rtt), (gain, ONE)),
            None => INITIAL_SEGMENTS * self.segment,
        }
    }

    fn least_window(&self) -> u64 {
        LEAST_SEGMENTS * self.segment
    }

    /// The upper bound less what is left to others (§5.5.10.2, Headroom).
    fn upper_with_headroom(&self) -> u64 {
        if self.upper == NONE {
            return NONE;
        }
        let percent = if self.sees_queue() {
            u64::from(self.params.queue_headroom_percent).min(100)
        } else {
            HEADROOM_PERCENT
        };
        let headroom = part(self.upper, (percent, 100)).max(self.segment);
        self.upper.saturating_sub(headroom).max(self.least_window())
    }

    fn sees_queue(&self) -> bool {
        self.is_queue(self.round_trip.of_late(), QUEUE_SEEN)
    }

    /// Is this round trip longer than the shortest and `share` of it, or is nothing known?
    fn is_queue(&self, round_trip: Option<Duration>, share: (u64, u64)) -> bool {
        match (round_trip, self.round_trip.shortest) {
            (Some(round_trip), Some(shortest)) => round_trip > shortest.scaled(share.0, share.1),
            _ => true,
        }
    }

    /// Are `lost` bytes too much for `sent`, by the threshold that holds now?
    fn is_too_much(&self, lost: u64, sent: u64) -> bool {
        let percent = if self.sees_queue() {
            LOSS_THRESHOLD_PERCENT
        } else {
            self.random_loss_percent()
        };
        lost > part(sent, (percent, 100))
    }

    fn random_loss_percent(&self) -> u64 {
        u64::from(self.params.random_loss_percent).max(LOSS_THRESHOLD_PERCENT)
    }

    /// §5.5.10: a loss in ProbeBW_UP may end it, a loss at other times lowers the short-term bounds.
    fn on_segment_lost(&mut self, lost: &LostSegment, view: &PathView<'_>) {
        self.delivered = self.delivered.max(lost.delivered_total);
        let too_much = self.is_too_much(lost.lost_bytes, lost.sent_in_flight_bytes);
        if self.speaks_of_congestion(lost) {
            self.lower.on_lost(lost.bytes, lost.delivered_total);
        }
        if too_much && self.cycle.probing {
            let at = in_flight_at_threshold(lost);
            self.lower_upper_bound(at, lost.application_limited, view.now);
        }
    }

    /// In the draft every loss does. As many as damage explains do where a queue is seen; more do anyway. But not beside the queue of our own
    /// probe, whose lesson the upper bound has: it is there until Drain or Down ends, and what left before tells of it.
    fn speaks_of_congestion(&self, lost: &LostSegment) -> bool {
        let drains = matches!(self.state, State::Drain | State::ProbeBw(Phase::Down));
        let own_queue = drains || lost.delivered_before < self.cycle.drained_at;
        let random = part(lost.sent_in_flight_bytes, (self.random_loss_percent(), 100));
        self.params.draft || lost.lost_bytes > random || (self.sees_queue() && !own_queue)
    }

    /// More was in flight than the path takes (§5.5.10.2, BBRHandleInflightTooHigh).
    fn lower_upper_bound(&mut self, in_flight: u64, application_limited: bool, now: Time) {
        self.cycle.probing = false;
        if !application_limited {
            let target = self.in_flight_at(ONE).min(self.window);
            self.upper = in_flight.max(beta(target)).max(self.least_window());
        }
        if self.state == State::ProbeBw(Phase::Up) {
            self.start_down(now);
        }
    }

    fn on_acked(&mut self, bytes: u64, rtt: Option<Duration>, rate: Option<RateSample>, view: &PathView<'_>) {
        let sample = rate.filter(|sample| !sample.interval.is_zero());
        self.rounds.started = false;
        self.lower.round_ended = false;
        if let Some(sample) = &sample {
            let speed = Rate::of(sample.delivered_bytes, sample.interval).as_bps();
            self.on_sample(sample, speed);
            self.pipe
                .on_sample(speed, sample.application_limited, self.rounds.started);
        }
        let (now, bandwidth) = (view.now, self.usable_bandwidth());
        self.aggregation.on_acked(
            now,
            bytes,
            bandwidth,
            &self.rounds,
            self.window,
            self.pipe.was_full,
        );
        self.check_startup(view);
        self.check_drain(view);
        if let Some(sample) = &sample {
            self.update_cycle(sample, bytes, view);
        }
        let strict = self.params.draft;
        self.round_trip.on_sample(now, rtt, self.rounds.started, strict);
        self.check_probe_rtt(view);
        if let Some(sample) = &sample {
            let speed = Rate::of(sample.delivered_bytes, sample.interval).as_bps();
            self.lower.end_round(sample, speed);
            self.restarting = false;
        }
        self.leap(bytes, now);
        self.set_pacing(view);
        self.set_window(bytes, view);
    }

    /// Round, bandwidth, and the short-term bounds at the end of a round with losses (§5.5.10.3).
    fn on_sample(&mut self, sample: &RateSample, speed: u64) {
        self.delivered = self.delivered.max(sample.delivered_total);
        self.rounds.on_sample(sample);
        self.conserving &= !self.rounds.started;
        self.cycle.rounds += u64::from(self.rounds.started);
        self.lower.on_sample(sample, speed);
        if !sample.application_limited || speed >= self.bandwidth.get() {
            self.bandwidth.update(speed);
        }
        let probing = matches!(
            self.state,
            State::Startup | State::ProbeBw(Phase::Refill | Phase::Up)
        );
        if self.lower.round_ended && self.lower.lost_segments > 0 && !probing {
            self.lower.lower(self.bandwidth.get(), self.window);
        }
    }

    /// §5.6.2. In Startup the rate does not fall: the path is not known yet.
    fn set_pacing(&mut self, view: &PathView<'_>) {
        if self.pacing.is_none() {
            let nominal = view.smoothed_rtt.map(|rtt| Rate::of(self.window, rtt));
            self.pacing = nominal.map(|rate| scaled(rate, STARTUP_PACING));
        }
        self.set_pacing_with(self.gains().0);
        // The estimate trails a window that doubles; pacing must not keep it from doubling.
        let doubling = self.round_trip.shortest.map(|rtt| Rate::of(2 * self.window, rtt));
        if !self.params.draft && !self.pipe.was_full && doubling > self.pacing {
            self.pacing = doubling;
        }
    }

    fn set_pacing_with(&mut self, gain: u64) {
        let margin = if self.is_queue(self.round_trip.of_late(), QUEUE_STANDS) {
            PACING_MARGIN_PERCENT
        } else {
            u64::from(self.params.clear_margin_percent).min(100)
        };
        let full = scaled(self.usable_bandwidth(), gain);
        let rate = Rate::from_bps(part(full.as_bps(), (100 - margin, 100)));
        if rate.as_bps() > 0 && (self.pipe.was_full || Some(rate) > self.pacing) {
            self.pacing = Some(rate);
        }
    }

    /// What acknowledgements may run ahead of the rate (§5.5.9). In Startup they do because the rate trails what doubles;
    /// once they meet a queue, they do because of the queue (the draft counts them all the same).
    fn run_ahead_bytes(&self) -> u64 {
        let queues =
            !self.params.draft && !self.pipe.was_full && self.is_queue(self.round_trip.latest, QUEUE_SEEN);
        if queues { 0 } else { self.aggregation.extra_bytes() }
    }

    /// §5.6.4.
    fn set_window(&mut self, acked: u64, view: &PathView<'_>) {
        let quantum = self.pacing.map_or(0, |rate| rate.bytes_in(QUANTUM_TIME));
        let quantum = quantum.min(LARGEST_QUANTUM).max(2 * self.segment);
        let mut most = self
            .in_flight_at(self.gains().1)
            .saturating_add(self.run_ahead_bytes())
            .max(3 * quantum);
        if self.state == State::ProbeBw(Phase::Up) {
            most = most.saturating_add(2 * self.segment);
        }
        let grown = self.window.saturating_add(acked);
        if self.conserving {
            self.window = self.window.max(view.in_flight_bytes.saturating_add(acked));
        } else if self.pipe.was_full {
            self.window = grown.min(most);
        } else if self.window < most || self.delivered < INITIAL_SEGMENTS * self.segment {
            self.window = grown;
        }
        let bound = match self.state {
            State::Startup | State::Drain => NONE,
            State::ProbeBw(Phase::Cruise) => self.upper_with_headroom(),
            State::ProbeBw(_) => self.upper,
            State::ProbeRtt => self.upper_with_headroom().min(self.probe_rtt_window()),
        };
        let bound = bound.min(self.lower.in_flight).min(LARGEST_WINDOW);
        self.window = self.window.min(bound).max(self.least_window());
    }

    /// Only what leaves the network is replaced, until the round is over (§5.6.4.4).
    fn conserve(&mut self, window: u64) {
        self.before = Some(Before {
            window: self.window,
            upper: self.upper,
        });
        self.window = self.window.min(window);
        self.conserving = true;
        self.rounds.restart(self.delivered);
    }

    fn restore(&mut self) {
        if let Some(before) = self.before.take() {
            self.window = self.window.max(before.window).min(LARGEST_WINDOW);
            self.conserving = false;
        }
    }

    /// §5.4.1: after a pause of the application the pipe is empty, and no gain is needed.
    fn on_sent(&mut self, bytes: u64, view: &PathView<'_>) {
        if view.in_flight_bytes > bytes || !view.application_limited {
            return;
        }
        self.restarting = true;
        self.aggregation.restart(view.now);
        match self.state {
            State::ProbeBw(_) => self.set_pacing_with(ONE),
            State::ProbeRtt => self.check_probe_rtt_done(view.now),
            State::Startup | State::Drain => {}
        }
    }
}

impl Congestion for Bbr {
    fn on(&mut self, event: &CongestionEvent, view: &PathView<'_>) {
        self.segment = segment_of(view);
        match *event {
            CongestionEvent::Sent { bytes } => self.on_sent(bytes, view),
            CongestionEvent::Acked { bytes, rtt, rate } => self.on_acked(bytes, rtt, rate, view),
            CongestionEvent::SegmentLost(lost) => self.on_segment_lost(&lost, view),
            CongestionEvent::Lost { bytes } => {
                if self.params.draft || self.lower.lost_segments > 0 {
                    self.conserve(view.in_flight_bytes.saturating_sub(bytes));
                }
            }
            CongestionEvent::Marked { bytes } => {
                self.lower.on_lost(bytes, self.delivered);
                if self.cycle.probing {
                    self.lower_upper_bound(view.in_flight_bytes, view.application_limited, view.now);
                }
            }
            CongestionEvent::RecoveryEnded => self.restore(),
            // §5.6.4.4: one segment, then slow start towards what the model allows.
            CongestionEvent::Timeout { repeated } => {
                if !repeated {
                    self.conserve(self.segment);
                }
                self.window = self.segment;
                self.conserving = false;
            }
            // The first segment after a silence is what counts.
            CongestionEvent::Duplicate | CongestionEvent::Idle { .. } | CongestionEvent::Corrupted { .. } => {
            }
            CongestionEvent::RouteChanged => self.round_trip = RoundTrip::default(),
            CongestionEvent::Restored => {
                if let Some(before) = self.before {
                    self.upper = self.upper.max(before.upper);
                    self.lower.lift();
                }
                self.restore();
            }
        }
        self.window = self.window.max(self.segment);
    }
    fn window_bytes(&self) -> u64 {
        self.window
    }
    fn pacing(&self) -> Option<Rate> {
        self.pacing
    }
    fn delivers(&self) -> Option<Rate> {
        self.pipe.was_full.then(|| self.usable_bandwidth())
    }
    fn snapshot(&self) -> CongestionSnapshot {
        CongestionSnapshot {
            window_bytes: self.window,
            threshold_bytes: (self.upper != NONE).then_some(self.upper),
            state: match self.state {
                State::Startup => "startup",
                State::Drain => "drain",
                State::ProbeBw(Phase::Down) => "probe-bw-down",
                State::ProbeBw(Phase::Cruise) => "probe-bw-cruise",
                State::ProbeBw(Phase::Refill) => "probe-bw-refill",
                State::ProbeBw(Phase::Up) => "probe-bw-up",
                State::ProbeRtt => "probe-rtt",
            },
        }
    }
}

fn scaled(rate: Rate, gain: u64) -> Rate {
    Rate::from_bps(part(rate.as_bps(), (gain, ONE)))
}
