//! What crossed a link and what did not.

use restp_base::time::Duration;
use restp_sim::{LinkStats, Way};
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
    /// Mean time a packet waited before it was sent, in the direction where that was longer.
    pub queue_mean_ms: f64,
    /// Share of the run in which the busier direction was sending.
    pub utilisation: f64,
}

/// Puts the two directions of each link together.
pub fn links(stats: &[LinkStats], span: Duration) -> Vec<LinkResult> {
    let mut links: Vec<LinkResult> = Vec::with_capacity(stats.len() / 2);
    for LinkStats {
        name,
        direction,
        counters,
    } in stats
    {
        let utilisation = if span.is_zero() {
            0.0
        } else {
            (counters.busy.as_secs_f64() / span.as_secs_f64()).min(1.0)
        };
        let queue_mean_ms = counters.waited.as_secs_f64() * 1e3 / counters.sent.max(1) as f64;
        match links.last_mut().filter(|_| *direction == Way::Reverse) {
            None => links.push(LinkResult {
                name: name.clone(),
                packets: counters.packets,
                bytes: counters.bytes,
                dropped_queue: counters.dropped_queue,
                dropped_error: counters.dropped_error,
                dropped_outage: counters.dropped_outage,
                dropped_length: counters.dropped_length,
                dropped_police: counters.dropped_police,
                queue_mean_ms,
                utilisation,
            }),
            Some(link) => {
                link.packets += counters.packets;
                link.bytes += counters.bytes;
                link.dropped_queue += counters.dropped_queue;
                link.dropped_error += counters.dropped_error;
                link.dropped_outage += counters.dropped_outage;
                link.dropped_length += counters.dropped_length;
                link.dropped_police += counters.dropped_police;
                link.queue_mean_ms = link.queue_mean_ms.max(queue_mean_ms);
                link.utilisation = link.utilisation.max(utilisation);
            }
        }
    }
    links
}
