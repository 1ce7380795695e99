//! Westwood: the threshold is what the path was seen to deliver in its shortest round trip, not half of anything.
//! Mascolo and others, MobiCom 2001; TC §2.3.6. Growth is Reno's.

use super::bandwidth::{Bandwidth, Deliveries, KEPT, rate};
use super::window::{CommonParams, Window, segment_of};
use super::{Congestion, CongestionEvent, CongestionSnapshot, Reno};
use crate::view::PathView;
use restp_base::time::{Duration, Time};
use restp_base::units::Rate;

/// Parameters of [`Westwood`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WestwoodParams {
    /// Start and growth.
    pub common: CommonParams,
    /// How samples become an estimate. Default [`WestwoodFilter::Const`].
    pub filter: WestwoodFilter,
}

/// How Westwood's samples, one per acknowledgement, become an estimate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WestwoodFilter {
    /// A tenth of the mean of the last two samples, whenever they came: as the published runs had it (TC §2.3.6).
    #[default]
    Const,
    /// More of a sample the longer it took, and zeros in silence (MobiCom 2001, §3.2).
    Tustin,
}

/// τ of the filter by Tustin's rule; the paper leaves it open.
const TAU: Duration = Duration::from_millis(500);
/// Silence for so long is a sample of zero.
const SILENCE: Duration = Duration::from_millis(250);
/// After so many zeros less than 10⁻¹⁴ of an estimate is left.
const MOST_ZEROS: u32 = 64;

/// The Westwood controller.
#[derive(Clone, Copy, Debug)]
pub struct Westwood {
    reno: Reno,
    filter: WestwoodFilter,
    bandwidth: Bandwidth,
    deliveries: Deliveries,
    episode: Episode,
    /// When the last acknowledgement came that time had passed before.
    last: Option<Time>,
    /// Bytes delivered since.
    delivered: u64,
}

impl Westwood {
    /// A controller at its initial window for segments of `segment_bytes`.
    pub fn new(params: &WestwoodParams, segment_bytes: u64) -> Self {
        Westwood {
            reno: Reno::new(&params.common, segment_bytes),
            filter: params.filter,
            bandwidth: Bandwidth::default(),
            deliveries: Deliveries::default(),
            episode: Episode::default(),
            last: None,
            delivered: 0,
        }
    }

    /// One acknowledgement, one sample. Of several at one moment the later count with the next.
    fn sample(&mut self, bytes: u64, now: Time) {
        let Some(last) = self.last else {
            self.last = Some(now);
            return;
        };
        self.delivered = self.delivered.saturating_add(bytes);
        let elapsed = now.since(last);
        if elapsed.is_zero() {
            return;
        }
        let sample = rate(self.delivered, elapsed);
        match self.filter {
            WestwoodFilter::Const => self.bandwidth.pair(KEPT, sample),
            WestwoodFilter::Tustin => self.tustin(elapsed, sample),
        }
        (self.last, self.delivered) = (Some(now), 0);
    }

    fn tustin(&mut self, elapsed: Duration, sample: f64) {
        let mut left = elapsed;
        for _ in 0..MOST_ZEROS {
            if left <= SILENCE {
                break;
            }
            self.bandwidth.pair(kept(SILENCE), 0.0);
            left = left.saturating_sub(SILENCE);
        }
        self.bandwidth.pair(kept(left.min(SILENCE)), sample);
    }
}

/// `(2τ − Δ) / (2τ + Δ)`.
fn kept(elapsed: Duration) -> f64 {
    let (twice, elapsed) = (2.0 * TAU.as_nanos() as f64, elapsed.as_nanos() as f64);
    (twice - elapsed) / (twice + elapsed)
}

/// What both Westwoods do when an episode ends: the window is set to the threshold (TC §2.3.6, "new ACK: cWnd = ssThresh").
/// Where the loss found a window below what the path delivers, that is more than before.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Episode {
    open: bool,
}

impl Episode {
    /// Before Reno reacts to `event`.
    pub fn on(&mut self, event: &CongestionEvent, window: &mut Window) {
        match event {
            CongestionEvent::Lost { .. } => self.open = true,
            CongestionEvent::RecoveryEnded if std::mem::take(&mut self.open) => {
                window.grow(window.threshold.saturating_sub(window.bytes));
            }
            // Slow start leads to the threshold, or nothing was lost.
            CongestionEvent::Timeout { .. } | CongestionEvent::Idle { .. } | CongestionEvent::Restored => {
                self.open = false;
            }
            _ => {}
        }
    }
}

