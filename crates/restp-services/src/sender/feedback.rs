//! What a report of the peer means, in order: acknowledgement, credit, recovery, cause, window (ResTP §3.5.9, §3.6). Each
//! step is one call.

use super::Sender;
use super::cutting::Judgement;
use super::rate_reduction::Progress;
use crate::ack::AckReport;
use crate::congestion::{Congestion, CongestionEvent};
use crate::loss_handling::{Acknowledged, Differentiation, LossHandling, LossSignal, Silence};
use crate::recovery::{Evidence, FalseReport, Feedback, LossUpdate};
use restp_base::time::{Duration, Time};
use smallvec::SmallVec;

/// Credit beside a report: the peer takes `units` from `at` on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant {
    /// The peer's pointer, in units of credit.
    pub at: u64,
    /// What it takes from there.
    pub units: u64,
}

/// A packet of the peer after the codec, as far as it concerns what was sent.
#[derive(Clone, Copy, Debug)]
pub struct PeerReport<'a> {
    /// What it says of numbers.
    pub report: &'a AckReport,
    /// What it says of credit.
    pub grant: Option<Grant>,
    /// The packet carries nothing else and says nothing new: when its pointer stands still, it is a duplicate (RFC 5681
    /// §2).
    pub is_bare_duplicate: bool,
    /// The round trip by the peer's echo of our clock (RFC 7323 §4.1). It counts for reports that move the pointer.
    pub echoed_rtt: Option<Duration>,
    /// It echoes a mark of the network (RFC 3168 §6.1.2).
    pub echoes_mark: bool,
    /// Segments that it has rebuilt from encoded packets so far, in a counter that wraps.
    pub repaired: u8,
}

impl Sender {
    /// Takes a report.
    ///
    /// # Errors
    /// When it cannot be true. Nothing is changed then, and nothing else in the packet is to be believed.
    pub fn on_feedback(&mut self, now: Time, peer: &PeerReport<'_>) -> Result<(), FalseReport> {
        let tells = self.board.awaits_duplicates(&peer.report.duplicates);
        if self.board.is_empty() && !self.has_several_lanes() && !tells {
            return self.on_idle_report(now, peer);
        }
        let grant = peer.grant.filter(|_| self.has_several_lanes());
        if grant.is_some_and(|grant| self.admission.is_stale(grant, peer.report)) {
            return self.board.check(peer.report);
        }
        let lanes = self.lanes().map(|id| (id, self.on(id, Sender::before_feedback)));
        let lanes: SmallVec<[_; 4]> = lanes.collect();
        let was_idle = self.board.is_empty();
        let mut feedback = self.board.acknowledge(now, peer.report)?;
        if let Some(encoder) = &mut self.encoder {
            encoder.on_report(peer.report);
        }
        if let Some(grant) = peer.grant {
            self.on_grant(now, grant);
            self.admission.note_named(peer.report);
            self.judge_lateness(grant);
        }
        // An older one, which another has overtaken, knows less (RFC 9260 §6.2.1).
        if peer.report.is_complete && peer.report.cumulative >= self.board.first() {
            for range in self.board.unreported(peer.report).iter() {
                self.renege(now, range);
            }
        }
        self.on_tail_answer(now, peer, &feedback);
        if was_idle {
            self.on_progress(now, &feedback);
        } else {
            self.buffer.release_below(self.board.first());
            self.weigh(peer, &mut feedback);
        }
        for (id, outstanding) in lanes {
            self.on(id, |sender| {
                if !was_idle || tells {
                    sender.judge(now, peer, &feedback, outstanding);
                }
                if peer.echoes_mark && sender.was_reported() {
                    sender.on_mark(now, outstanding);
                }
            });
        }
        Ok(())
    }

    /// How patient all lanes are with what is late depends on the room that the peer has left.
    fn judge_lateness(&mut self, grant: Grant) {
        if let Differentiation::InterPath { .. } = self.parameters.differentiation {
            let late_after = self.lateness.on_report(grant.units);
            self.each_lane(|sender| sender.lane.recovery.expect_late_after(late_after));
        }
    }

