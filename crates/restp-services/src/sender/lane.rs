//! What a sender knows of one path (ResTP §3.3): estimator, timer, controller, pacer, largest segment, what it takes for lost and
//! whether it answers at all. Its addresses belong to the protocol.

use crate::congestion::{Congestion, CongestionEvent, Controller};
use crate::loss_handling::{LossHandling, Reaction};
use crate::path_management::{Destination, Pacer, PathMtu};
use crate::recovery::{Feedback, LossUpdate, LostSegment, Recovery, RtoParameters, RtoTimer, RttEstimator};
use crate::view::{PathView, Sibling};
use restp_base::machine::{Earliest, Wakeup};
use restp_base::time::Time;

use super::ack_demand::AckDemand;
use super::cutting::Cutting;
use super::ecn::EcnResponse;
use super::gate::Gate;
use super::probing::Outage;
use super::rate_reduction::RateReduction;
use super::redundancy::Redundancy;
use super::repaired_losses::RepairedLosses;
use super::tail_probe::TailProbe;

/// One path, as a sender sees it.
#[derive(Debug)]
pub(super) struct Lane {
    /// Round-trip time.
    pub(super) rtt: RttEstimator,
    /// Retransmission timer.
    pub(super) rto: RtoTimer,
    /// Congestion window.
    pub(super) controller: Controller,
    /// Spacing of segments, when the composition paces.
    pub(super) pacer: Pacer,
    /// Largest segment.
    pub(super) mtu: PathMtu,
    /// The other paths of the association, as they were lately; kept up for coupled congestion control only.
    pub(super) siblings: Vec<Sibling>,
    /// What is lost of what left here.
    pub(super) recovery: Recovery,
    /// Encoded packets that left here.
    pub(super) redundancy: Redundancy,
    /// Losses of these that encoded packets may repair.
    pub(super) repaired_losses: RepairedLosses,
    pub(super) gate: Gate,
    pub(super) reduction: RateReduction,
    pub(super) tail: TailProbe,
    pub(super) outage: Outage,
    pub(super) ecn: EcnResponse,
    pub(super) ack_demand: AckDemand,
    /// Why segments are lost, where the composition asks.
    pub(super) cutting: Option<Box<Cutting>>,
    /// Feedback last spoke of anything that left here, be it a duplicate of what it said before.
    pub(super) answered_at: Time,
    /// What left first since feedback brought news of anything that left here.
    pub(super) waits_since: Option<Time>,
    /// When the first left of what the peer had to rebuild, or has given up, since anything arrived that left here.
    pub(super) uncarried_since: Option<Time>,
    /// It was silent, and answers since.
    pub(super) resumed_at: Time,
    /// The timer ran out too often.
    pub(super) failed_at: Option<Time>,
    /// Everything that left here was acknowledged, and nothing has left since.
    pub(super) idle_since: Option<Time>,
    /// Reports with news of what left here.
    pub(super) reports: u64,
    /// Segments declared lost here.
    pub(super) lost_packets: u64,
    /// Times that losses cut the window, timeouts apart.
    pub(super) cuts: u64,
    /// What was lost may leave here.
    pub(super) active: bool,
    /// Losses in a million packets, as the user tells.
    pub(super) losses_per_million: u32,
    /// Its timer while it is silent and what it carries is for others.
    pub(super) yielded: Option<Yielded>,
}

/// The timer of a lane whose segments others may carry.
#[derive(Clone, Copy, Debug)]
pub(super) struct Yielded {
    /// When it would have run out.
    pub(super) expires_at: Time,
    /// [`Lane::reports`] then.
    pub(super) reports: u64,
}

impl Lane {
    /// A path of which nothing is known yet.
    pub(super) fn new(
        now: Time,
        rto: RtoParameters,
        controller: Controller,
        mtu: PathMtu,
        recovery: Recovery,
    ) -> Self {
        Lane {
            rtt: RttEstimator::default(),
            rto: RtoTimer::new(rto),
            controller,
            pacer: Pacer::default(),
            mtu,
            siblings: Vec::new(),
            recovery,
            redundancy: Redundancy::default(),
            repaired_losses: RepairedLosses::default(),
            gate: Gate::default(),
            reduction: RateReduction::default(),
            tail: TailProbe::default(),
            outage: Outage::default(),
            ecn: EcnResponse::default(),
            ack_demand: AckDemand::default(),
            cutting: None,
            answered_at: now,
            waits_since: None,
            uncarried_since: None,
            resumed_at: now,
            failed_at: None,
            idle_since: None,
            reports: 0,
            lost_packets: 0,
            cuts: 0,
            active: true,
            losses_per_million: 0,
            yielded: None,
        }
    }

