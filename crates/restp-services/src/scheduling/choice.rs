//! The table of schedulers, and all that follows from it: the choice, the scheduler, names.

use super::custom::Checked;
use super::*;

/// Makes of each row a variant of [`Scheduling`] and one of [`Scheduler`], and every match over them.
macro_rules! schedulers {
    ($($(#[$doc:meta])* $variant:ident$(($params:ident))? $name:literal;)+) => {
        /// Which path a segment takes, in spreading mode (ResTP §3.5.10).
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum Scheduling {
            $($(#[$doc])* $variant$(($params))?,)+
            /// A scheduler from outside this crate.
            Custom(CustomScheduling),
        }

        /// The scheduler an association owns.
        #[derive(Debug)]
        pub enum Scheduler {
            $($(#[$doc])* $variant($variant),)+
            /// Where nothing is spread: the paths in their order.
            InOrder(InOrder),
            /// A scheduler from outside this crate.
            Custom(Checked),
        }

        impl Scheduling {
            /// Every scheduler of this crate with its name in compositions.
            pub const ALL: [(&'static str, Scheduling); [$($name),+].len()] =
                [$(($name, Scheduling::$variant$(($params::DEFAULT))?)),+];

            /// Its name in compositions.
            pub fn name(&self) -> &'static str {
                match self {
                    $(Scheduling::$variant { .. } => $name,)+
                    Scheduling::Custom(custom) => custom.name(),
                }
            }

            /// The scheduler a composition names.
            pub fn build(&self) -> Scheduler {
                match self {
                    $(Scheduling::$variant { .. } => Scheduler::$variant($variant::default()),)+
                    Scheduling::Custom(custom) => Scheduler::Custom(custom.build()),
                }
            }
        }

        impl Schedule for Scheduler {
            fn choose(&mut self, paths: &[Candidate], queue: &Queue) -> Placement {
                match self {
                    $(Scheduler::$variant(scheduler) => scheduler.choose(paths, queue),)+
                    Scheduler::InOrder(scheduler) => scheduler.choose(paths, queue),
                    Scheduler::Custom(scheduler) => scheduler.choose(paths, queue),
                }
            }
        }
    };
}

schedulers! {
    /// The next path with room.
    RoundRobin         "round-robin";
    /// The path with the least smoothed round-trip time and room.
    FastestRtt         "fastest-rtt";
    /// Shares by configured weights.
    Weighted(Weights)  "weighted";
    /// A copy on every path.
    Redundant          "redundant";
    /// Slower paths only while the shared window lasts (Ferlin and others 2016).
    Blest              "blest";
    /// Slower paths only when that is sooner (Lim and others 2017).
    Ecf                "ecf";
    /// As `Blest`, and the best path alone when that is better.
    Guard              "guard";
}

impl Scheduling {
    /// The scheduler of this crate called `name`.
    pub fn from_name(name: &str) -> Option<Self> {
        let named = Self::ALL.into_iter().find(|(other, _)| *other == name);
        named.map(|(_, scheduling)| scheduling)
    }

    /// The share of a path, for weighted scheduling.
    pub fn weight(&self, path: usize) -> u32 {
        match self {
            Scheduling::Weighted(weights) => weights.of(path),
            _ => 1,
        }
    }
}

impl Scheduler {
    /// The scheduler of a path mode: the one chosen for spreading, the order of the paths otherwise.
    pub fn new(mode: PathMode, chosen: Option<&Scheduling>) -> Self {
        match (mode, chosen) {
            (PathMode::Spreading, Some(scheduling)) => scheduling.build(),
            (PathMode::Overflow | PathMode::Spreading, _) => Scheduler::InOrder(InOrder { overflow: true }),
            (PathMode::Single | PathMode::HotStandby, _) => Scheduler::InOrder(InOrder { overflow: false }),
        }
    }
}
