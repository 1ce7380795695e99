//! Windows of one association that know of each other: each path keeps its own, and its steps look at all of them, so
//! that several paths together take no more from a shared link than one flow would, and use what is better elsewhere.
//! Read RFC 6356 §2 and Wischik and others, NSDI 2011 §2 first. ResTP §2.3.1, §3.5.6; OP-6.
//!
//! Everything but the steps in avoidance is Reno's: slow start, timeouts, silence, undo (RFC 6356 §3). Each file beside
//! this one holds the steps of one paper, in its own units: segments and seconds. With one path all of them are Reno,
//! except for the delay-based [`WVegas`].

mod balia;
mod ewtcp;
mod fully;
mod lia;
mod olia;
mod semicoupled;
mod wvegas;

#[cfg(test)]
mod properties;

pub use wvegas::{WVegas, WVegasParams};

use super::window::{CommonParams, Window, segment_of};
use super::{Congestion, CongestionEvent, CongestionSnapshot, Reno};
use crate::view::PathView;
use restp_base::time::Duration;
use restp_base::units::Rate;
use smallvec::SmallVec;

/// How the windows are linked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coupling {
    /// Increase and decrease by the sum of all windows (Kelly, Voice 2005; NSDI 2011 §2.2).
    Fully,
    /// A fraction of Reno's step (Honda and others 2009; NSDI 2011 §2.1).
    Ewtcp,
    /// Increase by the sum, decrease by the own window (NSDI 2011 §2.4).
    Semicoupled,
    /// Linked increases (RFC 6356).
    Lia,
    /// Opportunistic linked increases (Khalili and others, CoNEXT 2012).
    Olia,
    /// Balanced linked adaptation (Peng and others, IEEE/ACM Transactions on Networking 2016).
    Balia,
}

/// The controller of one of several paths.
#[derive(Clone, Copy, Debug)]
pub struct Coupled {
    coupling: Coupling,
    reno: Reno,
    /// Bytes of a step that are not whole yet.
    fraction: f64,
    losses: LossIntervals,
}

impl Coupled {
    /// A controller at its initial window for segments of `segment_bytes`.
    pub fn new(coupling: Coupling, params: &CommonParams, segment_bytes: u64) -> Self {
        Coupled {
            coupling,
            reno: Reno::new(params, segment_bytes),
            fraction: 0.0,
            losses: LossIntervals::default(),
        }
    }

    /// The longer of the last two runs of bytes without a loss.
    pub fn loss_interval_bytes(&self) -> u64 {
        self.losses.longest()
    }

    fn paths(&self, view: &PathView<'_>) -> Paths {
        Paths::new(self.reno.window.bytes, self.losses.longest(), view)
    }

    fn grow(&mut self, acked: u64, view: &PathView<'_>) {
        let segment = segment_of(view);
        let left = self.reno.window.slow_start(acked, segment);
        if left == 0 {
            return;
        }
        let paths = self.paths(view);
        let step = match self.coupling {
            Coupling::Fully => fully::increase(&paths),
            Coupling::Ewtcp => ewtcp::increase(&paths),
            Coupling::Semicoupled => semicoupled::increase(&paths),
            Coupling::Lia => lia::increase(&paths),
            Coupling::Olia => olia::increase(&paths),
            Coupling::Balia => balia::increase(&paths),
        };
        self.fraction += step * self.reno.window.worth(left, segment) as f64;
        let bytes = self.fraction as i64; // towards zero
        self.fraction -= bytes as f64;
        match u64::try_from(bytes) {
            Ok(more) => self.reno.window.grow(more),
            Err(_) => self.reno.window.shrink(bytes.unsigned_abs(), segment),
        }
    }

    /// What a reduction leaves of what is in flight.
    fn target(&self, view: &PathView<'_>) -> u64 {
        let paths = self.paths(view);
        let kept = match self.coupling {
            Coupling::Fully => fully::kept(&paths),
            Coupling::Balia => balia::kept(&paths),
            Coupling::Ewtcp | Coupling::Semicoupled | Coupling::Lia | Coupling::Olia => 0.5,
        };
        (view.in_flight_bytes as f64 * kept) as u64
    }
}

