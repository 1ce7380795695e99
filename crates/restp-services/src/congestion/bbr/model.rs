//! What BBR believes of the path (draft-ietf-ccwg-bbr §5.5): bandwidth, round trip, aggregation of acknowledgements,
//! and the bounds that losses set.

use super::filter::RecentMax;
use crate::recovery::{LostSegment, RateSample};
use restp_base::numeric::mul_div;
use restp_base::time::{Duration, Time};
use restp_base::units::Rate;

/// LossThresh: more than this, in percent, is too much where a queue is seen.
pub(super) const LOSS_THRESHOLD_PERCENT: u64 = 2;
/// A bound that is not set.
pub(super) const NONE: u64 = u64::MAX;
/// What is left of a bound that losses lower, in tenths (Beta).
const BETA: (u64, u64) = (7, 10);
/// Windows of the aggregation filter, in rounds: two of them are ExtraAckedFilterLen.
const AGGREGATION_ROUNDS: u64 = 5;
/// MinRTTFilterLen, and how old the shortest round trip may be before it is probed for (ProbeRTTInterval).
const ROUND_TRIP_LIFE: Duration = Duration::from_secs(10);
const ROUND_TRIP_FRESH: Duration = Duration::from_secs(5);

/// A round trip that is longer than the shortest by less than this share of it met no queue. What ends, timers and other
/// packets add would otherwise hide for good that the queue is empty.
const NO_QUEUE: (u64, u64) = (51, 50);

/// Rounds by deliveries: one ends when something sent after its beginning is acknowledged (§5.5.1).
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::congestion) struct Rounds {
    pub count: u64,
    /// The acknowledgement at hand begins one.
    pub started: bool,
    ends_at: u64,
}

impl Rounds {
    pub fn on_sample(&mut self, sample: &RateSample) {
        self.started = sample.delivered_before >= self.ends_at;
        if self.started {
            self.ends_at = sample.delivered_total;
            self.count += 1;
        }
    }
    /// A round begins now, whatever the last one did.
    pub fn restart(&mut self, delivered: u64) {
        self.ends_at = delivered;
    }
}

/// The shortest round trip (§5.5.7).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RoundTrip {
    pub shortest: Option<Duration>,
    pub latest: Option<Duration>,
    shortest_at: Time,
    recent: Option<Duration>,
    recent_at: Time,
    /// None as short as the recent one was seen for so long that the queue has to be emptied to see one.
    pub stale: bool,
    /// The shortest of this round and of the one before.
    this_round: Option<Duration>,
    last_round: Option<Duration>,
}

impl RoundTrip {
    /// A sample refreshes when it is about as short as the known one, and not only, as in the draft (`strict`), when it is
    /// shorter: a path whose queue is empty anyhow need not be probed.
    pub fn on_sample(&mut self, now: Time, rtt: Option<Duration>, round_started: bool, strict: bool) {
        if round_started && self.this_round.is_some() {
            self.last_round = self.this_round.take();
        }
        self.stale = self.recent.is_some() && now.since(self.recent_at) > ROUND_TRIP_FRESH;
        let Some(rtt) = rtt.filter(|rtt| !rtt.is_zero()) else {
            return;
        };
        self.latest = Some(rtt);
        self.this_round = Some(self.this_round.map_or(rtt, |shortest| shortest.min(rtt)));
        match self.recent.filter(|recent| !self.stale && rtt >= *recent) {
            None => (self.recent, self.recent_at) = (Some(rtt), now),
            Some(recent) if !strict && rtt <= recent.scaled(NO_QUEUE.0, NO_QUEUE.1) => self.recent_at = now,
            Some(_) => {}
        }
        let old = now.since(self.shortest_at) > ROUND_TRIP_LIFE;
        if old || self.shortest.is_none_or(|shortest| self.recent <= Some(shortest)) {
            (self.shortest, self.shortest_at) = (self.recent, self.recent_at);
        }
    }
    pub fn probed(&mut self, now: Time) {
        self.recent_at = now;
    }
    /// The shortest of late. A standing queue is in every sample; what an end or its processor adds is not.
    pub fn of_late(&self) -> Option<Duration> {
        [self.this_round, self.last_round].into_iter().flatten().min()
    }
}

/// How far acknowledgements run ahead of the rate (§5.5.9).
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::congestion) struct Aggregation {
    extra: RecentMax,
    since: Time,
    delivered: u64,
    window_from: u64,
}

