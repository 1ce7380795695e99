//! Startup and Drain (draft-ietf-ccwg-bbr §5.3.1, §5.3.2): double until the rate stops growing or losses say so, then
//! empty the queue that made.

use super::{Bbr, INITIAL_SEGMENTS, LOSS_THRESHOLD_PERCENT, ONE, State, part};
use crate::view::PathView;
use restp_base::time::Time;
use restp_base::units::Rate;

/// Growth that counts, and rounds without it that mean a full pipe.
pub(super) const GROWTH: (u64, u64) = (5, 4);
const FULL_ROUNDS: u32 = 3;
/// Losses of a round that may end Startup (StartupFullLossCnt).
const FULL_LOSSES: u64 = 6;

/// Does sending more bring more (§5.3.1.2)?
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::congestion) struct FullPipe {
    best: u64,
    rounds: u32,
    /// It does not, in this state.
    pub is_full: bool,
    /// It did not once: Startup is over.
    pub was_full: bool,
}

impl FullPipe {
    pub fn on_sample(&mut self, speed: u64, application_limited: bool, round_started: bool) {
        if self.is_full || application_limited {
            return;
        }
        if speed >= part(self.best, GROWTH) {
            return self.restart(speed);
        }
        self.rounds += u32::from(round_started);
        self.is_full = self.rounds >= FULL_ROUNDS;
        self.was_full |= self.is_full;
    }
    pub fn restart(&mut self, speed: u64) {
        (self.best, self.rounds, self.is_full) = (speed, 0, false);
    }
}

/// The first window leaves at once, so its acknowledgements come at the distance that the narrowest link gave it. If they
/// all come within a small part of a round trip, the path holds many such windows, and doubling wastes a round trip. (SUSS,
/// Arghavani et al., SIGCOMM 2024, multiplies by four in every round that shows it; later rounds are paced here, and do not.)
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FirstTrain {
    began: Option<Time>,
    /// Acknowledged since.
    bytes: u64,
    over: bool,
}

impl FirstTrain {
    /// `bytes` of the first window are acknowledged; with the last of `all`, the rate that their distance shows.
    fn on_acked(&mut self, now: Time, bytes: u64, all: bool) -> Option<Rate> {
        if self.over {
            return None;
        }
        let Some(began) = self.began else {
            self.began = Some(now);
            return None;
        };
        self.bytes = self.bytes.saturating_add(bytes);
        self.over = all;
        (all && now > began).then(|| Rate::of(self.bytes, now.since(began)))
    }
}

impl Bbr {
    /// At the end of the first round: a multiple of its window, but no more than a quarter of what the path holds at the rate
    /// it showed.
    pub(super) fn leap(&mut self, bytes: u64, now: Time) {
        let first = INITIAL_SEGMENTS * self.segment;
        let all = self.delivered.saturating_add(self.segment) > first;
        let shown = self.first_train.on_acked(now, bytes, all);
        let holds = shown
            .zip(self.round_trip.shortest)
            .map(|(rate, rtt)| rate.bytes_in(rtt));
        if let Some(holds) = holds.filter(|_| self.state == State::Startup && self.lower.lost_segments == 0) {
            self.window = self
                .window
                .max((u64::from(self.params.leap) * first).min(holds / 4));
        }
    }

    pub(super) fn check_startup(&mut self, view: &PathView<'_>) {
        if self.state != State::Startup {
            return;
        }
        self.check_startup_losses(view);
        if self.pipe.was_full {
            self.state = State::Drain;
        }
    }

    /// A round of recovery with many losses means that the pipe is full (§5.3.1.3).
    fn check_startup_losses(&mut self, view: &PathView<'_>) {
        let delivered = self.lower.most_delivered();
        let share = part(delivered, (LOSS_THRESHOLD_PERCENT, 100));
        if view.in_recovery
            && self.lower.round_ended
            && self.lower.lost_segments >= FULL_LOSSES
            && self.lower.lost_bytes > share
        {
            self.pipe.was_full = true;
            self.upper = self.in_flight_at(ONE).max(delivered).max(self.least_window());
        }
    }

    pub(super) fn check_drain(&mut self, view: &PathView<'_>) {
        if self.state == State::Drain && view.in_flight_bytes <= self.in_flight_at(ONE) {
            self.start_down(view.now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_rounds_without_a_quarter_more_mean_full() {
        let mut pipe = FullPipe::default();
        for speed in [100, 200, 400, 480] {
            pipe.on_sample(speed, false, true);
        }
        pipe.on_sample(499, true, true);
        pipe.on_sample(499, false, false);
        pipe.on_sample(499, false, true);
        assert!(!pipe.is_full, "two rounds below 500");
        pipe.on_sample(410, false, true);
        assert!(pipe.is_full && pipe.was_full);
        pipe.restart(410);
        assert!(!pipe.is_full && pipe.was_full);
    }
}
