//! Slow start: what is in flight doubles in a round trip, until a queue, a rate that grows no more, or losses say that the path is full
//! (RFC 9406; BBRv3 draft §4.3.1).

use super::lately::Lately;
use super::mode::Mode;
use super::{Adaptive, QUEUED_SEGMENTS, START_QUEUE_DIVISOR};
use crate::congestion::bbr::filter::RecentMax;
use crate::congestion::bbr::startup::FullPipe;
use crate::recovery::RateSample;
use crate::view::PathView;
use restp_base::units::Rate;

/// So many acknowledgements in a row have seen a queue: the last of a flight may have waited for another segment, and tells of no queue.
const ANSWERS: u32 = 2;
/// Losses without a queue end it when a round has more than this share of the window, and more than so many segments: who doubles what is
/// in flight over a full path loses up to half of it, and in the next round more than half; damage hardly ever takes as much.
const LOSS_DIVISOR: u64 = 8;
const FEW_LOSSES: u64 = 3;
/// Rounds after it in which losses are of what it had sent, and round trips have the queue that it had made.
const AFTERMATH_ROUNDS: u64 = 3;

/// State of the rule.
#[derive(Clone, Debug, Default)]
pub(super) struct Startup {
    pub(super) pipe: FullPipe,
    /// Acknowledgements in a row that saw a queue.
    pub(super) queued: u32,
    /// Segments lost in this round, and the highest rate in bit/s that an acknowledgement of it and the last has shown: one may be of a pause
    /// between two flights.
    lost: u32,
    fastest: RecentMax,
    /// Until this round losses are of what was sent in it.
    pub(super) aftermath: u64,
}

impl Startup {
    /// A round is over: does the rate grow no more?
    pub fn on_round(&mut self, rate: Rate, sample: &RateSample) -> bool {
        let fastest = self.fastest.get().max(rate.as_bps());
        self.pipe.on_sample(fastest, sample.application_limited, true);
        self.pipe.is_full
    }

    pub fn begin_round(&mut self) {
        self.lost = 0;
        self.fastest.advance();
    }

    pub fn on_lost(&mut self) {
        self.lost += 1;
    }

    /// An episode of losses has begun: one segment at least, also where redundancy has hidden which.
    pub fn on_episode(&mut self) {
        self.lost = self.lost.max(1);
    }

    /// Is this round one of those after it?
    pub fn is_aftermath(&self, round: u64) -> bool {
        round < self.aftermath
    }

    fn begin_anew(&mut self) {
        *self = Startup {
            aftermath: self.aftermath,
            ..Startup::default()
        };
    }
}

impl Adaptive {
    /// What the path holds is found as one who begins finds it.
    pub(super) fn ask_anew(&mut self) {
        self.doubt.forget();
        self.past.lately = Lately::default();
        self.startup.begin_anew();
        self.mode = Mode::Startup;
    }

    /// Startup ends as soon as it has made a queue.
    pub(super) fn watch_start(&mut self, sample: Option<RateSample>) {
        let (Some(sample), Some(queue), Some(shortest)) = (sample, self.trips.queue(), self.trips.shortest())
        else {
            return;
        };
        let rate = Rate::of(sample.delivered_bytes, sample.interval);
        self.startup.fastest.update(rate.as_bps());
        let target = rate.transmission_time(QUEUED_SEGMENTS * self.segment);
        let is_queue = queue > target.max(shortest / START_QUEUE_DIVISOR);
        self.startup.queued = (self.startup.queued + 1) * u32::from(is_queue);
        if self.startup.queued >= ANSWERS {
            self.leave_startup();
        }
    }

    /// Do losses in Startup speak of a full path? What damage takes is a small share of a window that doubles. An application that does not
    /// fill the window fills no path with it, and answers the first.
    pub(super) fn overshoots(&self, view: &PathView<'_>) -> bool {
        let lost = u64::from(self.startup.lost);
        let are_many = lost > FEW_LOSSES && lost * self.segment > self.window / LOSS_DIVISOR;
        self.startup.queued > 0 || self.has_met_congestion || view.application_limited || are_many
    }

    pub(super) fn leave_startup(&mut self) {
        self.startup.aftermath = self.rounds.count + AFTERMATH_ROUNDS;
        let fastest = self.startup.fastest.get();
        if self.rate.is_none_or(|rate| rate.as_bps() < fastest) {
            self.rate = Some(Rate::from_bps(fastest));
        }
        self.settle(self.held().unwrap_or(self.window / 2));
    }
}
