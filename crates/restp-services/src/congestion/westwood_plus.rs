//! Westwood+: Westwood with one sample per round trip, so that acknowledgements that arrive in bunches do not make
//! the path look fast. Grieco, Mascolo 2004; TC §2.3.7.

use super::bandwidth::{Bandwidth, Deliveries, KEPT, rate};
use super::westwood::Episode;
use super::window::{CommonParams, Window, segment_of};
use super::{Congestion, CongestionEvent, CongestionSnapshot, Reno};
use crate::view::PathView;
use restp_base::time::{Duration, Time};
use restp_base::units::Rate;

/// Parameters of [`WestwoodPlus`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WestwoodPlusParams {
    /// Start and growth.
    pub common: CommonParams,
    /// How samples become an estimate. Default [`WestwoodPlusFilter::Const`].
    pub filter: WestwoodPlusFilter,
}

/// How Westwood+'s samples, one per round trip, become an estimate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WestwoodPlusFilter {
    /// A tenth of the mean of the last two samples, each of exactly one round trip: as the published runs had it
    /// (TC §2.3.7).
    #[default]
    Const,
    /// A tenth of the sample, the first of them whole; a sample takes 50 ms at least, and lasts until an acknowledgement
    /// comes (Grieco, Mascolo 2004, and Linux).
    Pub,
}

/// The shortest time a sample of [`WestwoodPlusFilter::Pub`] takes: round trips of a local network are too noisy.
const SHORTEST: Duration = Duration::from_millis(50);

/// The Westwood+ controller.
#[derive(Clone, Copy, Debug)]
pub struct WestwoodPlus {
    reno: Reno,
    filter: WestwoodPlusFilter,
    bandwidth: Bandwidth,
    deliveries: Deliveries,
    episode: Episode,
    sample: Option<Sample>,
}

/// The sample under way.
#[derive(Clone, Copy, Debug)]
struct Sample {
    began: Time,
    /// The round trip that was measured then.
    rtt: Duration,
    /// Bytes delivered since.
    delivered: u64,
}

impl WestwoodPlus {
    /// A controller at its initial window for segments of `segment_bytes`.
    pub fn new(params: &WestwoodPlusParams, segment_bytes: u64) -> Self {
        WestwoodPlus {
            reno: Reno::new(&params.common, segment_bytes),
            filter: params.filter,
            bandwidth: Bandwidth::default(),
            deliveries: Deliveries::default(),
            episode: Episode::default(),
            sample: None,
        }
    }

    /// A sample of [`WestwoodPlusFilter::Const`] is over one round trip after the measurement it began with. The silence
    /// from then on is no part of it: acknowledgements come in bunches, and between two of them nothing is missing.
    fn end_sample(&mut self, now: Time) {
        let is_over = |sample: &mut Sample| now.since(sample.began) >= sample.rtt;
        if let Some(sample) = self.sample.take_if(is_over) {
            self.bandwidth.pair(KEPT, rate(sample.delivered, sample.rtt));
        }
    }

    /// The first acknowledgement with a measurement after the last sample begins the next, and is part of it.
    fn one_round_trip(&mut self, bytes: u64, rtt: Option<Duration>, now: Time) {
        let measured = rtt.filter(|rtt| !rtt.is_zero());
        if let (None, Some(rtt)) = (self.sample, measured) {
            self.sample = Some(Sample {
                began: now,
                rtt,
                delivered: 0,
            });
        }
        if let Some(sample) = &mut self.sample {
            sample.delivered = sample.delivered.saturating_add(bytes);
        }
    }

    /// A sample of [`WestwoodPlusFilter::Pub`] ends with the first acknowledgement a round trip after its beginning.
    fn at_least_one_round_trip(&mut self, bytes: u64, view: &PathView<'_>) {
        let next = |rtt| Sample {
            began: view.now,
            rtt,
            delivered: 0,
        };
        let rtt = view.latest_rtt.unwrap_or_default().max(SHORTEST);
        let Some(sample) = &mut self.sample else {
            self.sample = Some(next(rtt));
            return;
        };
        sample.delivered = sample.delivered.saturating_add(bytes);
        let elapsed = view.now.since(sample.began);
        if elapsed >= rtt {
            self.bandwidth.single(KEPT, rate(sample.delivered, elapsed));
            self.sample = Some(next(rtt));
        }
    }
}

