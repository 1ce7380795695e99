//! Time has passed: the retransmission timer (RFC 6298 §5), and what the lower layer says of the link.

use super::Sender;
use super::lane::Lane;
use crate::congestion::CongestionEvent;
use crate::loss_handling::LossSignal;
use crate::path_management::RetransmitTarget;
use crate::reliability::FecEncoder;
use bytes::Bytes;
use restp_base::machine::{Earliest, Wakeup};
use restp_base::time::{Duration, Time};

/// What came of a look at the timers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeoutOutcome {
    /// None has run out, or only a probe was due.
    Nothing,
    /// What was outstanding is taken for lost.
    Lost,
    /// The peer has taken nothing for so long that the sender gives up.
    GivesUp(Duration),
}

impl TimeoutOutcome {
    /// What came of two lanes.
    fn and(self, other: TimeoutOutcome) -> TimeoutOutcome {
        match (self, other) {
            (one, TimeoutOutcome::Nothing) | (TimeoutOutcome::Nothing, one) => one,
            (one @ TimeoutOutcome::GivesUp(_), _) | (TimeoutOutcome::Lost, one) => one,
        }
    }
}

impl Sender {
    /// When to call [`Sender::on_deadline`] or [`Sender::next`], and why.
    pub fn deadline(&self) -> Option<(Time, Wakeup)> {
        let lanes = std::iter::once(&self.lane).chain(&self.others);
        lanes
            .fold(Earliest::NONE, |earliest, lane| lane.deadline(earliest))
            .or(self.encoder().and_then(FecEncoder::deadline), Wakeup::Encoding)
            .or(self.probing.window_probe_at(), Wakeup::Probe)
            .deadline()
    }

    /// When pacing lets the next segment leave.
    pub fn pacing_deadline(&self) -> Option<Time> {
        self.lane.gate.paced_until()
    }

    /// Acts on every deadline that has come. Early calls do no harm.
    pub fn on_deadline(&mut self, now: Time) -> TimeoutOutcome {
        let each = self
            .lanes()
            .map(|id| self.on(id, |sender| sender.on_lane_deadline(now)));
        each.fold(TimeoutOutcome::Nothing, TimeoutOutcome::and)
    }

    fn on_lane_deadline(&mut self, now: Time) -> TimeoutOutcome {
        if self.lane.recovery.deadline().is_some_and(|at| at <= now) {
            self.on_recovery_deadline(now);
        }
        if self.lane.tail.falls_due(now) {
            self.lane.rto.restart(now, &self.lane.rtt); // the probe has a timeout of its own
        }
        let outcome = if !self.lane.rto.has_expired(now) {
            TimeoutOutcome::Nothing
        } else if self.lane.recovery.receiver_driven().is_some() {
            self.on_overdue(now)
        } else {
            self.on_timeout(now)
        };
        self.lane.mtu.on_deadline(now);
        outcome
    }

    /// The retransmission timer ran out (RFC 6298 §5.4 to 5.6).
    fn on_timeout(&mut self, now: Time) -> TimeoutOutcome {
        let nothing_to_ask = self.board.last_in_hand().is_none() || !self.lane.outage.state.is_active();
        if self.board.is_quiet() && nothing_to_ask {
            self.lane.outage.state.give_up();
            self.lane.rto.stop();
            return TimeoutOutcome::Nothing;
        }
        if self.probing.is_probing_window() && self.parameters.retransmits && !self.probing.backs_off() {
            self.lane.rto.restart(now, &self.lane.rtt);
            self.board.mark_all_lost();
            return TimeoutOutcome::Nothing;
        }
        if self.lane.rto.expiries() > 0 || self.lane.outage.state.is_active() {
            let head = self.buffer.get(self.board.head());
            self.lane.mtu.on_silence(now, head.map_or(0, Bytes::len));
        }
        if self.parameters.loss_handling.probes() || self.lane.outage.state.is_active() {
            self.counters.timeouts += 1;
            self.lane.outage.state.on_timeout(now);
            if let Some(cutting) = &mut self.lane.cutting {
                cutting.on_silence(self.lane.answered_at);
            }
            self.lane.rto.restart(now, &self.lane.rtt);
            return TimeoutOutcome::Nothing;
        }
        self.on_loss_of_all(now)
    }

    /// Nothing outstanding is expected any more. Unless it is a window probe, that is congestion as the composition sees
    /// it.
    fn on_loss_of_all(&mut self, now: Time) -> TimeoutOutcome {
        let outstanding = self.board.in_flight_bytes();
        let reaction = self.parameters.loss_handling.reaction(LossSignal::Timeout);
        let repeated = self.lane.rto.expiries() > 0;
        // Without retransmissions these are no attempts at the same thing; silence tells whether the peer is there.
        let count = reaction.count_attempt && self.parameters.retransmits;
        if !self
            .lane
            .rto
            .expire(now, &self.lane.rtt, reaction.back_off_timer, count)
        {
            return self.on_last_attempt(now);
        }
        if self.probing.is_probing_window() && self.probing.backs_off() {
            self.board.mark_all_lost();
            return TimeoutOutcome::Nothing;
        }
        self.doubt_last();
        self.count_timeout(reaction.reduce_window, self.spared_from(now));
        self.lane.gate.on_timeout();
        if self.parameters.retransmit_target != RetransmitTarget::Asap {
            self.lane.gate.retransmit_at_once(true); // by another lane, perhaps, which is full
        }
        self.limit_burst();
        if reaction.reduce_window {
            self.tell_controller(now, &CongestionEvent::Timeout { repeated }, outstanding);
        }
        if !self.parameters.retransmits {
            self.forget_outstanding();
            self.lane.rto.stop();
        }
        TimeoutOutcome::Lost
    }

