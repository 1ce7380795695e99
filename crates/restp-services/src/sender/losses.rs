//! What was found lost and for which cause, for whoever observes (ResTP §3.6). It steers nothing.

use super::Sender;
use crate::loss_handling::LossHandling;
use crate::recovery::LaneId;
use restp_base::machine::PathAddress;
use restp_base::observe::{Cause, Loss};

impl Sender {
    /// Adds what was found lost since the last call to `into`, with the path of its lane. The first call begins the record.
    pub fn take_losses(&mut self, path: impl Fn(LaneId) -> PathAddress, into: &mut Vec<Loss>) {
        let fixed = match self.parameters.loss_handling {
            LossHandling::Congestion | LossHandling::Adaptive => Cause::Congestion,
            LossHandling::Corruption => Cause::Corruption,
            LossHandling::Outage => Cause::Outage,
        };
        let observed: Vec<_> = self.board.take_observed().collect();
        into.extend(observed.into_iter().map(|(lane, segment, is_late)| Loss {
            path: path(lane),
            segment,
            cause: self.on(lane, |sender| match &sender.lane.cutting {
                Some(_) if is_late => Cause::Late,
                Some(cutting) => cutting.cause(segment.at),
                None => fixed,
            }),
        }));
    }
}
