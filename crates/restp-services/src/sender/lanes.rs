//! Several lanes: paths that share the numbers, the data and the peer's credit, each with a window, a timer and losses of its
//! own. One lane is in hand, and every door speaks of that one; the others wait behind it. Reports, deadlines and the end
//! are of all lanes (split fast retransmit and the window of each destination: Iyengar, Amer and Stewart, ToN 14(5), 2006).

use super::Sender;
use super::lane::Lane;
use crate::congestion::Controller;
use crate::path_management::PathMtu;
use crate::recovery::{LaneId, Recovery, RtoParameters};
use restp_base::time::Time;

impl Sender {
    /// One lane more. What a lane loses is found by what overtakes it there, so reports must name what arrived; what is
    /// lost leaves again by whichever lane is asked first. `None` when there are 256, or where losses do not leave again.
    pub fn open_lane(
        &mut self,
        now: Time,
        recovery: Recovery,
        controller: Controller,
        rto: RtoParameters,
    ) -> Option<LaneId> {
        let id = self.parameters.retransmits.then(|| self.board.open_lane())??;
        let mtu = PathMtu::known(self.parameters.segment_bytes);
        let lane = Lane::new(now, rto, controller, mtu, recovery).judging(self.parameters.loss_handling);
        self.others.push(lane);
        Some(id)
    }

    /// Asks for the lane `id`: what may leave by it, what is known of it, what became of it. The lane that was in hand is so
    /// again afterwards, so a question may hold others.
    pub fn on<R>(&mut self, id: LaneId, ask: impl FnOnce(&mut Sender) -> R) -> R {
        let before = self.board.in_hand();
        self.take_in_hand(id);
        let answer = ask(self);
        self.take_in_hand(before);
        answer
    }

    fn take_in_hand(&mut self, id: LaneId) {
        self.swap_with(self.board.in_hand());
        self.swap_with(id);
        self.board.take_in_hand(id);
    }

    /// The first lane and the lane `id` change places.
    fn swap_with(&mut self, id: LaneId) {
        if let Some(index) = id.index().checked_sub(1) {
            std::mem::swap(&mut self.lane, &mut self.others[index]);
        }
    }

    /// Every lane, the first one first.
    pub(super) fn lanes(&self) -> impl Iterator<Item = LaneId> + use<> {
        (0..=self.others.len()).map(LaneId::nth)
    }

    /// Asks each lane in turn.
    pub(super) fn each_lane(&mut self, mut ask: impl FnMut(&mut Sender)) {
        for id in self.lanes() {
            self.on(id, &mut ask);
        }
    }

    /// Several paths share the numbers.
    pub(super) fn has_several_lanes(&self) -> bool {
        !self.others.is_empty()
    }
}