    /// The same, where losses are taken for what `handling` says.
    pub(super) fn judging(mut self, handling: LossHandling) -> Self {
        self.judge_by(handling);
        self
    }

    /// From now on losses are taken for what `handling` says.
    pub(super) fn judge_by(&mut self, handling: LossHandling) {
        self.cutting = (handling == LossHandling::Adaptive).then(Box::default);
    }

    /// A report came by it, with news of so many segments.
    pub(super) fn on_report(&mut self, now: Time, delivered: u64) {
        let controller = &self.controller;
        let is_steady = controller.answers() == 0 && !controller.is_starting() && !self.gate.is_unused();
        self.ack_demand
            .on_report(now, delivered, self.rtt.smoothed(), is_steady);
    }

    /// What the other paths of the association may know of this one, once it was measured.
    pub(super) fn as_sibling(&self) -> Option<Sibling> {
        Some(Sibling {
            window_bytes: self.controller.window_bytes(),
            smoothed_rtt: self.rtt.smoothed()?,
            loss_interval_bytes: self.controller.loss_interval_bytes(),
            shares_queue: false,
            cut_at: self.controller.cut_at(),
        })
    }

    /// What may be known of it by who chooses among lanes for a retransmission.
    pub(super) fn destination(&self) -> Destination {
        Destination {
            active: self.active && !self.outage.state.is_active(),
            failing: self.rto.expiries() > 0,
            window_bytes: self.controller.window_bytes(),
            threshold_bytes: self.controller.threshold_bytes().unwrap_or_default(),
            losses_per_million: self.losses_per_million,
            smoothed_rtt: self.rtt.smoothed(),
        }
    }

    /// The earlier of what is due here and `earliest`.
    pub(super) fn deadline(&self, earliest: Earliest) -> Earliest {
        earliest
            .or(self.rto.deadline(), Wakeup::Retransmission)
            .or(self.recovery.deadline(), Wakeup::Retransmission)
            .or(self.gate.paced_until(), Wakeup::Pacing)
            .or(self.mtu.deadline(), Wakeup::Probe)
            .or(self.tail.deadline(), Wakeup::Probe)
    }

    /// Feedback has come: estimator and timer (RFC 6298 §5.2, §5.3; RFC 9260 §6.3.2 (R3): the lowest number outstanding restarts it, or
    /// a retransmission that is lost would never be found missing while what was sent once goes on). `drained`: nothing is
    /// outstanding any more.
    pub(super) fn on_feedback(&mut self, now: Time, feedback: &Feedback, drained: bool) {
        if let Some(rtt) = feedback.rtt {
            self.rtt.sample(rtt);
        }
        if let Some(cutting) = &mut self.cutting {
            cutting.on_delivered(now, feedback.delivered, feedback.rtt, &self.rtt);
        }
        if feedback.is_progress() {
            self.rto.on_progress();
            self.outage.on_progress();
        }
        if drained {
            self.rto.stop();
        } else if feedback.head_arrived {
            self.rto.restart(now, &self.rtt);
        }
    }

    /// What the controller hears of every segment that feedback found lost, before [`Lane::on_loss_update`].
    pub(super) fn on_losses(&mut self, now: Time, losses: &[LostSegment], reaction: Reaction, load: Load) {
        if reaction.reduce_window {
            for lost in losses {
                self.tell(now, &CongestionEvent::SegmentLost(*lost), load);
            }
        }
    }