    /// Nothing is out that the report could speak of, as with every packet of a peer that only sends.
    fn on_idle_report(&mut self, now: Time, peer: &PeerReport<'_>) -> Result<(), FalseReport> {
        let outstanding = self.before_feedback();
        self.board.check(peer.report)?;
        if let Some(grant) = peer.grant {
            self.on_grant(now, grant);
        }
        self.on_tail_answer(now, peer, &Feedback::default());
        self.lane.rto.stop();
        self.on_quiet(now);
        self.probing.end_window_probe();
        if peer.echoes_mark {
            self.on_mark(now, outstanding);
        }
        Ok(())
    }

    /// Did the last report speak of the lane in hand? It says nothing of those it brought no news of.
    fn was_reported(&self) -> bool {
        !self.has_several_lanes() || self.board.lane(self.board.in_hand()).news().delivered > 0
    }

    /// What the packet that brought the report makes of the feedback.
    fn weigh(&mut self, peer: &PeerReport<'_>, feedback: &mut Feedback) {
        feedback.duplicate &= peer.is_bare_duplicate;
        if feedback.duplicate && self.lane.outage.explains_duplicate(peer.report.cumulative) {
            feedback.duplicate = false;
        }
        if feedback.advanced > 0 && peer.echoed_rtt.is_some() {
            feedback.rtt = peer.echoed_rtt;
        }
    }

    /// Notes whether the lane's window is in use. Returns what is in flight, in bytes.
    fn before_feedback(&mut self) -> u64 {
        let outstanding = self.board.in_flight_bytes();
        self.lane.gate.set_unused(self.leaves_window_unused(outstanding));
        if self.lane.gate.is_unused() {
            self.board.application_limits();
        }
        outstanding
    }

    /// Recovery, loss handling, congestion of the lane in hand, after a report that changed `all`.
    fn judge(&mut self, now: Time, peer: &PeerReport<'_>, all: &Feedback, outstanding: u64) {
        let feedback = &mut self.board.feedback_in_hand(all);
        if feedback.is_progress() || self.parameters.pointer_only && feedback.duplicate {
            self.lane.answered_at = now;
        }
        let news = self.board.lane(self.board.in_hand()).news();
        let since = news
            .uncarried_since
            .filter(|since| *since >= self.lane.resumed_at);
        let since = self.lane.uncarried_since.or(since);
        self.lane.uncarried_since = since.filter(|_| !feedback.is_progress());
        if self.parameters.thins_acks {
            self.lane.on_report(now, feedback.delivered);
        }
        let evidence = Evidence {
            now,
            report: peer.report,
            feedback,
            rtt: &self.lane.rtt,
        };
        let mut update = self.lane.recovery.on_feedback(&mut self.board, &evidence);
        self.note_losses(&update);
        update.spares_head = self.watches_head() && !self.board.is_lost(self.board.head());
        if self.lane.outage.state.is_active() {
            feedback.rtt = None; // perhaps it arrived before the outage: the silence is no round trip
        }
        let silence = self.silence(now, feedback);
        self.on_progress(now, feedback);
        match silence {
            Some(Silence::Outage) => {
                // Data of the peer answers nothing: it comes while only the way there is down.
                let in_vain = peer.is_bare_duplicate && !feedback.is_progress();
                if self.lane.outage.ends_in_vain_again(in_vain) {
                    self.lane.rto.back_off();
                }
                self.resume(now);
            }
            Some(Silence::Spurious) => {
                if let Some(cutting) = &mut self.lane.cutting {
                    cutting.on_late_answer();
                }
                self.lane.rto.restart(now, &self.lane.rtt);
            }
            None => {}
        }
        let mut reaction = self.handling(now, 0, &mut update).reaction(LossSignal::Feedback);
        if self.parameters.repairs_cost
            && self
                .parameters
                .loss_handling
                .reaction(LossSignal::Feedback)
                .reduce_window
        {
            let repaired = if self.has_several_lanes() {
                self.lane.repaired_losses.after(news.uncarried)
            } else {
                peer.repaired
            };
            reaction.reduce_window &= self.reacts_to_coded(now, repaired, &update, outstanding);
        }
        let load = self.load(self.board.in_flight_bytes());
        self.lane.on_losses(now, self.board.losses(), reaction, load);
        if self.parameters.differentiation == Differentiation::Nothing {
            feedback.advanced = all.advanced; // the window knows of no pointer but the common one
        }
        self.lane
            .on_loss_update(now, feedback, update, reaction, outstanding, load);
        if update.began && reaction.reduce_window {
            self.begin_reduction(outstanding);
        }
        self.reduce(feedback, &update);
        if feedback.is_progress() {
            self.arm_tail_probe(now);
        }
        self.limit_burst();
    }

