//! Where the cause of each loss is inferred (ResTP §3.6): the window is cut once per window of data that congestion cost segments.

use crate::loss_handling::Causes;
use crate::recovery::{LossUpdate, LostSegment, RttEstimator};
use restp_base::flow::LossCauses;
use restp_base::observe::Cause;
use restp_base::time::{Duration, Time};
use std::ops::RangeInclusive;

/// What losses are taken for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Judgement {
    Congestion,
    Corruption {
        /// The first of a window of data.
        is_news: bool,
    },
}

/// Causes of the losses of one path, and the cut that answered the last of congestion.
#[derive(Clone, Debug, Default)]
pub(super) struct Cutting {
    causes: Causes,
    /// What leaves from here on has met the window as it was cut.
    recover: u64,
    /// The episode that recovery repairs, or has repaired last, has cut the window.
    has_cut: bool,
    /// What leaves from here on is of another window of data than the corruption that was told last.
    told_below: u64,
    /// What left until then met the queue that a start had filled.
    filled_until: Option<Time>,
    /// What left in this time met an outage.
    outage: Option<RangeInclusive<Time>>,
    silent_since: Option<Time>,
    /// What the last outage cost leaves again, and is numbered below this.
    resent_below: u64,
    /// What losses were taken for so far.
    counts: LossCauses,
}

impl Cutting {
    /// A report has delivered so many segments, with or without a sample of the round trip.
    pub(super) fn on_delivered(
        &mut self,
        now: Time,
        segments: u64,
        rtt: Option<Duration>,
        known: &RttEstimator,
    ) {
        let (Some(shortest), Some(smoothed)) = (known.minimum(), known.smoothed()) else {
            return;
        };
        let sample = rtt.map(|rtt| {
            let queue = rtt.saturating_sub(shortest);
            (before(now, rtt), queue)
        });
        self.causes.on_delivered(segments, sample, smoothed);
    }

    /// What the loss `update` of a report is to be taken for while numbers from `first` to below `next` are outstanding. It says
    /// then that an episode begins when the window is to be cut. Corruption is told once per window of data.
    pub(super) fn judge(
        &mut self,
        first: u64,
        next: u64,
        losses: &[LostSegment],
        update: &mut LossUpdate,
    ) -> Judgement {
        self.has_cut &= !std::mem::take(&mut update.began);
        let (mut is_congestion, mut is_of_start) = (false, false);
        for lost in losses {
            let verdict = self.causes.judge(lost.sent_at);
            self.counts.add(verdict.cause, 1, verdict.confidence.into());
            if verdict.cause == Cause::Congestion {
                // Where many segments have to leave again, the last that a start has cost are found lost many rounds later.
                let met_start = self.filled_until.is_some_and(|until| lost.sent_at <= until);
                (is_congestion, is_of_start) = (is_congestion || !met_start, is_of_start || met_start);
            }
        }
        self.counts.add(Cause::Late, update.spurious, CERTAIN);
        if is_congestion {
            if !self.is_cut(first) {
                (update.began, self.has_cut, self.recover) = (true, true, next);
            }
            self.told_below = next;
            return Judgement::Congestion;
        }
        if is_of_start {
            return Judgement::Congestion; // its end has answered it
        }
        if losses.is_empty() {
            return if self.has_cut {
                Judgement::Congestion // what it may have to take back
            } else {
                Judgement::Corruption { is_news: false }
            };
        }
        let is_news = first >= self.told_below;
        if is_news {
            self.told_below = next;
        }
        Judgement::Corruption { is_news }
    }

    /// Until now the controller has filled the queue to find what the path holds, and it takes a round trip until that is gone.
    pub(super) fn on_start_over(&mut self, now: Time, rtt: Option<Duration>) {
        self.causes.on_start_over(now);
        self.filled_until = Some(now + rtt.unwrap_or_default());
    }

    /// Nothing was answered after `last_answer`.
    pub(super) fn on_silence(&mut self, last_answer: Time) {
        self.silent_since.get_or_insert(last_answer);
    }

    /// The silence was a long round trip.
    pub(super) fn on_late_answer(&mut self) {
        self.silent_since = None;
    }

    /// The silence was an outage, and is over, while numbers from `first` to below `next` are outstanding. True when it began
    /// before what the last one cost had arrived: then it is the window that silences the path.
    pub(super) fn on_outage_end(&mut self, now: Time, first: u64, next: u64, known: &RttEstimator) -> bool {
        let Some(since) = self.silent_since.take() else {
            return false;
        };
        let began = before(since, known.smoothed().unwrap_or_default());
        self.outage = Some(began..=now);
        let is_congestion = first < self.resent_below;
        self.resent_below = next;
        is_congestion
    }

    /// So many segments met an outage.
    pub(super) fn on_outage(&mut self, segments: u64) {
        self.counts.add(Cause::Outage, segments, CERTAIN);
    }

    /// What losses were taken for so far.
    pub(super) fn counts(&self) -> LossCauses {
        self.counts
    }

    /// What the loss of a segment that left at `sent_at` is taken for.
    pub(super) fn cause(&self, sent_at: Time) -> Cause {
        if self.outage.as_ref().is_some_and(|time| time.contains(&sent_at)) {
            return Cause::Outage;
        }
        self.causes.verdict(sent_at).cause
    }

    /// Is a cut being repaired?
    pub(super) fn is_cut(&self, first: u64) -> bool {
        first < self.recover
    }
}

/// Silence that ended, or an arrival after all, leaves no doubt, in percent.
const CERTAIN: u64 = 100;

/// The moment `by` earlier.
fn before(moment: Time, by: Duration) -> Time {
    Time::ZERO + moment.since(Time::ZERO).saturating_sub(by)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_left_until_a_round_trip_after_a_start_is_answered_and_what_leaves_later_cuts() {
        let at = |millis| Time::ZERO + Duration::from_millis(millis);
        let lost = |millis| LostSegment {
            sent_at: at(millis),
            bytes: 1_000,
            lost_bytes: 1_000,
            sent_in_flight_bytes: 0,
            delivered_before: 0,
            delivered_total: 0,
            application_limited: false,
        };
        let mut cutting = Cutting::default();
        let (queue, trip) = (Duration::from_millis(40), Duration::from_millis(80));
        cutting.causes.on_delivered(1, Some((at(0), queue)), trip); // a queue has begun: all is congestion
        cutting.on_start_over(at(1_000), Some(Duration::from_millis(100)));
        let mut cuts = |losses: &[LostSegment]| {
            let mut update = LossUpdate {
                began: true,
                ..LossUpdate::default()
            };
            let judgement = cutting.judge(10, 20, losses, &mut update);
            (judgement, update.began)
        };
        assert_eq!(cuts(&[lost(900), lost(1_100)]), (Judgement::Congestion, false));
        assert_eq!(
            cuts(&[lost(1_101), lost(900)]),
            (Judgement::Congestion, true),
            "no older one hides it"
        );
    }
}