impl Congestion for WestwoodPlus {
    fn on(&mut self, event: &CongestionEvent, view: &PathView<'_>) {
        if self.filter == WestwoodPlusFilter::Const {
            self.end_sample(view.now);
        }
        let segment = segment_of(view);
        let rtt = match *event {
            CongestionEvent::Acked { rtt, .. } => rtt,
            _ => None,
        };
        if let Some(bytes) = self.deliveries.on(event, segment) {
            match self.filter {
                WestwoodPlusFilter::Const => self.one_round_trip(bytes, rtt, view.now),
                WestwoodPlusFilter::Pub => self.at_least_one_round_trip(bytes, view),
            }
        }
        if let CongestionEvent::Acked { bytes, .. } = *event
            && Window::may_grow(view)
        {
            self.reno.grow(bytes, segment);
        }
        self.episode.on(event, &mut self.reno.window);
        self.reno.react(event, view, self.bandwidth.product(view.min_rtt));
    }
    fn window_bytes(&self) -> u64 {
        self.reno.window_bytes()
    }
    fn pacing(&self) -> Option<Rate> {
        self.reno.pacing()
    }
    fn snapshot(&self) -> CongestionSnapshot {
        self.reno.snapshot()
    }
}

#[cfg(test)]
mod tests {
    use super::super::bandwidth::tests::{megabits, steady};
    use super::super::conformance::{acked, acked_after, path};
    use super::*;

    const SEGMENT: u64 = 1460;

