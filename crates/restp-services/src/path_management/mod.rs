//! What is known of a path, and how segments are spread in time on it (ResTP §3.3). A connection on one path
//! owns one [`Path`].

mod health;
mod mapping;
mod mtu;
mod pacer;
mod path;

pub use health::{Health, LONGEST_ACK_DELAY, PathHealth, Unanswered};
pub use mapping::Mapping;
pub use mtu::{BASE_BYTES, PathMtu};
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