    /// Does the timer of the lane in hand wait for the lowest number that is out by it, whatever else leaves again (RFC 9260 §7.2.4, 4)?
    fn watches_head(&self) -> bool {
        self.has_several_lanes() || self.lane.recovery.leaves_lost_retransmissions_to_timer()
    }

    /// Where encoded packets may repair what is lost, the window is cut whether they do or not. `repaired`: what they did so
    /// far: nobody knows when that had left, so its cause is not asked. False: the loss episode that begins has been answered.
    fn reacts_to_coded(&mut self, now: Time, repaired: u8, update: &LossUpdate, outstanding: u64) -> bool {
        let found = self.lane.repaired_losses.reacts(&self.board, repaired);
        if update.began {
            return found || self.lane.repaired_losses.answers(&self.board);
        }
        if found && !self.is_repairing() {
            self.react_to_hidden(now, outstanding);
        }
        true
    }

    /// One segment was lost that recovery need not repair.
    fn react_to_hidden(&mut self, now: Time, outstanding: u64) {
        let bytes = u64::from(self.lane.mtu.segment_bytes());
        self.tell_controller(now, &CongestionEvent::Lost { bytes }, outstanding);
        self.tell_controller(now, &CongestionEvent::RecoveryEnded, self.board.in_flight_bytes());
    }

    /// Time has shown what no report did: overtaken segments that were given time to come are lost (RFC 8985 §6.3).
    pub(super) fn on_recovery_deadline(&mut self, now: Time) {
        let outstanding = self.board.in_flight_bytes();
        let told = self.board.losses().len();
        let mut update = self
            .lane
            .recovery
            .on_deadline(&mut self.board, now, &self.lane.rtt);
        self.note_losses(&update);
        let reaction = self
            .handling(now, told, &mut update)
            .reaction(LossSignal::Feedback);
        let load = self.load(self.board.in_flight_bytes());
        self.lane
            .on_losses(now, &self.board.losses()[told..], reaction, load);
        let nothing = Feedback::default();
        self.lane
            .on_loss_update(now, &nothing, update, reaction, outstanding, load);
        if update.began && reaction.reduce_window {
            self.begin_reduction(outstanding);
        }
        self.reduce(&nothing, &update);
    }

    /// What the losses found now are taken for.
    /// `told`: losses that were judged before.
    fn handling(&mut self, now: Time, told: usize, update: &mut LossUpdate) -> LossHandling {
        let (first, next) = (self.board.own_head(), self.board.next());
        match &mut self.lane.cutting {
            Some(cutting) => {
                let losses = &self.board.losses()[told..];
                let bytes: u64 = losses.iter().map(|lost| lost.bytes).sum();
                match cutting.judge(first, next, losses, update) {
                    Judgement::Congestion => LossHandling::Congestion,
                    Judgement::Corruption { is_news } => {
                        if is_news {
                            let outstanding = self.board.in_flight_bytes() + bytes;
                            self.tell_controller(now, &CongestionEvent::Corrupted { bytes }, outstanding);
                        }
                        LossHandling::Corruption
                    }
                }
            }
            None => self.parameters.loss_handling,
        }
    }

