//! The read-only values an algorithm is given: numbers of one path, never the path itself.

use restp_base::time::{Duration, Time};

/// One path at one moment, as its controller may see it.
///
/// The numbers describe the path after the event they come with was booked, with one exception:
/// see [`in_flight_bytes`](PathView::in_flight_bytes).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathView<'a> {
    /// The moment of the event.
    pub now: Time,
    /// Payload bytes of a full segment on this path.
    pub segment_bytes: u64,
    /// Bytes sent and believed to be on their way: neither acknowledged, selectively acknowledged nor lost
    /// (RFC 6675 pipe). With `Lost`, `Marked` and `Timeout` it is what was outstanding *before* anything was
    /// taken for lost (FlightSize, RFC 5681 §2), because that is what the window is cut by.
    pub in_flight_bytes: u64,
    /// Smoothed round-trip time (RFC 6298), once there is one.
    pub smoothed_rtt: Option<Duration>,
    /// The newest sample of the round-trip time.
    pub latest_rtt: Option<Duration>,
    /// The smallest sample of the round-trip time.
    pub min_rtt: Option<Duration>,
    /// The application, not the window, held the sender back (RFC 7661 §4).
    pub application_limited: bool,
    /// Within a loss episode that fast recovery repairs. Not the slow start after a timeout: there the window
    /// has to grow.
    pub in_recovery: bool,
    /// The other paths that carry data of the same association; empty where there is one path, or where the
    /// algorithm looks at its own only.
    pub siblings: &'a [Sibling],
}

/// What coupled congestion control knows of another path of its association.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sibling {
    /// Its congestion window in bytes.
    pub window_bytes: u64,
    /// Its smoothed round-trip time.
    pub smoothed_rtt: Duration,
    /// Its longest run of bytes between two losses lately, for algorithms that judge paths by it (OLIA).
    pub loss_interval_bytes: u64,
    /// What leaves on it waits in the same queue as what leaves on this path.
    pub shares_queue: bool,
    /// When its window was last cut beside somebody else, for algorithms that cut together.
    pub cut_at: Option<Time>,
}
