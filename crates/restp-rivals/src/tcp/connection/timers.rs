//! The earliest deadline of the parts, with its reason, and what happens when one has come.

use super::{Connection, State};
use restp_base::flow::CloseReason;
use restp_base::machine::Wakeup;
use restp_base::time::Time;
use restp_services::sender::TimeoutOutcome;

impl Connection {
    /// When to call [`Connection::on_deadline`], and why.
    pub(crate) fn deadline(&self) -> Option<(Time, Wakeup)> {
        let timers = match &self.state {
            State::SynSent(handshake) | State::SynReceived(handshake) => [
                handshake.deadline().map(|at| (at, Wakeup::Retransmission)),
                None,
                None,
                None,
            ],
            State::Established => [
                self.sender.deadline(),
                self.receiver
                    .ack_timer()
                    .deadline()
                    .map(|at| (at, Wakeup::Acknowledgement)),
                self.orphan_deadline().map(|at| (at, Wakeup::Expiry)),
                self.proof_deadline().map(|at| (at, Wakeup::Retransmission)),
            ],
            State::TimeWait { until } => [Some((*until, Wakeup::Expiry)), None, None, None],
            State::Resetting | State::Closed => return None,
        };
        timers.into_iter().flatten().min_by_key(|(at, _)| *at)
    }

    /// Acts on every deadline that has come. Early calls do no harm. True when the retransmission timer ran out.
    pub(crate) fn on_deadline(&mut self, now: Time) -> bool {
        self.check_handshake(now);
        self.check_proof(now);
        self.check_wait(now);
        self.state == State::Established && self.check_timers(now)
    }

    fn check_timers(&mut self, now: Time) -> bool {
        match self.sender.on_deadline(now) {
            TimeoutOutcome::Nothing => {}
            TimeoutOutcome::Lost => return true,
            TimeoutOutcome::GivesUp(waited) => {
                self.end(CloseReason::TimedOut(waited), State::Resetting);
                return false;
            }
        }
        if self.orphan_deadline().is_some_and(|at| at <= now) {
            self.end(CloseReason::Finished, State::Closed);
        }
        false
    }

    /// Our FIN is acknowledged, nobody reads any more: how long the peer's FIN is waited for.
    fn orphan_deadline(&self) -> Option<Time> {
        let sent_all = self.release.local_fin()? < self.sender.first();
        self.orphan_until.filter(|_| sent_all)
    }
}
