//! What one direction has done.

use crate::waits::Waits;
use restp_base::time::Duration;

/// What one direction has done.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counters {
    /// Packets offered.
    pub packets: u64,
    /// Bytes offered.
    pub bytes: u64,
    /// Packets that arrived at the far end, copies included.
    pub delivered: u64,
    /// Packets dropped by the queue: it was full, or its discipline chose them.
    pub dropped_queue: u64,
    /// Packets lost to an error model.
    pub dropped_error: u64,
    /// Packets lost to an outage, copies included.
    pub dropped_outage: u64,
    /// Packets longer than the line takes.
    pub dropped_length: u64,
    /// Packets that the policer did not let in.
    pub dropped_police: u64,
    /// Packets dropped by a scripted fault.
    pub dropped_rule: u64,
    /// Packets given up after too many attempts at a shared medium, the last of which met other frames.
    pub dropped_collision: u64,
    /// Packets given up after too many attempts at a shared medium, the last of which found it taken around the receiver.
    pub dropped_contention: u64,
    /// Second copies made.
    pub duplicated: u64,
    /// Packets with a bit flipped.
    pub corrupted: u64,
    /// Packets sent out of their order.
    pub reordered: u64,
    /// Packets marked as having met congestion.
    pub marked: u64,
    /// Packets the line took to send.
    pub sent: u64,
    /// For how long these waited before.
    pub waits: Waits,
    /// Time the line was sending.
    pub busy: Duration,
    /// Most packets that waited at once.
    pub largest_queue_packets: u64,
    /// Most bytes that waited at once.
    pub largest_queue_bytes: u64,
}

impl Counters {
    /// Packets that did not arrive, for whatever reason.
    pub const fn dropped(&self) -> u64 {
        self.dropped_queue
            + self.dropped_error
            + self.dropped_outage
            + self.dropped_length
            + self.dropped_police
            + self.dropped_rule
            + self.dropped_collision
            + self.dropped_contention
    }

    pub(crate) fn queued(&mut self, packets: u64, bytes: u64) {
        self.largest_queue_packets = self.largest_queue_packets.max(packets);
        self.largest_queue_bytes = self.largest_queue_bytes.max(bytes);
    }

    pub(crate) fn drop(&mut self, reason: DropReason) {
        match reason {
            DropReason::Queue => self.dropped_queue += 1,
            DropReason::Error => self.dropped_error += 1,
            DropReason::Outage => self.dropped_outage += 1,
            DropReason::Length => self.dropped_length += 1,
            DropReason::Police => self.dropped_police += 1,
            DropReason::Rule => self.dropped_rule += 1,
            DropReason::Collision => self.dropped_collision += 1,
            DropReason::Contention => self.dropped_contention += 1,
        }
    }
}

/// Why a packet does not arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropReason {
    /// The queue was full, or its discipline chose it.
    Queue,
    /// An error model hit it.
    Error,
    /// The direction was down.
    Outage,
    /// It was longer than the line takes.
    Length,
    /// It came faster than the policer allows.
    Police,
    /// A scripted fault.
    Rule,
    /// Too many attempts at a shared medium, the last of which met other frames.
    Collision,
    /// Too many attempts at a shared medium, the last of which reached a receiver that did not answer: the medium was reserved
    /// around it, or it waited for an answer itself.
    Contention,
}
