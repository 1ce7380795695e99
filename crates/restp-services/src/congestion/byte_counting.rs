//! SCTP's window (RFC 9260 §7.2, as CMT §1.6 summarises it): it grows by the bytes acknowledged, only while it was full, and
//! only by acknowledgements that move the path's own cumulative point. A loss leaves at least four packets, unless told otherwise. To the letter of
//! RFC 9260 it would raise a smaller window to four; here no loss raises one.

use super::window::{LARGEST_WINDOW, segment_of};
use super::{Congestion, CongestionEvent, CongestionSnapshot, window_over_rtt};
use crate::view::PathView;
use restp_base::units::Rate;

/// Least window after idle time, in packets (RFC 9260 §7.2.1).
const IDLE_PACKETS: u64 = 4;

/// What can be set of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByteCountingParams {
    /// What a packet counts, in bytes. Default 0: a full segment of the path. Studies count the network's 1500 whatever their
    /// messages are (CMT §4.4).
    pub packet_bytes: u64,
    /// First slow start threshold in bytes. Default `u64::MAX`; RFC 9260 §7.2.1 leaves it open.
    pub initial_threshold_bytes: u64,
    /// Least threshold after a loss, in packets. Default 4 (RFC 9260 §7.2.3). Older SCTPs had 2, which matters where a window of a
    /// few packets is the best one, as over chains of stations (CMT §8, OP-11).
    pub floor_packets: u64,
}

impl Default for ByteCountingParams {
    fn default() -> Self {
        ByteCountingParams {
            packet_bytes: 0,
            initial_threshold_bytes: u64::MAX,
            floor_packets: 4,
        }
    }
}

/// The controller.
#[derive(Clone, Copy, Debug)]
pub struct ByteCounting {
    params: ByteCountingParams,
    window: u64,
    threshold: u64,
    /// `partial_bytes_acked`: acknowledged in avoidance since the window last grew.
    credit: u64,
    /// Window and threshold before the last reduction.
    before: Option<(u64, u64)>,
    in_recovery: bool,
    smoothed_rtt: Option<restp_base::time::Duration>,
}

impl ByteCounting {
    /// A controller at its initial window for segments of `segment_bytes`: two to four packets (RFC 9260 §7.2.1).
    pub fn new(params: &ByteCountingParams, segment_bytes: u64) -> Self {
        let packet = params.packet_of(segment_bytes.max(1));
        ByteCounting {
            params: *params,
            window: (4 * packet).min((2 * packet).max(4380)),
            threshold: params.initial_threshold_bytes,
            credit: 0,
            before: None,
            in_recovery: false,
            smoothed_rtt: None,
        }
    }

    /// The slow start threshold in bytes.
    pub fn threshold_bytes(&self) -> u64 {
        self.threshold
    }

    /// Equality counts as slow start.
    fn in_slow_start(&self) -> bool {
        self.window <= self.threshold
    }

    fn on_acked(&mut self, bytes: u64, packet: u64, view: &PathView<'_>) {
        if !view.in_recovery {
            let full = !view.application_limited;
            if self.in_slow_start() {
                if full {
                    self.grow(bytes.min(packet));
                }
            } else {
                self.credit = self.credit.saturating_add(bytes);
                if full && self.credit >= self.window {
                    self.credit -= self.window;
                    self.grow(packet);
                }
            }
        }
        if view.in_flight_bytes == 0 {
            self.credit = 0;
        }
    }

    fn grow(&mut self, bytes: u64) {
        self.window = self.window.saturating_add(bytes).min(LARGEST_WINDOW);
    }

    /// The threshold is half the window; the window becomes `window_of` that.
    fn reduce(&mut self, packet: u64, window_of: impl Fn(u64) -> u64) {
        self.before = Some((self.window, self.threshold));
        self.threshold = (self.window / 2).max(self.params.floor_packets * packet);
        self.window = self.window.min(window_of(self.threshold));
        self.credit = 0;
    }
}

