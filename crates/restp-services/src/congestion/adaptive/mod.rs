//! One controller for a path of which nothing is known. It hears of congestion alone ([`LossHandling::Adaptive`] judges losses),
//! keeps a few segments in the queue where nobody else fills it, and sends as one CUBIC flow where somebody does.
//! `docs/services/adaptation.md` has the model.
//!
//! [`LossHandling::Adaptive`]: crate::loss_handling::LossHandling::Adaptive

mod alone;
mod doubt;
mod joint;
mod lately;
mod mode;
mod neighbours;
mod rival;
mod round;
mod rounds;
mod startup;
mod sustained;
#[cfg(test)]
mod tests;
mod trips;
mod unused;

use super::bbr::filter::RecentMax;
use super::bbr::model::Rounds;
use super::window::{LARGEST_SEGMENT, LARGEST_WINDOW, segment_of};
use super::{
    Congestion, CongestionEvent, CongestionSnapshot, Cubic, CubicParams, CubicRules, window_over_rtt,
};
use crate::recent::Recent;
use crate::recovery::RateSample;
use crate::view::PathView;
use alone::{Alone, Held};
use doubt::Doubt;
use joint::Joint;
use lately::{Lately, Past};
use mode::Mode;
use neighbours::{CLEAR_ROUNDS, Neighbours, Pace};
use restp_base::time::{Duration, Time};
use restp_base::units::Rate;
use rival::Damage;
use round::Round;
use startup::Startup;
use trips::Trips;
use unused::Unused;

/// Parameters of [`Adaptive`]: none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AdaptiveParams;

/// Segments that a flow keeps in the queue where nobody else fills it: fewer leave the link idle between two acknowledgements, and
/// queues of eight segments exist.
const QUEUED_SEGMENTS: u64 = 4;
/// Flows of this kind leave each other's segments in the queue. A flow whose rate a loss-based neighbour has taken would leave him as many
/// as he likes, so no more than those of so many flows are theirs.
const SHARERS: u64 = 2;
/// While their queue grows round trips vary by less than this share of what a flow has in it, once in so many rounds.
const NOISE_DIVISOR: u64 = 8;
const CYCLE_ROUNDS: u32 = 8;
/// First window in segments (RFC 6928), and the least one.
const INITIAL_SEGMENTS: u64 = 10;
const LEAST_SEGMENTS: u64 = 2;
/// A standing queue of this share of the shortest round trip ends slow start (RFC 9406 §4.2).
const START_QUEUE_DIVISOR: u64 = 8;
/// An acknowledgement may wait for a second segment at least, and a rate is never known to the segment.
const HELD_BACK_SEGMENTS: u64 = 2;
/// It waits for no more than this share of what the path holds.
const HELD_BACK_DIVISOR: u64 = 8;
/// Acknowledgements per flight beside somebody else: what fewer release at a time finds a full queue more often than a segment of
/// a flow that has one acknowledgement for two.
const CLOCKED_ANSWERS: u64 = 32;
/// How long the most delivered is remembered, at least.
const MOST_LIFE: Duration = Duration::from_secs(10);

/// CUBIC as most neighbours have it, which is as Linux has it: of a window of a few segments RFC 9438 keeps and wins back more than
/// they do. But slow start ends by RFC 9406, and a mark costs less than a loss (RFC 8511).
fn as_neighbours_are() -> CubicParams {
    let params = CubicParams {
        rules: CubicRules::Linux,
        ..CubicParams::default()
    };
    params.sparing_marks()
}