impl Congestion for Coupled {
    fn on(&mut self, event: &CongestionEvent, view: &PathView<'_>) {
        match *event {
            CongestionEvent::Acked { bytes, .. } => {
                self.losses.on_acked(bytes);
                if Window::may_grow(view) {
                    self.grow(bytes, view);
                }
                self.reno.react(event, view, 0);
            }
            CongestionEvent::Lost { .. }
            | CongestionEvent::Marked { .. }
            | CongestionEvent::Timeout { .. } => {
                self.reno.react(event, view, self.target(view));
                self.fraction = 0.0;
                if *event != (CongestionEvent::Timeout { repeated: true }) {
                    self.losses.on_loss();
                }
            }
            CongestionEvent::Sent { .. }
            | CongestionEvent::RouteChanged
            | CongestionEvent::Duplicate
            | CongestionEvent::SegmentLost(_)
            | CongestionEvent::Corrupted { .. }
            | CongestionEvent::RecoveryEnded
            | CongestionEvent::Idle { .. }
            | CongestionEvent::Restored => self.reno.react(event, view, 0),
        }
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

/// Bytes acknowledged between losses: the last whole run and the one that lasts (CoNEXT 2012 §4.1).
#[derive(Clone, Copy, Debug, Default)]
struct LossIntervals {
    last: u64,
    running: u64,
}

impl LossIntervals {
    fn on_acked(&mut self, bytes: u64) {
        self.running = self.running.saturating_add(bytes);
    }
    fn on_loss(&mut self) {
        self.last = std::mem::take(&mut self.running);
    }
    fn longest(&self) -> u64 {
        self.last.max(self.running)
    }
}

/// One path in the papers' units.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Share {
    /// Window in segments, at least one.
    window: f64,
    /// Smoothed round-trip time in seconds, above zero.
    rtt: f64,
    /// Segments between two losses.
    loss_interval: f64,
}

impl Share {
    fn new(window_bytes: u64, rtt: Duration, loss_interval_bytes: u64, segment: f64) -> Self {
        Share {
            window: (window_bytes as f64 / segment).max(1.0),
            rtt: rtt.as_nanos().max(1_000) as f64 / 1e9,
            loss_interval: loss_interval_bytes as f64 / segment,
        }
    }
    /// Segments per second.
    fn rate(&self) -> f64 {
        self.window / self.rtt
    }
}

/// Every path of the association; the one whose step is computed comes first.
#[derive(Clone, Debug)]
struct Paths(SmallVec<[Share; 4]>);

impl Paths {
    fn new(window_bytes: u64, loss_interval_bytes: u64, view: &PathView<'_>) -> Self {
        let segment = segment_of(view) as f64;
        // Without a round-trip time of its own a path counts as alone: it has not had one to compare.
        let Some(rtt) = view.smoothed_rtt else {
            let alone = Share::new(
                window_bytes,
                Duration::from_millis(1),
                loss_interval_bytes,
                segment,
            );
            return Paths(SmallVec::from_slice(&[alone]));
        };
        let own = Share::new(window_bytes, rtt, loss_interval_bytes, segment);
        let others = view.siblings.iter().map(|other| {
            Share::new(
                other.window_bytes,
                other.smoothed_rtt,
                other.loss_interval_bytes,
                segment,
            )
        });
        Paths(std::iter::once(own).chain(others).collect())
    }

    fn own(&self) -> Share {
        self.0[0]
    }
    fn all(&self) -> impl Iterator<Item = &Share> {
        self.0.iter()
    }
    fn count(&self) -> f64 {
        self.0.len() as f64
    }
    fn total_window(&self) -> f64 {
        self.all().map(|path| path.window).sum()
    }
    fn total_rate(&self) -> f64 {
        self.all().map(Share::rate).sum()
    }
    fn largest(&self, of: impl Fn(&Share) -> f64) -> f64 {
        self.all().map(of).fold(0.0, f64::max)
    }
}

#[cfg(test)]
mod tests {
    use super::super::conformance::{acked, path};
    use super::*;
    use crate::view::Sibling;

    const SEGMENT: u64 = 1000;
    const EVERY: [Coupling; 6] = [
        Coupling::Fully,
        Coupling::Ewtcp,
        Coupling::Semicoupled,
        Coupling::Lia,
        Coupling::Olia,
        Coupling::Balia,
    ];

    fn in_avoidance(coupling: Coupling, segments: u64) -> Coupled {
        let params = CommonParams {
            initial_threshold_bytes: 1,
            initial_window_segments: 10,
            ..CommonParams::default()
        };
        let mut controller = Coupled::new(coupling, &params, SEGMENT);
        controller.reno.window.bytes = segments * SEGMENT;
        controller
    }

    fn view(siblings: &[Sibling]) -> PathView<'_> {
        PathView {
            smoothed_rtt: Some(Duration::from_millis(100)),
            siblings,
            ..path(SEGMENT)
        }
    }