    /// Where all has arrived or was given up the report that says so is lost, and nothing would leave: the last segment asks. What was
    /// reported may be gone, too (RFC 2018 §8).
    fn doubt_last(&mut self) {
        let is_settled = self.board.in_flight() == 0 && self.board.lost() == 0;
        if let Some(last) = self.board.last_in_hand().filter(|_| is_settled) {
            self.board.renege(&(last..last + 1));
        }
    }

    /// The timer has run out too often. With several lanes this one is dead: what it carried leaves again by others, and
    /// only probes leave here. The sender gives up when all are, or have been since anything was acknowledged.
    pub(super) fn on_last_attempt(&mut self, now: Time) -> TimeoutOutcome {
        self.lane.failed_at = Some(now);
        let progress = self.progress.at;
        let has_failed = |lane: &Lane| lane.failed_at.is_some_and(|at| at > progress);
        let dead = |lane: &Lane| !lane.active || lane.outage.state.is_active() || has_failed(lane);
        if self.others.iter().all(dead) {
            return TimeoutOutcome::GivesUp(now.since(self.progress.at));
        }
        self.count_timeout(false, None);
        self.take_for_dead(now);
        TimeoutOutcome::Lost
    }

    /// With several lanes the timer speaks of what has waited for a round trip at least: what has just moved here from another
    /// lane has not (Iyengar, Amer, Stewart, Comput. Commun. 30(4), 2007; CMT §2.7).
    fn spared_from(&self, now: Time) -> Option<Time> {
        let round_trip = self
            .lane
            .rtt
            .smoothed()
            .filter(|_| self.parameters.spares_fresh)?;
        Some(Time::ZERO + now.since(Time::ZERO).saturating_sub(round_trip))
    }

    /// Everything that left by the lane in hand is lost, but for what left at `spared_from` or later. `cuts_window`: the controller
    /// hears of it.
    fn count_timeout(&mut self, cuts_window: bool, spared_from: Option<Time>) {
        self.lane.redundancy.forget();
        self.lane.tail.forget();
        self.lane.waits_since = None; // the timer judges
        self.lane.reduction.end();
        self.counters.timeouts += 1;
        let lost = self
            .lane
            .recovery
            .on_timeout(&mut self.board, cuts_window, spared_from);
        self.counters.lost_packets += lost;
        self.lane.lost_packets += lost;
        self.counters.timed_out_packets += lost;
    }

    /// From now on only probes leave by the lane in hand, until something is answered; they do not back off.
    pub(super) fn take_for_dead(&mut self, now: Time) {
        self.lane.outage.state.on_link_down();
        self.lane.yielded = None;
        self.lane.rto.on_progress();
        self.lane.rto.restart(now, &self.lane.rtt);
    }

    /// Nothing of it leaves again, so nothing of it is waited for.
    fn forget_outstanding(&mut self) {
        self.board.forget();
        self.lane.gate.on_progress();
        self.probing.end_window_probe();
    }

    /// The set-up timer ran out before early data was answered. No cut of the window: a lost SYN costs none either, and
    /// until something is acknowledged one segment at a time leaves (RFC 5681 §3.1).
    pub fn on_set_up_timeout(&mut self) {
        if self.board.is_empty() {
            return;
        }
        self.counters.timeouts += 1;
        self.counters.lost_packets += self.lane.recovery.on_timeout(&mut self.board, false, None);
        self.lane.gate.on_timeout();
        if !self.parameters.retransmits {
            self.forget_outstanding();
        }
    }

    /// The link is reported down: nothing is worth sending, and the timer will ask.
    pub fn on_link_down(&mut self, now: Time) {
        if self.parameters.loss_handling.probes() {
            self.lane.outage.state.on_link_down();
            self.lane.rto.start(now, &self.lane.rtt);
        }
    }

    /// The link is back: what waits for a timer need not.
    pub fn on_link_up(&mut self, now: Time) {
        if self.lane.outage.state.is_active() {
            if self.board.is_quiet() {
                self.lane.outage.state.give_up();
                return self.lane.rto.stop();
            }
            self.lane.outage.state.on_link_up(now);
            self.lane.rto.on_progress();
            self.lane.rto.restart(now, &self.lane.rtt);
        } else if (self.lane.rto.expiries() > 0 || self.lane.rto.is_backed_off())
            && self.parameters.retransmits
        {
            self.lane.rto.on_progress();
            self.lane.rto.restart(now, &self.lane.rtt);
            self.board.mark_all_lost();
        }
    }

    /// The peer answers a question about the largest packet: it has received a segment of `bytes`.
    pub fn on_mtu_answer(&mut self, now: Time, bytes: u32) {
        if self.lane.mtu.on_answer(now, bytes) {
            self.on_link_up(now); // the path works: what is outstanding is retransmitted, in pieces where it is too large
        }
    }
}