impl Aggregation {
    pub fn on_acked(
        &mut self,
        now: Time,
        bytes: u64,
        bandwidth: Rate,
        rounds: &Rounds,
        window: u64,
        full: bool,
    ) {
        let mut expected = bandwidth.bytes_in(now.since(self.since));
        if self.delivered <= expected {
            (self.delivered, self.since, expected) = (0, now, 0);
        }
        self.delivered = self.delivered.saturating_add(bytes);
        let length = if full { AGGREGATION_ROUNDS } else { 1 };
        if rounds.count.saturating_sub(self.window_from) >= length {
            self.window_from = rounds.count;
            self.extra.advance();
        }
        self.extra
            .update(self.delivered.saturating_sub(expected).min(window));
    }
    pub fn restart(&mut self, now: Time) {
        (self.since, self.delivered) = (now, 0);
    }
    pub fn extra_bytes(&self) -> u64 {
        self.extra.get()
    }
}

/// Short-term bounds: what a round with losses delivered (§5.5.10.3).
#[derive(Clone, Copy, Debug)]
pub(super) struct LowerBounds {
    pub bandwidth: u64,
    pub in_flight: u64,
    /// The most that one sample of the round showed.
    bandwidth_latest: u64,
    in_flight_latest: u64,
    /// Losses of this round that speak of congestion, in segments and bytes.
    pub lost_segments: u64,
    pub lost_bytes: u64,
    round_ends_at: u64,
    /// The acknowledgement at hand ends a round of losses.
    pub round_ended: bool,
}

impl Default for LowerBounds {
    fn default() -> Self {
        LowerBounds {
            bandwidth: NONE,
            in_flight: NONE,
            bandwidth_latest: 0,
            in_flight_latest: 0,
            lost_segments: 0,
            lost_bytes: 0,
            round_ends_at: 0,
            round_ended: false,
        }
    }
}

impl LowerBounds {
    pub fn on_sample(&mut self, sample: &RateSample, rate: u64) {
        self.bandwidth_latest = self.bandwidth_latest.max(rate);
        self.in_flight_latest = self.in_flight_latest.max(sample.delivered_bytes);
        self.round_ended = sample.delivered_before >= self.round_ends_at;
        if self.round_ended {
            self.round_ends_at = sample.delivered_total;
        }
    }
    /// A loss begins a round of its own.
    pub fn on_lost(&mut self, bytes: u64, delivered: u64) {
        if self.lost_segments == 0 {
            self.round_ends_at = delivered;
        }
        self.lost_segments += 1;
        self.lost_bytes = self.lost_bytes.saturating_add(bytes);
    }
    /// Lowers the bounds at the end of a round with losses, to what it delivered or by Beta.
    pub fn lower(&mut self, bandwidth: u64, window: u64) {
        let lowered = |bound: u64, at_most: u64, latest: u64| latest.max(part(bound.min(at_most), BETA));
        self.bandwidth = lowered(self.bandwidth, bandwidth, self.bandwidth_latest);
        self.in_flight = lowered(self.in_flight, window, self.in_flight_latest);
    }
    pub fn end_round(&mut self, sample: &RateSample, rate: u64) {
        if self.round_ended {
            (self.bandwidth_latest, self.in_flight_latest) = (rate, sample.delivered_bytes);
            (self.lost_segments, self.lost_bytes) = (0, 0);
        }
    }
    pub fn most_delivered(&self) -> u64 {
        self.in_flight_latest
    }
    pub fn lift(&mut self) {
        (self.bandwidth, self.in_flight) = (NONE, NONE);
    }
    pub fn forget_round(&mut self) {
        (self.bandwidth_latest, self.in_flight_latest) = (0, 0);
        (self.lost_segments, self.lost_bytes) = (0, 0);
    }
}

/// `share` of `value`, without overflow.
pub(in crate::congestion) fn part(value: u64, share: (u64, u64)) -> u64 {
    let (numerator, denominator) = share;
    mul_div(value, numerator, denominator)
}

/// Beta of a bound.
pub(super) fn beta(value: u64) -> u64 {
    part(value, BETA)
}

/// What was in flight when losses passed the threshold, between the segment before this one and this one
/// (BBRInflightAtLoss).
pub(super) fn in_flight_at_threshold(lost: &LostSegment) -> u64 {
    let sent = lost.sent_in_flight_bytes.saturating_sub(lost.bytes);
    let lost_before = lost.lost_bytes.saturating_sub(lost.bytes);
    let percent = LOSS_THRESHOLD_PERCENT;
    let allowed = part(sent, (percent, 100)).saturating_sub(lost_before);
    sent.saturating_add(part(allowed, (100, 100 - percent)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Delay that an end adds is not in every sample of a round; a standing queue is.
    #[test]
    fn one_late_acknowledgement_is_no_queue() {
        let ms = |ms| Some(Duration::from_millis(ms));
        let mut trip = RoundTrip::default();
        trip.on_sample(Time::ZERO, ms(50), true, false);
        trip.on_sample(Time::ZERO, ms(90), false, false);
        trip.on_sample(Time::ZERO, ms(90), true, false);
        assert_eq!(trip.of_late(), ms(50));
        trip.on_sample(Time::ZERO, ms(70), true, false);
        assert_eq!(trip.of_late(), ms(70));
    }
}
