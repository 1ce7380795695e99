//! What a flow and its paths have counted, in segments and bytes, and of what the losses were (RFC 9002 §A names the measures).

use crate::datagram::PathAddress;
use crate::findings::Cause;
use crate::time::Duration;

/// Counters and estimates of one flow, for diagnostics only: nothing in a protocol reads them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FlowStats {
    /// Path in use.
    pub path: Option<PathAddress>,
    /// From opening (or the first SYN heard) to established.
    pub handshake: Option<Duration>,
    /// Datagrams sent.
    pub sent_packets: u64,
    /// Datagrams received and accepted.
    pub received_packets: u64,
    /// Transport bytes sent, headers included.
    pub sent_bytes: u64,
    /// Transport bytes received, headers included.
    pub received_bytes: u64,
    /// Application bytes sent, retransmissions included.
    pub sent_payload_bytes: u64,
    /// Segments that were out before the set-up was complete and were taken at once: what they carry came a round trip
    /// earlier.
    pub early_segments: u64,
    /// Application bytes handed to the reader.
    pub delivered_bytes: u64,
    /// Messages or segments handed to the reader.
    pub delivered_messages: u64,
    /// Segments sent again.
    pub retransmitted_packets: u64,
    /// Application bytes in them.
    pub retransmitted_payload_bytes: u64,
    /// Bytes of SACK, NAK and SNACK options sent, where the machine counts them.
    pub report_bytes: Option<u64>,
    /// Segments declared lost by this sender.
    pub lost_packets: u64,
    /// Those of them declared lost because the retransmission timer ran out.
    pub timed_out_packets: u64,
    /// Packets of forward error correction sent.
    pub encoded_packets: u64,
    /// Segments rebuilt by forward error correction.
    pub repaired_packets: u64,
    /// Retransmission timers that ran out.
    pub timeouts: u64,
    /// Segments that arrived again after they had been accepted.
    pub duplicate_packets: u64,
    /// Segments the receiver gave up because they had not come in time: gaps in what the reader gets.
    pub skipped_segments: u64,
    /// Segments that arrived after they had been given up.
    pub late_packets: u64,
    /// Datagrams dropped because a rule of the protocol was broken.
    pub rejected_packets: u64,
    /// Payloads that failed their check sum.
    pub corrupted_packets: u64,
    /// Smoothed round-trip time.
    pub srtt: Option<Duration>,
    /// Retransmission timeout in force, back-off included.
    pub rto: Option<Duration>,
    /// Congestion window in bytes.
    pub congestion_window_bytes: u64,
    /// Bytes of application data and bookkeeping this flow holds now.
    pub memory_bytes: u64,
    /// Segments sent and neither acknowledged nor declared lost.
    pub in_flight_segments: u64,
    /// Each path by itself; empty where the machine knows one only and says so above.
    pub paths: Vec<PathStats>,
}

/// Counters and estimates of one path of a flow.
#[derive(Clone, Debug, PartialEq)]
pub struct PathStats {
    /// Its addresses.
    pub path: PathAddress,
    /// Datagrams sent on it.
    pub sent_packets: u64,
    /// Transport bytes sent on it, headers included.
    pub sent_bytes: u64,
    /// Transport bytes received on it, headers included.
    pub received_bytes: u64,
    /// Segments declared lost on it.
    pub lost_packets: u64,
    /// Its smoothed round-trip time.
    pub srtt: Option<Duration>,
    /// Times it was silent for too long, and what it carried was retransmitted elsewhere.
    pub suspicions: u64,
    /// Times it was taken for dead.
    pub down_events: u64,
    /// Times that losses on it cut its window, timeouts apart, where the machine counts them.
    pub window_cuts: u64,
    /// Its congestion window in bytes, where it has one of its own.
    pub congestion_window_bytes: Option<u64>,
    /// Application bytes that arrived on it, where the machine counts them.
    pub arrived_payload_bytes: u64,
    /// Those of them that had arrived before, on whichever path.
    pub duplicate_payload_bytes: u64,
    /// What its losses were taken for, where the sender infers that.
    pub causes: Option<LossCauses>,
    /// What its controller takes the path for, where it adapts: the value of `mode` in changes.
    pub mode: Option<&'static str>,
}

/// How many segments that did not arrive in time a sender took for what (ResTP §3.6).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LossCauses {
    /// Lost to a full queue, or to one that is kept short.
    pub congestion: Inferred,
    /// Changed or lost by the wire.
    pub corruption: Inferred,
    /// Sent while the link was down.
    pub outage: Inferred,
    /// Not lost at all. They count above, too, as what they were taken for before.
    pub late: Inferred,
}

