//! YeAH: Scalable while the queue is short, Reno while it is long, and an early step back when it holds too much.
//! Baiocchi, Castellani, Vacirca, PFLDnet 2007.

use super::round::Round;
use super::window::{CommonParams, Window, segment_of};
use super::{Congestion, CongestionEvent, CongestionSnapshot, Reno};
use crate::view::PathView;
use restp_base::time::Duration;
use restp_base::units::Rate;

/// Q_max: segments of our own in the queue.
const MOST_QUEUED: u64 = 80;
/// φ: the queue may take one over this of the shortest round trip.
const PHI: u64 = 8;
/// Growth of the fast mode, Scalable's: a hundredth of what is acknowledged, but no less than Reno's segment per round trip,
/// which is more up to a window of as many segments. So the authors' code in Linux has it, and ns-3.
const GROWTH_DIVISOR: u64 = 100;
/// δ = 3: a loss takes at least one over 2^δ where no Reno flow competes.
const LOSS_DIVISOR: u64 = 8;
/// ρ: so many consecutive round trips in slow mode mean that Reno flows compete.
const COMPETING_ROUNDS: u32 = 16;
/// ζ: so many in fast mode mean that they are gone.
const ALONE_ROUNDS: u32 = 50;

/// The YeAH controller. Its parameters are the common ones.
#[derive(Clone, Copy, Debug)]
pub struct Yeah {
    reno: Reno,
    round: Round,
    /// Smallest sample of the running round.
    smallest: Option<Duration>,
    /// Our segments in the queue at the end of the last round, in bytes.
    queued: u64,
    /// The window that a Reno flow in our place would have, in bytes: no step back goes below (count_reno).
    fair: u64,
    /// Consecutive rounds in slow mode, the last one included; 0 in fast mode (doing_reno_now).
    slow_rounds: u32,
    fast_rounds: u32,
    /// Hundredths of a byte that the window has not grown by yet.
    rest: u64,
}

impl Yeah {
    /// A controller at its initial window for segments of `segment_bytes`.
    pub fn new(params: &CommonParams, segment_bytes: u64) -> Self {
        Yeah {
            reno: Reno::new(params, segment_bytes),
            round: Round::default(),
            smallest: None,
            queued: 0,
            fair: 0,
            slow_rounds: 0,
            fast_rounds: 0,
            rest: 0,
        }
    }

    fn acked(&mut self, bytes: u64, rtt: Option<Duration>, view: &PathView<'_>) {
        let segment = segment_of(view);
        if let Some(rtt) = rtt {
            self.smallest = Some(self.smallest.map_or(rtt, |smallest| smallest.min(rtt)));
        }
        let window = &self.reno.window;
        let is_legacy = window.bytes < GROWTH_DIVISOR * segment;
        if window.in_slow_start() || self.slow_rounds > 0 || is_legacy {
            self.reno.grow(bytes, segment);
        } else {
            self.rest += self.reno.window.worth(bytes, segment);
            self.reno.window.grow(self.rest / GROWTH_DIVISOR);
            self.rest %= GROWTH_DIVISOR;
        }
        if self.round.ends(bytes, view.in_flight_bytes)
            && let (Some(rtt), Some(base)) = (self.smallest.take(), view.min_rtt)
            && !self.reno.window.in_slow_start()
        {
            self.judge(rtt, base.min(rtt), segment);
        }
    }

    /// Once per round trip: Q = (RTT − base) · cwnd / RTT and L = (RTT − base) / base choose the mode (§2).
    fn judge(&mut self, rtt: Duration, base: Duration, segment: u64) {
        let window = &mut self.reno.window;
        let queueing = rtt.saturating_sub(base);
        let queued =
            u128::from(queueing.as_nanos()) * u128::from(window.bytes) / u128::from(rtt.as_nanos().max(1));
        self.queued = u64::try_from(queued).unwrap_or(u64::MAX);
        let too_many = self.queued > MOST_QUEUED * segment;
        if !too_many && queueing <= base / PHI {
            self.slow_rounds = 0;
            self.fast_rounds += 1;
            if self.fast_rounds > ALONE_ROUNDS {
                (self.fair, self.fast_rounds) = (2 * segment, 0);
            }
            return;
        }
        if too_many && window.bytes > self.fair {
            // Precautionary decongestion: what is queued goes, at most half, and never below the fair share.
            let left = window.bytes - self.queued.min(window.bytes / 2);
            window.bytes = left.max(self.fair).max(2 * segment);
            window.threshold = window.threshold.min(window.bytes);
        }
        self.fair = if self.fair <= 2 * segment {
            (window.bytes / 2).max(2 * segment)
        } else {
            self.fair.saturating_add(segment)
        };
        self.slow_rounds = self.slow_rounds.saturating_add(1);
    }

