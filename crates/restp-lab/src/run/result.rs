//! What one run measured, and why a run could not go on.

use crate::metrics::{FlowResult, GroupResult, HostResult, LinkResult};
use crate::scenario::Coordinates;
use crate::traffic::TrafficError;
use restp_base::time::Time;
use restp_sim::NetworkError;
use serde::Serialize;
use thiserror::Error;

/// More events than any network of this size has at one instant.
pub(super) const STUCK: u64 = 10_000_000;

/// What one run measured.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunResult {
    /// The scenario's id.
    pub scenario: String,
    /// Where the point lies in the sweep.
    pub point: Coordinates,
    /// Seed of every random stream of the run.
    pub seed: u64,
    /// Virtual time that passed.
    pub sim_seconds: f64,
    /// Wall time that passed, if the caller lent a stopwatch.
    pub wall_seconds: Option<f64>,
    /// Events of the network: packets at the end of a hop, and timers.
    pub events: u64,
    /// Packets handed to hosts.
    pub packets: u64,
    /// Each flow, in the order written.
    pub flows: Vec<FlowResult>,
    /// Each group of flows, in the order written.
    pub groups: Vec<GroupResult>,
    /// Each host that flows share, or that lies on their way, in the order written.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<HostResult>,
    /// Each link, in the order written.
    pub links: Vec<LinkResult>,
}

/// Why a run could not go on.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum RunError {
    /// The network was refused.
    #[error("{0}")]
    Network(#[from] NetworkError),
    /// A flow's traffic cannot run over its transport.
    #[error("flow \"{flow}\" (seed {seed}): {error}")]
    Traffic {
        /// The flow.
        flow: String,
        /// The run.
        seed: u64,
        /// What happened.
        error: TrafficError,
    },
    /// The same instant never ended.
    #[error(
        "seed {seed}: {STUCK} events happened at {at:?} without time passing; a protocol asks to be woken in the past"
    )]
    Stuck {
        /// The run.
        seed: u64,
        /// When.
        at: Time,
    },
    /// A trace that memory might not hold.
    #[error(
        "seed {seed}: the trace has {most} rows at {:.3} of {:.3} s; shorten duration, look less often (every), or allow more rows",
        .at.as_secs_f64(), .end.as_secs_f64()
    )]
    TraceTooLong {
        /// The run.
        seed: u64,
        /// The limit that was asked for.
        most: usize,
        /// How far it came.
        at: Time,
        /// How far it should have gone.
        end: Time,
    },
    /// More runs than memory holds.
    #[error(
        "{total} runs in all are too many; at most {most} are possible, so ask for fewer points or seeds"
    )]
    TooMany {
        /// Points times seeds.
        total: u64,
        /// The limit.
        most: u64,
    },
    /// Threads could not be started.
    #[error("threads could not be started: {0}")]
    Threads(String),
}
