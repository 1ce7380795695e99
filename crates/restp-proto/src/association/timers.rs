//! The earliest deadline of the paths and of what they share.

use super::{Association, ShutWindow, State};
use restp_base::flow::CloseReason;
use restp_base::machine::Wakeup;
use restp_base::time::Time;

impl Association {
    /// When to call [`Association::on_deadline`], and why.
    pub(crate) fn deadline(&self) -> Option<(Time, Wakeup)> {
        let members = self.members.iter().filter(|member| !member.vacant);
        let paths = members.filter_map(|member| member.connection.deadline());
        let lines = self.lines.iter().filter_map(|line| line.deadline());
        // Nothing can be asked or ended without a path that is up.
        let works = self.state == State::Established && self.best().is_some();
        let shared = [
            (self.suspicion_at().filter(|_| works), Wakeup::Probe),
            (lines.min(), Wakeup::Retransmission),
            (self.breaks_at.filter(|_| self.says_goodbye()), Wakeup::Expiry),
            (
                self.out.shut.map(|shut| shut.probe_at).filter(|_| works),
                Wakeup::Probe,
            ),
            (
                self.out.shut.map(|shut| self.stall_deadline(shut)),
                Wakeup::Expiry,
            ),
            (self.out.resend_at.filter(|_| works), Wakeup::Retransmission),
            (
                self.out.fin_at.filter(|_| works && self.awaits_end()),
                Wakeup::Retransmission,
            ),
        ];
        let shared = shared.into_iter().filter_map(|(at, why)| Some((at?, why)));
        paths.chain(shared).min()
    }

    /// When a peer that answers and takes nothing any more is given up, as on one path (OP-50).
    fn stall_deadline(&self, shut: ShutWindow) -> Time {
        shut.since + self.composition.stall_timeout()
    }

    /// The association is over and a path of it is not.
    fn says_goodbye(&self) -> bool {
        self.members.iter().any(|member| !member.connection.is_over())
    }

    /// Our DATA_FIN is out and not acknowledged.
    fn awaits_end(&self) -> bool {
        self.release.local_fin().is_some_and(|fin| fin >= self.out.first)
    }

    /// Acts on every deadline that has come.
    pub(crate) fn on_deadline(&mut self, now: Time) {
        for ordinal in 0..self.members.len() {
            if !self.members[ordinal].vacant {
                self.introduce(ordinal);
                self.members[ordinal].connection.on_deadline(now);
                self.collect(now, ordinal);
            }
        }
        if self.breaks_at.is_some_and(|at| at <= now) {
            let members = self.members.iter_mut();
            members.for_each(|member| member.connection.abort(now));
        }
        if let Some(shut) = self.out.shut.filter(|shut| self.stall_deadline(*shut) <= now) {
            self.break_off(now, CloseReason::TimedOut(now.since(shut.since)));
        }
        if self.state == State::Established {
            self.judge(now);
            self.conclude(now);
        }
    }
}
