//! What a run is measured by. Names and order of the fields are those of the results on the command line.

mod changes;
mod counts;
mod delay;
mod fairness;
mod flow;
mod group;
mod host;
mod interval;
mod link;
mod loss_causes;
mod outage;
mod repair;
mod sawtooth;
mod window;

pub use changes::ChangeResult;
pub use counts::FlowCounts;
pub use delay::{mean_ms, percentile_ms};
pub use fairness::jain;
pub use flow::{FlowResult, Measured, PathResult};
pub use group::GroupResult;
pub use host::{HostCounts, HostResult};
pub use interval::Interval;
pub use link::{LinkResult, links};
pub use loss_causes::{CauseLedger, Inferred, LossCauses};
pub use outage::{OutageResult, TimeoutResult, Watch};
pub use repair::{RepairMeter, RepairSum};
pub use sawtooth::{Sawtooth, WindowResult};
pub use window::{WindowMeter, WindowSum};
