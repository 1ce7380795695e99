//! Scenario files: from the text as written to validated points.
//!
//! ```text
//! text ─► document (values with their places) ─► sweep: one document per point ─► raw ─► plan
//! ```

mod change;
mod document;
mod error;
mod flow;
mod host;
mod link;
mod map;
mod measure;
mod medium;
mod names;
mod path;
mod plan;
mod profiles;
mod raw;
mod sweep;
#[cfg(test)]
mod tests;
mod traffic;
mod transport;

pub use change::ChangePlan;
pub(crate) use document::Source;
pub use error::{Place, ScenarioError};
pub use flow::FlowPlan;
pub use host::{HostPlan, HostRole};
pub use measure::GroupPlan;
pub use path::PathPlan;
pub(crate) use path::check_count;
pub use plan::Plan;
pub use raw::Each;
pub(crate) use restp_sim::config::Fault;
pub(crate) use sweep::{Axes, points};
pub use sweep::{Coordinates, Point};
