//! What crossed a link and what did not.

use restp_base::time::Duration;
use restp_sim::{Counters, LinkStats, Way};
use serde::Serialize;

/// One link in one run, both directions together.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LinkResult {
    /// Its name.
    pub name: String,
    /// Packets offered.
    pub packets: u64,
    /// Bytes offered.
    pub bytes: u64,
    /// Packets dropped by the queue: it was full, or its discipline chose them.
    pub dropped_queue: u64,
    /// Packets lost to an error model.
    pub dropped_error: u64,
    /// Packets lost to an outage.
    pub dropped_outage: u64,
    /// Packets longer than the link takes.
    pub dropped_length: u64,
    /// Packets that came faster than the policer allows.
    pub dropped_police: u64,
    /// Packets given up after too many attempts at a shared medium, the last of which met other frames.
    pub dropped_collision: u64,
    /// Packets given up after too many attempts at a shared medium, the last of which found it taken around the receiver.
    pub dropped_contention: u64,
    /// Mean time a packet waited before it was sent, in the direction where that was longer.
    pub queue_mean_ms: f64,
    /// The median of the same, within 4 %, in the direction where that was longer.
    pub queue_median_ms: f64,
    /// Share of the run in which the busier direction was sending.
    pub utilisation: f64,
}

/// Puts the two directions of each link together, from what was counted until `before` and until `after`, a `span` later.
pub fn links(before: &[LinkStats], after: &[LinkStats], span: Duration) -> Vec<LinkResult> {
    let mut links: Vec<LinkResult> = Vec::with_capacity(after.len() / 2);
    for (
        index,
        LinkStats {
            name,
            direction,
            counters,
        },
    ) in after.iter().enumerate()
    {
        let was = before
            .get(index)
            .map_or_else(Counters::default, |stats| stats.counters.clone());
        let utilisation = if span.is_zero() {
            0.0
        } else {
            let busy = counters.busy.saturating_sub(was.busy);
            (busy.as_secs_f64() / span.as_secs_f64()).min(1.0)
        };
        let (sent, waits) = (counters.sent - was.sent, counters.waits.since(&was.waits));
        let one = LinkResult {
            name: name.clone(),
            packets: counters.packets - was.packets,
            bytes: counters.bytes - was.bytes,
            dropped_queue: counters.dropped_queue - was.dropped_queue,
            dropped_error: counters.dropped_error - was.dropped_error,
            dropped_outage: counters.dropped_outage - was.dropped_outage,
            dropped_length: counters.dropped_length - was.dropped_length,
            dropped_police: counters.dropped_police - was.dropped_police,
            dropped_collision: counters.dropped_collision - was.dropped_collision,
            dropped_contention: counters.dropped_contention - was.dropped_contention,
            queue_mean_ms: waits.mean(sent).as_secs_f64() * 1e3,
            queue_median_ms: waits.median(sent).as_secs_f64() * 1e3,
            utilisation,
        };
        match links.last_mut().filter(|_| *direction == Way::Reverse) {
            None => links.push(one),
            Some(link) => link.add(&one),
        }
    }
    links
}

impl LinkResult {
    /// The other direction.
    fn add(&mut self, other: &LinkResult) {
        self.packets += other.packets;
        self.bytes += other.bytes;
        self.dropped_queue += other.dropped_queue;
        self.dropped_error += other.dropped_error;
        self.dropped_outage += other.dropped_outage;
        self.dropped_length += other.dropped_length;
        self.dropped_police += other.dropped_police;
        self.dropped_collision += other.dropped_collision;
        self.dropped_contention += other.dropped_contention;
        self.queue_mean_ms = self.queue_mean_ms.max(other.queue_mean_ms);
        self.queue_median_ms = self.queue_median_ms.max(other.queue_median_ms);
        self.utilisation = self.utilisation.max(other.utilisation);
    }
}