impl Congestion for Westwood {
    fn on(&mut self, event: &CongestionEvent, view: &PathView<'_>) {
        let segment = segment_of(view);
        if let Some(bytes) = self.deliveries.on(event, segment) {
            self.sample(bytes, view.now);
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
    use super::super::conformance::{acked, path};
    use super::*;

    const SEGMENT: u64 = 1460;

    fn at(ms: u64) -> PathView<'static> {
        PathView {
            now: Time::ZERO + Duration::from_millis(ms),
            min_rtt: Some(Duration::from_millis(200)),
            ..path(SEGMENT)
        }
    }

    fn westwood(filter: WestwoodFilter) -> Westwood {
        let params = WestwoodParams {
            filter,
            ..WestwoodParams::default()
        };
        Westwood::new(&params, SEGMENT)
    }

    /// A controller that has seen 8 Mbit/s all its life, with a window of 640 segments.
    fn experienced() -> Westwood {
        let mut westwood = westwood(WestwoodFilter::Const);
        for _ in 0..6 {
            let window = westwood.window_bytes();
            westwood.on(&acked(window), &at(0));
        }
        westwood.bandwidth = steady(8.0);
        westwood
    }

    #[test]
    fn a_loss_leaves_what_the_path_delivers_in_its_shortest_round_trip() {
        // TC §4.12: 8 Mbit/s, 0.2 s.
        let mut westwood = experienced();
        westwood.on(&CongestionEvent::Lost { bytes: SEGMENT }, &at(0));
        assert_eq!(
            (westwood.window_bytes(), westwood.snapshot().threshold_bytes),
            (200_000, Some(200_000))
        );
        let mut westwood = experienced();
        westwood.on(&CongestionEvent::Timeout { repeated: false }, &at(0));
        assert_eq!(
            (westwood.window_bytes(), westwood.snapshot().threshold_bytes),
            (SEGMENT, Some(200_000))
        );
    }

    #[test]
    fn a_smaller_window_is_not_raised_by_a_loss() {
        let mut westwood = westwood(WestwoodFilter::Const);
        westwood.bandwidth = steady(8.0);
        westwood.on(&CongestionEvent::Lost { bytes: SEGMENT }, &at(0));
        assert_eq!(
            (westwood.window_bytes(), westwood.snapshot().threshold_bytes),
            (10 * SEGMENT, Some(200_000))
        );
    }

    /// TC §2.3.6: "new ACK: cWnd = ssThresh".
    #[test]
    fn the_end_of_an_episode_sets_the_window_to_the_threshold() {
        let after = |between: &[CongestionEvent]| {
            let mut westwood = westwood(WestwoodFilter::Const);
            westwood.bandwidth = steady(8.0);
            westwood.on(&CongestionEvent::Lost { bytes: SEGMENT }, &at(0));
            between.iter().for_each(|event| westwood.on(event, &at(0)));
            westwood.on(&CongestionEvent::RecoveryEnded, &at(0));
            westwood.window_bytes()
        };
        assert_eq!(after(&[]), 200_000);
        // Slow start leads there.
        assert_eq!(after(&[CongestionEvent::Timeout { repeated: false }]), SEGMENT);
        let gap = Duration::from_secs(1);
        assert_eq!(after(&[CongestionEvent::Idle { gap }]), 10 * SEGMENT);
        // Without a loss there is no threshold to go to.
        assert_eq!(after(&[CongestionEvent::Restored]), 10 * SEGMENT);
        assert_eq!(
            after(&[CongestionEvent::RecoveryEnded, CongestionEvent::Idle { gap }]),
            10 * SEGMENT
        );
        let mut harmless = westwood(WestwoodFilter::Const);
        harmless.on(&CongestionEvent::RecoveryEnded, &at(0));
        assert_eq!(
            harmless.window_bytes(),
            10 * SEGMENT,
            "losses of damage cost nothing"
        );
    }

    #[test]
    fn without_an_estimate_two_segments_are_left() {
        let mut westwood = westwood(WestwoodFilter::Const);
        westwood.on(&CongestionEvent::Lost { bytes: SEGMENT }, &at(0));
        assert_eq!(westwood.window_bytes(), 2 * SEGMENT);
    }

    #[test]
    fn every_acknowledgement_is_a_sample_and_those_of_one_moment_are_one() {
        let mut westwood = westwood(WestwoodFilter::Const);
        westwood.on(&acked(SEGMENT), &at(0)); // begins the clock
        westwood.on(&acked(2500), &at(10)); // 2 Mbit/s: 0.1 · (2 + 0) / 2
        assert!((megabits(&westwood.bandwidth) - 0.1).abs() < 1e-9);
        westwood.on(&acked(1000), &at(10));
        assert!(
            (megabits(&westwood.bandwidth) - 0.1).abs() < 1e-9,
            "no time has passed"
        );
        westwood.on(&acked(1500), &at(20)); // 2 Mbit/s again, both together: 0.9 · 0.1 + 0.1 · 2
        assert!((megabits(&westwood.bandwidth) - 0.29).abs() < 1e-9);
        let mut view = at(30);
        view.in_recovery = true;
        westwood.on(&acked(2500), &view); // 0.9 · 0.29 + 0.1 · 2
        assert!(
            (megabits(&westwood.bandwidth) - 0.461).abs() < 1e-9,
            "in recovery as well"
        );
    }

    /// TC §2.3.6: duplicates are acknowledgements too, so that a loss does not look like silence.
    #[test]
    fn a_duplicate_is_a_sample_of_one_segment() {
        let mut westwood = westwood(WestwoodFilter::Const);
        westwood.on(&acked(SEGMENT), &at(0));
        let mut view = at(0);
        for ms in 1..=9 {
            view.now = Time::ZERO + Duration::from_millis(ms);
            westwood.on(&CongestionEvent::Duplicate, &view); // 11.68 Mbit/s
        }
        let steady = 11.68 * (1.0 - 0.9_f64.powi(9)) - 11.68 * 0.05 * 0.9_f64.powi(8);
        assert!((megabits(&westwood.bandwidth) - steady).abs() < 1e-9);
        // The retransmission fills the hole: of ten segments nine are known, so this sample is one segment, too.
        westwood.on(&acked(10 * SEGMENT), &at(10));
        let steady = 11.68 * (1.0 - 0.9_f64.powi(10)) - 11.68 * 0.05 * 0.9_f64.powi(9);
        assert!((megabits(&westwood.bandwidth) - steady).abs() < 1e-9);
        assert_eq!(
            westwood.window_bytes(),
            21 * SEGMENT,
            "1 + 10 segments of slow start, nothing for duplicates"
        );
    }

    #[test]
    fn tustin_weighs_a_sample_by_its_time() {
        let mut westwood = westwood(WestwoodFilter::Tustin);
        westwood.bandwidth = steady(1.0);
        westwood.on(&acked(SEGMENT), &at(0));
        // Δ = 200 ms: a = (1 − 0.2) / (1 + 0.2) = 2/3; B = 2/3 + 1/3 · 1.5.
        westwood.on(&acked(50_000), &at(200));
        assert!((megabits(&westwood.bandwidth) - (2.0 / 3.0 + 0.5)).abs() < 1e-9);
        // Silence of 500 ms: one zero (a = 0.6), then the sample of 1 Mbit/s over the time since the last one.
        let zero = 0.6 * (2.0 / 3.0 + 0.5) + 0.4 * 1.0;
        westwood.on(&acked(62_500), &at(700));
        let expected = 0.6 * zero + 0.4 * 0.5;
        assert!((megabits(&westwood.bandwidth) - expected).abs() < 1e-9);
    }

    #[test]
    fn a_day_of_silence_leaves_nothing_of_the_estimate() {
        let mut westwood = westwood(WestwoodFilter::Tustin);
        westwood.bandwidth = steady(1000.0);
        westwood.on(&acked(SEGMENT), &at(0));
        westwood.on(&acked(SEGMENT), &at(86_400_000));
        assert!(megabits(&westwood.bandwidth) < 1e-6);
    }
}
