//! What has been counted of a flow up to a moment, so that what lies between two moments can be told.

use super::window::WindowSum;
use super::{LossCauses, RepairSum};
use crate::traffic::{Receiver, Sender};
use restp_base::flow::{FlowStats, PathStats};
use restp_base::machine::PathAddress;

/// Counters of a flow at one moment. The default is that of the beginning.
#[derive(Clone, Debug, Default)]
pub struct FlowCounts {
    /// The sender's, once it has opened the flow.
    pub sent: Option<FlowStats>,
    /// The receiver's, once it knows of the flow.
    pub received: Option<FlowStats>,
    /// Bytes that the application has read.
    pub delivered: u64,
    /// Those of them that it read while all flows were open.
    pub shared: u64,
    /// Those of them that are not what was written.
    pub wrong: Option<u64>,
    /// Messages handed to the transport.
    pub sent_messages: Option<u64>,
    /// Messages read, where traffic is made of messages.
    pub messages: Option<MessageCounts>,
    /// Pages loaded.
    pub pages: usize,
    /// Segments taken for lost, where the transport says which.
    pub loss_causes: Option<LossCauses>,
    /// What was lost and came all the same.
    pub repairs: RepairSum,
    /// The windows that each path has had.
    pub windows: Vec<(PathAddress, WindowSum)>,
}

/// Messages up to one moment.
#[derive(Clone, Copy, Debug, Default)]
pub struct MessageCounts {
    /// Read, copies included; each has a latency.
    pub delivered: u64,
    /// Missing below the highest one read.
    pub lost: Option<u64>,
    /// Later than the traffic allows.
    pub late: Option<u64>,
    /// In time, a copy counting once.
    pub on_time: Option<u64>,
}

impl FlowCounts {
    /// Those of now.
    pub fn of(
        (sender, sent): (&Sender, Option<FlowStats>),
        (receiver, received): (&Receiver, Option<FlowStats>),
        loss_causes: Option<LossCauses>,
    ) -> Self {
        let pages = sender.pages().map(|(load_times, _)| load_times.len());
        // Who asks reads at the end that opens.
        let account = if sender.asks() {
            sender.account()
        } else {
            receiver.account()
        };
        let messages = receiver.messages().map(|messages| MessageCounts {
            delivered: messages.delivered(),
            lost: messages.lost(),
            late: messages.late(),
            on_time: messages.on_time(),
        });
        FlowCounts {
            sent,
            received,
            delivered: account.bytes(),
            shared: account.shared(),
            wrong: receiver
                .wrong_bytes()
                .or(sender.objects().map(|(wrong, _)| wrong)),
            sent_messages: sender.sent_messages(),
            messages,
            pages: pages.unwrap_or(0),
            loss_causes,
            repairs: RepairSum::default(),
            windows: Vec::new(),
        }
    }

    /// The mean window of a path since `earlier`, in bytes.
    pub fn mean_window(&self, path: PathAddress, earlier: &FlowCounts) -> Option<f64> {
        let of = |counts: &FlowCounts| {
            let found = counts.windows.iter().find(|(known, _)| *known == path);
            found.map(|(_, sum)| *sum)
        };
        of(self)?.mean_since(of(earlier).unwrap_or_default())
    }

    /// Where the receiver asks for what is sent, it is the one that finds losses and repairs them.
    #[must_use]
    pub fn driven_by_receiver(mut self) -> Self {
        if let (Some(sent), Some(received)) = (&mut self.sent, &self.received) {
            sent.retransmitted_packets = received.retransmitted_packets;
            sent.lost_packets = received.lost_packets;
            sent.timed_out_packets = received.timed_out_packets;
            sent.timeouts = received.timeouts;
            sent.srtt = received.srtt;
        }
        self
    }

    /// What was counted since `earlier`. Estimates stay those of now.
    #[must_use]
    pub fn since(self, earlier: &FlowCounts) -> Self {
        let stats = |now: Option<FlowStats>, then: &Option<FlowStats>| match (now, then) {
            (Some(now), Some(then)) => Some(stats_since(now, then)),
            (now, _) => now,
        };
        FlowCounts {
            sent: stats(self.sent, &earlier.sent),
            received: stats(self.received, &earlier.received),
            delivered: self.delivered - earlier.delivered,
            shared: self.shared - earlier.shared,
            wrong: less(self.wrong, earlier.wrong),
            sent_messages: less(self.sent_messages, earlier.sent_messages),
            messages: self
                .messages
                .map(|now| now.since(earlier.messages.unwrap_or_default())),
            pages: self.pages - earlier.pages,
            loss_causes: match (self.loss_causes, earlier.loss_causes) {
                (Some(now), Some(then)) => Some(now.since(then)),
                (now, _) => now,
            },
            repairs: self.repairs,
            windows: self.windows,
        }
    }
}

impl MessageCounts {
    fn since(self, earlier: MessageCounts) -> Self {
        MessageCounts {
            delivered: self.delivered - earlier.delivered,
            lost: less(self.lost, earlier.lost),
            late: less(self.late, earlier.late),
            on_time: less(self.on_time, earlier.on_time),
        }
    }
}

/// A message that was missing may have come since: a difference below zero is none.
fn less(now: Option<u64>, then: Option<u64>) -> Option<u64> {
    now.map(|now| now.saturating_sub(then.unwrap_or(0)))
}

/// The counters that results are made of.
fn stats_since(now: FlowStats, then: &FlowStats) -> FlowStats {
    let path = |mut path: PathStats| {
        if let Some(then) = then.paths.iter().find(|then| then.path == path.path) {
            path.sent_packets = path.sent_packets.saturating_sub(then.sent_packets);
            path.sent_bytes = path.sent_bytes.saturating_sub(then.sent_bytes);
            path.lost_packets = path.lost_packets.saturating_sub(then.lost_packets);
            path.suspicions = path.suspicions.saturating_sub(then.suspicions);
            path.down_events = path.down_events.saturating_sub(then.down_events);
            path.window_cuts = path.window_cuts.saturating_sub(then.window_cuts);
            path.arrived_payload_bytes = path
                .arrived_payload_bytes
                .saturating_sub(then.arrived_payload_bytes);
            path.duplicate_payload_bytes = path
                .duplicate_payload_bytes
                .saturating_sub(then.duplicate_payload_bytes);
        }
        path
    };
    FlowStats {
        sent_packets: now.sent_packets.saturating_sub(then.sent_packets),
        sent_bytes: now.sent_bytes.saturating_sub(then.sent_bytes),
        sent_payload_bytes: now.sent_payload_bytes.saturating_sub(then.sent_payload_bytes),
        retransmitted_packets: now
            .retransmitted_packets
            .saturating_sub(then.retransmitted_packets),
        retransmitted_payload_bytes: now
            .retransmitted_payload_bytes
            .saturating_sub(then.retransmitted_payload_bytes),
        report_bytes: less(now.report_bytes, then.report_bytes),
        lost_packets: now.lost_packets.saturating_sub(then.lost_packets),
        timed_out_packets: now.timed_out_packets.saturating_sub(then.timed_out_packets),
        encoded_packets: now.encoded_packets.saturating_sub(then.encoded_packets),
        repaired_packets: now.repaired_packets.saturating_sub(then.repaired_packets),
        timeouts: now.timeouts.saturating_sub(then.timeouts),
        paths: now.paths.into_iter().map(path).collect(),
        ..now
    }
}
