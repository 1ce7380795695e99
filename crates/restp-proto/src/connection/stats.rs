//! Counters, for diagnostics only: nothing in the protocol reads them.

use super::Connection;
use restp_base::flow::{FlowStats, PathStats};
use restp_base::time::{Duration, Time};

/// What a connection counts.
#[derive(Clone, Debug)]
pub(super) struct Counters {
    pub(super) opened_at: Time,
    pub(super) handshake: Option<Duration>,
    pub(super) sent_packets: u64,
    pub(super) sent_bytes: u64,
    pub(super) early_segments: u64,
    pub(super) received_packets: u64,
    pub(super) received_bytes: u64,
    pub(super) duplicate_packets: u64,
    /// Segments that came after they had been skipped.
    pub(super) late_packets: u64,
    pub(super) rejected_packets: u64,
    pub(super) corrupted_packets: u64,
    /// Segments outside the receive window, or that found the reader's queue full.
    pub(super) beyond_window: u64,
    /// Numbers given up by a receiver that did not wait any longer.
    pub(super) skipped_segments: u64,
    /// Segments rebuilt from encoded packets.
    pub(super) repaired_packets: u64,
    pub(super) unbuildable_packets: u64,
}

impl Counters {
    pub(super) fn new(now: Time) -> Self {
        Counters {
            opened_at: now,
            handshake: None,
            sent_packets: 0,
            sent_bytes: 0,
            early_segments: 0,
            received_packets: 0,
            received_bytes: 0,
            duplicate_packets: 0,
            late_packets: 0,
            rejected_packets: 0,
            corrupted_packets: 0,
            beyond_window: 0,
            skipped_segments: 0,
            repaired_packets: 0,
            unbuildable_packets: 0,
        }
    }
}

/// The counters as an application sees them.
pub(super) fn of(c: &Connection) -> FlowStats {
    let (n, sent) = (&c.counters, c.sender.counters());
    let kept =
        c.sender.memory() + c.receiver.memory() + c.subflow.as_ref().map_or(0, |subflow| subflow.memory());
    let (delivered_bytes, delivered_messages) = c.receiver.delivered();
    FlowStats {
        path: Some(c.address),
        handshake: n.handshake,
        sent_packets: n.sent_packets,
        received_packets: n.received_packets,
        sent_bytes: n.sent_bytes,
        received_bytes: n.received_bytes,
        sent_payload_bytes: sent.sent_payload_bytes,
        early_segments: n.early_segments,
        delivered_bytes,
        delivered_messages,
        retransmitted_packets: sent.retransmitted_packets,
        retransmitted_payload_bytes: sent.retransmitted_payload_bytes,
        report_bytes: None,
        lost_packets: sent.lost_packets,
        encoded_packets: sent.encoded_packets,
        repaired_packets: n.repaired_packets,
        timed_out_packets: sent.timed_out_packets,
        timeouts: sent.timeouts,
        duplicate_packets: n.duplicate_packets,
        skipped_segments: n.skipped_segments,
        late_packets: n.late_packets,
        rejected_packets: n.rejected_packets + n.beyond_window + n.unbuildable_packets,
        corrupted_packets: n.corrupted_packets,
        srtt: c.sender.smoothed_rtt(),
        rto: Some(c.sender.timeout()),
        congestion_window_bytes: c.sender.window_bytes(),
        memory_bytes: (size_of::<Connection>() + kept) as u64,
        in_flight_segments: c.sender.in_flight(),
        paths: vec![PathStats {
            sent_packets: n.sent_packets,
            sent_bytes: n.sent_bytes,
            received_bytes: n.received_bytes,
            lost_packets: sent.lost_packets,
            srtt: c.sender.smoothed_rtt(),
            congestion_window_bytes: Some(c.sender.window_bytes()),
            causes: c.sender.causes(),
            mode: c.composition.congestion.adapts().then(|| c.sender.mode()),
            ..PathStats::new(c.address)
        }],
    }
}
