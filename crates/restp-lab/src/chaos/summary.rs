//! How much a number of runs has covered: a law that was never tried has not been held.

use super::trace::{Trace, What};
use super::{Case, swarm};
use restp_base::flow::CloseReason;
use serde::Serialize;
use std::collections::BTreeMap;

/// What runs had in them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// Runs.
    pub runs: u64,
    /// Of these, runs with both ends under the seal.
    pub sealed: u64,
    /// Runs that broke a law.
    pub violations: u64,
    /// Packets sent.
    pub packets: u64,
    /// Packets the network lost.
    pub dropped: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Ends of conversations.
    pub ends: u64,
    /// Of these, ends that finished; for all others a fault was to blame.
    pub finished: u64,
    /// Runs with each choice of each service.
    pub choices: BTreeMap<&'static str, BTreeMap<String, u64>>,
}

impl Summary {
    /// One run.
    pub fn of(case: &Case, trace: &Trace) -> Self {
        let mut summary = Summary {
            runs: 1,
            sealed: u64::from(case.seal.is_some()),
            ends: trace.ends.len() as u64,
            ..Summary::default()
        };
        for record in &trace.records {
            match &record.what {
                What::Sent { .. } => summary.packets += 1,
                What::Dropped { .. } => summary.dropped += 1,
                What::Read { data, .. } => summary.read_bytes += data.len() as u64,
                What::Closed {
                    reason: CloseReason::Finished,
                    ..
                } => summary.finished += 1,
                _ => {}
            }
        }
        if let Ok(client) = swarm::composition(&case.client) {
            for (key, value, _) in client.services() {
                summary.choices.entry(key).or_default().insert(value, 1);
            }
        }
        summary
    }

    /// Adds other runs.
    pub fn add(&mut self, other: &Summary) {
        self.runs += other.runs;
        self.sealed += other.sealed;
        self.violations += other.violations;
        self.packets += other.packets;
        self.dropped += other.dropped;
        self.read_bytes += other.read_bytes;
        self.ends += other.ends;
        self.finished += other.finished;
        for (key, values) in &other.choices {
            let all = self.choices.entry(key).or_default();
            for (value, runs) in values {
                *all.entry(value.clone()).or_default() += runs;
            }
        }
    }
}
