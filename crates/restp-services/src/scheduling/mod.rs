//! Which path takes the next segment (ResTP §3.5.10)? The connection asks once per new segment, with every path that
//! data may use; the answer names some of them, or none: wait.

mod fastest_rtt;
mod in_order;
mod round_robin;

pub use fastest_rtt::FastestRtt;
pub use in_order::InOrder;
pub use round_robin::RoundRobin;

use crate::path_management::PathMode;
use restp_base::time::Duration;
use smallvec::SmallVec;
use std::fmt;

/// What a scheduler sees of one path that data may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Its ordinal in the association, from 0.
    pub path: usize,
    /// Window, pacing and repairs leave room for the segment now.
    pub has_room: bool,
    /// Smoothed round-trip time; that of the handshake before there is another (OP-55).
    pub smoothed_rtt: Duration,
    /// Smallest round-trip time.
    pub min_rtt: Duration,
    /// Mean deviation of the round-trip time.
    pub rtt_variation: Duration,
    /// Congestion window in bytes.
    pub window_bytes: u64,
    /// Bytes in flight.
    pub in_flight_bytes: u64,
    /// Share by configuration, for weighted schedulers; 1 where nothing was configured.
    pub weight: u32,
}

/// What a scheduler sees of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queue {
    /// Bytes of the segment to place.
    pub segment_bytes: u64,
    /// Bytes that wait to be placed, this segment included.
    pub queued_bytes: u64,
    /// Segments the peer's shared window still takes (OP-55).
    pub window_segments: u64,
}

/// Ordinals of the paths that take the segment; empty means wait. More than one only where copies are wanted.
pub type Placement = SmallVec<[usize; 4]>;

/// A scheduler.
pub trait Schedule: fmt::Debug {
    /// Chooses among `paths`, which come in the order of their ordinals. A path without room is never a good answer.
    fn choose(&mut self, paths: &[Candidate], queue: &Queue) -> Placement;
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

    /// The scheduler a composition names.
    pub fn build(self) -> Scheduler {
        match self {
            Scheduling::RoundRobin => Scheduler::RoundRobin(RoundRobin::default()),
            Scheduling::FastestRtt => Scheduler::FastestRtt(FastestRtt),
        }
    }
}

/// The scheduler an association owns.
#[derive(Debug)]
pub enum Scheduler {
    /// See [`RoundRobin`].
    RoundRobin(RoundRobin),
    /// See [`FastestRtt`].
    FastestRtt(FastestRtt),
    /// See [`InOrder`].
    InOrder(InOrder),
    /// An algorithm from outside this crate.
    Custom(Box<dyn Schedule + Send>),
}

impl Scheduler {
    /// The scheduler of a path mode: the one chosen for spreading, the order of the paths otherwise.
    pub fn new(mode: PathMode, chosen: Option<Scheduling>) -> Self {
        match (mode, chosen) {
            (PathMode::Spreading, Some(scheduling)) => scheduling.build(),
            (PathMode::Overflow | PathMode::Spreading, _) => Scheduler::InOrder(InOrder { overflow: true }),
            (PathMode::Single | PathMode::HotStandby, _) => Scheduler::InOrder(InOrder { overflow: false }),
        }
    }
}

impl Schedule for Scheduler {
    fn choose(&mut self, paths: &[Candidate], queue: &Queue) -> Placement {
        match self {
            Scheduler::RoundRobin(scheduler) => scheduler.choose(paths, queue),
            Scheduler::FastestRtt(scheduler) => scheduler.choose(paths, queue),
            Scheduler::InOrder(scheduler) => scheduler.choose(paths, queue),
            Scheduler::Custom(scheduler) => scheduler.choose(paths, queue),
        }
    }
}

/// A path for tests.
#[cfg(test)]
fn candidate(path: usize, smoothed_rtt: u64, has_room: bool) -> Candidate {
    let rtt = Duration::from_millis(smoothed_rtt);
    Candidate {
        path,
        has_room,
        smoothed_rtt: rtt,
        min_rtt: rtt,
        rtt_variation: Duration::ZERO,
        window_bytes: 14_000,
        in_flight_bytes: 0,
        weight: 1,
    }
}

/// A queue for tests.
#[cfg(test)]
const BULK: Queue = Queue {
    segment_bytes: 1400,
    queued_bytes: 1_400_000,
    window_segments: 8192,
};
