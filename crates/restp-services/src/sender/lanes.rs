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
        self.others.push(Lane::new(now, rto, controller, mtu, recovery));
        Some(id)
    }

    /// Asks for the lane `id`: what may leave by it, what is known of it, what became of it.
    pub fn on<R>(&mut self, id: LaneId, ask: impl FnOnce(&mut Sender) -> R) -> R {
        let Some(index) = id.index().checked_sub(1) else {
            return ask(self);
        };
        debug_assert_eq!(self.board.in_hand(), LaneId::FIRST, "one lane at a time");
        self.swap(index, id);
        let answer = ask(self);
        self.swap(index, LaneId::FIRST);
        answer
    }

    fn swap(&mut self, index: usize, in_hand: LaneId) {
        std::mem::swap(&mut self.lane, &mut self.others[index]);
        self.board.take_in_hand(in_hand);
    }

    /// The lanes besides the first.
    pub(super) fn other_lanes(&self) -> impl Iterator<Item = LaneId> + use<> {
        (1..=self.others.len()).map(LaneId::nth)
    }

    /// Asks each lane in turn, the first one first.
    pub(super) fn each_lane(&mut self, mut ask: impl FnMut(&mut Sender)) {
        ask(self);
        for id in self.other_lanes() {
            self.on(id, &mut ask);
        }
    }
}
