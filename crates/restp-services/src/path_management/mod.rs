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

/// What the numbers of segments count where there are several paths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NumberSpace {
    /// Each path numbers what it carries, and a mapping says what of the connection that is (ResTP §3.1.13).
    #[default]
    PerPath,
    /// All paths share the numbers of the connection, as those of SCTP do (Iyengar, Amer and Stewart 2006).
    Shared,
}

impl NumberSpace {
    /// Both with their names in compositions.
    pub const ALL: [(&'static str, NumberSpace); 2] = [
        ("per-path", NumberSpace::PerPath),
        ("shared", NumberSpace::Shared),
    ];
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
