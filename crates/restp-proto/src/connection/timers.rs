//! The earliest deadline of the parts, with its reason, and what happens when one has come. Timers belong to the
//! parts; this file only asks them.

use super::{Connection, State};
use restp_base::flow::CloseReason;
use restp_base::machine::{Earliest, Wakeup};
use restp_base::time::{Duration, Time};
use restp_services::sender::TimeoutOutcome;

impl Connection {
    /// When to call [`Connection::on_deadline`], and why.
    pub(crate) fn deadline(&self) -> Option<(Time, Wakeup)> {
        match &self.state {
            State::SynSent(handshake) | State::SynReceived(handshake) => [
                (handshake.deadline(), Wakeup::Retransmission),
                (self.receiver.ack_timer().deadline(), Wakeup::Acknowledgement),
                (self.sender.pacing_deadline(), Wakeup::Pacing),
            ]
            .into_iter()
            .filter_map(|(at, why)| Some((at?, why)))
            .min(),
            State::Established => self.established_deadline(),
            State::TimeWait { until } => Some((*until, Wakeup::Expiry)),
            State::Resetting { next_at, .. } => Some((*next_at, Wakeup::Probe)),
            State::Closed => None,
        }
    }

    /// The same for one of several paths that share the numbers, without what is due for all of them.
    pub(crate) fn lane_deadline(&self) -> Option<(Time, Wakeup)> {
        if self.state != State::Established {
            return self.deadline();
        }
        Earliest::of(None)
            .or(self.keepalive_deadline(), Wakeup::Probe)
            .or(self.silence_deadline(), Wakeup::Expiry)
            .or(self.progress_deadline(), Wakeup::Expiry)
            .deadline()
    }

    fn established_deadline(&self) -> Option<(Time, Wakeup)> {
        let acknowledgement = self.receiver.ack_timer().deadline();
        Earliest::of(self.sender.deadline())
            .or(
                acknowledgement.filter(|_| self.has_feedback()),
                Wakeup::Acknowledgement,
            )
            .or(self.hold_deadline(), Wakeup::Expiry)
            .or(self.eras.deadline(), Wakeup::Retransmission)
            .or(self.keepalive_deadline(), Wakeup::Probe)
            .or(self.silence_deadline(), Wakeup::Expiry)
            .or(self.progress_deadline(), Wakeup::Expiry)
            .deadline()
    }

    /// Acts on every deadline that has come. Early calls do no harm.
    pub(crate) fn on_deadline(&mut self, now: Time) {
        self.check_handshake(now);
        self.receiver.acknowledgement().on_deadline(now);
        self.check_wait(now);
        if self.state == State::Established && self.hold_deadline().is_some_and(|at| at <= now) {
            self.skip_holes(now); // which may have been all that the end waited for
        }
        if self.state != State::Established {
            return;
        }
        if self.lane().is_none()
            && let TimeoutOutcome::GivesUp(waited) = self.sender.on_deadline(now)
        {
            return self.end(CloseReason::TimedOut(waited), State::resetting(now));
        }
        self.eras.on_deadline(now, self.sender.single_timeout());
        if self.keepalive_deadline().is_some_and(|at| at <= now) {
            self.liveness.ask();
            self.liveness.ask_at(now + self.keepalive_interval());
        }
        if self.silence_deadline().is_some_and(|at| at <= now) {
            let unanswered = !self.composition.reliability.retransmits() && self.release.is_wanted();
            let reason = if unanswered && self.sender.has_nothing_queued() {
                CloseReason::Finished // an unreliable release is not acknowledged (OP-35)
            } else {
                CloseReason::TimedOut(now.since(self.liveness.heard_at()))
            };
            self.end(reason, State::Closed);
        } else if self.progress_deadline().is_some_and(|at| at <= now) {
            self.end(
                CloseReason::TimedOut(now.since(self.sender.progress_at())),
                State::resetting(now),
            );
        }
    }

    /// What is missing would come too late, if at all: hand up what came after it and say so (ResTP §3.5.7, §14).
    fn skip_holes(&mut self, now: Time) {
        self.counters.skipped_segments += self.receiver.skip_holes(now, self.sender.longest_rtt());
        if self.has_feedback() {
            self.receiver.acknowledgement().on_urgent_once();
        }
        self.hand_up();
        self.conclude(now);
    }

