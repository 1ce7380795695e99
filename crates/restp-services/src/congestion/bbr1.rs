//! BBR version 1, as Linux ships it under the name `bbr`: `tcp_bbr.c`; Cardwell and others, "BBR: congestion-based congestion
//! control", ACM Queue 14(5), 2016; draft-cardwell-iccrg-bbr-congestion-control-00. Losses do not slow it down. Version 3 is
//! [`super::bbr`]. Needs pacing. Left out: the sampling of policed rates (lt_bw).

use super::bbr::filter::WindowedMax;
use super::bbr::model::{Aggregation, Rounds, part};
use super::window::{LARGEST_SEGMENT, LARGEST_WINDOW, segment_of};
use super::{Congestion, CongestionEvent, CongestionSnapshot};
use crate::recovery::RateSample;
use crate::view::PathView;
use restp_base::time::{Duration, Time};
use restp_base::units::Rate;

/// Parameters of [`Bbr1`]: none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bbr1Params;

/// Gains, in thousandths.
const ONE: u64 = 1000;
const HIGH: u64 = 2885; // 2 / ln 2
const DRAIN: u64 = 346; // its inverse
const WINDOW: u64 = 2000;
const CYCLE: [u64; 8] = [1250, 750, ONE, ONE, ONE, ONE, ONE, ONE];
/// Rounds that the largest bandwidth is remembered for (bbr_bw_rtts).
const BANDWIDTH_ROUNDS: u64 = 10;
/// The pace stays so far below the bandwidth, in percent (bbr_pacing_margin_percent).
const MARGIN_PERCENT: u64 = 1;
/// Growth that counts, and rounds without it that mean a full pipe.
const GROWTH: (u64, u64) = (5, 4);
const FULL_ROUNDS: u32 = 3;
/// How old the shortest round trip may be, and how long the probe for it takes.
const ROUND_TRIP_LIFE: Duration = Duration::from_secs(10);
const PROBE_TIME: Duration = Duration::from_millis(200);
const LEAST_SEGMENTS: u64 = 4;
const INITIAL_SEGMENTS: u64 = 10;
/// The most that acknowledgements may run ahead by, as time at the bandwidth.
const MOST_AHEAD: Duration = Duration::from_millis(100);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Startup,
    Drain,
    ProbeBw,
    ProbeRtt,
}

/// The controller.
#[derive(Clone, Debug)]
pub struct Bbr1 {
    state: State,
    segment: u64,
    window: u64,
    pacing: Option<Rate>,
    /// In bit/s.
    bandwidth: WindowedMax,
    rounds: Rounds,
    aggregation: Aggregation,
    delivered: u64,
    shortest: Option<Duration>,
    shortest_at: Time,
    /// The best bandwidth of Startup, rounds without growth, and whether the pipe is full.
    full: (u64, u32, bool),
    /// Phase of [`CYCLE`], and since when.
    phase: (usize, Time),
    probe: Probe,
    /// The window before an episode or a probe of the round trip.
    before: u64,
    /// Within the first round of an episode only what leaves the network may be replaced.
    conserving: bool,
    in_episode: bool,
    /// The acknowledgement at hand came with losses.
    lost_bytes: u64,
    /// What left before so much was delivered had no window to show the bandwidth with (tcp_sock.app_limited).
    limited_until: u64,
    /// Sending begins again after a pause: no probe for the round trip, the pipe is empty.
    restarting: bool,
}

/// A probe for the shortest round trip: its end, once little is in flight, and whether a round has passed.
#[derive(Clone, Copy, Debug, Default)]
struct Probe {
    until: Option<Time>,
    round_done: bool,
}

