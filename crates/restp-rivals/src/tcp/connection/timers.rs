//! The earliest deadline of the parts, with its reason, and what happens when one has come.

use super::{Connection, State};
use restp_base::flow::CloseReason;
use restp_base::machine::Wakeup;
use restp_base::time::Time;
use restp_services::congestion::CongestionEvent;
use restp_services::loss_handling::{Finding, LossHandling};

impl Connection {
    /// When to call [`Connection::on_deadline`], and why.
    pub(crate) fn deadline(&self) -> Option<(Time, Wakeup)> {
        let timers = match &self.state {
            State::SynSent(handshake) | State::SynReceived(handshake) => [
                (handshake.deadline(), Wakeup::Retransmission),
                NEVER,
                NEVER,
                NEVER,
                NEVER,
                NEVER,
            ],
            State::Established => [
                (self.path.rto.deadline(), Wakeup::Retransmission),
                (self.inn.ack.deadline(), Wakeup::Acknowledgement),
                (self.out.paced_until, Wakeup::Pacing),
                (self.out.probe_at, Wakeup::Probe),
                (self.orphan_deadline(), Wakeup::Expiry),
                (self.proof_deadline(), Wakeup::Retransmission),
            ],
            State::TimeWait { until } => [(Some(*until), Wakeup::Expiry), NEVER, NEVER, NEVER, NEVER, NEVER],
            State::Resetting | State::Closed => return None,
        };
        let set = timers.into_iter().filter_map(|(at, why)| Some((at?, why)));
        set.min_by_key(|(at, _)| *at)
    }

    /// Acts on every deadline that has come. Early calls do no harm.
    pub(crate) fn on_deadline(&mut self, now: Time) {
        self.check_handshake(now);
        self.check_proof(now);
        match self.state {
            State::TimeWait { until } if until <= now => self.state = State::Closed,
            State::Established if self.path.rto.has_expired(now) => self.on_timeout(now),
            State::Established if self.orphan_deadline().is_some_and(|at| at <= now) => {
                self.end(CloseReason::Finished, State::Closed);
            }
            _ => {}
        }
    }

    /// The retransmission timer ran out (RFC 6298 §5.4 to 5.6, RFC 5681 §3.1). A window probe is repeated in the same
    /// way, but says nothing about congestion; answers reset its patience (RFC 9293 §3.8.6.1).
    fn on_timeout(&mut self, now: Time) {
        if self.out.board.is_empty() {
            return self.path.rto.stop();
        }
        let outstanding = self.out.board.in_flight_bytes();
        let reaction = LossHandling::Congestion.reaction(Finding::Timeout);
        let repeated = self.path.rto.expiries() > 0;
        let (back_off, count) = (reaction.back_off_timer, reaction.count_attempt);
        if !self.path.rto.expire(now, &self.path.rtt, back_off, count) {
            let waited = now.since(self.progress_at);
            return self.end(CloseReason::TimedOut(waited), State::Resetting);
        }
        if self.out.window_probe {
            self.out.board.mark_all_lost();
            return;
        }
        self.stats.timeouts += 1;
        let lost = self.out.recovery.on_timeout(&mut self.out.board);
        self.stats.lost_packets += lost;
        self.stats.timed_out_packets += lost;
        self.out.one_at_a_time = true;
        self.note_timeout();
        if reaction.reduce_window {
            self.tell_controller(now, &CongestionEvent::Timeout { repeated }, outstanding);
        }
    }

    /// Our FIN is acknowledged, nobody reads any more: how long the peer's FIN is waited for.
    fn orphan_deadline(&self) -> Option<Time> {
        let sent_all = self.release.local_fin()? < self.out.board.first();
        self.orphan_until.filter(|_| sent_all)
    }
}

const NEVER: (Option<Time>, Wakeup) = (None, Wakeup::Expiry);