    /// The threshold of a reduction: where Reno flows compete half, otherwise what is queued, an eighth at least.
    fn target(&self, event: &CongestionEvent, view: &PathView<'_>) -> u64 {
        let in_flight = view.in_flight_bytes;
        let timeout = matches!(event, CongestionEvent::Timeout { .. });
        if timeout || self.slow_rounds >= COMPETING_ROUNDS {
            return in_flight / 2;
        }
        in_flight - self.queued.max(in_flight / LOSS_DIVISOR).min(in_flight / 2)
    }
}

impl Congestion for Yeah {
    fn on(&mut self, event: &CongestionEvent, view: &PathView<'_>) {
        let target = self.target(event, view);
        match *event {
            CongestionEvent::Acked { bytes, rtt, .. } if Window::may_grow(view) => {
                self.acked(bytes, rtt, view);
            }
            CongestionEvent::Lost { .. } | CongestionEvent::Marked { .. } => {
                self.fast_rounds = 0;
                self.fair = (self.fair / 2).max(2 * segment_of(view));
            }
            _ => {}
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
    use super::super::conformance::{acked_after, path};
    use super::*;

    const SEGMENT: u64 = 1000;
    const BASE: Duration = Duration::from_millis(100);

    /// In avoidance with a window of `segments`.
    fn at_window(segments: u64) -> Yeah {
        let mut yeah = Yeah::new(&CommonParams::default(), SEGMENT);
        (yeah.reno.window.bytes, yeah.reno.window.threshold) = (segments * SEGMENT, segments * SEGMENT);
        yeah
    }
    fn view(yeah: &Yeah) -> PathView<'static> {
        PathView {
            min_rtt: Some(BASE),
            in_flight_bytes: yeah.window_bytes(),
            ..path(SEGMENT)
        }
    }
    /// A whole window is acknowledged after `ms`.
    fn round(yeah: &mut Yeah, ms: u64) -> u64 {
        let (bytes, view) = (yeah.window_bytes(), view(yeah));
        yeah.on(&acked_after(bytes, Duration::from_millis(ms)), &view);
        yeah.window_bytes()
    }

    #[test]
    fn a_short_queue_is_scalable_and_a_long_one_reno() {
        let mut yeah = at_window(200);
        assert_eq!(round(&mut yeah, 100), 202_000, "a hundredth");
        // 115 ms: L = 0.15 > 1/8, while Q = 26 segments < 80.
        round(&mut yeah, 115);
        assert_eq!(yeah.slow_rounds, 1);
        let before = yeah.window_bytes();
        assert_eq!(round(&mut yeah, 115), before + SEGMENT);
        round(&mut yeah, 112);
        assert_eq!(yeah.slow_rounds, 0, "12 ms of 100 are less than an eighth");
        round(&mut yeah, 113);
        assert_eq!(yeah.slow_rounds, 1, "13 are more");
    }

    /// Q_max = 80 segments, where 112 ms are still a short queue: 12/112 of 745.4 segments are 79.9, and of 747.4 80.1.
    #[test]
    fn eighty_segments_queued_are_not_too_many() {
        assert_eq!(round(&mut at_window(738), 112), 745_380);
        assert_eq!(round(&mut at_window(740), 112), 747_400 - 80_078);
    }

    #[test]
    fn more_than_eighty_segments_queued_are_taken_back() {
        let mut yeah = at_window(1000);
        // Q = 0.1 · 1010 / 1.1 = 91.8 segments: the window falls from 1010 to 918.2.
        assert_eq!(round(&mut yeah, 110), 1_010_000 - 91_818);
    }

    #[test]
    fn a_loss_takes_what_is_queued_an_eighth_at_least_and_half_among_reno_flows() {
        let lost = |yeah: &mut Yeah| {
            let view = view(yeah);
            yeah.on(&CongestionEvent::Lost { bytes: SEGMENT }, &view);
            yeah.window_bytes()
        };
        let mut yeah = at_window(200);
        assert_eq!(lost(&mut yeah), 175_000);
        let mut yeah = at_window(200);
        round(&mut yeah, 160); // Q = 0.6 · 202 / 1.6 = 75.75 segments
        assert_eq!(lost(&mut yeah), 202_000 - 75_750);
        let mut yeah = at_window(200);
        for _ in 0..16 {
            round(&mut yeah, 130);
        }
        let window = yeah.window_bytes();
        assert_eq!(lost(&mut yeah), window / 2);
        let mut yeah = at_window(200);
        for _ in 0..15 {
            round(&mut yeah, 130); // Q = 0.3 · 215 / 1.3 = 49.4 segments in the last
        }
        let window = yeah.window_bytes();
        assert!(lost(&mut yeah) > window * 3 / 4, "15 rounds are not enough");
    }

    /// count_slow of the paper and doing_reno_now of Linux begin anew with each round in fast mode. Otherwise every path with
    /// a loss in fifty rounds would halve for good.
    #[test]
    fn only_consecutive_slow_rounds_mean_that_reno_flows_compete() {
        let mut yeah = at_window(200);
        for _ in 0..20 {
            round(&mut yeah, 130);
            round(&mut yeah, 100);
        }
        let view = view(&yeah);
        yeah.on(&CongestionEvent::Lost { bytes: SEGMENT }, &view);
        assert_eq!(
            yeah.window_bytes(),
            view.in_flight_bytes - view.in_flight_bytes / 8
        );
    }

    /// A hundredth of fifty segments is half a segment: less than Reno.
    #[test]
    fn below_a_hundred_segments_the_fast_mode_is_reno() {
        let mut yeah = at_window(50);
        assert_eq!(round(&mut yeah, 100), 51 * SEGMENT);
        let mut yeah = at_window(100);
        assert_eq!(round(&mut yeah, 100), 101 * SEGMENT);
    }

    /// ζ: the share of a Reno flow is remembered for fifty rounds in fast mode without a loss.
    #[test]
    fn after_fifty_fast_rounds_there_is_no_reno_flow_to_be_fair_to() {
        let mut yeah = at_window(200);
        round(&mut yeah, 130);
        // L > 1/8 first: half of the window after the round. Then a segment per slow round, nothing in fast ones.
        let fair = 202_000 / 2;
        assert_eq!(yeah.fair, fair);
        round(&mut yeah, 130);
        assert_eq!(yeah.fair, fair + SEGMENT);
        for _ in 0..50 {
            round(&mut yeah, 100);
        }
        assert_eq!(yeah.fair, fair + SEGMENT);
        round(&mut yeah, 100);
        assert_eq!(yeah.fair, 2 * SEGMENT);
        let mut yeah = at_window(200);
        round(&mut yeah, 130);
        round(&mut yeah, 100);
        let view = view(&yeah);
        yeah.on(&CongestionEvent::Lost { bytes: SEGMENT }, &view);
        assert_eq!(
            (yeah.fair, yeah.fast_rounds),
            (fair / 2, 0),
            "a loss halves the share of a Reno flow"
        );
    }

    /// The precautionary step goes neither below what a Reno flow would have nor below half.
    #[test]
    fn a_step_back_leaves_the_share_of_a_reno_flow_and_half_at_least() {
        let mut yeah = at_window(1000);
        yeah.fair = 950 * SEGMENT;
        assert_eq!(round(&mut yeah, 110), 950 * SEGMENT);
        let mut yeah = at_window(1000);
        assert_eq!(round(&mut yeah, 400), 505 * SEGMENT, "Q = 757 of 1010 segments");
        let mut yeah = at_window(1000);
        yeah.fair = 2000 * SEGMENT;
        assert_eq!(
            round(&mut yeah, 400),
            1010 * SEGMENT,
            "it has less than a Reno flow"
        );
    }
}
