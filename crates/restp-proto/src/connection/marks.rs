//! Congestion marks of the network, from both ends (OP-59; RFC 3168).

use super::Connection;
use crate::wire::{Flags, Header};
use restp_base::machine::Ecn;
use restp_base::time::Time;
use restp_services::congestion::CongestionEvent;
use restp_services::loss_handling::Finding;

impl Connection {
    /// The receiver echoes a congestion mark: react once per window of data (RFC 3168 §6.1.2).
    pub(super) fn on_echo(&mut self, now: Time, header: &Header, outstanding: u64) {
        let echoes = header.flags.has(Flags::ECE) && !header.flags.has(Flags::SYN);
        if !self.ecn.agreed || !echoes || self.out.board.first() < self.ecn.react_from {
            return;
        }
        self.ecn.react_from = self.out.board.next();
        self.ecn.reduced = true;
        if self
            .composition
            .loss_handling
            .reaction(Finding::Mark)
            .reduce_window
            && !self.out.recovery.is_active()
        {
            let bytes = u64::from(self.composition.segment_bytes);
            self.tell_controller(now, &CongestionEvent::Marked { bytes }, outstanding);
        }
    }

    /// As receiver: remember a mark until the sender says it has reacted (RFC 3168 §6.1.3).
    pub(super) fn on_mark(&mut self, header: &Header, ecn: Ecn, with_data: bool) {
        if !self.ecn.agreed {
            return;
        }
        if with_data && header.flags.has(Flags::CWR) {
            self.ecn.echo = false;
        }
        self.ecn.echo |= ecn == Ecn::Ce;
    }
}