/// The controller.
#[derive(Clone, Debug)]
pub struct Adaptive {
    mode: Mode,
    segment: u64,
    window: u64,
    trips: Trips,
    rounds: Rounds,
    /// Delivered in the last round, and the most of late in bit/s.
    rate: Option<Rate>,
    most: Recent<u64>,
    /// Boxed, as `cubic` is.
    past: Box<Past>,
    /// The most bytes that one acknowledgement has covered in this round and the last.
    batch: RecentMax,
    startup: Box<Startup>,
    alone: Box<Alone>,
    neighbours: Neighbours,
    damage: Damage,
    doubt: Doubt,
    /// Boxed, because a controller is stored where all others are smaller.
    cubic: Box<Cubic>,
    /// Mode and window before the last reduction.
    before: Option<(Mode, u64)>,
    /// Rounds in a row that ended with nearly nothing in the queue, and in which round trips varied.
    clear: u32,
    noisy: u32,
    unused: Unused,
    /// What it has to do with other paths of its association that wait in the same queue.
    joint: Joint,
    /// Congestion has cost this flow segments after Startup: a CUBIC flow would be out of slow start.
    has_met_congestion: bool,
    smoothed_rtt: Option<Duration>,
}

impl Adaptive {
    /// A controller at its initial window for segments of `segment_bytes`.
    pub fn new(_: &AdaptiveParams, segment_bytes: u64) -> Self {
        let segment = segment_bytes.clamp(1, LARGEST_SEGMENT);
        Adaptive {
            mode: Mode::Startup,
            segment,
            window: INITIAL_SEGMENTS * segment,
            trips: Trips::default(),
            rounds: Rounds::default(),
            rate: None,
            most: Recent::default(),
            past: Box::default(),
            batch: RecentMax::default(),
            startup: Box::default(),
            alone: Box::default(),
            neighbours: Neighbours::default(),
            damage: Damage::default(),
            doubt: Doubt::default(),
            cubic: Box::new(Cubic::new(&as_neighbours_are(), segment)),
            before: None,
            smoothed_rtt: None,
            clear: 0,
            noisy: 0,
            unused: Unused::default(),
            joint: Joint::default(),
            has_met_congestion: false,
        }
    }

    /// What the path holds without a queue at the rate of the last round, and what links and acknowledgements hold back.
    fn held(&self) -> Option<u64> {
        self.held_at(self.rate?)
    }

    /// The same at this rate.
    fn held_at(&self, rate: Rate) -> Option<u64> {
        let shortest = self.trips.shortest()?;
        // More than what ends Startup as a queue may be one.
        let noise = self.noise().min(shortest / START_QUEUE_DIVISOR);
        let held = rate.bytes_in(shortest + noise);
        Some(held.min(LARGEST_WINDOW) + HELD_BACK_SEGMENTS * self.segment)
    }

    /// How much longer than the standing one round trips are on average: what links add that hold segments back, each for another time,
    /// is in flight like all the rest.
    fn noise(&self) -> Duration {
        let standing = self.trips.standing().unwrap_or_default();
        self.smoothed_rtt.unwrap_or_default().saturating_sub(standing)
    }

    /// The largest window that this path has held of late, in segments.
    fn whole(&self) -> u64 {
        let most = self
            .most
            .get()
            .and_then(|most| self.held_at(Rate::from_bps(most)));
        most.unwrap_or(self.window) / self.segment
    }

    /// Damage keeps every loss-based flow far below what this path holds, and no queue has been seen of late that many of them might
    /// fill together: who gives way here gives to nobody.
    fn starves_others(&self, rtt: Duration) -> bool {
        self.clear >= CLEAR_ROUNDS && !self.doubt.follows() && self.damage.starves(self.whole(), rtt)
    }

    fn pace(&self, rtt: Duration) -> Pace {
        Pace {
            rtt,
            period: rival::period(self.whole(), rtt),
        }
    }