    fn hold_deadline(&self) -> Option<Time> {
        self.receiver.hold_deadline(self.sender.longest_rtt())
    }

    /// It works again, as far as anybody knows.
    pub(crate) fn recover(&mut self) {
        if let Some(subflow) = &mut self.subflow {
            (subflow.failed, subflow.suspect) = (false, false);
            self.liveness.wait_for_silence();
        }
    }

    /// From now on only probes leave, until something is answered. What was assigned has been taken back.
    pub(crate) fn probe(&mut self, now: Time) {
        if let Some(subflow) = &mut self.subflow {
            subflow.failed = true;
            self.liveness.ask_at(now + self.keepalive_interval());
        }
        if self.state == State::Established && !self.sender.is_in_outage() {
            if self.lane().is_some() {
                self.sender.probe_lane_only(now);
            } else {
                self.sender.probe_only(now);
            }
        }
    }

    /// The lower layer reports the link of this path up or down (cross-layer notice, ResTP §3.4).
    pub(crate) fn on_path_notice(&mut self, now: Time, up: bool) {
        match self.state {
            State::SynSent(_) | State::SynReceived(_) if up => self.retransmit_set_up(),
            State::Established if up => self.sender.on_link_up(now),
            State::Established => self.sender.on_link_down(now),
            _ => {}
        }
    }

    /// Lets the peer hear from this end, where it is now: nothing else may be due for long.
    pub(crate) fn acknowledge_now(&mut self) {
        if self.state == State::Established {
            self.receiver.acknowledgement().on_urgent_once();
        }
    }

    /// How long silence of the peer is borne.
    fn silence_limit(&self) -> Duration {
        if self.composition.loss_handling.probes() {
            self.composition.outage_timeout
        } else if self.composition.reliability.retransmits() {
            self.composition.progress_timeout
        } else {
            self.composition.idle_timeout
        }
    }

    /// A peer that answers is asked before it is given up, but not by an end whose own FIN may be lost: two of them
    /// would keep each other alive.
    fn keepalive_deadline(&self) -> Option<Time> {
        let may_be_lost = !self.composition.reliability.retransmits() && self.release.local_fin().is_some();
        if !self.has_feedback() || !self.sender.is_quiet() || may_be_lost {
            return None;
        }
        Some(self.liveness.deadline(self.keepalive_interval()))
    }

    fn keepalive_interval(&self) -> Duration {
        let longest = match &self.subflow {
            Some(subflow) if subflow.failed || subflow.suspect => self.sender.timeout(),
            Some(_) => STANDBY_INTERVAL,
            None => KEEPALIVE_INTERVAL,
        };
        (self.silence_limit() / KEEPALIVES).min(longest)
    }

    /// When a silent peer is given up. While something is outstanding the retransmission timer judges instead. Without feedback
    /// a side that sends has nothing to hear until it has finished: who asked for the flow waits for ever, and who was
    /// asked as long as it is idle itself.
    fn silence_deadline(&self) -> Option<Time> {
        let only_sends = !self.has_feedback() && self.release.local_fin().is_none();
        if !self.sender.is_quiet() || (only_sends && self.opened_here) {
            return None;
        }
        let active_at = if only_sends {
            self.liveness.active_at()
        } else {
            self.liveness.heard_at()
        };
        Some(active_at + self.silence_limit())
    }

    /// When a peer that takes nothing any more is given up (OP-50, RFC 5482).
    fn progress_deadline(&self) -> Option<Time> {
        (self.has_feedback() && self.sender.waits_for_peer())
            .then(|| self.sender.progress_at() + self.composition.stall_timeout())
    }
}

/// Questions to a silent peer before it is given up.
const KEEPALIVES: u64 = 4;
/// An idle path is asked this often, so that a dead one is known before it is needed.
pub(crate) const STANDBY_INTERVAL: Duration = Duration::from_secs(5);
/// A peer that is borne for hours is still asked this often.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(75);
