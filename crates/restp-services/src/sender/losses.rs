//! What was found lost and for which cause, for whoever observes (ResTP §3.6). It steers nothing.

use super::Sender;
use crate::loss_handling::LossHandling;
use crate::recovery::LaneId;
use restp_base::machine::PathAddress;
use restp_base::observe::{Cause, Loss};

impl Sender {
    /// Adds what was found lost since the last call to `into`, with the path of its lane. The first call begins the record.
    pub fn take_losses(&mut self, path: impl Fn(LaneId) -> PathAddress, into: &mut Vec<Loss>) {
        let cause = match self.parameters.loss_handling {
            LossHandling::Congestion => Cause::Congestion,
            LossHandling::Corruption => Cause::Corruption,
            LossHandling::Outage => Cause::Outage,
        };
        into.extend(self.board.take_observed().map(|(lane, segment)| Loss {
            path: path(lane),
            segment,
            cause,
        }));
    }
}