impl ByteCountingParams {
    fn packet_of(&self, segment: u64) -> u64 {
        if self.packet_bytes == 0 {
            segment
        } else {
            self.packet_bytes
        }
    }
}

impl Congestion for ByteCounting {
    fn on(&mut self, event: &CongestionEvent, view: &PathView<'_>) {
        let packet = self.params.packet_of(segment_of(view));
        match event {
            CongestionEvent::Acked { bytes, .. } => self.on_acked(*bytes, packet, view),
            CongestionEvent::Lost { .. } | CongestionEvent::Marked { .. } => {
                self.reduce(packet, |threshold| threshold)
            }
            CongestionEvent::Timeout { .. } => self.reduce(packet, |_| packet),
            CongestionEvent::Idle { .. } => {
                self.window = self.window.min((self.window / 2).max(IDLE_PACKETS * packet));
            }
            CongestionEvent::Restored => {
                if let Some((window, threshold)) = self.before.take() {
                    self.window = self.window.max(window);
                    self.threshold = self.threshold.max(threshold);
                }
            }
            CongestionEvent::Sent { .. }
            | CongestionEvent::RouteChanged
            | CongestionEvent::Duplicate
            | CongestionEvent::SegmentLost(_)
            | CongestionEvent::Corrupted { .. }
            | CongestionEvent::RecoveryEnded => {}
        }
        self.window = self.window.max(segment_of(view));
        self.in_recovery = view.in_recovery;
        self.smoothed_rtt = view.smoothed_rtt;
    }

    fn window_bytes(&self) -> u64 {
        self.window
    }

    fn pacing(&self) -> Option<Rate> {
        Some(window_over_rtt(
            self.window,
            self.smoothed_rtt?,
            self.in_slow_start(),
        ))
    }

