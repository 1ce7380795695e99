//! BIC: binary search for the window that just fits, then a probe beyond it. Xu, Harfoush, Rhee, INFOCOM 2004, in two
//! profiles: as simulators and Linux have it (`bic_sim.rs`), and as the paper prints it (`bic_paper.rs`).

use super::bic_paper::Paper;
use super::bic_sim::Sim;
use super::window::{CommonParams, Window, segment_of};
use super::{Congestion, CongestionEvent, CongestionSnapshot, Reno};
use crate::view::PathView;
use restp_base::units::Rate;

/// Parameters of [`Bic`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BicParams {
    /// Start and growth.
    pub common: CommonParams,
    /// Which BIC. Default [`BicProfile::Sim`].
    pub profile: BicProfile,
    /// Make room for new flows when the window shrinks from loss to loss. Default on.
    pub fast_convergence: bool,
}

impl Default for BicParams {
    fn default() -> Self {
        BicParams {
            common: CommonParams::default(),
            profile: BicProfile::default(),
            fast_convergence: true,
        }
    }
}

/// Which BIC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BicProfile {
    /// Linux and ns-3: β = 0.8, a quarter of the distance per round trip, at most 16 segments.
    #[default]
    Sim,
    /// INFOCOM 2004: β = 0.875, half of the distance per round trip, at most 32 segments.
    Paper,
}

/// Below this window, in segments, BIC is Reno (low_window).
pub(super) const LOW_WINDOW: u64 = 14;

/// The BIC controller.
#[derive(Clone, Copy, Debug)]
pub struct Bic {
    reno: Reno,
    fast_convergence: bool,
    search: Search,
    /// The search before the last reduction.
    before: Option<Search>,
}

/// Where the window that just fits is looked for.
#[derive(Clone, Copy, Debug)]
enum Search {
    Sim(Sim),
    Paper(Paper),
}

impl Bic {
    /// A controller at its initial window for segments of `segment_bytes`.
    pub fn new(params: &BicParams, segment_bytes: u64) -> Self {
        Bic {
            reno: Reno::new(&params.common, segment_bytes),
            fast_convergence: params.fast_convergence,
            search: match params.profile {
                BicProfile::Sim => Search::Sim(Sim::default()),
                BicProfile::Paper => Search::Paper(Paper::default()),
            },
            before: None,
        }
    }

    fn acked(&mut self, bytes: u64, segment: u64) {
        let window = &mut self.reno.window;
        let left = window.slow_start(bytes, segment);
        if left == 0 {
            return;
        }
        let worth = window.worth(left, segment);
        match &mut self.search {
            Search::Sim(search) => search.grow(window, worth, segment),
            Search::Paper(search) => search.grow(window, worth, segment),
        }
    }

    /// Remembers the window as the maximum, and returns the next threshold.
    fn reduced(&mut self, segment: u64) -> u64 {
        self.before = Some(self.search);
        let window = self.reno.window.bytes;
        match &mut self.search {
            Search::Sim(search) => search.reduced(window, segment, self.fast_convergence),
            Search::Paper(search) => search.reduced(window, segment, self.fast_convergence),
        }
    }
}

