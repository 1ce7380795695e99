//! Vegas: keeps a few segments in the queue by comparing what the window promises with what a round trip delivers.
//! Brakmo, Peterson 1995; TC §2.3.4, §3.3, equations 3.1 to 3.3. Losses are answered as Reno answers them.

use super::window::{CommonParams, Window, segment_of};
use super::{Congestion, CongestionEvent, CongestionSnapshot, Reno};
use crate::view::PathView;
use restp_base::time::Duration;
use restp_base::units::Rate;

/// Parameters of [`Vegas`]: bounds of what it keeps in the queue. TC gives none; the values are those of Linux and
/// ns-3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VegasParams {
    /// Start and growth.
    pub common: CommonParams,
    /// With fewer segments queued the window grows. Default 2.
    pub alpha_segments: u64,
    /// With more segments queued the window shrinks. Default 4.
    pub beta_segments: u64,
    /// With more segments queued slow start ends. Default 1.
    pub gamma_segments: u64,
}

impl Default for VegasParams {
    fn default() -> Self {
        VegasParams {
            common: CommonParams::default(),
            alpha_segments: 2,
            beta_segments: 4,
            gamma_segments: 1,
        }
    }
}

/// Fewer samples of the round-trip time do not tell a queue from an acknowledgement that was held back (TC §3.3.2).
const SAMPLES: u64 = 3;

/// The Vegas controller.
#[derive(Clone, Copy, Debug)]
pub struct Vegas {
    params: VegasParams,
    reno: Reno,
    cycles: Cycles,
}

/// Measures from the departure of one segment, the distinguished one, to its acknowledgement.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cycles {
    running: Option<Cycle>,
    /// The smallest sample of the connection (m_baseRtt, TC §3.3.1). Of data only: the answer to a SYN measures a packet
    /// that takes less time to send, and nobody holds it back, so that every later sample would show a queue.
    pub(super) base: Option<Duration>,
}

/// One round trip.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cycle {
    /// Bytes to be acknowledged until the distinguished segment is.
    ahead: u64,
    /// Bytes that left since, it included.
    sent: u64,
    samples: u64,
    /// The smallest of the connection.
    pub(super) base: Duration,
    /// The smallest of them: delayed acknowledgements only add.
    pub(super) smallest: Duration,
}

impl Cycles {
    pub(super) fn on_sent(&mut self, bytes: u64, view: &PathView<'_>) {
        let cycle = self.running.get_or_insert(Cycle {
            ahead: view.in_flight_bytes,
            sent: 0,
            samples: 0,
            base: Duration::MAX,
            smallest: Duration::MAX,
        });
        cycle.sent = cycle.sent.saturating_add(bytes);
    }

    /// The cycle that this acknowledgement ends.
    pub(super) fn on_acked(&mut self, bytes: u64, rtt: Option<Duration>) -> Option<Cycle> {
        if let Some(rtt) = rtt {
            self.base = Some(self.base.map_or(rtt, |base| base.min(rtt)));
        }
        let cycle = self.running.as_mut()?;
        cycle.base = self.base.unwrap_or(Duration::MAX);
        if let Some(rtt) = rtt {
            cycle.samples += 1;
            cycle.smallest = cycle.smallest.min(rtt);
        }
        cycle.ahead = cycle.ahead.saturating_sub(bytes);
        self.running.take_if(|cycle| cycle.ahead == 0)
    }

    pub(super) fn forget(&mut self) {
        self.running = None;
    }
}

impl Cycle {
    pub(super) fn is_measured(&self) -> bool {
        self.samples >= SAMPLES
    }

    /// What would have left in the shortest round trip at the rate of this one, in bytes.
    pub(super) fn actual(&self) -> u64 {
        let actual = u128::from(self.sent) * u128::from(self.base.as_nanos())
            / u128::from(self.smallest.as_nanos().max(1));
        u64::try_from(actual).unwrap_or(u64::MAX)
    }
}

impl Vegas {
    /// A controller at its initial window for segments of `segment_bytes`.
    pub fn new(params: &VegasParams, segment_bytes: u64) -> Self {
        Vegas {
            params: *params,
            reno: Reno::new(&params.common, segment_bytes),
            cycles: Cycles::default(),
        }
    }

