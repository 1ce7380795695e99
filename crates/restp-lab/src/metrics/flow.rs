//! One flow in one run, put together from both applications and both protocol ends.

use super::{
    ChangeResult, FlowCounts, LossCauses, OutageResult, Sawtooth, TimeoutResult, Watch, WindowResult,
    mean_ms, percentile_ms,
};
use crate::scenario::{FlowPlan, PathPlan};
use crate::traffic::{Attempt, Receiver, Sender, Traffic};
use restp_base::flow::{CloseReason, FlowStats, PathStats};
use restp_base::machine::PathAddress;
use restp_base::observe::Changed;
use restp_base::time::Time;
use serde::Serialize;
use std::ops::Range;

/// What is reported of a flow; absent where a metric has no meaning for its traffic or transport.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FlowResult {
    /// Its name.
    pub name: String,
    /// Its transport, as written.
    pub transport: String,
    /// Bits delivered to the application per second, from the flow's start to its completion or the run's end.
    pub goodput_bps: Option<f64>,
    /// Bits delivered to the application per second while all flows of the run are open, until its end.
    pub shared_bps: Option<f64>,
    /// Application bits sent per second, retransmissions included.
    pub throughput_bps: Option<f64>,
    /// All transport bits sent per second, both directions, headers included.
    pub load_bps: Option<f64>,
    /// From the flow's start until the receiver had the whole file.
    pub completion_s: Option<f64>,
    /// From the flow's start until the receiver had the first byte.
    pub first_byte_s: Option<f64>,
    /// From the flow's start until it was established; absent where nothing is exchanged.
    pub handshake_s: Option<f64>,
    /// Application bytes read by the receiver; of web traffic, by the browser.
    pub delivered_bytes: u64,
    /// Bytes read that are not those written at their place: something was lost, repeated or changed. Of bulk and file.
    pub wrong_bytes: Option<u64>,
    /// Messages handed to the transport.
    pub sent_messages: Option<u64>,
    /// Messages read by the receiver, copies included.
    pub delivered_messages: Option<u64>,
    /// Messages that took longer than the traffic's `late_after`.
    pub late_messages: Option<u64>,
    /// Messages missing below the highest number read.
    pub lost_messages: Option<u64>,
    /// Lost or late.
    pub missed_messages: Option<u64>,
    /// Share of the messages sent that were read in time, a copy counting once.
    pub on_time_share: Option<f64>,
    /// Mean of due to read.
    pub latency_mean_ms: Option<f64>,
    /// 99th percentile of due to read.
    pub latency_p99_ms: Option<f64>,
    /// Pages that were loaded.
    pub pages: Option<u64>,
    /// From the wish for the first page until its last object was read.
    pub plt_first_s: Option<f64>,
    /// Mean of the same over all pages loaded.
    pub plt_mean_s: Option<f64>,
    /// Median of the same.
    pub plt_median_s: Option<f64>,
    /// Datagrams sent by the flow's sender.
    pub sent_packets: u64,
    /// Segments it sent again.
    pub retransmitted_packets: u64,
    /// Application bytes in them, as a share of those delivered.
    pub repeat_share: Option<f64>,
    /// Bytes of SACK, NAK and SNACK options that the receiver sent, where the transport counts them.
    pub report_bytes: Option<u64>,
    /// The same per byte delivered.
    pub report_share: Option<f64>,
    /// Segments the sender took for lost.
    pub lost_packets: u64,
    /// Those of them that its retransmission timer declared lost.
    pub timed_out_packets: u64,
    /// Why, truly and as the sender took it; absent where the transport does not say which segments it takes for lost.
    pub loss_causes: Option<LossCauses>,
    /// From when a segment left that the network lost until a copy of it arrived, the mean; absent where a transport does not number what it
    /// sends again as before.
    pub repair_ms: Option<f64>,
    /// Segments that arrived though they had arrived before.
    pub duplicate_packets: u64,
    /// Packets of forward error correction the sender sent.
    pub encoded_packets: u64,
    /// Segments the receiver rebuilt by forward error correction.
    pub repaired_packets: u64,
    /// Retransmission timers of the sender that ran out.
    pub timeouts: u64,
    /// Congestion windows of all its paths together, in the mean over time; absent where nothing is limited by one.
    pub window_mean_bytes: Option<f64>,
    /// The sender's flow ended in another way than by finishing.
    pub aborted: bool,
    /// Bits read per second in each bin of the run, where the flow has bins.
    pub bins_bps: Vec<f64>,
    /// Retransmission timers of the sender that ran out, where its path has outages.
    pub rto_events: Vec<TimeoutResult>,
    /// Such timers that belong to no outage.
    pub stray_timeouts: Option<u64>,
    /// How the flow lived through each outage of its path.
    pub outages: Vec<OutageResult>,
    /// How the services of both ends changed, in the order of time.
    pub changes: Vec<ChangeResult>,
    /// What its window did, where the flow asks for it.
    pub window: Option<WindowResult>,
    /// What each path carried.
    pub paths: Vec<PathResult>,
}

