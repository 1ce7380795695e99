//! One UDP flow: two ports, two short queues and counters.

use super::wire::HEADER_BYTES;
use bytes::Bytes;
use restp_base::flow::FlowStats;
use restp_base::machine::PathAddress;
use std::collections::VecDeque;

/// State of one flow.
#[derive(Debug)]
pub(super) struct UdpFlow {
    pub path: PathAddress,
    pub local_port: u16,
    pub remote_port: u16,
    /// No more writes will come.
    pub finished: bool,
    /// A write was refused; the application waits for room.
    pub wants_room: bool,
    pub stats: FlowStats,
    outbox: VecDeque<Bytes>,
    outbox_bytes: usize,
    inbox: VecDeque<Bytes>,
    inbox_bytes: usize,
}

impl UdpFlow {
    pub fn new(path: PathAddress, local_port: u16, remote_port: u16) -> Self {
        UdpFlow {
            path,
            local_port,
            remote_port,
            finished: false,
            wants_room: false,
            stats: FlowStats {
                path: Some(path),
                ..FlowStats::default()
            },
            outbox: VecDeque::new(),
            outbox_bytes: 0,
            inbox: VecDeque::new(),
            inbox_bytes: 0,
        }
    }

    /// Queues a message to send; `false` when `limit` bytes wait already.
    pub fn push_out(&mut self, message: Bytes, limit: usize) -> bool {
        if self.outbox_bytes >= limit {
            return false;
        }
        self.outbox_bytes += message.len().max(1);
        self.outbox.push_back(message);
        true
    }

    /// The next message to send.
    pub fn pop_out(&mut self) -> Option<Bytes> {
        let message = self.outbox.pop_front()?;
        self.outbox_bytes -= message.len().max(1);
        self.stats.sent_packets += 1;
        self.stats.sent_bytes += (HEADER_BYTES + message.len()) as u64;
        self.stats.sent_payload_bytes += message.len() as u64;
        Some(message)
    }

    pub fn has_output(&self) -> bool {
        !self.outbox.is_empty()
    }

    /// Keeps a message for the reader; one beyond `limit` bytes is dropped and counted as rejected.
    /// Returns true when the reader had nothing before.
    pub fn push_in(&mut self, message: Bytes, limit: usize) -> bool {
        if self.inbox_bytes >= limit {
            self.stats.rejected_packets += 1;
            return false;
        }
        self.stats.received_packets += 1;
        self.stats.received_bytes += (HEADER_BYTES + message.len()) as u64;
        self.inbox_bytes += message.len().max(1);
        self.inbox.push_back(message);
        self.inbox.len() == 1
    }

    /// The oldest message for the reader.
    pub fn pop_in(&mut self) -> Option<Bytes> {
        let message = self.inbox.pop_front()?;
        self.inbox_bytes -= message.len().max(1);
        self.stats.delivered_bytes += message.len() as u64;
        self.stats.delivered_messages += 1;
        Some(message)
    }

    /// Bytes held now.
    pub fn memory_bytes(&self) -> u64 {
        (self.outbox_bytes + self.inbox_bytes) as u64
    }
}
