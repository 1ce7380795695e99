//! Which path takes the next segment (ResTP §3.5.10)? The connection asks once per new segment, with every path that
//! data may use; the answer names some of them, or none: wait.

mod blest;
mod choice;
mod custom;
mod ecf;
mod fastest_rtt;
mod guard;
mod in_order;
mod lead;
mod path_assignments;
mod redundant;
mod round_robin;
mod smos;
mod weighted;

pub use blest::Blest;
pub use choice::{Scheduler, Scheduling};
pub use custom::CustomScheduling;
pub use ecf::Ecf;
pub use fastest_rtt::FastestRtt;
pub use guard::Guard;
pub use in_order::InOrder;
pub use lead::lead_segments;
pub use path_assignments::{Copy, Fate, PathAssignment, PathAssignments};
pub use redundant::Redundant;
pub use round_robin::RoundRobin;
pub use smos::Smos;
pub use weighted::Weighted;

use crate::path_management::PathMode;
use restp_base::time::{Duration, Time};
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
    /// Bytes that it carries in a round trip: its congestion window, or what its controller knows that it delivers, where that is less.
    pub carries_bytes: u64,
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
    /// Segments within the window that the peer has not acknowledged.
    pub outstanding_segments: u64,
    /// Bytes it has acknowledged in order, so far.
    pub acknowledged_bytes: u64,
    /// Times the window was found shut while data waited, so far.
    pub stalls: u64,
    /// The moment.
    pub now: Time,
}

/// Ordinals of the paths that take the segment; empty means wait. More than one only where copies are wanted.
pub type Placement = SmallVec<[usize; 4]>;

/// A scheduler.
pub trait Schedule: fmt::Debug {
    /// Chooses among `paths`, which come in the order of their ordinals. A path without room is never a good answer.
    fn choose(&mut self, paths: &[Candidate], queue: &Queue) -> Placement;
}

/// Shares of the paths, in the order in which they were added; 1 for those not named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Weights(pub [u8; 15]);

impl Default for Weights {
    fn default() -> Self {
        Weights::DEFAULT
    }
}

/// As they are written: `3:1`.
impl fmt::Display for Weights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = self
            .0
            .iter()
            .rposition(|weight| *weight != 1)
            .map_or(2, |last| (last + 1).max(2));
        let written: Vec<_> = self.0[..named].iter().map(u8::to_string).collect();
        f.write_str(&written.join(":"))
    }
}

impl Weights {
    /// The same share for every path.
    pub const DEFAULT: Weights = Weights([1; 15]);

    /// Reads what is displayed: 1 to 15 numbers from 1 to 255 with colons between them.
    pub fn parse(text: &str) -> Option<Self> {
        let mut weights = Weights::default();
        for (at, part) in text.split(':').enumerate() {
            let weight: u8 = part.trim().parse().ok()?;
            *weights.0.get_mut(at)? = Some(weight).filter(|weight| *weight > 0)?;
        }
        Some(weights)
    }

    /// The share of the path with this ordinal, from 0.
    pub fn of(&self, path: usize) -> u32 {
        self.0.get(path).map_or(1, |weight| u32::from(*weight))
    }
}

/// A path for tests.
#[cfg(test)]
pub(crate) fn candidate(path: usize, smoothed_rtt: u64, has_room: bool) -> Candidate {
    let rtt = Duration::from_millis(smoothed_rtt);
    Candidate {
        path,
        has_room,
        smoothed_rtt: rtt,
        min_rtt: rtt,
        rtt_variation: Duration::ZERO,
        carries_bytes: 14_000,
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
    outstanding_segments: 0,
    acknowledged_bytes: 0,
    stalls: 0,
    now: Time::ZERO,
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip_whatever_the_weights() {
        for (name, scheduling) in Scheduling::ALL {
            assert_eq!(
                (Scheduling::from_name(name), scheduling.name()),
                (Some(scheduling.clone()), name)
            );
        }
        assert_eq!(Scheduling::Weighted(Weights([3; 15])).name(), "weighted");
        for text in ["3:1", "1:1", "10:1:5"] {
            assert_eq!(Weights::parse(text).unwrap().to_string(), text);
        }
        assert_eq!(Weights::parse("3").unwrap().of(0), 3);
        for text in ["", "0:1", "256:1", "a:b", "1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1"] {
            assert_eq!(Weights::parse(text), None, "{text}");
        }
    }

    /// Whatever the paths look like, only those with room are named, and each once.
    #[test]
    fn a_path_without_room_is_never_chosen() {
        let mut chance = restp_base::random::Stream::named(1, "paths");
        for (name, scheduling) in Scheduling::ALL {
            let mut scheduler = scheduling.build();
            let mut queue = BULK;
            for _ in 0..2000 {
                let paths: Vec<_> = (0..chance.below(5) as usize)
                    .map(|path| Candidate {
                        carries_bytes: chance.below(1 << 20),
                        in_flight_bytes: chance.below(1 << 20),
                        weight: chance.below(4) as u32,
                        ..candidate(path, chance.below(300), chance.chance(0.5))
                    })
                    .collect();
                queue.window_segments = chance.below(1000);
                queue.stalls += chance.below(2);
                queue.acknowledged_bytes += chance.below(100_000);
                queue.now += Duration::from_millis(chance.below(50));
                let chosen = scheduler.choose(&paths, &queue);
                let mut named: Vec<_> = chosen.to_vec();
                named.dedup();
                assert_eq!(named.len(), chosen.len(), "{name}");
                assert!(chosen.iter().all(|path| paths[*path].has_room), "{name}");
            }
        }
    }
}