    /// A loss episode begins that cuts the window, with `outstanding` bytes in flight before.
    fn begin_reduction(&mut self, outstanding: u64) {
        self.lane.tail.forget();
        if self.parameters.reduces_in_proportion {
            self.lane.reduction.begin(outstanding);
        }
    }

    /// What may leave in the episode under repair.
    fn reduce(&mut self, feedback: &Feedback, update: &LossUpdate) {
        if !self.lane.recovery.is_active() {
            return self.lane.reduction.end();
        }
        if feedback.delivered_bytes == 0 && !update.began {
            return; // what time found lost meanwhile may leave again (RFC 9937 §6.2)
        }
        self.lane.reduction.on_acknowledged(Progress {
            delivered: feedback.delivered_bytes,
            in_flight: self.board.in_flight_bytes(),
            threshold: self.lane.controller.window_bytes(),
            segment: u64::from(self.lane.mtu.segment_bytes()),
            is_safe: feedback.advanced > 0 && update.lost == 0,
        });
    }

    /// A report may answer a probe for the tail, and show a loss that nobody has answered.
    fn on_tail_answer(&mut self, now: Time, peer: &PeerReport<'_>, feedback: &Feedback) {
        let bare = peer.is_bare_duplicate && feedback.advanced == 0;
        self.lane.tail.on_duplicates(&peer.report.duplicates);
        let reaction = self.parameters.loss_handling.reaction(LossSignal::Feedback);
        if self.lane.tail.repaired(peer.report.cumulative, bare) && reaction.reduce_window {
            self.react_to_hidden(now, self.lane.controller.window_bytes());
        }
    }

    fn note_losses(&mut self, update: &LossUpdate) {
        self.counters.lost_packets += update.lost;
        self.lane.lost_packets += update.lost;
        if update.urgent {
            self.lane.gate.retransmit_at_once(true);
            let takes_new_numbers = self.lane.recovery.receiver_driven().is_some();
            self.lane.gate.send_at_once(takes_new_numbers);
        }
    }

    /// Flow control: where the peer's credit ends now.
    fn on_grant(&mut self, now: Time, grant: Grant) {
        if !self.admission.grant(grant.at, grant.units) || !self.probing.is_probing_window() {
            return;
        }
        if self.probing.backs_off() {
            self.on_probe_answer(now);
        }
        if self.admission.allows(grant.at) && self.probing.end_window_probe() {
            self.retransmit_all(); // what asked was not taken, and would be now
        }
    }

    /// The peer lives, and the path that the question left by, whatever the answer is (RFC 9293 §3.8.6.1, RFC 9260 §6.1).
    fn on_probe_answer(&mut self, now: Time) {
        let Some(asked) = self.board.lane_of(self.board.first()) else {
            return; // it was taken, which is progress of its own
        };
        self.on(asked, |sender| {
            sender.lane.rto.on_progress();
            sender.lane.answered_at = now;
        });
        self.progress.reports += 1;
    }

    /// What the silence was that this feedback ends, if it ends one. The highest number is the one probed (OP-51). With
    /// several lanes only news of this one answers: the report may have come for any.
    fn silence(&mut self, now: Time, feedback: &Feedback) -> Option<Silence> {
        if self.has_several_lanes() && !feedback.is_progress() {
            return None;
        }
        let acknowledged = if !feedback.is_progress() {
            Acknowledged::Nothing
        } else if self.board.has_last_arrived() {
            Acknowledged::Probe
        } else {
            Acknowledged::Earlier
        };
        let shortest = self.lane.rtt.minimum();
        self.lane.outage.state.on_answer(now, acknowledged, shortest)
    }