    fn snapshot(&self) -> CongestionSnapshot {
        CongestionSnapshot {
            window_bytes: self.window,
            threshold_bytes: (self.threshold != u64::MAX).then_some(self.threshold),
            state: match (self.in_recovery, self.in_slow_start()) {
                (true, _) => "recovery",
                (false, true) => "slow-start",
                (false, false) => "avoidance",
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::conformance::{acked, path};
    use super::*;
    use restp_base::time::Duration;

    const MTU: u64 = 1500;
    const LOST: CongestionEvent = CongestionEvent::Lost { bytes: 1200 };
    const TIMEOUT: CongestionEvent = CongestionEvent::Timeout { repeated: false };

    fn controller() -> ByteCounting {
        let params = ByteCountingParams {
            packet_bytes: MTU,
            ..ByteCountingParams::default()
        };
        ByteCounting::new(&params, 1200)
    }

    /// A window in use, with something left in flight.
    fn full() -> PathView<'static> {
        PathView {
            in_flight_bytes: 1200,
            ..path(1200)
        }
    }

    fn limited() -> PathView<'static> {
        PathView {
            application_limited: true,
            ..full()
        }
    }

    #[test]
    fn it_begins_with_two_to_four_packets() {
        let first = |packet_bytes| {
            let params = ByteCountingParams {
                packet_bytes,
                ..ByteCountingParams::default()
            };
            ByteCounting::new(&params, 1).window_bytes()
        };
        assert_eq!([1500, 1000, 4000].map(first), [4380, 4000, 8000]);
    }

    #[test]
    fn slow_start_grows_by_what_is_acknowledged_up_to_a_packet_and_only_when_full() {
        let mut control = controller();
        control.on(&acked(1200), &full());
        assert_eq!(control.window_bytes(), 4380 + 1200);
        control.on(&acked(2400), &full());
        assert_eq!(control.window_bytes(), 4380 + 1200 + MTU, "a delayed one, too");
        control.on(&acked(2400), &limited());
        let repairing = PathView {
            in_recovery: true,
            ..full()
        };
        control.on(&acked(2400), &repairing);
        assert_eq!(control.window_bytes(), 4380 + 1200 + MTU);
    }

    #[test]
    fn a_window_that_equals_its_threshold_is_in_slow_start() {
        let mut control = controller();
        (0..20).for_each(|_| control.on(&acked(1500), &full()));
        control.on(&LOST, &full());
        let half = (4380 + 20 * MTU) / 2;
        assert_eq!((control.window_bytes(), control.threshold_bytes()), (half, half));
        assert_eq!(control.snapshot().state, "slow-start");
        control.on(&acked(1200), &full());
        assert_eq!(control.window_bytes(), half + 1200);
        assert_eq!(control.snapshot().state, "avoidance");
    }

    /// A packet for every window of bytes acknowledged; what was acknowledged while the window was not full counts as well
    /// (CMT §1.6).
    #[test]
    fn avoidance_counts_partial_bytes() {
        let mut control = controller();
        control.on(&TIMEOUT, &full());
        (0..4).for_each(|_| control.on(&acked(1500), &full()));
        let window = 5 * MTU;
        assert_eq!(control.window_bytes(), window, "beyond the floor of four");
        control.on(&acked(4500), &limited());
        assert_eq!(control.window_bytes(), window);
        control.on(&acked(3000), &full());
        assert_eq!(control.window_bytes(), window + MTU);
        control.on(&acked(6000), &full());
        let drained = PathView {
            in_flight_bytes: 0,
            ..full()
        };
        control.on(&acked(1), &drained);
        control.on(&acked(8999), &full());
        assert_eq!(
            control.window_bytes(),
            window + MTU,
            "an idle path starts counting anew"
        );
        control.on(&acked(1), &full());
        assert_eq!(control.window_bytes(), window + 2 * MTU);
    }

    #[test]
    fn what_is_beyond_a_window_counts_for_the_next_one_unless_something_is_lost() {
        let mut control = controller();
        control.on(&TIMEOUT, &full());
        (0..4).for_each(|_| control.on(&acked(1500), &full()));
        control.on(&acked(5 * MTU + 1000), &full());
        assert_eq!(control.window_bytes(), 6 * MTU);
        control.on(&acked(6 * MTU - 1000), &full());
        assert_eq!(control.window_bytes(), 7 * MTU);
        control.on(&acked(7 * MTU - 1), &full());
        control.on(&LOST, &full());
        let window = control.window_bytes();
        control.on(&acked(1), &full()); // slow start, where the two are equal
        control.on(&acked(window), &full());
        assert_eq!(control.window_bytes(), window + 1);
    }

    #[test]
    fn losses_leave_four_packets_and_a_timeout_one() {
        let mut control = controller();
        control.on(&TIMEOUT, &full());
        assert_eq!(
            (control.window_bytes(), control.threshold_bytes()),
            (MTU, 4 * MTU)
        );
        control.on(&LOST, &full());
        assert_eq!(control.window_bytes(), MTU, "and none raises it");
        (0..6).for_each(|_| control.on(&acked(1500), &full()));
        control.on(&LOST, &full());
        assert_eq!(control.window_bytes(), 4 * MTU);
    }

    /// CMT §8, OP-11.
    #[test]
    fn an_older_floor_leaves_two_packets() {
        let params = ByteCountingParams {
            packet_bytes: MTU,
            floor_packets: 2,
            ..ByteCountingParams::default()
        };
        let mut control = ByteCounting::new(&params, 1200);
        (0..3).for_each(|_| control.on(&LOST, &full()));
        assert_eq!(
            (control.window_bytes(), control.threshold_bytes()),
            (2 * MTU, 2 * MTU)
        );
    }

    #[test]
    fn idle_time_halves_down_to_four_packets() {
        let mut control = controller();
        (0..12).for_each(|_| control.on(&acked(1500), &full()));
        let idle = CongestionEvent::Idle {
            gap: Duration::from_secs(2),
        };
        control.on(&idle, &full());
        assert_eq!(control.window_bytes(), (4380 + 12 * MTU) / 2);
        (0..4).for_each(|_| control.on(&idle, &full()));
        assert_eq!(control.window_bytes(), 4 * MTU);
    }
}
