//! The window and threshold that all loss-based algorithms share: slow start, floors, the state's name
//! (RFC 5681 §3.1).

use super::{CongestionSnapshot, window_over_rtt};
use crate::view::PathView;
use restp_base::time::Duration;
use restp_base::units::Rate;

/// Larger than any path fills (one tebibyte), so that no sum of windows overflows.
pub(super) const LARGEST_WINDOW: u64 = 1 << 40;
/// Larger than any packet (16 MiB), so that no square of a segment overflows.
pub(super) const LARGEST_SEGMENT: u64 = 1 << 24;

/// What an acknowledgement is worth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Growth {
    /// As many bytes as it newly covers, because receivers coalesce acknowledgements (RFC 9002 §7.3.1; RFC 3465
    /// without its limit L).
    #[default]
    Bytes,
    /// One segment at most, however much it covers (RFC 5681 (2), (3)): for reproducing published runs.
    Acks,
}

/// What every algorithm with a window can be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommonParams {
    /// First window in segments, 1 to 10 (OP-33); values outside are taken as the nearest bound. Default 10
    /// (RFC 6928).
    pub initial_window_segments: u64,
    /// First slow start threshold in bytes. Default `u64::MAX`, arbitrarily high (RFC 5681 §3.1); simulators
    /// of older papers began with 65 535.
    pub initial_threshold_bytes: u64,
    /// What an acknowledgement is worth. Default [`Growth::Bytes`].
    pub growth: Growth,
    /// A mark costs less than a loss in avoidance: a network that marks keeps its queues short, and the larger cut would empty
    /// them (RFC 8511). NewReno and Reno keep 0.8, CUBIC 0.85; others do not look at it. Default off.
    pub abe: bool,
}

impl Default for CommonParams {
    fn default() -> Self {
        CommonParams {
            initial_window_segments: 10,
            initial_threshold_bytes: u64::MAX,
            growth: Growth::default(),
            abe: false,
        }
    }
}

/// Window and slow start threshold in bytes. Starts in slow start.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    pub bytes: u64,
    /// `u64::MAX` until the first reduction (RFC 5681 §3.1: arbitrarily high).
    pub threshold: u64,
    initial_segments: u64,
    growth: Growth,
    abe: bool,
    in_recovery: bool,
    smoothed_rtt: Option<Duration>,
}

impl Window {
    pub fn new(params: &CommonParams, segment: u64) -> Self {
        let initial_segments = params.initial_window_segments.clamp(1, 10);
        let bytes = initial_segments * segment.clamp(1, LARGEST_SEGMENT);
        Window {
            bytes,
            threshold: params.initial_threshold_bytes,
            initial_segments,
            growth: params.growth,
            abe: params.abe,
            in_recovery: false,
            smoothed_rtt: None,
        }
    }

    /// Equality counts as avoidance: the window equals the threshold right after a cut.
    pub fn in_slow_start(&self) -> bool {
        self.bytes < self.threshold
    }

    /// A mark costs less than a loss, but for the one that ends slow start: its overshoot needs the whole cut (RFC 8511 §3).
    pub fn spares_marks(&self) -> bool {
        self.abe && !self.in_slow_start()
    }

    /// True when an acknowledgement that comes with `view` may let the window grow (RFC 7661 §4).
    pub fn may_grow(view: &PathView<'_>) -> bool {
        !view.in_recovery && !view.application_limited
    }

    /// The bytes an acknowledgement of `bytes` is worth. A jump over more than a window counts as a window.
    pub fn worth(&self, bytes: u64, segment: u64) -> u64 {
        match self.growth {
            Growth::Bytes => bytes.min(self.bytes),
            Growth::Acks => bytes.min(segment),
        }
    }

    /// Grows by slow start and returns what is left of `acked` for avoidance once the threshold is met.
    pub fn slow_start(&mut self, acked: u64, segment: u64) -> u64 {
        if !self.in_slow_start() {
            return acked.min(self.bytes);
        }
        let worth = self.worth(acked, segment);
        let step = match self.growth {
            Growth::Bytes => worth.min(self.threshold - self.bytes),
            // RFC 5681 (2) knows no remainder: the whole step is taken.
            Growth::Acks => worth,
        };
        self.grow(step);
        worth - step
    }

    pub fn grow(&mut self, bytes: u64) {
        self.bytes = self.bytes.saturating_add(bytes).min(LARGEST_WINDOW);
    }

    /// Takes `bytes` away in avoidance, down to two segments; the threshold follows, or this would be slow start.
    pub fn shrink(&mut self, bytes: u64, segment: u64) {
        self.bytes = self.bytes.min(self.bytes.saturating_sub(bytes).max(2 * segment));
        self.threshold = self.threshold.min(self.bytes);
    }

    /// Cuts to `threshold` (at least two segments) at the start of an episode. A cut never raises the window,
    /// which matters while it is smaller than the floor.
    pub fn cut(&mut self, threshold: u64, segment: u64) {
        self.threshold = threshold.max(2 * segment);
        self.bytes = self.bytes.min(self.threshold);
    }

    /// Falls to one segment; the threshold changes on the first expiry only (RFC 5681 §3.1).
    pub fn collapse(&mut self, threshold: Option<u64>, segment: u64) {
        if let Some(threshold) = threshold {
            self.threshold = threshold.max(2 * segment);
        }
        self.bytes = segment;
    }

    /// Restarts from the initial window at most; the threshold remembers the path (RFC 5681 §4.1).
    pub fn restart(&mut self, segment: u64) {
        self.bytes = self.bytes.min(self.initial_segments * segment);
    }

    /// Halves, down to the initial window; the threshold remembers three quarters of what it was at least.
    pub fn fade(&mut self, segment: u64) {
        self.threshold = self.threshold.max(self.bytes / 4 * 3);
        let least = self.bytes.min(self.initial_segments * segment);
        self.bytes = (self.bytes / 2).max(least);
    }

    /// Takes back a reduction: neither window nor threshold stays below what it was at `before`.
    pub fn restore(&mut self, before: &Window) {
        self.bytes = self.bytes.max(before.bytes);
        self.threshold = self.threshold.max(before.threshold);
    }

    /// The last step of every event: at least one segment of the size the path has now.
    pub fn settle(&mut self, view: &PathView<'_>) {
        self.bytes = self.bytes.max(segment_of(view));
        self.in_recovery = view.in_recovery;
        self.smoothed_rtt = view.smoothed_rtt;
    }

    pub fn pacing(&self) -> Option<Rate> {
        Some(window_over_rtt(
            self.bytes,
            self.smoothed_rtt?,
            self.in_slow_start(),
        ))
    }

    pub fn snapshot(&self) -> CongestionSnapshot {
        CongestionSnapshot {
            window_bytes: self.bytes,
            threshold_bytes: (self.threshold != u64::MAX).then_some(self.threshold),
            state: match (self.in_recovery, self.in_slow_start()) {
                (true, _) => "recovery",
                (false, true) => "slow-start",
                (false, false) => "avoidance",
            },
        }
    }
}

/// The segment size, kept within what the arithmetic of windows can hold.
pub(super) fn segment_of(view: &PathView<'_>) -> u64 {
    view.segment_bytes.clamp(1, LARGEST_SEGMENT)
}
