//! ProbeBW (draft-ietf-ccwg-bbr §5.3.3): every few seconds a little more, to see whether the path takes it.

use super::model::{NONE, part};
use super::startup::GROWTH;
use super::{Bbr, ONE, QUEUE_SEEN, State};
use crate::recovery::RateSample;
use crate::view::PathView;
use restp_base::random::Stream;
use restp_base::time::{Duration, Time};

/// The four steps of a cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Empties the queue.
    Down,
    /// Keeps to the estimate, and leaves headroom.
    Cruise,
    /// Fills the pipe, without a queue.
    Refill,
    /// Asks for more.
    Up,
}

/// What the acknowledgements that come now tell about (§5.3.3.4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Acks {
    #[default]
    Ordinary,
    /// The probe leaves; they tell of the time before it.
    ProbeStarting,
    /// The probe.
    ProbeFeedback,
    /// The last of the probe.
    ProbeStopping,
}

/// Position in the cycle.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cycle {
    began: Time,
    /// From the beginning of Down to Refill.
    wait: Duration,
    /// Bytes delivered when Down ended: what was sent before met the queue of the probe.
    pub drained_at: u64,
    /// Rounds since the last probe.
    pub rounds: u64,
    acks: Acks,
    /// Losses now are those of a probe (bw_probe_samples).
    pub probing: bool,
    /// Doublings of the upper bound's growth in this Up, acknowledged bytes not used for it, bytes that buy a segment.
    up_rounds: u32,
    up_acked: u64,
    up_price: u64,
    /// There was no queue when Up began: one that is seen in it is its own.
    clear: bool,
    /// Rounds of this Up, and the bandwidth it began with.
    up_length: u32,
    up_from: u64,
}

/// The wait between probes: 2 to 3 seconds (§5.3.3.5.1).
const LEAST_WAIT: Duration = Duration::from_secs(2);
const WAIT_SPREAD_NANOS: u64 = 1_000_000_000;
/// No longer than Reno needs to regain what a loss costs it, on paths of up to this many segments (§5.3.3.5.2).
const RENO_ROUNDS: u64 = 63;

impl Bbr {
    /// Empties the queue and draws the time of the next probe. Chance comes from the moment itself: no two flows share
    /// all their moments, and a run repeated has the same ones.
    pub(super) fn start_down(&mut self, now: Time) {
        let mut chance = Stream::named(now.as_nanos(), "bbr/wait");
        self.lower.forget_round();
        self.cycle.up_price = NONE;
        self.cycle.rounds = chance.below(2);
        self.cycle.wait = LEAST_WAIT + Duration::from_nanos(chance.below(WAIT_SPREAD_NANOS));
        self.cycle.began = now;
        self.cycle.acks = Acks::ProbeStopping;
        self.rounds.restart(self.delivered);
        self.state = State::ProbeBw(Phase::Down);
    }

    pub(super) fn start_cruise(&mut self) {
        self.cycle.drained_at = self.delivered;
        self.state = State::ProbeBw(Phase::Cruise);
    }

    fn start_refill(&mut self) {
        self.lower.lift();
        (self.cycle.up_rounds, self.cycle.up_acked) = (0, 0);
        self.cycle.acks = Acks::Ordinary;
        self.rounds.restart(self.delivered);
        self.state = State::ProbeBw(Phase::Refill);
    }

    fn start_up(&mut self, speed: u64, now: Time) {
        self.cycle.probing = true;
        self.cycle.acks = Acks::ProbeStarting;
        self.rounds.restart(self.delivered);
        self.pipe.restart(speed);
        self.cycle.began = now;
        self.cycle.clear = !self.sees_queue();
        (self.cycle.up_length, self.cycle.up_from) = (0, self.bandwidth.get());
        self.state = State::ProbeBw(Phase::Up);
        self.raise_slope();
    }

    /// A probe in vain, or one that was stopped for another reason.
    pub(super) fn stop_probing(&mut self) {
        self.cycle.acks = Acks::ProbeStopping;
    }

