//! What an emulator has done. Every number is a count since the start.

use restp_sim::Counters;
use serde::Serialize;
use std::fmt;
use std::net::SocketAddr;

/// Where one path begins and ends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PathPorts {
    /// Its name.
    pub path: String,
    /// UDP mode: where datagrams are taken.
    pub listen: Option<SocketAddr>,
    /// UDP mode: where they go.
    pub to: Option<SocketAddr>,
    /// TUN mode: `namespace/device address` of the two ends.
    pub devices: Option<[String; 2]>,
}

/// Counters of a whole emulator.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Report {
    /// Since its start.
    pub seconds: f64,
    /// One entry per path, in the order of the file.
    pub paths: Vec<PathReport>,
}

/// Counters of one path.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PathReport {
    /// Its name.
    pub path: String,
    /// From `listen` to `to`, or from the first namespace to the second.
    pub forward: DirectionReport,
    /// Back.
    pub reverse: DirectionReport,
}

/// Counters of one direction. What was offered is delivered, dropped, or still on its way.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct DirectionReport {
    /// Packets taken in.
    pub offered_packets: u64,
    /// Their bytes, with IP and UDP headers.
    pub offered_bytes: u64,
    /// Packets given out, copies included.
    pub delivered_packets: u64,
    /// Dropped because the queue was full.
    pub dropped_queue: u64,
    /// Dropped by an error model.
    pub dropped_error: u64,
    /// Dropped by an outage.
    pub dropped_outage: u64,
    /// Dropped because they were longer than `mtu`.
    pub dropped_length: u64,
    /// Dropped by the policer.
    pub dropped_police: u64,
    /// Dropped because the emulator held too much, or the system refused to send. A measurement with any of
    /// these is not one of the network described.
    pub dropped_system: u64,
    /// Second copies made.
    pub duplicated: u64,
    /// Packets with a bit flipped.
    pub corrupted: u64,
    /// Packets sent out of their order.
    pub reordered: u64,
    /// Packets marked as having met congestion.
    pub marked: u64,
    /// Mean time a packet waited before it was sent.
    pub queue_mean_ms: f64,
    /// The median of the same, within 4 %.
    pub queue_median_ms: f64,
    /// Given out this much after they were due, in the mean. Above 1000 the processor was withheld, and a
    /// measurement should not be trusted.
    pub mean_lateness_us: f64,
    /// The same for the worst packet.
    pub max_lateness_us: f64,
}

impl DirectionReport {
    /// The model's own counters.
    pub(super) fn of(counters: &Counters) -> Self {
        DirectionReport {
            offered_packets: counters.packets,
            offered_bytes: counters.bytes,
            delivered_packets: counters.delivered,
            dropped_queue: counters.dropped_queue,
            dropped_error: counters.dropped_error + counters.dropped_rule,
            dropped_outage: counters.dropped_outage,
            dropped_length: counters.dropped_length,
            dropped_police: counters.dropped_police,
            duplicated: counters.duplicated,
            corrupted: counters.corrupted,
            reordered: counters.reordered,
            marked: counters.marked,
            queue_mean_ms: counters.waits.mean(counters.sent).as_secs_f64() * 1e3,
            queue_median_ms: counters.waits.median(counters.sent).as_secs_f64() * 1e3,
            ..DirectionReport::default()
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for path in &self.paths {
            for (way, counters) in [("forward", &path.forward), ("reverse", &path.reverse)] {
                writeln!(f, "{} {way}: {counters}", path.path)?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for DirectionReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let DirectionReport {
            offered_packets,
            delivered_packets,
            dropped_queue,
            dropped_error,
            ..
        } = self;
        let DirectionReport {
            dropped_outage,
            dropped_length,
            dropped_police,
            dropped_system,
            queue_median_ms,
            mean_lateness_us,
            max_lateness_us,
            ..
        } = self;
        write!(
            f,
            "in {offered_packets}, out {delivered_packets}, dropped: queue {dropped_queue}, error {dropped_error}, \
             outage {dropped_outage}, length {dropped_length}, police {dropped_police}, system {dropped_system}; in the \
             queue {queue_median_ms:.1} ms, late by {mean_lateness_us:.0} us, at most {max_lateness_us:.0} us"
        )
    }
}