    /// What the controller hears of feedback, after [`Lane::on_feedback`]: a duplicate; the start of a loss episode, if it is to
    /// react, with what was `outstanding` before anything was taken for lost; the end of one; what was delivered.
    pub(super) fn on_loss_update(
        &mut self,
        now: Time,
        feedback: &Feedback,
        update: LossUpdate,
        reaction: Reaction,
        outstanding: u64,
        load: Load,
    ) {
        if feedback.duplicate && feedback.delivered_bytes == 0 {
            self.tell(now, &CongestionEvent::Duplicate, load);
        }
        // An episode that ends beside the beginning of another is the one before.
        let renewed = update.ended && update.began;
        if renewed {
            self.tell(now, &CongestionEvent::RecoveryEnded, load);
        }
        if update.began && reaction.reduce_window {
            let bytes = update.lost * load.segment_bytes;
            let before = Load {
                in_flight_bytes: outstanding,
                ..load
            };
            self.cuts += 1;
            self.tell(now, &CongestionEvent::Lost { bytes }, before);
        }
        if update.restored && reaction.reduce_window {
            self.tell(now, &CongestionEvent::Restored, load);
        }
        if update.urgent && !update.spares_head {
            // The retransmission that leaves now has a round trip of its own before the timer may judge it. With a full queue
            // that is longer than what is left of a timer set by the last progress.
            self.rto.restart(now, &self.rtt);
        }
        if update.ended && !renewed {
            self.tell(now, &CongestionEvent::RecoveryEnded, load);
        }
        if feedback.delivered_bytes > 0 && (feedback.advanced > 0 || !self.controller.hears_only_advances()) {
            let event = CongestionEvent::Acked {
                bytes: feedback.delivered_bytes,
                rtt: feedback.rtt,
                // Less than a round trip: an earlier transmission of a retransmitted segment was acknowledged
                // (draft-cheng-iccrg-delivery-rate-estimation §3.3).
                rate: feedback
                    .rate
                    .filter(|rate| Some(rate.interval) >= self.rtt.minimum()),
            };
            self.tell(now, &event, load);
        }
    }

    /// Tells the controller.
    pub(super) fn tell(&mut self, now: Time, event: &CongestionEvent, load: Load) {
        let view = PathView {
            now,
            segment_bytes: load.segment_bytes,
            in_flight_bytes: load.in_flight_bytes,
            smoothed_rtt: self.rtt.smoothed(),
            latest_rtt: self.rtt.latest(),
            min_rtt: self.rtt.minimum(),
            application_limited: load.application_limited,
            in_recovery: load.in_recovery,
            siblings: &self.siblings,
        };
        let was_starting = self.controller.is_starting();
        self.controller.on(event, &view);
        if let Some(cutting) = &mut self.cutting
            && was_starting
            && !self.controller.is_starting()
        {
            cutting.on_start_over(now, self.rtt.smoothed());
        }
    }
}

