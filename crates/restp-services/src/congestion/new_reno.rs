//! NewReno: additive increase, half on loss. RFC 5681 for the window, RFC 6582 and 6675 §5 for one reduction
//! per episode. Read RFC 5681 §3.1 first.

use super::window::{Growth, Window, segment_of};
use super::{Congestion, CongestionEvent, CongestionSnapshot};
use crate::view::PathView;
use restp_base::units::Rate;

/// Parameters of [`NewReno`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewRenoParams {
    /// First window in segments, 1 to 10 (OP-33); values outside are taken as the nearest bound. Default 10
    /// (RFC 6928).
    pub initial_window_segments: u64,
    /// First slow start threshold in bytes. Default `u64::MAX`, arbitrarily high (RFC 5681 §3.1); simulators
    /// of older papers began with 65 535.
    pub initial_threshold_bytes: u64,
    /// What an acknowledgement is worth. Default [`Growth::Bytes`].
    pub growth: Growth,
}

impl Default for NewRenoParams {
    fn default() -> Self {
        NewRenoParams {
            initial_window_segments: 10,
            initial_threshold_bytes: u64::MAX,
            growth: Growth::default(),
        }
    }
}

/// The NewReno controller.
#[derive(Clone, Copy, Debug)]
pub struct NewReno {
    window: Window,
    growth: Growth,
    /// Bytes acknowledged in avoidance since the window last grew.
    credit: u64,
    /// The window before the last reduction.
    before: Option<Window>,
}

impl NewReno {
    /// A controller at its initial window for segments of `segment_bytes`.
    pub fn new(params: &NewRenoParams, segment_bytes: u64) -> Self {
        let NewRenoParams {
            initial_window_segments,
            initial_threshold_bytes,
            growth,
        } = *params;
        let window = Window::new(
            initial_window_segments,
            initial_threshold_bytes,
            growth,
            segment_bytes,
        );
        NewReno {
            window,
            growth,
            credit: 0,
            before: None,
        }
    }

    fn acked(&mut self, bytes: u64, segment: u64) {
        let left = self.window.slow_start(bytes, segment);
        if left == 0 {
            return;
        }
        match self.growth {
            // One segment per window of bytes (RFC 5681 §3.1, RFC 3465 §2.1).
            Growth::Bytes => {
                self.credit += left;
                if self.credit >= self.window.bytes {
                    self.credit -= self.window.bytes;
                    self.window.grow(segment);
                }
            }
            // RFC 5681 (3).
            Growth::Acks => self.window.grow((segment * segment / self.window.bytes).max(1)),
        }
    }

    fn reduce(&mut self, view: &PathView, segment: u64) {
        self.before = Some(self.window);
        self.credit = 0;
        self.window.cut(view.in_flight_bytes / 2, segment);
    }
}

impl Congestion for NewReno {
    fn on(&mut self, event: &CongestionEvent, view: &PathView) {
        let segment = segment_of(view);
        match *event {
            CongestionEvent::Sent { .. } => {}
            CongestionEvent::Acked { bytes, .. } => {
                if Window::may_grow(view) {
                    self.acked(bytes, segment);
                }
            }
            CongestionEvent::Lost { .. } | CongestionEvent::Marked { .. } => self.reduce(view, segment),
            CongestionEvent::RecoveryEnded => self.window.recovery_ended(),
            CongestionEvent::Timeout { repeated } => {
                if !repeated {
                    self.before = Some(self.window);
                }
                self.credit = 0;
                self.window
                    .collapse((!repeated).then_some(view.in_flight_bytes / 2), segment);
            }
            CongestionEvent::Idle { .. } => self.window.restart(segment),
            CongestionEvent::Restored => {
                if let Some(before) = self.before.take() {
                    self.window.restore(&before);
                }
            }
        }
        self.window.settle(view);
    }
    fn window_bytes(&self) -> u64 {
        self.window.bytes
    }
    fn pacing(&self) -> Option<Rate> {
        self.window.pacing()
    }
    fn snapshot(&self) -> CongestionSnapshot {
        self.window.snapshot()
    }
}