    fn at(ms: u64, rtt_ms: u64) -> PathView<'static> {
        PathView {
            now: Time::ZERO + Duration::from_millis(ms),
            latest_rtt: Some(Duration::from_millis(rtt_ms)),
            min_rtt: Some(Duration::from_millis(100)),
            ..path(SEGMENT)
        }
    }

    fn plus(filter: WestwoodPlusFilter) -> WestwoodPlus {
        let params = WestwoodPlusParams {
            filter,
            ..WestwoodPlusParams::default()
        };
        WestwoodPlus::new(&params, SEGMENT)
    }

    /// An acknowledgement of `bytes` at `ms` with a sample of `rtt_ms`; the estimate after it.
    fn ack(plus: &mut WestwoodPlus, ms: u64, bytes: u64, rtt_ms: u64) -> f64 {
        plus.on(
            &acked_after(bytes, Duration::from_millis(rtt_ms)),
            &at(ms, rtt_ms),
        );
        megabits(&plus.bandwidth)
    }

    #[track_caller]
    fn assert_near(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-9, "{found}, not {expected}");
    }

    #[test]
    fn a_sample_is_what_a_round_trip_delivers_however_bunched() {
        let mut plus = plus(WestwoodPlusFilter::Const);
        ack(&mut plus, 0, 12_500, 100); // begins the first sample, and counts in it
        assert_near(ack(&mut plus, 99, 12_500, 100), 0.0); // the round trip is not over
        // 25 000 bytes in 100 ms: 2 Mbit/s; 0.1 · (2 + 0) / 2. This acknowledgement is the next sample's.
        assert_near(ack(&mut plus, 100, 25_000, 100), 0.1);
        assert_near(ack(&mut plus, 200, 25_000, 100), 0.29); // 0.9 · 0.1 + 0.1 · 2
    }

    /// TC §2.3.7: a sample is taken one round trip after a measurement. It used to last until the next acknowledgement, so that
    /// windows smaller than the path looked like a slower path.
    #[test]
    fn silence_after_the_round_trip_is_no_part_of_the_sample() {
        let mut plus = plus(WestwoodPlusFilter::Const);
        ack(&mut plus, 0, 25_000, 100);
        assert_near(ack(&mut plus, 150, 25_000, 100), 0.1); // 2 Mbit/s, not 25 000 bytes in 150 ms
        assert_near(ack(&mut plus, 900, 25_000, 100), 0.29);
    }

    /// As Westwood (TC §2.3.6): a duplicate is a segment delivered, and is not counted again.
    #[test]
    fn duplicates_count_into_the_round_trip_in_which_they_come() {
        let mut plus = plus(WestwoodPlusFilter::Const);
        ack(&mut plus, 0, 2 * SEGMENT, 100);
        for ms in [10, 20, 30] {
            plus.on(&CongestionEvent::Duplicate, &at(ms, 100));
        }
        plus.on(&acked(4 * SEGMENT), &at(40, 100));
        // 2 + 3 + 1 segments in 100 ms: 0.7008 Mbit/s.
        assert_near(ack(&mut plus, 100, SEGMENT, 100), 0.05 * 0.7008);
    }

    #[test]
    fn a_sample_that_is_over_counts_before_a_loss_is_judged() {
        let mut plus = plus(WestwoodPlusFilter::Const);
        ack(&mut plus, 0, 25_000, 100);
        plus.on(&CongestionEvent::Lost { bytes: SEGMENT }, &at(100, 100));
        assert_near(megabits(&plus.bandwidth), 0.1);
    }

    /// After a retransmission no acknowledgement measures the round trip (Karn): what comes meanwhile is nobody's.
    #[test]
    fn only_a_measurement_begins_a_sample_and_sets_its_length() {
        let mut plus = plus(WestwoodPlusFilter::Const);
        plus.on(&acked(SEGMENT), &at(0, 100));
        ack(&mut plus, 50, 25_000, 200);
        plus.on(&acked(25_000), &at(249, 100)); // 50 000 bytes in 200 ms, whatever was measured later
        assert_near(ack(&mut plus, 250, SEGMENT, 100), 0.1);
        plus.on(&acked_after(SEGMENT, Duration::ZERO), &at(400, 100));
        assert!(plus.sample.is_none(), "a round trip of no time is none");
    }

    #[test]
    fn as_published_the_first_sample_is_whole_and_none_is_shorter_than_50_ms() {
        let mut plus = plus(WestwoodPlusFilter::Pub);
        ack(&mut plus, 0, SEGMENT, 20); // begins the first sample
        assert_near(ack(&mut plus, 20, 6_250, 20), 0.0);
        assert_near(ack(&mut plus, 50, 6_250, 20), 2.0); // 12 500 bytes in 50 ms
        assert_near(ack(&mut plus, 100, 25_000, 20), 2.2); // 0.9 · 2 + 0.1 · 4
        assert_near(ack(&mut plus, 160, 25_000, 100), 2.2); // 60 of 100 ms
        assert_near(ack(&mut plus, 300, 25_000, 100), 2.18); // 0.9 · 2.2 + 0.1 · 2, over 200 ms
    }

    #[test]
    fn a_loss_leaves_what_the_path_delivers_in_its_shortest_round_trip() {
        let mut plus = plus(WestwoodPlusFilter::Pub);
        for _ in 0..6 {
            plus.on(&acked(plus.window_bytes()), &at(0, 100));
        }
        plus.bandwidth = steady(8.0);
        plus.on(&CongestionEvent::Lost { bytes: SEGMENT }, &at(0, 100));
        assert_eq!(plus.window_bytes(), 100_000);
        plus.bandwidth = steady(16.0);
        plus.on(&CongestionEvent::Lost { bytes: SEGMENT }, &at(0, 100));
        assert_eq!(plus.window_bytes(), 100_000, "a loss raises nothing");
        plus.on(&CongestionEvent::RecoveryEnded, &at(0, 100));
        assert_eq!(plus.window_bytes(), 200_000);
        plus.bandwidth = steady(8.0);
        plus.on(&CongestionEvent::Timeout { repeated: false }, &at(0, 100));
        assert_eq!(
            (plus.window_bytes(), plus.snapshot().threshold_bytes),
            (SEGMENT, Some(100_000))
        );
    }
}