impl Bbr1 {
    /// A controller at its initial window for segments of `segment_bytes`.
    pub fn new(_: &Bbr1Params, segment_bytes: u64) -> Self {
        let segment = segment_bytes.clamp(1, LARGEST_SEGMENT);
        Bbr1 {
            state: State::Startup,
            segment,
            window: INITIAL_SEGMENTS * segment,
            pacing: None,
            bandwidth: WindowedMax::new(BANDWIDTH_ROUNDS),
            rounds: Rounds::default(),
            aggregation: Aggregation::default(),
            delivered: 0,
            shortest: None,
            shortest_at: Time::ZERO,
            full: (0, 0, false),
            phase: (0, Time::ZERO),
            probe: Probe::default(),
            before: 0,
            conserving: false,
            in_episode: false,
            lost_bytes: 0,
            limited_until: 0,
            restarting: false,
        }
    }

    fn pacing_gain(&self) -> u64 {
        match self.state {
            State::Startup => HIGH,
            State::Drain => DRAIN,
            State::ProbeBw => CYCLE[self.phase.0],
            State::ProbeRtt => ONE,
        }
    }

    fn window_gain(&self) -> u64 {
        match self.state {
            State::Startup | State::Drain => HIGH,
            State::ProbeBw => WINDOW,
            State::ProbeRtt => ONE,
        }
    }

    fn bandwidth(&self) -> Rate {
        Rate::from_bps(self.bandwidth.get())
    }

    /// `gain` of what the path holds, and what the ends need on top (bbr_inflight).
    fn in_flight_at(&self, gain: u64) -> u64 {
        let Some(rtt) = self.shortest else {
            return INITIAL_SEGMENTS * self.segment;
        };
        let held = part(self.bandwidth().bytes_in(rtt), (gain, ONE));
        let probes = self.state == State::ProbeBw && self.phase.0 == 0;
        held.saturating_add((3 + if probes { 2 } else { 0 }) * self.segment)
    }

    fn on_acked(&mut self, bytes: u64, rtt: Option<Duration>, rate: Option<RateSample>, view: &PathView<'_>) {
        self.delivered = self.delivered.saturating_add(bytes);
        self.rounds.started = false;
        let rate = rate.map(|sample| RateSample {
            application_limited: sample.application_limited || sample.delivered_before < self.limited_until,
            ..sample
        });
        if let Some(sample) = &rate {
            self.on_sample(sample);
        }
        let full = self.full.2;
        let bandwidth = self.bandwidth();
        self.aggregation
            .on_acked(view.now, bytes, bandwidth, &self.rounds, self.window, full);
        self.turn_cycle(bytes, view);
        if let Some(sample) = &rate {
            self.check_full_pipe(sample.application_limited);
        }
        self.check_drain(view);
        self.check_round_trip(rtt, view);
        self.set_pacing(view);
        self.set_window(bytes, view);
        self.lost_bytes = 0;
    }

    fn on_sample(&mut self, sample: &RateSample) {
        self.rounds.on_sample(sample);
        if self.rounds.started {
            self.conserving = false;
        }
        let rate = Rate::of(sample.delivered_bytes, sample.interval).as_bps();
        if !sample.application_limited || rate >= self.bandwidth.get() {
            self.bandwidth.update(self.rounds.count, rate);
        }
    }

    /// The next phase after a shortest round trip; a probe lasts until something is in flight for it, or lost, and what it
    /// queued is drained no longer than needed (bbr_is_next_cycle_phase).
    fn turn_cycle(&mut self, acked: u64, view: &PathView<'_>) {
        if self.state != State::ProbeBw {
            return;
        }
        let in_flight_before = view.in_flight_bytes + acked + self.lost_bytes;
        let (phase, since) = self.phase;
        let full_length = self.shortest.is_some_and(|rtt| view.now.since(since) > rtt);
        let next = match CYCLE[phase] {
            ONE => full_length,
            gain if gain > ONE => {
                full_length && (self.lost_bytes > 0 || in_flight_before >= self.in_flight_at(gain))
            }
            _ => full_length || in_flight_before <= self.in_flight_at(ONE),
        };
        if next {
            self.phase = ((phase + 1) % CYCLE.len(), view.now);
        }
    }