    fn acked(&mut self, bytes: u64, rtt: Option<Duration>, view: &PathView<'_>) {
        let segment = segment_of(view);
        match self.cycles.on_acked(bytes, rtt) {
            None => {
                self.reno.window.slow_start(bytes, segment);
            }
            Some(cycle) if cycle.is_measured() => self.adjust(&cycle, bytes, view),
            Some(_) => self.reno.grow(bytes, segment),
        }
    }

    /// Once per round trip: `expected` is the window, `actual` what would have left in the shortest round trip at the
    /// rate of this one, both in bytes per base round-trip time; their difference waits in the queue.
    fn adjust(&mut self, cycle: &Cycle, bytes: u64, view: &PathView<'_>) {
        let segment = segment_of(view);
        let window = &mut self.reno.window;
        let (expected, actual) = (window.bytes, cycle.actual());
        let queued = expected.saturating_sub(actual);
        let bound = |segments: u64| segments.saturating_mul(segment);
        if window.in_slow_start() {
            if queued <= bound(self.params.gamma_segments) {
                window.slow_start(bytes, segment);
                return;
            }
            window.shrink(queued.saturating_sub(segment), segment);
        } else if queued < bound(self.params.alpha_segments) {
            window.grow(segment);
        } else if queued > bound(self.params.beta_segments) {
            window.shrink(segment, segment);
        }
    }
}

impl Congestion for Vegas {
    fn on(&mut self, event: &CongestionEvent, view: &PathView<'_>) {
        match *event {
            CongestionEvent::Sent { bytes } => self.cycles.on_sent(bytes, view),
            CongestionEvent::Acked { bytes, rtt, .. } if Window::may_grow(view) => {
                self.acked(bytes, rtt, view)
            }
            CongestionEvent::Duplicate
            | CongestionEvent::SegmentLost(_)
            | CongestionEvent::Corrupted { .. } => {}
            // What such a cycle sent is not what the window would have allowed.
            CongestionEvent::Acked { .. }
            | CongestionEvent::Lost { .. }
            | CongestionEvent::Marked { .. }
            | CongestionEvent::RecoveryEnded
            | CongestionEvent::Timeout { .. }
            | CongestionEvent::Idle { .. }
            | CongestionEvent::Restored => self.cycles.forget(),
            CongestionEvent::RouteChanged => self.cycles = Cycles::default(),
        }
        self.reno.react(event, view, view.in_flight_bytes / 2);
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

    const SEGMENT: u64 = 1460;
    const BASE: Duration = Duration::from_millis(100);

    /// A window of 20 segments, in slow start below `threshold`.
    fn at_20_segments(threshold: u64) -> Vegas {
        let params = VegasParams {
            common: CommonParams {
                initial_threshold_bytes: threshold,
                ..CommonParams::default()
            },
            ..VegasParams::default()
        };
        let mut vegas = Vegas::new(&params, SEGMENT);
        vegas.on(&acked_after(10 * SEGMENT, BASE), &path(SEGMENT));
        assert_eq!(vegas.window_bytes(), 20 * SEGMENT);
        vegas
    }

    fn view(in_flight_bytes: u64) -> PathView<'static> {
        PathView {
            // The answer to the SYN was faster than any data can be.
            min_rtt: Some(BASE / 2),
            in_flight_bytes,
            ..path(SEGMENT)
        }
    }

    /// One cycle in which 20 segments leave and `acks` acknowledgements with a sample of `rtt` cover what was in
    /// flight when it began: 10 segments.
    fn cycle(vegas: &mut Vegas, rtt: Duration, acks: u64) -> u64 {
        for _ in 0..20 {
            vegas.on(&CongestionEvent::Sent { bytes: SEGMENT }, &view(10 * SEGMENT));
        }
        for _ in 1..acks {
            let before = vegas.window_bytes();
            vegas.on(&acked_after(SEGMENT / 10, rtt), &view(0));
            let avoids = vegas.snapshot().state == "avoidance";
            assert!(!avoids || vegas.window_bytes() == before, "the cycle is open");
        }
        vegas.on(&acked_after(10 * SEGMENT, rtt), &view(0));
        vegas.window_bytes()
    }