/// What the sender, not the path, knows of the path's load: this part of a [`PathView`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Load {
    /// See [`PathView::segment_bytes`].
    pub(super) segment_bytes: u64,
    /// See [`PathView::in_flight_bytes`].
    pub(super) in_flight_bytes: u64,
    /// See [`PathView::application_limited`].
    pub(super) application_limited: bool,
    /// See [`PathView::in_recovery`].
    pub(super) in_recovery: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::{CongestionChoice, CongestionSnapshot};
    use crate::loss_handling::LossSignal;
    use restp_base::time::Duration;
    use restp_base::units::Rate;
    use std::sync::{Arc, Mutex};

    const SEGMENT: u64 = 1000;

    fn path() -> Lane {
        let controller = CongestionChoice::NewReno(Default::default()).build(SEGMENT);
        let recovery = Recovery::Timer(Default::default());
        let mtu = PathMtu::known(SEGMENT as u32);
        Lane::new(Time::ZERO, RtoParameters::default(), controller, mtu, recovery)
    }

    fn ms(n: u64) -> Time {
        Time::ZERO + Duration::from_millis(n)
    }

    /// Writes down what it is told.
    #[derive(Debug, Default)]
    struct Listener(Arc<Mutex<Vec<CongestionEvent>>>);

    impl Congestion for Listener {
        fn on(&mut self, event: &CongestionEvent, _: &PathView<'_>) {
            self.0.lock().unwrap().push(*event);
        }
        fn window_bytes(&self) -> u64 {
            SEGMENT
        }
        fn pacing(&self) -> Option<Rate> {
            None
        }
        fn snapshot(&self) -> CongestionSnapshot {
            CongestionSnapshot {
                window_bytes: SEGMENT,
                threshold_bytes: None,
                state: "listening",
            }
        }
    }

    /// A duplicate that names what selective acknowledgement had not reported is no riddle.
    #[test]
    fn the_controller_hears_of_a_duplicate_that_names_nothing_before_the_loss_it_reveals() {
        let heard = |delivered_bytes| {
            let events = Arc::default();
            let mut path = path();
            path.controller = Controller::Custom(Box::new(Listener(Arc::clone(&events))));
            let feedback = Feedback {
                duplicate: true,
                delivered_bytes,
                ..Feedback::default()
            };
            let update = LossUpdate {
                lost: 1,
                began: true,
                ..LossUpdate::default()
            };
            let load = Load {
                segment_bytes: SEGMENT,
                in_flight_bytes: 0,
                application_limited: false,
                in_recovery: true,
            };
            let reaction = LossHandling::Congestion.reaction(LossSignal::Feedback);
            path.on_loss_update(ms(0), &feedback, update, reaction, 10 * SEGMENT, load);
            events.lock().unwrap().clone()
        };
        let lost = CongestionEvent::Lost { bytes: SEGMENT };
        assert_eq!(heard(0), [CongestionEvent::Duplicate, lost]);
        let named = CongestionEvent::Acked {
            bytes: SEGMENT,
            rtt: None,
            rate: None,
        };
        assert_eq!(heard(SEGMENT), [lost, named]);
    }

    #[test]
    fn an_urgent_retransmission_gets_a_whole_timer() {
        let mut path = path();
        path.rtt.sample(Duration::from_millis(190));
        path.rto.restart(ms(0), &path.rtt);
        let update = LossUpdate {
            lost: 1,
            began: true,
            urgent: true,
            ..LossUpdate::default()
        };
        let reaction = LossHandling::Congestion.reaction(LossSignal::Feedback);
        let load = Load {
            segment_bytes: SEGMENT,
            in_flight_bytes: 0,
            application_limited: false,
            in_recovery: true,
        };
        path.on_loss_update(
            ms(200),
            &Feedback::default(),
            update,
            reaction,
            10 * SEGMENT,
            load,
        );
        assert_eq!(path.rto.deadline(), Some(ms(200) + path.rto.value(&path.rtt)));
    }

    #[test]
    fn the_timer_starts_again_with_progress_and_stops_when_nothing_is_out() {
        let mut path = path();
        path.rto.restart(ms(0), &path.rtt);
        let first = path.rto.deadline();
        path.on_feedback(ms(10), &Feedback::default(), false);
        assert_eq!(path.rto.deadline(), first, "no progress");
        let progress = Feedback {
            advanced: 1,
            head_arrived: true,
            rtt: Some(Duration::from_millis(100)),
            ..Feedback::default()
        };
        path.on_feedback(ms(100), &progress, false);
        assert_eq!(path.rtt.smoothed(), Some(Duration::from_millis(100)));
        assert_eq!(path.rto.deadline(), Some(ms(100) + path.rto.value(&path.rtt)));
        path.on_feedback(ms(200), &progress, true);
        assert_eq!(path.rto.deadline(), None);
    }

    /// RFC 5681 §3.1 (4): half of what was outstanding before the loss, which what is still in flight is not.
    #[test]
    fn an_episode_cuts_the_window_by_what_was_outstanding_if_it_is_to_react() {
        let window_after = |cause: LossHandling| {
            let mut path = path();
            let update = LossUpdate {
                lost: 6,
                began: true,
                ..LossUpdate::default()
            };
            let load = Load {
                segment_bytes: SEGMENT,
                in_flight_bytes: 4 * SEGMENT,
                application_limited: false,
                in_recovery: true,
            };
            let reaction = cause.reaction(LossSignal::Feedback);
            path.on_loss_update(ms(0), &Feedback::default(), update, reaction, 10 * SEGMENT, load);
            path.controller.window_bytes()
        };
        assert_eq!(window_after(LossHandling::Congestion), 5 * SEGMENT);
        assert_eq!(window_after(LossHandling::Corruption), 10 * SEGMENT);
    }
}