/// Segments that were taken for one thing, and how sure that was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Inferred {
    /// How many.
    pub segments: u64,
    /// The sum over all of them of how sure each was, in percent.
    pub percents: u64,
}

impl LossCauses {
    /// So many `segments` more are taken for `cause`, each with this probability in percent.
    pub fn add(&mut self, cause: Cause, segments: u64, percent: u64) {
        let inferred = match cause {
            Cause::Congestion => &mut self.congestion,
            Cause::Corruption => &mut self.corruption,
            Cause::Outage => &mut self.outage,
            Cause::Late => &mut self.late,
        };
        inferred.segments += segments;
        inferred.percents += segments * percent;
    }

    /// What was counted since `earlier`.
    pub fn since(&self, earlier: &LossCauses) -> LossCauses {
        LossCauses {
            congestion: self.congestion.since(earlier.congestion),
            corruption: self.corruption.since(earlier.corruption),
            outage: self.outage.since(earlier.outage),
            late: self.late.since(earlier.late),
        }
    }
}

impl Inferred {
    /// How sure it was on average, in percent; none of nothing.
    pub fn confidence(self) -> Option<u64> {
        self.percents.checked_div(self.segments)
    }

    fn since(self, earlier: Inferred) -> Inferred {
        Inferred {
            segments: self.segments.saturating_sub(earlier.segments),
            percents: self.percents.saturating_sub(earlier.percents),
        }
    }

    fn plus(self, later: Inferred) -> Inferred {
        Inferred {
            segments: self.segments + later.segments,
            percents: self.percents + later.percents,
        }
    }
}

impl PathStats {
    /// Nothing is counted.
    pub fn new(path: PathAddress) -> Self {
        PathStats {
            path,
            sent_packets: 0,
            sent_bytes: 0,
            received_bytes: 0,
            lost_packets: 0,
            srtt: None,
            suspicions: 0,
            down_events: 0,
            window_cuts: 0,
            congestion_window_bytes: None,
            arrived_payload_bytes: 0,
            duplicate_payload_bytes: 0,
            causes: None,
            mode: None,
        }
    }

    fn add(&mut self, later: &PathStats) {
        self.sent_packets += later.sent_packets;
        self.sent_bytes += later.sent_bytes;
        self.received_bytes += later.received_bytes;
        self.lost_packets += later.lost_packets;
        self.srtt = later.srtt.or(self.srtt);
        self.suspicions += later.suspicions;
        self.down_events += later.down_events;
        self.window_cuts += later.window_cuts;
        self.congestion_window_bytes = later.congestion_window_bytes.or(self.congestion_window_bytes);
        self.arrived_payload_bytes += later.arrived_payload_bytes;
        self.duplicate_payload_bytes += later.duplicate_payload_bytes;
        self.causes = match (self.causes, later.causes) {
            (Some(known), Some(more)) => Some(LossCauses {
                congestion: known.congestion.plus(more.congestion),
                corruption: known.corruption.plus(more.corruption),
                outage: known.outage.plus(more.outage),
                late: known.late.plus(more.late),
            }),
            (known, more) => more.or(known),
        };
        self.mode = later.mode.or(self.mode);
    }
}

impl FlowStats {
    /// Adds the counters of one path to those of the flow. Estimates are of one path only and are not added.
    pub fn add(&mut self, path: &FlowStats) {
        self.sent_packets += path.sent_packets;
        self.early_segments += path.early_segments;
        self.received_packets += path.received_packets;
        self.sent_bytes += path.sent_bytes;
        self.received_bytes += path.received_bytes;
        self.sent_payload_bytes += path.sent_payload_bytes;
        self.retransmitted_packets += path.retransmitted_packets;
        self.retransmitted_payload_bytes += path.retransmitted_payload_bytes;
        self.lost_packets += path.lost_packets;
        self.encoded_packets += path.encoded_packets;
        self.repaired_packets += path.repaired_packets;
        self.timeouts += path.timeouts;
        self.duplicate_packets += path.duplicate_packets;
        self.skipped_segments += path.skipped_segments;
        self.late_packets += path.late_packets;
        self.rejected_packets += path.rejected_packets;
        self.corrupted_packets += path.corrupted_packets;
        self.congestion_window_bytes += path.congestion_window_bytes;
        self.memory_bytes += path.memory_bytes;
        self.in_flight_segments += path.in_flight_segments;
        for path in &path.paths {
            // A pair of addresses that was given up and dialled again is still one path.
            match self.paths.iter_mut().find(|known| known.path == path.path) {
                Some(known) => known.add(path),
                None => self.paths.push(path.clone()),
            }
        }
    }
}
