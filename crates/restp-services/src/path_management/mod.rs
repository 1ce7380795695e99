//! What is known of a path, and how segments are spread in time on it (ResTP §3.3). A [`Sender`](crate::sender::Sender)
//! bundles it with estimator, timer and controller.

mod ack_return;
mod byte_mapping;
mod health;
mod mapping;
mod mtu;
mod pacer;
mod retransmit_target;

pub use ack_return::AckReturn;
pub use byte_mapping::{ByteMapping, ByteMappings, Contradiction};
pub use health::{Health, LONGEST_ACK_DELAY, PathHealth, Unanswered};
pub use mapping::Mapping;
pub use mtu::{BASE_BYTES, PathMtu};
pub use pacer::Pacer;
pub use retransmit_target::{Destination, RetransmitTarget};

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
