//! The earliest deadline of the parts, with its reason, and what happens when one has come. Timers belong to the
//! parts; this file only asks them.

use super::{Connection, State};
use bytes::Bytes;
use restp_base::flow::CloseReason;
use restp_base::machine::Wakeup;
use restp_base::time::{Duration, Time};
use restp_services::congestion::CongestionEvent;
use restp_services::loss_handling::Finding;
use restp_services::reliability::FecEncoder;

impl Connection {
    /// When to call [`Connection::on_deadline`], and why.
    pub(crate) fn deadline(&self) -> Option<(Time, Wakeup)> {
        match &self.state {
            State::SynSent(handshake) | State::SynReceived(handshake) => [
                (handshake.deadline(), Wakeup::Retransmission),
                (self.inn.ack.deadline(), Wakeup::Acknowledgement),
                (self.out.paced_until, Wakeup::Pacing),
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

    fn established_deadline(&self) -> Option<(Time, Wakeup)> {
        let mut earliest = (Time::MAX, Wakeup::Expiry);
        let mut consider = |at: Option<Time>, why| {
            if let Some(at) = at
                && at < earliest.0
            {
                earliest = (at, why);
            }
        };
        consider(self.path.rto.deadline(), Wakeup::Retransmission);
        consider(
            self.inn.ack.deadline().filter(|_| self.has_feedback()),
            Wakeup::Acknowledgement,
        );
        consider(self.out.paced_until, Wakeup::Pacing);
        let encoder = self.out.encoder.as_ref();
        consider(encoder.and_then(FecEncoder::deadline), Wakeup::Encoding);
        consider(self.out.probe_at, Wakeup::Probe);
        consider(self.path.mtu.deadline(), Wakeup::Probe);
        consider(self.hold_deadline(), Wakeup::Expiry);
        consider(self.keepalive_deadline(), Wakeup::Probe);
        consider(self.silence_deadline(), Wakeup::Expiry);
        consider(self.progress_deadline(), Wakeup::Expiry);
        (earliest.0 != Time::MAX).then_some(earliest)
    }

    /// Acts on every deadline that has come. Early calls do no harm.
    pub(crate) fn on_deadline(&mut self, now: Time) {
        self.check_handshake(now);
        self.inn.ack.on_deadline(now);
        if let State::TimeWait { until } = self.state
            && until <= now
        {
            self.state = State::Closed;
        }
        if self.state != State::Established {
            return;
        }
        if self.hold_deadline().is_some_and(|at| at <= now) {
            self.skip_holes(now);
        }
        if self.path.rto.has_expired(now) {
            self.on_timeout(now);
        }
        self.path.mtu.on_deadline(now);
        if self.keepalive_deadline().is_some_and(|at| at <= now) {
            self.keepalive_due = true;
            self.keepalive_at = Some(now + self.keepalive_interval());
        }
        if self.silence_deadline().is_some_and(|at| at <= now) {
            let unanswered = !self.composition.reliability.repeats() && self.release.is_wanted();
            let reason = if unanswered && self.out.queue.is_empty() {
                CloseReason::Finished // an unreliable release is not acknowledged (OP-35)
            } else {
                CloseReason::TimedOut(now.since(self.heard_at))
            };
            self.end(reason, State::Closed);
        } else if self.progress_deadline().is_some_and(|at| at <= now) {
            self.end(
                CloseReason::TimedOut(now.since(self.progress_at)),
                State::resetting(now),
            );
        }
    }

    /// The retransmission timer ran out (RFC 6298 §5.4 to 5.6).
    fn on_timeout(&mut self, now: Time) {
        if self.out.board.is_empty() {
            self.out.outage.give_up();
            return self.path.rto.stop();
        }
        if self.out.window_probe && self.composition.reliability.repeats() {
            // The peer's window is shut: the segment out there is a probe, once per timeout (OP-25).
            self.path.rto.restart(now, &self.path.rtt);
            self.out.board.mark_all_lost();
            return;
        }
        if self.path.rto.expiries() > 0 || self.out.outage.is_active() {
            let head = self.out.buffer.get(self.out.board.first());
            self.path.mtu.on_silence(now, head.map_or(0, Bytes::len));
        }
        if self.composition.loss_handling.probes() || self.out.outage.is_active() {
            self.counters.timeouts += 1;
            self.out.outage.on_timeout(now);
            return self.path.rto.restart(now, &self.path.rtt);
        }
        let outstanding = self.out.board.in_flight_bytes();
        let reaction = self.composition.loss_handling.reaction(Finding::Timeout);
        let repeated = self.path.rto.expiries() > 0;
        if !self.path.rto.expire(
            now,
            &self.path.rtt,
            reaction.back_off_timer,
            // Without repeats these are no attempts at the same thing; silence tells whether the peer is there.
            reaction.count_attempt && self.composition.reliability.repeats(),
        ) {
            return self.end(
                CloseReason::TimedOut(now.since(self.progress_at)),
                State::resetting(now),
            );
        }
        self.counters.timeouts += 1;
        let lost = self.out.recovery.on_timeout(&mut self.out.board);
        self.counters.lost_packets += lost;
        self.counters.timed_out_packets += lost;
        self.out.one_at_a_time = true;
        if reaction.reduce_window {
            self.tell_controller(now, &CongestionEvent::Timeout { repeated }, outstanding);
        }
        if !self.composition.reliability.repeats() {
            // Nothing is repeated, so nothing of it is waited for.
            self.out.board.forget();
            (self.out.one_at_a_time, self.out.window_probe) = (false, false);
            self.path.rto.stop();
        }
    }

    /// The set-up timer ran out before early data was answered. No cut of the window: a lost SYN costs none either, and
    /// until something is acknowledged one segment at a time leaves (RFC 5681 §3.1).
    pub(super) fn take_early_for_lost(&mut self) {
        self.counters.timeouts += 1;
        self.counters.lost_packets += self.out.recovery.on_timeout(&mut self.out.board);
        self.out.one_at_a_time = true;
        if !self.composition.reliability.repeats() {
            self.out.board.forget();
            self.out.one_at_a_time = false;
        }
    }

    /// What is missing would come too late, if at all: hand up what came after it and say so (ResTP §3.5.7, §14).
    fn skip_holes(&mut self, now: Time) {
        let hold = self.composition.hold.time(self.path.rtt.smoothed());
        let Some(reassembly) = &mut self.inn.reassembly else {
            return;
        };
        while reassembly.hold_deadline(hold).is_some_and(|at| at <= now) {
            self.counters.skipped_segments += reassembly.skip_hole(now, &mut self.inn.inbox);
        }
        if self.has_feedback() {
            self.inn.ack.on_urgent_once();
        }
        self.hand_up();
        self.conclude(now);
    }

    fn hold_deadline(&self) -> Option<Time> {
        if self.composition.reliability.is_full() {
            return None;
        }
        let hold = self.composition.hold.time(self.path.rtt.smoothed());
        self.inn.reassembly.as_ref()?.hold_deadline(hold)
    }

    /// It works again, as far as anybody knows.
    pub(crate) fn recover(&mut self) {
        if let Some(subflow) = &mut self.subflow {
            subflow.failed = false;
            self.keepalive_at = None;
        }
    }

    /// From now on only probes leave, until something is answered.
    pub(crate) fn probe(&mut self, now: Time) {
        if let Some(subflow) = &mut self.subflow {
            subflow.failed = true;
            self.keepalive_at = Some(now + self.keepalive_interval());
        }
        if self.state == State::Established && !self.out.outage.is_active() {
            self.unassign();
            self.out.outage.on_link_down();
            self.path.rto.on_progress(); // probes do not back off
            self.path.rto.restart(now, &self.path.rtt);
        }
    }

    /// The lower layer reports the link of this path up or down (cross-layer notice, ResTP §3.4).
    pub(crate) fn on_path_notice(&mut self, now: Time, up: bool) {
        match &mut self.state {
            State::SynSent(handshake) | State::SynReceived(handshake) if up => handshake.repeat(),
            State::Established if !up && self.composition.loss_handling.probes() => {
                self.out.outage.on_link_down();
                self.path.rto.start(now, &self.path.rtt);
            }
            State::Established if up => self.on_link_up(now),
            _ => {}
        }
    }

    /// The link is back: what waits for a timer need not.
    pub(super) fn on_link_up(&mut self, now: Time) {
        if self.out.outage.is_active() {
            if self.out.board.is_empty() {
                self.out.outage.give_up();
                return self.path.rto.stop();
            }
            self.out.outage.on_link_up(now);
            self.path.rto.restart(now, &self.path.rtt);
        } else if self.path.rto.expiries() > 0 && self.composition.reliability.repeats() {
            self.path.rto.on_progress();
            self.path.rto.restart(now, &self.path.rtt);
            self.out.board.mark_all_lost();
        }
    }

    /// How long silence of the peer is borne.
    fn patience(&self) -> Duration {
        if self.composition.loss_handling.probes() {
            self.composition.outage_timeout
        } else if self.composition.reliability.repeats() {
            self.composition.progress_timeout
        } else {
            self.composition.idle_timeout
        }
    }

    /// A peer that answers is asked before it is given up, but not by an end whose own FIN may be lost: two of them
    /// would keep each other alive.
    fn keepalive_deadline(&self) -> Option<Time> {
        let may_be_lost = !self.composition.reliability.repeats() && self.release.local_fin().is_some();
        if !self.has_feedback() || !self.out.board.is_empty() || may_be_lost {
            return None;
        }
        Some(
            self.keepalive_at
                .unwrap_or(self.heard_at + self.keepalive_interval()),
        )
    }

    fn keepalive_interval(&self) -> Duration {
        let longest = match &self.subflow {
            Some(subflow) if subflow.failed => self.path.rto.value(&self.path.rtt),
            Some(_) => STANDBY_INTERVAL,
            None => KEEPALIVE_INTERVAL,
        };
        (self.patience() / KEEPALIVES).min(longest)
    }

    /// When a silent peer is given up. While something is outstanding the retransmission timer judges instead; a
    /// side that only sends, without feedback, has nothing to wait for until it has finished.
    fn silence_deadline(&self) -> Option<Time> {
        let listens = self.has_feedback() || !self.opened_here || self.release.local_fin().is_some();
        (listens && self.out.board.is_empty()).then(|| self.heard_at + self.patience())
    }

    /// When a peer that takes nothing any more is given up (OP-50, RFC 5482).
    fn progress_deadline(&self) -> Option<Time> {
        let waiting =
            !self.out.board.is_empty() || (!self.out.queue.is_empty() && self.out.probe_at.is_some());
        let patience = if self.composition.loss_handling.probes() {
            self.composition.outage_timeout
        } else {
            self.composition.progress_timeout
        };
        (self.has_feedback() && waiting).then(|| self.progress_at + patience)
    }
}

/// Questions to a silent peer before it is given up.
const KEEPALIVES: u64 = 4;
/// An idle path is asked this often, so that a dead one is known before it is needed.
const STANDBY_INTERVAL: Duration = Duration::from_secs(5);
/// A peer that is borne for hours is still asked this often.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(75);
