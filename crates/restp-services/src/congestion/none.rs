//! No congestion control: a fixed limit on what is in flight (OP-50).

use super::{Congestion, CongestionEvent, CongestionSnapshot};
use crate::view::PathView;
use restp_base::time::Duration;
use restp_base::units::Rate;

/// Parameters of [`FixedWindow`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlightLimit {
    /// Segments that may be in flight, at least 1. Default 100: about 10 Mbit/s over 100 ms with full segments.
    pub flight_limit_segments: u64,
}

impl Default for FlightLimit {
    fn default() -> Self {
        FlightLimit {
            flight_limit_segments: 100,
        }
    }
}

/// A constant window. Nothing the network does changes it; where the composition paces, it is spread evenly over a
/// round trip, because a whole window freed at once by one repair would overflow the next queue.
#[derive(Clone, Copy, Debug)]
pub struct FixedWindow {
    limit_segments: u64,
    window_bytes: u64,
    smoothed_rtt: Option<Duration>,
}

impl FixedWindow {
    /// A window of as many segments of `segment_bytes` as `limit` says, one at least.
    pub fn new(limit: &FlightLimit, segment_bytes: u64) -> Self {
        let limit_segments = limit.flight_limit_segments.max(1);
        FixedWindow {
            limit_segments,
            window_bytes: limit_segments.saturating_mul(segment_bytes.max(1)),
            smoothed_rtt: None,
        }
    }
}

impl Congestion for FixedWindow {
    /// Only the segment size counts: the limit is in segments, and the size may change with the path.
    fn on(&mut self, _: &CongestionEvent, view: &PathView<'_>) {
        self.window_bytes = self.limit_segments.saturating_mul(view.segment_bytes.max(1));
        self.smoothed_rtt = view.smoothed_rtt;
    }
    fn window_bytes(&self) -> u64 {
        self.window_bytes
    }
    fn pacing(&self) -> Option<Rate> {
        self.smoothed_rtt.map(|rtt| Rate::of(self.window_bytes, rtt))
    }
    fn snapshot(&self) -> CongestionSnapshot {
        CongestionSnapshot {
            window_bytes: self.window_bytes,
            threshold_bytes: None,
            state: "fixed",
        }
    }
}
