//! What follows from a round that is over (Copa, NSDI 2018, §2.2; RFC 9438).

use super::alone::Alone;
use super::doubt::Shown;
use super::lately::Lately;
use super::round::Round;
use super::{Adaptive, QUEUED_SEGMENTS};
use crate::view::PathView;

impl Adaptive {
    pub(super) fn on_round_alone(&mut self, round: &Round, view: &PathView<'_>) {
        let own = QUEUED_SEGMENTS * self.segment;
        if self.trips.on_round(self.window, round.queue, own, round.freed) {
            self.past.lately = Lately::default();
            return;
        }
        let standing = round.shortest + round.queue;
        let pace = self.pace(standing);
        // Who has competed has seen a neighbour: then any queue that stays is his.
        let empty = if self.neighbours.is_on_trial() {
            round.empty
        } else {
            round.shared
        };
        let is_met = self
            .neighbours
            .on_round(view.now, self.window, round.queue, empty, pace);
        match self.doubt.on_round() {
            Some(Shown::Follows) => {
                self.neighbours.on_neighbour(view.now, pace);
                self.has_met_congestion = true;
                self.compete(view);
                return;
            }
            Some(Shown::Stays(window)) => self.window = self.window.max(window),
            None => {}
        }
        if !self.neighbours.is_deciding() && !self.doubt.is_testing() {
            self.window = self.alone.on_round(self.window, round, own / 2);
        }
        let nearly_empty = round.shortest + round.empty;
        if self
            .neighbours
            .on_trial_round(view.now, standing, nearly_empty, pace)
            || is_met
        {
            self.compete(view);
        } else if self.window >= round.held.most / 4 * 3 {
            self.doubt_damage();
        }
    }

    /// Sends less for a while to see whether less is damaged, if it is time to.
    fn doubt_damage(&mut self) {
        let smaller = self.window / 10 * 7;
        if self.doubt.is_due(smaller / self.segment) {
            self.doubt.begin(self.window);
            *self.alone = Alone::default();
            self.window = smaller;
        }
    }

    pub(super) fn on_round_competing(&mut self, round: &Round, view: &PathView<'_>) {
        if self.starves_others(round.shortest) {
            self.settle(self.window);
            return;
        }
        if self.neighbours.is_trial_due(view.now, round.queue <= round.empty) {
            self.neighbours
                .begin_trial(view.now, round.shortest + round.queue);
            self.settle(self.window / 10 * 7);
        }
    }
}
