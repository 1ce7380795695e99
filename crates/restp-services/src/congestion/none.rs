//! The congestion module unplugged: a fixed limit on what is in flight (OP-50).

use super::{Congestion, CongestionEvent, CongestionSnapshot};
use crate::view::PathView;
use restp_base::time::Duration;
use restp_base::units::Rate;

/// A constant window. Nothing the network does changes it; where the composition paces, it is spread evenly over a
/// round trip, because a whole window freed at once by one repair would overflow the next queue.
#[derive(Clone, Copy, Debug)]
pub struct Unplugged {
    limit_segments: u64,
    window_bytes: u64,
    smoothed_rtt: Option<Duration>,
}

impl Unplugged {
    /// A window of `limit_segments` (at least one) segments of `segment_bytes`.
    pub fn new(limit_segments: u64, segment_bytes: u64) -> Self {
        let limit_segments = limit_segments.max(1);
        Unplugged {
            limit_segments,
            window_bytes: limit_segments.saturating_mul(segment_bytes.max(1)),
            smoothed_rtt: None,
        }
    }
}

impl Congestion for Unplugged {
    /// Only the segment size counts: the limit is in segments, and the size may change with the path.
    fn on(&mut self, _: &CongestionEvent, view: &PathView<'_>) {
        *self = Unplugged {
            smoothed_rtt: view.smoothed_rtt,
            ..Unplugged::new(self.limit_segments, view.segment_bytes)
        };
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