    pub(super) fn update_cycle(&mut self, sample: &RateSample, acked: u64, view: &PathView<'_>) {
        if !self.pipe.was_full {
            return;
        }
        self.adapt_upper_bound(sample, acked, view);
        let State::ProbeBw(phase) = self.state else {
            return;
        };
        let speed = restp_base::units::Rate::of(sample.delivered_bytes, sample.interval).as_bps();
        match phase {
            Phase::Down | Phase::Cruise if self.is_time_to_probe(view.now) => self.start_refill(),
            Phase::Down if self.is_time_to_cruise(view) => self.start_cruise(),
            Phase::Down | Phase::Cruise => {}
            Phase::Refill if self.rounds.started => self.start_up(speed, view.now),
            Phase::Refill => {}
            Phase::Up => {
                self.cycle.up_length += u32::from(self.rounds.started);
                if self.queues_in_vain() {
                    self.start_down(view.now);
                } else if self.fills_window(acked, view) && self.window >= self.upper {
                    self.pipe.restart(speed); // the bound, not the path, held it back
                } else if self.pipe.is_full {
                    self.start_down(view.now);
                }
            }
        }
    }

    /// Rounds brought no bandwidth but a queue where there was none ([`BbrParams::vain_rounds`](super::BbrParams)).
    fn queues_in_vain(&self) -> bool {
        let grown = self.bandwidth.get() >= part(self.cycle.up_from, GROWTH);
        let long = self.cycle.up_length >= self.params.vain_rounds;
        self.cycle.clear && long && !grown && self.is_queue(self.round_trip.latest, QUEUE_SEEN)
    }

    fn is_time_to_probe(&self, now: Time) -> bool {
        let segments = self.in_flight_at(ONE).min(self.window) / self.segment;
        now.since(self.cycle.began) > self.cycle.wait || self.cycle.rounds >= segments.min(RENO_ROUNDS)
    }

    fn is_time_to_cruise(&self, view: &PathView<'_>) -> bool {
        view.in_flight_bytes <= self.upper_with_headroom() && view.in_flight_bytes <= self.in_flight_at(ONE)
    }

    /// What was in flight without too much loss raises the upper bound; too much lowers it (§5.5.10.2).
    fn adapt_upper_bound(&mut self, sample: &RateSample, acked: u64, view: &PathView<'_>) {
        if self.rounds.started {
            match self.cycle.acks {
                Acks::ProbeStarting => self.cycle.acks = Acks::ProbeFeedback,
                Acks::ProbeStopping => {
                    (self.cycle.acks, self.cycle.probing) = (Acks::Ordinary, false);
                    if matches!(self.state, State::ProbeBw(_)) && !sample.application_limited {
                        self.bandwidth.advance();
                    }
                }
                Acks::Ordinary | Acks::ProbeFeedback => {}
            }
        }
        let sent = sample.sent_in_flight_bytes;
        if self.is_too_much(sample.lost_bytes, sent) {
            if self.cycle.probing {
                self.lower_upper_bound(sent, sample.application_limited, view.now);
            }
        } else if self.upper != NONE {
            self.upper = self.upper.max(sent);
            if self.state == State::ProbeBw(Phase::Up) {
                self.raise_upper_bound(acked, view);
            }
        }
    }

    fn raise_upper_bound(&mut self, acked: u64, view: &PathView<'_>) {
        if !self.fills_window(acked, view) || self.window < self.upper {
            return;
        }
        self.cycle.up_acked = self.cycle.up_acked.saturating_add(acked);
        if self.cycle.up_acked >= self.cycle.up_price {
            let segments = self.cycle.up_acked / self.cycle.up_price;
            self.cycle.up_acked -= segments * self.cycle.up_price;
            let growth = segments.saturating_mul(self.segment);
            self.upper = self.upper.saturating_add(growth).min(NONE - 1);
        }
        if self.rounds.started {
            self.raise_slope();
        }
    }

    /// The bound grows by 1, 2, 4, … segments per round.
    fn raise_slope(&mut self) {
        let price = self.window >> self.cycle.up_rounds;
        self.cycle.up_price = price.max(1);
        self.cycle.up_rounds = (self.cycle.up_rounds + 1).min(30);
    }

    fn fills_window(&self, acked: u64, view: &PathView<'_>) -> bool {
        let before = view.in_flight_bytes.saturating_add(acked);
        before.saturating_add(self.segment) >= self.window
    }
}
