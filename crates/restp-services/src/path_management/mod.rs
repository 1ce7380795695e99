//! What is known of a path, and how segments are spread in time on it (ResTP §3.3). A connection on one path
//! owns one [`Path`].

mod pacer;
mod path;

pub use pacer::Pacer;
pub use path::{Load, Path};

/// Path mode (ResTP §3.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathMode {
    /// One path for the whole lifetime.
    Single,
    /// One primary carries all, the others stand by.
    HotStandby,
    /// Fill one path before using the next.
    Overflow,
    /// All paths at once.
    Spreading,
}

impl PathMode {
    /// Every mode with its name in compositions.
    pub const ALL: [(&'static str, PathMode); 4] = [
        ("single", PathMode::Single),
        ("hot-standby", PathMode::HotStandby),
        ("overflow", PathMode::Overflow),
        ("spreading", PathMode::Spreading),
    ];
}

/// Which path a segment takes, in spreading mode (ResTP §3.5.10).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheduling {
    /// The next path with room.
    RoundRobin,
    /// The path with the least smoothed round-trip time and room.
    FastestRtt,
}

impl Scheduling {
    /// Every scheduler with its name in compositions.
    pub const ALL: [(&'static str, Scheduling); 2] = [
        ("round-robin", Scheduling::RoundRobin),
        ("fastest-rtt", Scheduling::FastestRtt),
    ];
}