/// One path of a flow.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PathResult {
    /// The sender's node.
    pub local: String,
    /// The receiver's node.
    pub remote: String,
    /// Links between them, in the order of travel.
    pub links: Vec<String>,
    /// Transport bytes sent.
    pub bytes_sent: u64,
    /// Datagrams sent.
    pub packets_sent: u64,
    /// Segments declared lost by the sender.
    pub packets_lost: u64,
    /// Smoothed round-trip time at the end.
    pub srtt_ms: Option<f64>,
    /// Times it was silent for too long, and the sender retransmitted elsewhere what it carried.
    pub suspicions: u64,
    /// Times the sender took it for dead.
    pub down_events: u64,
    /// Times that losses on it cut its window, timeouts apart; 0 where the transport does not count them.
    pub window_cuts: u64,
    /// Congestion window in the mean over time; absent where the transport has none, or none for each path.
    pub window_mean_bytes: Option<f64>,
    /// Its part of the windows of all paths of the flow.
    pub window_share: Option<f64>,
    /// Application bits that arrived on it per second, copies included; absent where the transport does not count them.
    pub raw_bps: Option<f64>,
    /// The same without what had arrived before, on whichever path.
    pub unique_bps: Option<f64>,
}

/// A flow at the end of a measurement: both its ends, and what was counted.
#[derive(Debug)]
pub struct Measured<'a> {
    /// Who opened it.
    pub sender: &'a Sender,
    /// Who serves it.
    pub receiver: &'a Receiver,
    /// Who looked at the sender, if somebody did.
    pub watch: Option<&'a Watch>,
    /// What its window did, if somebody looked.
    pub sawtooth: Option<&'a Sawtooth>,
    /// How the services changed of who opened it, and of who serves it.
    pub changes: [&'a [Changed]; 2],
    /// What was counted until the measurement began, and until it ended.
    pub counts: [&'a FlowCounts; 2],
    /// From when to when; it may end before the run does.
    pub window: Range<Time>,
    /// When the run ended.
    pub end: Time,
}

impl FlowResult {
    /// The account of `plan`. Counters and rates are of the window, moments of the whole run. A flow whose start lies after
    /// the window's end has no rates.
    pub fn new(plan: &FlowPlan, measured: &Measured<'_>) -> FlowResult {
        let Measured {
            sender,
            receiver,
            watch,
            sawtooth,
            changes,
            counts: [before, after],
            ref window,
            end,
        } = *measured;
        let counts = after.clone().since(before);
        let start = sender.start();
        let since_start = |at: Time| at.since(start).as_secs_f64();
        let complete = match sender.objects() {
            Some((_, complete)) => complete,
            None => receiver.complete(),
        };
        let over = complete.unwrap_or(window.end).min(window.end);
        let span_from = |from: Time| over.since(from.max(window.start)).as_secs_f64();
        let rate_from = |from: Time, bytes: u64| {
            let span = span_from(from);
            (span > 0.0).then(|| bytes as f64 * 8.0 / span)
        };
        let rate = |bytes: u64| rate_from(start, bytes);
        let opened = counts.sent.is_some();
        let (sent, received) = (
            counts.sent.unwrap_or_default(),
            counts.received.unwrap_or_default(),
        );
        let loaded = sender.pages().map(|(all, _)| &all[before.pages..after.pages]);
        let account = if sender.asks() {
            sender.account()
        } else {
            receiver.account()
        };
        let delivered = counts.delivered;
        let share = |bytes: u64| (delivered > 0).then(|| bytes as f64 / delivered as f64);
        let outages = watch.map(|watch| watch.outages(end, account)).unwrap_or_default();
        let rto_events = watch.map(Watch::timeouts).unwrap_or_default();
        let in_outages: u64 = outages.iter().map(|outage| outage.timeouts).sum();
        let messages = counts.messages;
        let latencies = receiver.messages().map_or(&[][..], |all| {
            let [from, to] = [before, after].map(|counts| counts.messages.map_or(0, |read| read.delivered));
            &all.latencies()[from as usize..to as usize]
        });
        let handshake = if sent.handshake.is_some() {
            sender.handshake()
        } else {
            None
        };
        FlowResult {
            name: plan.name.clone(),
            transport: plan.transport.name().to_owned(),
            goodput_bps: rate(delivered),
            shared_bps: rate_from(account.shared_from(), counts.shared),
            throughput_bps: rate(sent.sent_payload_bytes),
            load_bps: rate(sent.sent_bytes + received.sent_bytes),
            completion_s: complete.map(since_start),
            first_byte_s: account.first().map(since_start),
            handshake_s: handshake.map(|span| span.as_secs_f64()),
            delivered_bytes: delivered,
            wrong_bytes: counts.wrong,
            sent_messages: counts.sent_messages,
            delivered_messages: messages.map(|messages| messages.delivered),
            late_messages: messages.and_then(|messages| messages.late),
            lost_messages: messages.and_then(|messages| messages.lost),
            missed_messages: messages.and_then(|messages| Some(messages.lost? + messages.late?)),
            on_time_share: messages.and_then(|messages| {
                let sent = counts.sent_messages.filter(|sent| *sent > 0)?;
                Some(messages.on_time? as f64 / sent as f64)
            }),
            latency_mean_ms: mean_ms(latencies),
            latency_p99_ms: percentile_ms(latencies, 99),
            pages: loaded.map(|pages| pages.len() as u64),
            plt_first_s: loaded.and_then(|pages| Some(pages.first()?.as_secs_f64())),
            plt_mean_s: loaded.and_then(mean_ms).map(|ms| ms / 1e3),
            plt_median_s: loaded
                .and_then(|pages| percentile_ms(pages, 50))
                .map(|ms| ms / 1e3),
            sent_packets: sent.sent_packets,
            retransmitted_packets: sent.retransmitted_packets,
            repeat_share: share(sent.retransmitted_payload_bytes),
            report_bytes: received.report_bytes,
            report_share: received.report_bytes.and_then(share),
            lost_packets: sent.lost_packets,
            loss_causes: counts.loss_causes,
            repair_ms: after.repairs.mean_ms_since(before.repairs),
            duplicate_packets: received.duplicate_packets,
            timed_out_packets: sent.timed_out_packets,
            encoded_packets: sent.encoded_packets,
            repaired_packets: received.repaired_packets,
            timeouts: sent.timeouts,
            window_mean_bytes: sender
                .paths()
                .iter()
                .filter_map(|attempt| after.mean_window(attempt.path, before))
                .reduce(|sum, mean| sum + mean),
            aborted: sender
                .closed()
                .is_some_and(|reason| *reason != CloseReason::Finished),
            bins_bps: account.bins_bps(end),
            stray_timeouts: watch.map(|_| rto_events.len() as u64 - in_outages),
            rto_events,
            outages,
            changes: ChangeResult::of(changes[0], changes[1]),
            window: sawtooth.map(|sawtooth| sawtooth.result(over)),
            paths: if opened {
                paths(plan, sender.paths(), [&sent, &received], rate, |path| {
                    after.mean_window(path, before)
                })
            } else {
                Vec::new()
            },
        }
    }

    /// Is there nothing more to wait for? Asked after every event.
    #[inline]
    pub(crate) fn finished(traffic: &Traffic, sender: &Sender, receiver: &Receiver) -> bool {
        match traffic {
            // Without an end: a rate is over the whole run, also when the flow broke off.
            Traffic::Bulk => false,
            Traffic::File { .. } => receiver.complete().is_some() || sender.closed().is_some_and(broken),
            Traffic::Zipf(_) => {
                sender.objects().is_some_and(|(_, complete)| complete.is_some())
                    || sender.closed().is_some_and(broken)
            }
            Traffic::Cbr(_) => receiver.finished() || sender.closed().is_some_and(broken),
            Traffic::Web(_) => {
                sender.pages().is_some_and(|(_, all)| all) || sender.closed().is_some_and(broken)
            }
        }
    }
}

/// What went over each path of the plan. A path that was dialled several times is one; a transport that does not tell
/// its paths apart has one.
fn paths(
    plan: &FlowPlan,
    attempts: &[Attempt],
    [sent, received]: [&FlowStats; 2],
    rate: impl Fn(u64) -> Option<f64>,
    window: impl Fn(PathAddress) -> Option<f64>,
) -> Vec<PathResult> {
    let whole = PathStats {
        sent_packets: sent.sent_packets,
        sent_bytes: sent.sent_bytes,
        received_bytes: sent.received_bytes,
        lost_packets: sent.lost_packets,
        srtt: sent.srtt,
        ..PathStats::new(attempts[0].path)
    };
    let known = if sent.paths.is_empty() {
        std::slice::from_ref(&whole)
    } else {
        &sent.paths
    };
    let windows: f64 = attempts.iter().filter_map(|attempt| window(attempt.path)).sum();
    let one = |(path, attempt): (&PathPlan, &Attempt)| {
        let own = || known.iter().filter(|stats| stats.path == attempt.path);
        let theirs = received
            .paths
            .iter()
            .find(|stats| stats.path == attempt.path.reversed());
        let arrived = theirs.filter(|stats| stats.arrived_payload_bytes > 0);
        let unique = |stats: &PathStats| stats.arrived_payload_bytes - stats.duplicate_payload_bytes;
        PathResult {
            local: plan.from.clone(),
            remote: plan.to.clone(),
            links: path.links.clone(),
            bytes_sent: own().map(|stats| stats.sent_bytes).sum(),
            packets_sent: own().map(|stats| stats.sent_packets).sum(),
            packets_lost: own().map(|stats| stats.lost_packets).sum(),
            srtt_ms: own()
                .filter_map(|stats| stats.srtt)
                .next_back()
                .map(|srtt| srtt.as_nanos() as f64 / 1e6),
            suspicions: own().map(|stats| stats.suspicions).sum(),
            down_events: own().map(|stats| stats.down_events).sum(),
            window_cuts: own().map(|stats| stats.window_cuts).sum(),
            window_mean_bytes: window(attempt.path),
            window_share: window(attempt.path).map(|mean| mean / windows),
            raw_bps: arrived.and_then(|stats| rate(stats.arrived_payload_bytes)),
            unique_bps: arrived.and_then(|stats| rate(unique(stats))),
        }
    };
    plan.paths.iter().zip(attempts).map(one).collect()
}

fn broken(reason: &CloseReason) -> bool {
    *reason != CloseReason::Finished
}