    fn on_acked(&mut self, bytes: u64, rtt: Option<Duration>, rate: Option<RateSample>, view: &PathView<'_>) {
        if let Some(rtt) = rtt.filter(|rtt| !rtt.is_zero()) {
            self.trips.on_sample(view.now, rtt, view.smoothed_rtt);
        }
        self.batch.update(bytes);
        let segments = bytes as f64 / self.segment as f64; // a message may be a part of one
        self.damage.on_delivered(segments);
        self.doubt.on_delivered(segments);
        if self.mode == Mode::Alone && !view.application_limited && self.unused.is_over(view.now, MOST_LIFE) {
            self.ask_anew();
        }
        match self.mode {
            Mode::Startup | Mode::Alone if view.application_limited => {}
            Mode::Startup => {
                self.window += bytes.min(self.window);
                self.watch_start(rate);
            }
            Mode::Alone => self.grow(bytes),
            Mode::Competing => self.ask_cubic(&CongestionEvent::Acked { bytes, rtt, rate }, view),
        }
        if let Some(sample) = rate {
            self.rounds.on_sample(&sample);
            if self.rounds.started {
                self.startup.begin_round();
                self.batch.advance();
                self.on_round(&sample, view);
            }
        }
    }

    /// What is in flight and not delivered within a round trip was lost, so beyond this nothing is gained.
    fn grow(&mut self, bytes: u64) {
        let grown = self.window + self.alone.growth(bytes, self.window);
        let most = self
            .held()
            .map_or(u64::MAX, |held| held / 2 * 3 + QUEUED_SEGMENTS * self.segment);
        self.window = grown.min(most.max(self.window));
    }

    /// CUBIC hears of `event`, and beside paths that wait in the same queue of what cost them segments.
    fn ask_cubic(&mut self, event: &CongestionEvent, view: &PathView<'_>) {
        self.cubic.set_parts(self.joint.parts(view.siblings));
        let rtt = view.smoothed_rtt.unwrap_or_default();
        if joint::cuts(event) {
            if self.joint.is_answered(view.now, rtt) {
                self.before = None; // what is late of these losses takes back no cut
                return;
            }
            self.joint.on_cut(view.now);
        } else if self.joint.follows(view.now, rtt, view.siblings) {
            self.cubic.on(&CongestionEvent::Lost { bytes: 0 }, view);
            self.cubic.on(&CongestionEvent::RecoveryEnded, view); // nothing of this path is lost
        }
        self.cubic.on(event, view);
        self.window = self.cubic.window_bytes();
    }

    fn on_round(&mut self, sample: &RateSample, view: &PathView<'_>) {
        self.watch_use(sample.application_limited);
        let rate = Rate::of(sample.delivered_bytes, sample.interval);
        if sample.application_limited && self.rate.is_some_and(|known| rate < known) {
            self.past.sustained.begin_anew();
            self.past.lately = Lately::default();
            return; // the application's rate, not the path's
        }
        self.rate = Some(rate);
        if let Some(kept_up) = self.past.sustained.on_round(view.now, sample) {
            self.most.on_sample(view.now, kept_up.as_bps(), MOST_LIFE);
        }
        let fastest = (self.past.lately).fastest(sample.delivered_bytes, sample.interval);
        let (Some(held), Some(queue), Some(shortest)) =
            (self.held_at(fastest), self.trips.queue(), self.trips.shortest())
        else {
            return;
        };
        let timers = lately::of_timers(shortest);
        let varied = self.past.lately.varied(self.noise());
        let most = self.most.get().map_or(rate, Rate::from_bps);
        let own = QUEUED_SEGMENTS * self.segment;
        let (noise, waits) = (self.noise(), rate.transmission_time(own));
        let freed = most.transmission_time(own);
        self.noisy = self.noisy.saturating_add(1) * u32::from(noise > waits / NOISE_DIVISOR);
        let round = Round {
            held: Held {
                now: held,
                most: self.held_at(most).unwrap_or(held),
            },
            queue,
            target: noise.max(waits),
            empty: freed.max(timers),
            shared: (self.left_by_others(rate, most))
                .max(varied.min(shortest / START_QUEUE_DIVISOR))
                .max(timers),
            freed,
            shortest,
        };
        self.clear = (self.clear + 1) * u32::from(round.queue <= round.empty);
        match self.mode {
            Mode::Startup if self.startup.on_round(rate, sample) => self.leave_startup(),
            Mode::Startup => {}
            Mode::Alone => self.on_round_alone(&round, view),
            Mode::Competing => self.on_round_competing(&round, view),
        }
        self.window = self.bounded(self.window);
    }

