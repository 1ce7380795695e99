//! When a segment is handed up (ResTP §3.5.7). The connection gives every numbered arrival to [`Reassembly`],
//! which holds back, delivers, recognises repeats, and keeps the receiver's pointer RCV.NXT.

mod reorder_buffer;

pub use reorder_buffer::{Arrival, Reassembly};

use restp_base::time::Duration;

/// Ordering service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ordering {
    /// Deliver on arrival.
    Unordered,
    /// Hold until all predecessors are delivered.
    Ordered,
    /// Ordered, but a hole is skipped when the application has waited long enough (OP-48).
    Partial,
}

impl Ordering {
    /// Every service with its name in compositions.
    pub const ALL: [(&'static str, Ordering); 3] = [
        ("unordered", Ordering::Unordered),
        ("ordered", Ordering::Ordered),
        ("partial", Ordering::Partial),
    ];
}

/// How long a hole may hold up what came after it when nobody repeats segments (ResTP §14: ordered delivery
/// without ARQ needs a hole timeout). OP-48 gives 3/2 round trips and two frame intervals; before a round trip
/// is known we use its example of 110 ms.
pub fn hold_time(rtt: Option<Duration>) -> Duration {
    rtt.map_or(Duration::from_millis(110), |rtt| {
        rtt.scaled(3, 2) + Duration::from_millis(40)
    })
}