impl Congestion for Bic {
    fn on(&mut self, event: &CongestionEvent, view: &PathView<'_>) {
        let segment = segment_of(view);
        let mut target = 0;
        match *event {
            CongestionEvent::Acked { bytes, .. } if Window::may_grow(view) => self.acked(bytes, segment),
            CongestionEvent::Lost { .. }
            | CongestionEvent::Marked { .. }
            | CongestionEvent::Timeout { repeated: false } => target = self.reduced(segment),
            CongestionEvent::Restored => {
                if let Some(before) = self.before.take() {
                    self.search = before;
                }
            }
            CongestionEvent::Sent { .. }
            | CongestionEvent::Acked { .. }
            | CongestionEvent::RouteChanged
            | CongestionEvent::Duplicate
            | CongestionEvent::SegmentLost(_)
            | CongestionEvent::Corrupted { .. }
            | CongestionEvent::RecoveryEnded
            | CongestionEvent::Timeout { repeated: true }
            | CongestionEvent::Idle { .. } => {}
        }
        if let (CongestionEvent::Timeout { .. }, Search::Sim(search)) = (event, &mut self.search) {
            *search = Sim::default(); // what was learnt is not trusted any more; the paper does not say so
        }
        self.reno.react(event, view, target);
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
    use super::super::conformance::{acked, path};
    use super::*;

    const SEGMENT: u64 = 1000;

    /// In avoidance with a window of `segments`.
    fn at_window(profile: BicProfile, segments: u64) -> Bic {
        let params = BicParams {
            common: CommonParams {
                initial_threshold_bytes: segments * SEGMENT,
                ..CommonParams::default()
            },
            profile,
            ..BicParams::default()
        };
        let mut bic = Bic::new(&params, SEGMENT);
        while bic.window_bytes() < segments * SEGMENT {
            let missing = segments * SEGMENT - bic.window_bytes();
            bic.on(&acked(missing), &path(SEGMENT));
        }
        bic
    }

    fn lose(bic: &mut Bic) {
        bic.on(&CongestionEvent::Lost { bytes: SEGMENT }, &path(SEGMENT));
    }

    /// Windows in segments after each of `rounds` round trips, one segment per acknowledgement.
    fn rounds(bic: &mut Bic, rounds: usize) -> Vec<u64> {
        let round = |bic: &mut Bic| {
            for _ in 0..bic.window_bytes() / SEGMENT {
                bic.on(&acked(SEGMENT), &path(SEGMENT));
            }
            bic.window_bytes() / SEGMENT
        };
        (0..rounds).map(|_| round(bic)).collect()
    }

    #[test]
    fn a_loss_leaves_four_fifths_and_of_a_small_window_half() {
        let mut bic = at_window(BicProfile::Sim, 100);
        lose(&mut bic);
        assert_eq!(bic.window_bytes(), 79_980); // 819 / 1024
        let mut small = at_window(BicProfile::Sim, 14);
        lose(&mut small);
        assert_eq!(small.window_bytes(), 7000);
    }

    #[test]
    fn the_search_closes_in_on_the_maximum_and_then_probes_faster_and_faster() {
        let mut bic = at_window(BicProfile::Sim, 1024);
        lose(&mut bic); // 819, maximum 1024
        let windows = rounds(&mut bic, 60);
        let steps: Vec<u64> = windows.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let plateau = windows
            .iter()
            .position(|window| *window >= 1020)
            .expect("reached");
        assert!(steps[0] >= 16 && steps[0] <= 17, "linear at first: {steps:?}");
        assert!(steps[plateau] <= 2, "then slower and slower: {steps:?}");
        assert!(steps[58] >= 15, "and on beyond: {steps:?}");
    }

    #[test]
    fn as_published_a_loss_leaves_seven_eighths() {
        // TC §4.12: a loss at 100 gives 87.5.
        let mut bic = at_window(BicProfile::Paper, 100);
        lose(&mut bic);
        assert_eq!(bic.window_bytes(), 87_500);
        // Half of the distance per round trip: 12.5 / 2 = 6 segments, then 3, then 2.
        let windows = rounds(&mut bic, 3);
        assert!((92..=94).contains(&windows[0]), "{windows:?}");
        assert!((95..=98).contains(&windows[1]), "{windows:?}");
    }

    #[test]
    fn after_a_timeout_slow_start_leads_to_the_reduced_window() {
        let mut bic = at_window(BicProfile::Sim, 100);
        bic.on(&CongestionEvent::Timeout { repeated: false }, &path(SEGMENT));
        assert_eq!(
            (bic.window_bytes(), bic.snapshot().threshold_bytes),
            (1000, Some(79_980))
        );
        bic.on(&CongestionEvent::Timeout { repeated: true }, &path(SEGMENT));
        assert_eq!(bic.snapshot().threshold_bytes, Some(79_980));
        bic.on(&CongestionEvent::Restored, &path(SEGMENT));
        assert_eq!(bic.window_bytes(), 100_000);
    }

    #[test]
    fn a_loss_taken_back_leaves_the_search_as_it_was() {
        let mut bic = at_window(BicProfile::Sim, 200);
        lose(&mut bic);
        let growth = |mut bic: Bic| rounds(&mut bic, 5);
        let mut again = bic;
        lose(&mut again);
        again.on(&CongestionEvent::Restored, &path(SEGMENT));
        assert_eq!(growth(again), growth(bic));
    }
}