    #[test]
    fn in_avoidance_two_to_four_segments_stay_in_the_queue() {
        // TC §4.12: 20 segments, 29 200 bytes sent per cycle, base 100 ms.
        for (rtt, segments) in [(120, 20), (130, 19), (105, 21)] {
            let mut vegas = at_20_segments(20 * SEGMENT);
            let window = cycle(&mut vegas, Duration::from_millis(rtt), 3);
            assert_eq!(window, segments * SEGMENT, "{rtt} ms");
            assert_eq!(vegas.snapshot().state, "avoidance", "{rtt} ms");
        }
    }

    /// Of 29 200 bytes 2 920 wait at 100/0.9 ms, and 5 840 at 125 ms: α and β themselves.
    #[test]
    fn exactly_two_and_exactly_four_segments_are_left_as_they_are() {
        for rtt in [Duration::from_nanos(111_111_111), Duration::from_millis(125)] {
            let mut vegas = at_20_segments(20 * SEGMENT);
            assert_eq!(cycle(&mut vegas, rtt, 3), 20 * SEGMENT, "{rtt:?}");
        }
    }

    #[test]
    fn slow_start_ends_with_more_than_one_segment_in_the_queue() {
        let mut vegas = at_20_segments(u64::MAX);
        vegas.reno.window.bytes = 20 * SEGMENT - 2 * (SEGMENT / 10); // to be added by the two acknowledgements before
        // TC §4.12: 110 ms, D = 1.82 > 1: 29 200 · 100 / 110 + 1460 = 28 005 bytes, 19.18 segments.
        let window = cycle(&mut vegas, Duration::from_millis(110), 3);
        assert_eq!(window, 28_005);
        assert_eq!(vegas.snapshot().threshold_bytes, Some(28_005));
        assert_eq!(vegas.snapshot().state, "avoidance");
        // 105 ms, D = 0.95: slow start goes on.
        let mut vegas = at_20_segments(u64::MAX);
        vegas.reno.window.bytes = 20 * SEGMENT - 2 * (SEGMENT / 10);
        assert_eq!(cycle(&mut vegas, Duration::from_millis(105), 3), 30 * SEGMENT);
    }

    #[test]
    fn a_cycle_with_fewer_than_three_samples_is_reno_s() {
        let mut vegas = at_20_segments(20 * SEGMENT);
        let slow = Duration::from_millis(500);
        assert_eq!(cycle(&mut vegas, slow, 2), 20 * SEGMENT);
        // 10 segments of credit twice make one window: one segment more, whatever the delay.
        assert_eq!(cycle(&mut vegas, slow, 2), 21 * SEGMENT);
    }

    #[test]
    fn a_loss_halves_and_discards_the_cycle() {
        let mut vegas = at_20_segments(20 * SEGMENT);
        vegas.on(&CongestionEvent::Sent { bytes: SEGMENT }, &view(10 * SEGMENT));
        vegas.on(&CongestionEvent::Lost { bytes: SEGMENT }, &view(20 * SEGMENT));
        assert_eq!(vegas.window_bytes(), 10 * SEGMENT);
        assert!(vegas.cycles.running.is_none());
        vegas.on(&acked_after(20 * SEGMENT, BASE), &view(0));
        assert_eq!(vegas.window_bytes(), 10 * SEGMENT, "no cycle, no growth");
    }

    #[test]
    fn what_an_idle_application_sends_says_nothing_about_the_queue() {
        let mut vegas = at_20_segments(20 * SEGMENT);
        vegas.on(&CongestionEvent::Sent { bytes: SEGMENT }, &view(SEGMENT));
        let mut unused = view(0);
        unused.application_limited = true;
        for _ in 0..3 {
            vegas.on(&acked_after(SEGMENT / 2, BASE * 3), &unused);
        }
        assert_eq!(vegas.window_bytes(), 20 * SEGMENT);
    }

    #[test]
    fn the_window_does_not_shrink_below_two_segments() {
        let mut vegas = at_20_segments(20 * SEGMENT);
        (vegas.params.alpha_segments, vegas.params.beta_segments) = (0, 0);
        for _ in 0..40 {
            cycle(&mut vegas, Duration::from_secs(5), 3);
        }
        assert_eq!(vegas.window_bytes(), 2 * SEGMENT);
    }
}