    fn sibling(segments: u64, rtt_ms: u64) -> Sibling {
        Sibling {
            window_bytes: segments * SEGMENT,
            smoothed_rtt: Duration::from_millis(rtt_ms),
            loss_interval_bytes: 100 * SEGMENT,
            ..Sibling::default()
        }
    }

    #[test]
    fn one_path_alone_is_reno() {
        for coupling in EVERY {
            let mut alone = in_avoidance(coupling, 10);
            for _ in 0..10 {
                alone.on(&acked(SEGMENT), &view(&[]));
            }
            let window = alone.window_bytes();
            assert!((10_940..=11_000).contains(&window), "{coupling:?}: {window}");
            let mut loss = view(&[]);
            loss.in_flight_bytes = 10 * SEGMENT;
            alone.on(&CongestionEvent::Lost { bytes: SEGMENT }, &loss);
            assert_eq!(alone.window_bytes(), 5 * SEGMENT, "{coupling:?}");
        }
    }

    /// Own window 10, another of 30 with the same round trip of 100 ms; 10 segments acknowledged at once, computed by
    /// hand from the papers.
    #[test]
    fn a_step_beside_an_equal_path_is_what_the_paper_says() {
        let cases = [
            (Coupling::Fully, 250),       // 10 · 1/40
            (Coupling::Ewtcp, 250),       // 10 · (1/4)/10
            (Coupling::Semicoupled, 250), // 10 · 1/40
            (Coupling::Lia, 187),         // α = 40 · 30/40² = 0.75; 10 · 0.75/40
            (Coupling::Olia, 62),         // 10 · 10/40²; the other is better and wider: α = 0
            (Coupling::Balia, 175),       // α = 3: 10 · 10/40² · (4/2) · (7/5)
        ];
        for (coupling, grown) in cases {
            let mut controller = in_avoidance(coupling, 10);
            controller.on(&acked(10 * SEGMENT), &view(&[sibling(30, 100)]));
            assert_eq!(controller.window_bytes() - 10 * SEGMENT, grown, "{coupling:?}");
        }
    }

    /// Own window 10 with a round trip of 100 ms, another of 30 with 200 ms: x = 100 and 150 segments a second, Σw = 40,
    /// Σx = 250. 10 segments acknowledged at once, computed by hand from the papers.
    #[test]
    fn a_step_beside_a_slower_path_is_what_the_paper_says() {
        let cases = [
            (Coupling::Fully, 30, 250),       // 10 · 1/40
            (Coupling::Ewtcp, 30, 250),       // 10 · (1/4)/10
            (Coupling::Semicoupled, 30, 250), // 10 · 1/40
            // RFC 6356 §3: α = 40 · max(10/0.1², 30/0.2²)/250² = 40 · 1000/62 500 = 0.64; 10 · 0.64/40
            (Coupling::Lia, 30, 160),
            // CoNEXT 2012 §4: 10 · (10/0.1²)/250²; 10 segments without a loss over 0.1² here, 100 over 0.2² there: α = 0
            (Coupling::Olia, 100, 160),
            // Here 10/0.1² = 1000, there 30/0.2² = 750: better and not the widest, α = 1/2: 10 · (0.016 + 0.5/10)
            (Coupling::Olia, 30, 660),
            // Peng and others 2016: α = 150/100: 10 · (100/0.1)/250² · (2.5/2) · (5.5/5)
            (Coupling::Balia, 30, 220),
        ];
        for (coupling, loss_interval, grown) in cases {
            let mut controller = in_avoidance(coupling, 10);
            let slower = Sibling {
                loss_interval_bytes: loss_interval * SEGMENT,
                ..sibling(30, 200)
            };
            controller.on(&acked(10 * SEGMENT), &view(&[slower]));
            let found = controller.window_bytes() - 10 * SEGMENT;
            assert!(
                (grown - 1..=grown).contains(&found),
                "{found} for {coupling:?} {loss_interval}"
            );
        }
    }