    fn check_full_pipe(&mut self, application_limited: bool) {
        let (best, rounds, full) = &mut self.full;
        if *full || !self.rounds.started || application_limited {
            return;
        }
        let bandwidth = self.bandwidth.get();
        if bandwidth >= part(*best, GROWTH) {
            (*best, *rounds) = (bandwidth, 0);
            return;
        }
        *rounds += 1;
        *full = *rounds >= FULL_ROUNDS;
    }

    fn check_drain(&mut self, view: &PathView<'_>) {
        if self.state == State::Startup && self.full.2 {
            self.state = State::Drain;
        }
        if self.state == State::Drain && view.in_flight_bytes <= self.in_flight_at(ONE) {
            self.enter_probe_bw(view.now);
        }
    }

    /// Linux draws the first phase; here it is the one behind the drain, so that a run depends on nothing hidden.
    fn enter_probe_bw(&mut self, now: Time) {
        self.state = State::ProbeBw;
        self.phase = (2, now);
    }

    /// The shortest round trip of the last ten seconds. When it is older, little is kept in flight for a while to see a new
    /// one.
    fn check_round_trip(&mut self, rtt: Option<Duration>, view: &PathView<'_>) {
        let expired = self.shortest.is_some() && view.now.since(self.shortest_at) > ROUND_TRIP_LIFE;
        if let Some(rtt) = rtt.filter(|rtt| !rtt.is_zero())
            && (expired || self.shortest.is_none_or(|shortest| rtt < shortest))
        {
            (self.shortest, self.shortest_at) = (Some(rtt), view.now);
        }
        if expired && !self.restarting && self.state != State::ProbeRtt {
            self.state = State::ProbeRtt;
            self.save_window();
            self.probe = Probe::default();
        }
        if self.state == State::ProbeRtt {
            self.probe_round_trip(view);
        }
        self.restarting = false;
    }

    fn probe_round_trip(&mut self, view: &PathView<'_>) {
        self.limited_until = self.delivered.saturating_add(view.in_flight_bytes);
        if self.probe.until.is_none() {
            if view.in_flight_bytes <= LEAST_SEGMENTS * self.segment {
                self.probe.until = Some(view.now + PROBE_TIME);
                self.rounds.restart(self.delivered);
            }
            return;
        }
        self.probe.round_done |= self.rounds.started;
        if self.probe.round_done {
            self.end_probe(view.now);
        }
    }

    /// The probe for the round trip is over, if it lasted long enough (bbr_check_probe_rtt_done).
    fn end_probe(&mut self, now: Time) {
        if self.probe.until.is_none_or(|until| now <= until) {
            return;
        }
        self.shortest_at = now;
        self.window = self.window.max(self.before);
        if self.full.2 {
            self.enter_probe_bw(now);
        } else {
            self.state = State::Startup;
        }
    }

    fn set_pacing(&mut self, view: &PathView<'_>) {
        let gain = self.pacing_gain();
        if self.bandwidth.get() == 0 {
            let rtt = view.smoothed_rtt.unwrap_or(Duration::from_millis(1));
            self.pacing = Some(Rate::of(part(self.window, (gain, ONE)), rtt));
            return;
        }
        let rate = part(self.bandwidth.get(), (gain * (100 - MARGIN_PERCENT), ONE * 100));
        if self.full.2 || self.pacing.is_none_or(|pacing| rate > pacing.as_bps()) {
            self.pacing = Some(Rate::from_bps(rate));
        }
    }

    fn set_window(&mut self, acked: u64, view: &PathView<'_>) {
        let least = LEAST_SEGMENTS * self.segment;
        if self.lost_bytes > 0 {
            self.window = self.window.saturating_sub(self.lost_bytes).max(self.segment);
        }
        if self.conserving {
            self.window = self.window.max(view.in_flight_bytes.saturating_add(acked));
        } else {
            let ahead = self.aggregation.extra_bytes();
            let ahead = ahead.min(self.bandwidth().bytes_in(MOST_AHEAD));
            let target = self.in_flight_at(self.window_gain());
            let target = target.saturating_add(if self.full.2 { ahead } else { 0 });
            let grown = self.window.saturating_add(acked);
            if self.full.2 {
                self.window = grown.min(target);
            } else if self.window < target || self.delivered < INITIAL_SEGMENTS * self.segment {
                self.window = grown;
            }
            self.window = self.window.max(least);
        }
        if self.state == State::ProbeRtt {
            self.window = self.window.min(least);
        }
    }