    /// How long what a few flows of this kind leave in the queue takes at most, each with as many segments as this one and the rate of this
    /// one. Where round trips vary all the time nothing can be left to them: what looks like their segments may be anything.
    fn left_by_others(&self, rate: Rate, most: Rate) -> Duration {
        let own = QUEUED_SEGMENTS * self.segment;
        if self.noisy >= CYCLE_ROUNDS {
            return most.transmission_time(own);
        }
        let longest = most.transmission_time(SHARERS * own);
        rate.min(most).transmission_time(own).min(longest)
    }

    /// A round is over: did the application leave the path unused, with nothing waiting in it?
    fn watch_use(&mut self, application_limited: bool) {
        let waits = |(queue, shortest)| queue > shortest / START_QUEUE_DIVISOR;
        let is_waiting = self.trips.queue().zip(self.trips.shortest()).is_some_and(waits);
        self.unused
            .on_round(application_limited && self.mode == Mode::Alone && !is_waiting);
    }

    /// The path is full: what it holds stays in flight.
    fn settle(&mut self, held: u64) {
        self.doubt.forget();
        self.trips.begin_rounds();
        self.mode = Mode::Alone;
        *self.alone = Alone::default();
        self.window = self.bounded(held.min(self.window));
    }

    /// Somebody else fills the queue: this one goes on as the CUBIC flow that it was before it gave way, or begins as one.
    fn compete(&mut self, view: &PathView<'_>) {
        self.doubt.forget();
        match self.neighbours.on_found() {
            None => self.cubic.resume(view),
            Some(largest) => {
                let window = largest.max(self.window);
                let threshold = if self.has_met_congestion { window } else { u64::MAX };
                *self.cubic = Cubic::at(&as_neighbours_are(), window, threshold, self.segment, view);
            }
        }
        self.mode = Mode::Competing;
        self.window = self.cubic.window_bytes();
    }

    /// Congestion has cost segments, or a mark says so.
    fn on_congestion(&mut self, event: &CongestionEvent, view: &PathView<'_>) {
        let before = Some((self.mode, self.window));
        match self.mode {
            Mode::Startup => {
                if self.overshoots(view) || matches!(event, CongestionEvent::Marked { .. }) {
                    self.before = before;
                    self.leave_startup();
                } else {
                    self.startup.on_episode();
                }
            }
            Mode::Alone if self.startup.is_aftermath(self.rounds.count) => {}
            Mode::Alone => {
                self.before = before;
                self.has_met_congestion = true;
                let rtt = self.smoothed_rtt.unwrap_or_default();
                let pace = self.pace(rtt);
                let is_light = self.damage.is_light();
                if !self.starves_others(rtt) && self.neighbours.on_congestion_alone(view.now, pace, is_light)
                {
                    self.compete(view);
                    self.ask_cubic(event, view);
                } else {
                    self.settle(self.window / 10 * 7);
                }
            }
            Mode::Competing => {
                self.before = before;
                self.neighbours.on_congestion_competing();
                self.ask_cubic(event, view);
            }
        }
    }

    /// Each timeout of silence is told.
    pub(super) fn fades(&self) -> bool {
        self.mode == Mode::Competing && self.cubic.fades()
    }

    /// When the window was last cut beside somebody else.
    pub(super) fn cut_at(&self) -> Option<Time> {
        self.joint.cut_at()
    }

    fn bounded(&self, window: u64) -> u64 {
        window.clamp(LEAST_SEGMENTS * self.segment, LARGEST_WINDOW)
    }
}