    /// New data was acknowledged: estimator, timer and attempts.
    fn on_progress(&mut self, now: Time, feedback: &Feedback) {
        let quiet = self.board.is_quiet();
        // One path keeps to RFC 6298 (5.3), and to the published numbers.
        let finds_lost_retransmissions =
            self.has_several_lanes() && self.lane.recovery.finds_lost_retransmissions_in_time();
        let head_arrived = feedback.head_arrived || finds_lost_retransmissions && feedback.is_progress();
        let restarting = Feedback {
            head_arrived,
            ..*feedback
        };
        self.lane
            .on_feedback(now, &restarting, quiet && !self.asks_by_timer());
        if feedback.is_progress() {
            self.lane.mtu.on_progress(now);
            self.progress.at = now;
            let is_answer = !self.lane.outage.state.is_unprobed();
            self.progress.reports += u64::from(is_answer);
            self.lane.reports += u64::from(is_answer);
            self.lane.waits_since = None;
            self.lane.gate.on_progress();
        }
        if quiet {
            self.on_quiet(now);
        }
        if self.board.is_empty() {
            self.probing.end_window_probe();
        }
    }

    /// Each time its timer runs out the lane in hand asks with the last that it carried whether its path is back. That may be lost and so
    /// not in flight, and a report without news of it ends nothing.
    fn asks_by_timer(&self) -> bool {
        self.lane.outage.state.is_active() && self.board.last_in_hand().is_some()
    }

    /// Nothing of the lane in hand waits for an answer, and its timer has stopped.
    fn on_quiet(&mut self, now: Time) {
        let state = &mut self.lane.outage.state;
        if state.is_unprobed() || state.is_active() && self.board.last_in_hand().is_none() {
            state.give_up(); // nothing would ever ask: where it carried something others have brought that
        }
        if self.board.lane(self.board.in_hand()).lost() == 0 {
            self.lane.waits_since = None; // what it carried has left by others
        }
        self.lane.redundancy.forget();
        self.lane.idle_since = Some(now);
    }

    /// The outage is over: everything outstanding that is not known to have arrived is retransmitted under the window as
    /// it was, then new data follows (OP-51). Silence after every such retransmission would be congestion.
    fn resume(&mut self, now: Time) {
        let (first, next) = (self.board.own_head(), self.board.next());
        if let Some(cutting) = &mut self.lane.cutting
            && cutting.on_outage_end(now, first, next, &self.lane.rtt)
        {
            let outstanding = self.board.in_flight_bytes();
            self.tell_controller(now, &CongestionEvent::Timeout { repeated: false }, outstanding);
        }
        let lost = self.lane.recovery.on_timeout(&mut self.board, false, None);
        self.counters.lost_packets += lost;
        if let Some(cutting) = &mut self.lane.cutting {
            cutting.on_outage(lost);
        }
        if !self.board.is_quiet() || self.board.lost() > 0 {
            self.lane.outage.forget_probes();
            self.lane.rto.restart(now, &self.lane.rtt);
        }
    }

    /// The receiver echoes a congestion mark: react once per window of data (RFC 3168 §6.1.2).
    pub(super) fn on_mark(&mut self, now: Time, outstanding: u64) {
        if !self.lane.ecn.reacts(self.board.own_head(), self.board.next()) {
            return;
        }
        let handling = self.parameters.loss_handling;
        // Who starts may have borne the loss.
        let may_have_cut = self.is_repairing() && !self.lane.controller.is_starting();
        let was_cut = may_have_cut && handling.reaction(LossSignal::Feedback).reduce_window;
        if handling.reaction(LossSignal::Mark).reduce_window && !was_cut {
            let bytes = u64::from(self.parameters.segment_bytes);
            self.tell_controller(now, &CongestionEvent::Marked { bytes }, outstanding);
        }
    }

    /// True once after a reaction to a mark: the receiver is to hear by segment `number`, which leaves, that the window was reduced
    /// (RFC 3168 §6.1.3).
    pub fn takes_window_reduced(&mut self, number: u64) -> bool {
        self.lane.ecn.takes_reduced(number)
    }
}
