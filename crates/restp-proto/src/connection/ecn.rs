//! Congestion marks of the network, from the receiver's end (OP-59; RFC 3168).

use super::Connection;
use crate::wire::{Flags, Header};
use restp_base::machine::Ecn;

impl Connection {
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