impl Congestion for Adaptive {
    fn on(&mut self, event: &CongestionEvent, view: &PathView<'_>) {
        self.smoothed_rtt = view.smoothed_rtt;
        self.segment = segment_of(view);
        match *event {
            CongestionEvent::Acked { bytes, rtt, rate } => self.on_acked(bytes, rtt, rate, view),
            CongestionEvent::Lost { .. } | CongestionEvent::Marked { .. } => self.on_congestion(event, view),
            CongestionEvent::Timeout { .. } => {
                if self.mode != Mode::Competing {
                    self.compete(view);
                }
                self.ask_cubic(event, view);
            }
            CongestionEvent::Corrupted { bytes } => {
                self.damage.on_lost();
                self.doubt.on_lost();
                let lost = CongestionEvent::Lost { bytes };
                if self.mode == Mode::Competing {
                    self.before = Some((self.mode, self.window));
                    self.ask_cubic(&lost, view);
                    self.joint.on_damage();
                } else if self.doubt.follows() {
                    self.on_congestion(&lost, view);
                } else if self.mode == Mode::Alone {
                    self.neighbours.on_damage_alone();
                }
            }
            CongestionEvent::SegmentLost(_) if self.mode == Mode::Startup => {
                self.startup.on_lost();
                if self.overshoots(view) {
                    self.on_congestion(event, view);
                }
            }
            CongestionEvent::RecoveryEnded => self.cubic.on(event, view), // of an episode that began in any mode
            CongestionEvent::Sent { .. }
            | CongestionEvent::Idle { .. }
            | CongestionEvent::Duplicate
            | CongestionEvent::SegmentLost(_) => {
                if self.mode == Mode::Competing {
                    self.ask_cubic(event, view);
                }
            }
            CongestionEvent::RouteChanged => {
                self.trips = Trips::default();
                self.past.lately = Lately::default();
            }
            CongestionEvent::Restored => {
                if let Some((mode, window)) = self.before.take() {
                    self.window = self.window.max(window);
                    if mode == Mode::Competing {
                        if self.mode != mode {
                            self.compete(view);
                        }
                        self.ask_cubic(event, view);
                    }
                    self.mode = mode;
                }
            }
        }
        self.window = self.bounded(self.window);
    }
    fn window_bytes(&self) -> u64 {
        match self.mode {
            // The pace keeps the window; while acknowledgements are held back, it goes on.
            Mode::Alone => {
                let batch = self.batch.get().saturating_sub(HELD_BACK_SEGMENTS * self.segment);
                (self.window + 2 * batch.min(self.window / HELD_BACK_DIVISOR)).min(LARGEST_WINDOW)
            }
            Mode::Startup | Mode::Competing => self.window,
        }
    }
    fn pacing(&self) -> Option<Rate> {
        match self.mode {
            // What leaves faster than it is acknowledged waits in the queue, and a short one is full at once. After a start round trips still
            // have the queue that it had filled, and by these the path would fall idle as soon as that is gone.
            Mode::Alone => self.trips.standing().map(|rtt| {
                let pace = Rate::of(self.window, rtt);
                let delivered = self.rate.filter(|_| self.startup.is_aftermath(self.rounds.count));
                pace.max(delivered.unwrap_or(pace))
            }),
            Mode::Startup | Mode::Competing => self
                .smoothed_rtt
                .map(|rtt| window_over_rtt(self.window, rtt, self.mode == Mode::Startup)),
        }
    }
    fn answers(&self) -> u64 {
        match self.mode {
            Mode::Competing => CLOCKED_ANSWERS,
            Mode::Startup | Mode::Alone => 0,
        }
    }
    fn is_starting(&self) -> bool {
        self.mode == Mode::Startup
    }
    fn snapshot(&self) -> CongestionSnapshot {
        CongestionSnapshot {
            window_bytes: self.window_bytes(),
            threshold_bytes: None,
            state: self.mode.name(),
        }
    }
}