    /// Outside episodes and probes the window is what counts; within, what it was before.
    fn save_window(&mut self) {
        self.before = if self.in_episode || self.state == State::ProbeRtt {
            self.before.max(self.window)
        } else {
            self.window
        };
    }

    /// Only what leaves the network is replaced, until the round is over.
    fn begin_episode(&mut self, window: u64) {
        self.save_window();
        self.in_episode = true;
        self.conserving = true;
        self.rounds.restart(self.delivered);
        self.window = self.window.min(window).max(self.segment);
    }

    fn end_episode(&mut self) {
        if self.in_episode {
            self.window = self.window.max(self.before);
            (self.in_episode, self.conserving) = (false, false);
        }
    }

    /// After a pause of the application the pipe is empty, and no gain is needed.
    fn on_sent(&mut self, bytes: u64, view: &PathView<'_>) {
        if view.in_flight_bytes > bytes || !view.application_limited {
            return;
        }
        self.restarting = true;
        self.aggregation.restart(view.now);
        if self.state == State::ProbeBw && self.bandwidth.get() > 0 {
            let rate = part(self.bandwidth.get(), (100 - MARGIN_PERCENT, 100));
            self.pacing = Some(Rate::from_bps(rate));
        } else if self.state == State::ProbeRtt {
            self.end_probe(view.now);
        }
    }
}

impl Congestion for Bbr1 {
    fn on(&mut self, event: &CongestionEvent, view: &PathView<'_>) {
        self.segment = segment_of(view);
        match *event {
            CongestionEvent::Sent { bytes } => self.on_sent(bytes, view),
            CongestionEvent::Acked { bytes, rtt, rate } => {
                self.on_acked(bytes, rtt, rate, view);
            }
            CongestionEvent::SegmentLost(lost) => {
                self.lost_bytes = self.lost_bytes.saturating_add(lost.bytes);
            }
            CongestionEvent::Lost { bytes } => {
                self.begin_episode(view.in_flight_bytes.saturating_sub(bytes));
            }
            // Linux: the window falls to one segment, and the best bandwidth of Startup is forgotten.
            CongestionEvent::Timeout { repeated } => {
                if !repeated {
                    self.save_window();
                }
                (self.in_episode, self.conserving) = (true, false);
                self.full.0 = 0;
                self.rounds.restart(self.delivered);
                self.window = self.segment;
            }
            CongestionEvent::RecoveryEnded => self.end_episode(),
            CongestionEvent::Restored => {
                self.full = (0, 0, self.full.2);
                self.end_episode();
            }
            CongestionEvent::Marked { .. }
            | CongestionEvent::RouteChanged
            | CongestionEvent::Duplicate
            | CongestionEvent::Corrupted { .. }
            | CongestionEvent::Idle { .. } => {}
        }
        self.window = self.window.clamp(self.segment, LARGEST_WINDOW);
    }
    fn window_bytes(&self) -> u64 {
        self.window
    }
    fn pacing(&self) -> Option<Rate> {
        self.pacing
    }
    fn delivers(&self) -> Option<Rate> {
        self.full.2.then(|| self.bandwidth())
    }
    fn snapshot(&self) -> CongestionSnapshot {
        CongestionSnapshot {
            window_bytes: self.window,
            threshold_bytes: None,
            state: match self.state {
                State::Startup => "startup",
                State::Drain => "drain",
                State::ProbeBw => "probe-bw",
                State::ProbeRtt => "probe-rtt",
            },
        }
    }
}

#[cfg(test)]
mod tests;
