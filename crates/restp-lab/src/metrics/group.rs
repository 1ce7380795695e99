//! Flows that are looked at together.

use super::{FlowResult, jain};
use crate::scenario::{Each, GroupPlan};
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
    /// What one of them (or one of their paths, where each of those counts) gets in the mean, per what one of the other flows (or
    /// paths) gets; absent where there are no others.
    pub advantage: Option<f64>,
    /// What the one that gets least of them gets, per what they get in the mean.
    pub least_share: Option<f64>,
    /// Application bits that their senders sent per second, retransmissions included.
    pub throughput_bps: Option<f64>,
    /// All transport bits of both ends per second.
    pub load_bps: Option<f64>,
    /// Goodput per load: what of the bits on the network was of use.
    pub useful_share: Option<f64>,
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
        let ones = |flows: &mut dyn Iterator<Item = &FlowResult>| {
            let each = flows.map(|flow| shares_of(flow, plan.each));
            let each: Option<Vec<Vec<f64>>> = each.collect();
            each.map(|each| each.concat())
        };
        let shares = ones(&mut flows.iter().copied());
        let whole: f64 = all.iter().filter_map(|flow| flow.shared_bps).sum();
        let shared = rate(|flow| flow.shared_bps);
        let mean = |flows: &[f64]| flows.iter().sum::<f64>() / flows.len() as f64;
        let others = (0..all.len()).filter(|index| !plan.flows.contains(index));
        let others =
            ones(&mut others.map(|index| &all[index])).filter(|others| others.iter().any(|rate| *rate > 0.0));
        let least = |shares: &Vec<f64>| {
            let least = shares.iter().copied().reduce(f64::min)?;
            Some(least / mean(shares)).filter(|share| share.is_finite())
        };
        let [goodput, load] = [rate(|flow| flow.goodput_bps), rate(|flow| flow.load_bps)];
        let times: Option<Vec<f64>> = flows.iter().map(|flow| flow.completion_s).collect();
        GroupResult {
            name: plan.name.clone(),
            goodput_bps: goodput,
            shared_bps: shared,
            share: shared.filter(|_| whole > 0.0).map(|shared| shared / whole),
            advantage: shares
                .as_deref()
                .zip(others.as_deref())
                .map(|(ours, theirs)| mean(ours) / mean(theirs)),
            least_share: shares.as_ref().and_then(least),
            throughput_bps: rate(|flow| flow.throughput_bps),
            load_bps: load,
            useful_share: useful_share(goodput, load),
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

/// What a flow gets while all are open, or each of its paths does: divided as it sends over them.
fn shares_of(flow: &FlowResult, each: Each) -> Option<Vec<f64>> {
    let shared = flow.shared_bps?;
    let sent: u64 = flow.paths.iter().map(|path| path.bytes_sent).sum();
    Some(match each {
        Each::Path if sent > 0 => {
            let paths = flow.paths.iter();
            paths
                .map(|path| shared * path.bytes_sent as f64 / sent as f64)
                .collect()
        }
        _ => vec![shared],
    })
}

/// Goodput per load (CMT eq. 4.4).
fn useful_share(goodput: Option<f64>, load: Option<f64>) -> Option<f64> {
    let load = load.filter(|load| *load > 0.0)?;
    Some(goodput? / load)
}