    /// The path's own round trip is 200 ms here: window 30, x = 150; another has 10 at 100 ms, x = 100. Σx = 250.
    #[test]
    fn a_step_of_the_slower_path_is_what_the_paper_says() {
        let cases = [
            // RFC 6356 §3: 10 · max(30/0.2², 10/0.1²)/250² · 1/1, at most 10/30
            (Coupling::Lia, 100, 160),
            // CoNEXT 2012 §4: 10 · (30/0.2²)/250² = 0.12; 100 segments over 0.2² there, and 30 over 0.1² beside it: the widest pays
            // for the better, 10 · (0.012 − 0.5/30)
            (Coupling::Olia, 30, -46),
            // 20 over 0.1² beside it are less than 100 over 0.2²
            (Coupling::Olia, 20, 120),
            // Peng and others 2016: α = 1: 10 · (150/0.2)/250²
            (Coupling::Balia, 100, 120),
        ];
        for (coupling, loss_interval, step) in cases {
            let mut controller = in_avoidance(coupling, 30);
            controller.losses.running = 100 * SEGMENT;
            let siblings = [Sibling {
                loss_interval_bytes: loss_interval * SEGMENT,
                ..sibling(10, 100)
            }];
            let slower = PathView {
                smoothed_rtt: Some(Duration::from_millis(200)),
                ..view(&siblings)
            };
            controller.on(&acked(10 * SEGMENT), &slower);
            let found = controller.window_bytes() as i64 - 30 * SEGMENT as i64;
            assert!(
                (found - step).abs() <= 1,
                "{found} for {coupling:?} {loss_interval}"
            );
        }
    }

    #[test]
    fn a_loss_beside_a_slower_path_costs_what_the_paper_says() {
        // α of BALIA is the ratio of rates: 30/0.2 over 12/0.1 is 1.25, and with windows it would be 2.5.
        for (coupling, after) in [
            (Coupling::Balia, 4500),
            (Coupling::Fully, 2000),
            (Coupling::Olia, 6000),
        ] {
            let siblings = [sibling(30, 200)];
            let mut controller = in_avoidance(coupling, 12);
            let mut view = view(&siblings);
            view.in_flight_bytes = 12 * SEGMENT;
            controller.on(&CongestionEvent::Lost { bytes: SEGMENT }, &view);
            assert_eq!(controller.window_bytes(), after, "{coupling:?}");
        }
    }

    /// With three paths no share is a half by chance: windows 10, 20 and 30, round trips 100, 200 and 50 ms.
    #[test]
    fn a_step_beside_two_paths_is_what_the_paper_says() {
        // Σw = 60; x = 100, 100, 600; Σx = 800; w / rtt² = 1000, 500, 12 000.
        let cases = [
            (Coupling::Ewtcp, 111), // 10 · (1/9)/10
            (Coupling::Lia, 187),   // 10 · min(12 000/800², 1/10)
            (Coupling::Olia, 15),   // 10 · 1000/800²; the widest is the best: α = 0
            (Coupling::Balia, 109), // α = 6: 10 · 1000/800² · 3.5 · 2
        ];
        for (coupling, grown) in cases {
            let mut controller = in_avoidance(coupling, 10);
            controller.on(&acked(10 * SEGMENT), &view(&[sibling(20, 200), sibling(30, 50)]));
            let found = controller.window_bytes() - 10 * SEGMENT;
            assert!((grown - 1..=grown).contains(&found), "{found} for {coupling:?}");
        }
    }

    #[test]
    fn a_loss_costs_what_the_paper_says() {
        let cases = [
            (Coupling::Fully, 12, 2),  // 12 − (12 + 30)/2 < 2
            (Coupling::Fully, 40, 5),  // 40 − 70/2
            (Coupling::Balia, 10, 2),  // α = 3, at most 1.5: 10 · (1 − 0.75) = 2.5
            (Coupling::Balia, 40, 20), // α = 1
            (Coupling::Lia, 40, 20),
        ];
        for (coupling, before, after) in cases {
            let siblings = [sibling(30, 100)];
            let mut controller = in_avoidance(coupling, before);
            let mut view = view(&siblings);
            view.in_flight_bytes = before * SEGMENT;
            controller.on(&CongestionEvent::Lost { bytes: SEGMENT }, &view);
            assert_eq!(
                controller.window_bytes() / SEGMENT,
                after,
                "{coupling:?} {before}"
            );
        }
    }

    #[test]
    fn intervals_between_losses_are_the_longer_of_the_last_and_the_running_one() {
        let mut olia = in_avoidance(Coupling::Olia, 10);
        let view = view(&[]);
        let lost = CongestionEvent::Lost { bytes: SEGMENT };
        let mut lengths = Vec::new();
        for (bytes, event) in [(9000, lost), (3000, lost), (1000, CongestionEvent::RecoveryEnded)] {
            olia.on(&acked(bytes), &view);
            olia.on(&event, &view);
            lengths.push(olia.loss_interval_bytes());
        }
        assert_eq!(lengths, [9000, 3000, 3000]);
    }
}
