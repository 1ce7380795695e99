//! Westwood+: Westwood with one sample per round trip, so that acknowledgements that arrive in bunches do not make
//! the path look fast. Grieco, Mascolo 2004; TC §2.3.7.

use super::bandwidth::{Bandwidth, KEPT, rate};
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
    /// A tenth of the mean of the last two samples: as the published runs had it (TC §2.3.7).
    #[default]
    Const,
    /// A tenth of the sample, the first of them whole; a sample takes 50 ms at least (Grieco, Mascolo 2004).
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
    /// When the running sample began.
    began: Option<Time>,
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
            began: None,
            delivered: 0,
        }
    }

    fn sample(&mut self, bytes: u64, view: &PathView<'_>) {
        let (Some(began), Some(rtt)) = (self.began, view.latest_rtt) else {
            (self.began, self.delivered) = (Some(view.now), 0);
            return;
        };
        self.delivered = self.delivered.saturating_add(bytes);
        let elapsed = view.now.since(began);
        let least = match self.filter {
            WestwoodPlusFilter::Const => rtt,
            WestwoodPlusFilter::Pub => rtt.max(SHORTEST),
        };
        if elapsed.is_zero() || elapsed < least {
            return;
        }
        let sample = rate(self.delivered, elapsed);
        match self.filter {
            WestwoodPlusFilter::Const => self.bandwidth.pair(KEPT, sample),
            WestwoodPlusFilter::Pub => self.bandwidth.single(KEPT, sample),
        }
        (self.began, self.delivered) = (Some(view.now), 0);
    }
}

impl Congestion for WestwoodPlus {
    fn on(&mut self, event: &CongestionEvent, view: &PathView<'_>) {
        if let CongestionEvent::Acked { bytes, .. } = *event {
            self.sample(bytes, view);
            if Window::may_grow(view) {
                self.reno.grow(bytes, segment_of(view));
            }
        }
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
    use super::super::conformance::{acked, path};
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

    fn started(filter: WestwoodPlusFilter) -> WestwoodPlus {
        let params = WestwoodPlusParams {
            filter,
            ..WestwoodPlusParams::default()
        };
        let mut plus = WestwoodPlus::new(&params, SEGMENT);
        plus.on(&acked(SEGMENT), &at(0, 100)); // begins the first sample
        plus
    }

    #[test]
    fn a_sample_is_what_a_round_trip_delivers_however_bunched() {
        let mut plus = started(WestwoodPlusFilter::Const);
        plus.on(&acked(12_500), &at(99, 100));
        assert_eq!(megabits(&plus.bandwidth), 0.0, "the round trip is not over");
        plus.on(&acked(12_500), &at(100, 100)); // 25 000 bytes in 100 ms: 2 Mbit/s; 0.1 · (2 + 0) / 2
        assert!((megabits(&plus.bandwidth) - 0.1).abs() < 1e-9);
        plus.on(&acked(25_000), &at(200, 100)); // 0.9 · 0.1 + 0.1 · 2
        assert!((megabits(&plus.bandwidth) - 0.29).abs() < 1e-9);
    }

    #[test]
    fn as_published_the_first_sample_is_whole_and_none_is_shorter_than_50_ms() {
        let mut plus = started(WestwoodPlusFilter::Pub);
        plus.on(&acked(6_250), &at(20, 20));
        assert_eq!(megabits(&plus.bandwidth), 0.0);
        plus.on(&acked(6_250), &at(50, 20)); // 12 500 bytes in 50 ms
        assert!((megabits(&plus.bandwidth) - 2.0).abs() < 1e-9);
        plus.on(&acked(25_000), &at(100, 20)); // 0.9 · 2 + 0.1 · 4
        assert!((megabits(&plus.bandwidth) - 2.2).abs() < 1e-9);
    }

    #[test]
    fn a_loss_leaves_what_the_path_delivers_in_its_shortest_round_trip() {
        let mut plus = started(WestwoodPlusFilter::Pub);
        for _ in 0..6 {
            plus.on(&acked(plus.window_bytes()), &at(0, 100));
        }
        plus.bandwidth = steady(8.0);
        plus.on(&CongestionEvent::Lost { bytes: SEGMENT }, &at(0, 100));
        assert_eq!(plus.window_bytes(), 100_000);
        plus.on(&CongestionEvent::Timeout { repeated: false }, &at(0, 100));
        assert_eq!(
            (plus.window_bytes(), plus.snapshot().threshold_bytes),
            (SEGMENT, Some(100_000))
        );
    }
}
