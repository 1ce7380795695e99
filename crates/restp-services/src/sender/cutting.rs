//! Where the cause of each loss is inferred (ResTP §3.6): the window is cut once per window of data that congestion cost segments.

use crate::loss_handling::{Causes, LossHandling};
use crate::recovery::{Findings, LostSegment, RttEstimator};
use restp_base::observe::Cause;
use restp_base::time::{Duration, Time};
use std::ops::RangeInclusive;

/// Causes of the losses of one path, and the cut that answered the last of congestion.
#[derive(Clone, Debug, Default)]
pub(super) struct Cutting {
    causes: Causes,
    /// What leaves from here on has met the window as it was cut.
    recover: u64,
    /// The same for the last of corruption.
    noted: u64,
    /// What left in this time met an outage.
    outage: Option<RangeInclusive<Time>>,
    silent_since: Option<Time>,
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

    /// What the `findings` of a report are to be taken for while numbers from `first` to below `next` are outstanding. They say
    /// then that an episode begins when the window is to be cut.
    pub(super) fn judge(
        &mut self,
        first: u64,
        next: u64,
        losses: &[LostSegment],
        findings: &mut Findings,
    ) -> LossHandling {
        let was_cut = first < self.recover;
        let mut congested = losses.is_empty() && was_cut;
        for lost in losses {
            let verdict = self.causes.judge(lost.sent_at);
            congested |= verdict.cause == Cause::Congestion;
        }
        findings.began = congested && !was_cut;
        if findings.began {
            self.recover = next;
        }
        if congested {
            self.noted = next;
            LossHandling::Congestion
        } else {
            LossHandling::Corruption
        }
    }

    /// The losses just found were corruption: are they the first within a window of data?
    pub(super) fn notes(&mut self, first: u64, next: u64) -> bool {
        let is_first = first >= self.noted;
        if is_first {
            self.noted = next;
        }
        is_first
    }

    /// Nothing was answered after `last_answer`.
    pub(super) fn on_silence(&mut self, last_answer: Time) {
        self.silent_since.get_or_insert(last_answer);
    }

    /// The silence was a long round trip.
    pub(super) fn on_late_answer(&mut self) {
        self.silent_since = None;
    }

    /// The silence was an outage, and is over.
    pub(super) fn on_outage_end(&mut self, now: Time, known: &RttEstimator) {
        if let Some(since) = self.silent_since.take() {
            let began = before(since, known.smoothed().unwrap_or_default());
            self.outage = Some(began..=now);
        }
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

/// The moment `by` earlier.
fn before(moment: Time, by: Duration) -> Time {
    Time::ZERO + moment.since(Time::ZERO).saturating_sub(by)
}
