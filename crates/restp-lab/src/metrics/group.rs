//! Flows that are looked at together.

use super::{FlowResult, jain};
use crate::scenario::GroupPlan;
use serde::Serialize;

/// A named group of flows in one run. What is absent of one of them is absent.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GroupResult {
    /// Its name.
    pub name: String,
    /// Their goodput together.
    pub goodput_bps: Option<f64>,
    /// What they get together while all flows of the run are open.
    pub shared_bps: Option<f64>,
    /// That as a share of what all flows of the run get.
    pub share: Option<f64>,
    /// Jain's index over what each gets while all are open, with two flows or more.
    pub fairness: Option<f64>,
    /// From the start of each until it was complete, the longest.
    pub completion_s: Option<f64>,
    /// Application bytes read.
    pub delivered_bytes: u64,
    /// Datagrams that the senders sent.
    pub sent_packets: u64,
    /// Segments that they sent again.
    pub retransmitted_packets: u64,
    /// Segments that they took for lost.
    pub lost_packets: u64,
    /// Retransmission timers of theirs that ran out.
    pub timeouts: u64,
}

impl GroupResult {
    /// The account of `plan`, among all flows of the run.
    pub fn new(plan: &GroupPlan, all: &[FlowResult]) -> GroupResult {
        let flows: Vec<&FlowResult> = plan.flows.iter().map(|index| &all[*index]).collect();
        let rate =
            |of: fn(&FlowResult) -> Option<f64>| flows.iter().map(|flow| of(flow)).sum::<Option<f64>>();
        let count = |of: fn(&FlowResult) -> u64| flows.iter().map(|flow| of(flow)).sum();
        let shares: Option<Vec<f64>> = flows.iter().map(|flow| flow.shared_bps).collect();
        let whole: f64 = all.iter().filter_map(|flow| flow.shared_bps).sum();
        let shared = rate(|flow| flow.shared_bps);
        let times: Option<Vec<f64>> = flows.iter().map(|flow| flow.completion_s).collect();
        GroupResult {
            name: plan.name.clone(),
            goodput_bps: rate(|flow| flow.goodput_bps),
            shared_bps: shared,
            share: shared.filter(|_| whole > 0.0).map(|shared| shared / whole),
            fairness: shares.and_then(|shares| jain(&shares)),
            completion_s: times.and_then(|times| times.into_iter().reduce(f64::max)),
            delivered_bytes: count(|flow| flow.delivered_bytes),
            sent_packets: count(|flow| flow.sent_packets),
            retransmitted_packets: count(|flow| flow.retransmitted_packets),
            lost_packets: count(|flow| flow.lost_packets),
            timeouts: count(|flow| flow.timeouts),
        }
    }
}
