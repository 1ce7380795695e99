//! The earliest deadline of the subflows and of what they share.

use super::{Connection, State};
use restp_base::machine::Wakeup;
use restp_base::time::Time;

impl Connection {
    /// When to call [`Connection::on_deadline`], and why.
    pub(crate) fn deadline(&self) -> Option<(Time, Wakeup)> {
        let subflows = self.members.iter().filter_map(|member| member.tcp.deadline());
        // Nothing can be asked or ended without a subflow that is up.
        let works = self.state == State::Established && self.best().is_some();
        let awaits_end = self.unacknowledged_fin().is_some();
        let ends = self.members.iter().any(|member| !member.tcp.is_over());
        let shared = [
            (self.breaks_at.filter(|_| ends), Wakeup::Expiry),
            (self.out.probe_at.filter(|_| works), Wakeup::Probe),
            (self.out.resend_at.filter(|_| works), Wakeup::Retransmission),
            (
                self.out.fin_at.filter(|_| works && awaits_end),
                Wakeup::Retransmission,
            ),
        ];
        let shared = shared.into_iter().filter_map(|(at, why)| Some((at?, why)));
        subflows.chain(shared).min()
    }

    /// Acts on every deadline that has come.
    pub(crate) fn on_deadline(&mut self, now: Time) {
        for ordinal in 0..self.members.len() {
            if !self.members[ordinal].gone || !self.members[ordinal].tcp.is_closed() {
                self.introduce(ordinal);
                self.members[ordinal].tcp.on_deadline(now);
                self.collect(now, ordinal);
            }
        }
        if self.breaks_at.is_some_and(|at| at <= now) {
            self.members.iter_mut().for_each(|member| member.tcp.abort());
        }
    }
}
