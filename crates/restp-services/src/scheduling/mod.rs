//! Which path takes the next segment (ResTP §3.5.10)? The connection asks once per new segment, with every path that
//! data may use; the answer names some of them, or none: wait.

mod blest;
mod ecf;
mod fastest_rtt;
mod guard;
mod in_order;
mod lead;
mod places;
mod redundant;
mod round_robin;
mod weighted;

pub use blest::Blest;
pub use ecf::Ecf;
pub use fastest_rtt::FastestRtt;
pub use guard::Guard;
pub use in_order::InOrder;
pub use lead::lead_segments;
pub use places::{Copy, Fate, Place, Places};
pub use redundant::Redundant;
pub use round_robin::RoundRobin;
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

/// Which path a segment takes, in spreading mode (ResTP §3.5.10).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheduling {
    /// The next path with room.
    RoundRobin,
    /// The path with the least smoothed round-trip time and room.
    FastestRtt,
    /// Shares by configured weights.
    Weighted(Weights),
    /// A copy on every path.
    Redundant,
    /// Slower paths only while the shared window lasts (Ferlin and others 2016).
    Blest,
    /// Slower paths only when that is sooner (Lim and others 2017).
    Ecf,
    /// As `Blest`, and the best path alone when that is better.
    Guard,
}

/// Shares of the paths, in the order in which they were added; 1 for those not named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Weights(pub [u8; 15]);

impl Default for Weights {
    fn default() -> Self {
        Weights([1; 15])
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

impl Scheduling {
    /// Every scheduler with its name in compositions.
    pub const ALL: [(&'static str, Scheduling); 7] = [
        ("round-robin", Scheduling::RoundRobin),
        ("fastest-rtt", Scheduling::FastestRtt),
        ("weighted", Scheduling::Weighted(Weights([1; 15]))),
        ("redundant", Scheduling::Redundant),
        ("blest", Scheduling::Blest),
        ("ecf", Scheduling::Ecf),
        ("guard", Scheduling::Guard),
    ];

    /// The scheduler called `name`.
    pub fn from_name(name: &str) -> Option<Self> {
        let named = |(other, scheduling): &(&str, Scheduling)| (*other == name).then_some(*scheduling);
        Self::ALL.iter().find_map(named)
    }

    /// Its name in compositions.
    pub fn name(self) -> &'static str {
        let same =
            |(_, other): &&(&str, Scheduling)| std::mem::discriminant(other) == std::mem::discriminant(&self);
        Self::ALL.iter().find(same).map_or("", |(name, _)| *name)
    }

    /// The share of a path, for weighted scheduling.
    pub fn weight(self, path: usize) -> u32 {
        match self {
            Scheduling::Weighted(weights) => weights.of(path),
            _ => 1,
        }
    }

    /// The scheduler a composition names.
    pub fn build(self) -> Scheduler {
        match self {
            Scheduling::RoundRobin => Scheduler::RoundRobin(RoundRobin::default()),
            Scheduling::FastestRtt => Scheduler::FastestRtt(FastestRtt),
            Scheduling::Weighted(_) => Scheduler::Weighted(Weighted::default()),
            Scheduling::Redundant => Scheduler::Redundant(Redundant),
            Scheduling::Blest => Scheduler::Blest(Blest::default()),
            Scheduling::Ecf => Scheduler::Ecf(Ecf::default()),
            Scheduling::Guard => Scheduler::Guard(Guard::default()),
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
    /// See [`Weighted`].
    Weighted(Weighted),
    /// See [`Redundant`].
    Redundant(Redundant),
    /// See [`Blest`].
    Blest(Blest),
    /// See [`Ecf`].
    Ecf(Ecf),
    /// See [`Guard`].
    Guard(Guard),
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
            Scheduler::Weighted(scheduler) => scheduler.choose(paths, queue),
            Scheduler::Redundant(scheduler) => scheduler.choose(paths, queue),
            Scheduler::Blest(scheduler) => scheduler.choose(paths, queue),
            Scheduler::Ecf(scheduler) => scheduler.choose(paths, queue),
            Scheduler::Guard(scheduler) => scheduler.choose(paths, queue),
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
                (Some(scheduling), name)
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
                        window_bytes: chance.below(1 << 20),
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
