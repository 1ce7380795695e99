//! A flow holds no more than its windows, its send buffer and a little for each segment.

use super::evidence::{Evidence, Fault};
use crate::chaos::Side;
use crate::chaos::trace::{Trace, What};
use restp_proto::composition::Composition;
use restp_services::flow_control::FlowControl;

/// Bookkeeping of one segment.
const SEGMENT_BYTES: u64 = 160;
/// A connection itself, and the last write over the limit of its send buffer.
const FLOW_BYTES: u64 = 48 * 1024;
/// What a receiver takes that advertises no window.
const UNADVERTISED_SEGMENTS: u64 = 8_192;
/// Packets kept for forward error correction, on both sides: the sliding window's, what its receiver remembers, its equations.
const CODED_SEGMENTS: u64 = 256 + 320 + 2 * 64;

pub fn check(evidence: &Evidence<'_>) -> Result<(), Fault> {
    for (index, record) in evidence.trace.records.iter().enumerate() {
        let What::Holds { end, bytes } = &record.what else {
            continue;
        };
        let side = evidence.trace.ends[*end].side;
        let bound = bound(evidence, side, evidence.trace, *end);
        if *bytes > bound {
            let what = format!("{side} holds {bytes} bytes, and {bound} are explained");
            return Err(Fault::at(index, what));
        }
    }
    Ok(())
}

fn bound(evidence: &Evidence<'_>, side: Side, trace: &Trace, end: usize) -> u64 {
    let (own, peer) = (evidence.composition(side), evidence.composition(side.other()));
    let segment = u64::from(own.segment_bytes);
    // What was sent is kept until it is acknowledged: as much as the peer allows, or all there is.
    let kept = match window(peer) {
        Some(segments) => segments * (segment + SEGMENT_BYTES),
        None => {
            let (count, bytes) = trace.written(end).fold((0, 0), |(count, bytes), data| {
                (count + 1, bytes + data.len() as u64)
            });
            bytes + (count + bytes / segment) * SEGMENT_BYTES
        }
    };
    let held = window(own).unwrap_or(UNADVERTISED_SEGMENTS) * (segment + SEGMENT_BYTES);
    let coded = if own.reliability.encodes() || evidence.changes(&["reliability"]) {
        CODED_SEGMENTS * (segment + SEGMENT_BYTES)
    } else {
        0
    };
    // Each path is a connection that keeps what it carries itself; one that has ended lingers beside its successor.
    let paths = evidence.case.paths() as u64;
    let connections = if paths > 1 { 1 + 2 * paths } else { 1 };
    // Each stream takes one write beyond the limit, those of the companions three times as much as the application's; and each
    // write is kept as it came.
    let beyond = if own.framing.has_streams() {
        let largest = trace.written(end).map(|data| data.len() as u64).max();
        let own = 4 * (largest.unwrap_or_default() + trace.written(end).count() as u64 * SEGMENT_BYTES);
        own + unread(trace, side.other())
    } else {
        0
    };
    kept * connections + held + coded + own.send_buffer_bytes as u64 + beyond + FLOW_BYTES * connections
}

/// What a companion of the streams of `writer` brings that is not read before the application's stream has ended: half as much.
fn unread(trace: &Trace, writer: Side) -> u64 {
    let ends = trace.ends.iter().enumerate();
    let of_writer = ends.filter(|(_, end)| end.side == writer);
    let written = of_writer.flat_map(|(end, _)| trace.written(end));
    written.map(|data| data.len() as u64 / 2 + SEGMENT_BYTES).sum()
}

fn window(composition: &Composition) -> Option<u64> {
    match composition.flow_control {
        FlowControl::Window(parameters) => Some(u64::from(parameters.segments)),
        FlowControl::None => None,
    }
}
