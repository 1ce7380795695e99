//! Chaos: random compositions in random networks with random faults, and laws that hold whatever happens. A run
//! is drawn from a seed, played in virtual time, and judged from its trace alone. What breaks a law is made as
//! small as possible and printed as a case that can be kept.
//!
//! ```text
//! seed ──► case ──► stage (two hosts, paths, faults) ──► trace ──► laws ──► shrink ──► case in TOML
//! ```
//!
//! | Module | Holds |
//! |---|---|
//! | `case` | everything a run depends on, as data |
//! | `swarm`, `network`, `paths`, `traffic`, `faults`, `changes` | the parts of a case, and how each is drawn |
//! | `seal`, `adversary` | the seal under both ends, and who attacks it |
//! | `stage`, `wire`, `host`, `application`, `guests`, `conversations` | the run |
//! | `seat`, `tap`, `watch`, `ledger` | a machine, what passes between its engine and its seal, and who said it |
//! | `trace` | what a run leaves behind |
//! | [`laws`], `liveness` | what must hold |
//! | `shrink` | the smallest case that breaks the same law |

mod adversary;
mod application;
mod case;
mod changes;
mod conversations;
mod faults;
mod guests;
mod host;
pub mod laws;
mod ledger;
mod liveness;
mod network;
mod paths;
mod seal;
mod seat;
mod shrink;
mod stage;
mod summary;
mod swarm;
mod tap;
mod trace;
mod traffic;
mod watch;
mod wire;

pub(crate) use adversary::LIE;
pub use case::{Case, CaseError};
pub use conversations::Owner;
pub use faults::Fault;
pub use laws::{LAWS, Law, Violation};
pub use ledger::Party;
pub use network::Hop;
pub use paths::Further;
pub use seal::{Attack, Seal};
pub use seat::Maker;
pub use summary::Summary;
pub use trace::{End, Ending, Mark, Record, Trace, What, Work};
pub use traffic::Traffic;

use crate::one_stream::OneStream;
use crate::run::in_order;
use restp_base::machine::Machine;
use restp_base::random::Stream;
use restp_proto::{Endpoint, EndpointConfig};
use serde::{Deserialize, Serialize};
use std::any::Any;
use std::fmt;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// One of the two ends of the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    /// Opens conversations.
    Client,
    /// Accepts them.
    Server,
}

impl Side {
    /// Both, in the order of their indices.
    pub const BOTH: [Side; 2] = [Side::Client, Side::Server];

    /// 0 or 1.
    pub const fn index(self) -> usize {
        self as usize
    }

    /// The one across.
    pub const fn other(self) -> Side {
        match self {
            Side::Client => Side::Server,
            Side::Server => Side::Client,
        }
    }
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Side::Client => "client",
            Side::Server => "server",
        })
    }
}

/// What became of one case.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The case.
    pub case: Case,
    /// The law it broke.
    pub violation: Option<Violation>,
    /// What it contributes to the summary.
    pub summary: Summary,
}

/// Plays the cases of `runs` seeds from `first` on, on all processors. `each` gets the outcomes in the order of the
/// seeds and may stop the rest.
///
/// # Errors
/// When threads cannot be started.
pub fn run(
    first: u64,
    runs: u64,
    mut each: impl FnMut(Outcome) -> ControlFlow<()>,
) -> Result<(), crate::RunError> {
    let outcome = |index: usize| judge(&Case::draw(first.saturating_add(index as u64)));
    in_order(None, runs as usize, outcome, |outcome| Ok(each(outcome))).map(drop)
}

/// Plays one case and holds every law against it.
pub fn judge(case: &Case) -> Outcome {
    judge_with(case, &endpoint)
}

/// As [`judge`], with machines of one's own where both ends are plain.
pub fn judge_with(case: &Case, make: Maker<'_>) -> Outcome {
    let played = catch_unwind(AssertUnwindSafe(|| stage::play(case, make)));
    let (violation, summary) = match played {
        Ok(Ok(trace)) => {
            let verdict = catch_unwind(AssertUnwindSafe(|| laws::judge(case, &trace)));
            (
                verdict.unwrap_or_else(|panic| Some(panicked(&*panic))),
                Summary::of(case, &trace),
            )
        }
        Ok(Err(error)) => (Some(Violation::whole("runs", error)), Summary::default()),
        Err(panic) => (Some(panicked(&*panic)), Summary::default()),
    };
    Outcome {
        case: case.clone(),
        violation,
        summary,
    }
}

/// Streams beside the one that applications use, where flows carry some.
const COMPANIONS: u64 = 3;

/// The smallest case found that breaks the same law as `case`, with its violation. `None`: it breaks none.
pub fn shrink(case: &Case) -> Option<(Case, Violation)> {
    shrink::shrink(case, &endpoint)
}

/// A number below `bound`, small ones more often than large ones.
fn skewed(draw: &mut Stream, bound: u64) -> u64 {
    let below = 1 + draw.below(bound);
    draw.below(below)
}

fn endpoint(config: &EndpointConfig) -> Box<dyn Machine> {
    Box::new(OneStream::new(Endpoint::new(config.clone()), COMPANIONS))
}

fn panicked(panic: &(dyn Any + Send)) -> Violation {
    let message = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied());
    Violation::whole("panic", message.unwrap_or("the machine panicked"))
}
