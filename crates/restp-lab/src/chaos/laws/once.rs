//! Only what was written is read, byte for byte; where packets carry numbers, nothing twice.

use super::evidence::{Evidence, Fault};
use crate::chaos::Side;
use crate::chaos::trace::{Record, What};
use bytes::Bytes;
use restp_proto::composition::ValidComposition;
use restp_proto::wire::Services;
use restp_services::connection_management::Establishment;
use restp_services::ordering::Ordering;
use std::collections::BTreeMap;

pub fn check(evidence: &Evidence<'_>) -> Result<(), Fault> {
    let composition = evidence.composition(Side::Client);
    let stream = composition.framing.is_byte_stream();
    let ordered = composition.ordering == Ordering::Ordered || composition.framing.has_streams();
    if stream && composition.reliability.is_full() && ordered {
        return Ok(()); // a stream without holes: the law of order compares every byte
    }
    let numbered = is_numbered(composition);
    let trace = evidence.trace;
    let mut left: BTreeMap<usize, BTreeMap<&Bytes, u64>> = BTreeMap::new();
    for (index, record) in trace.records.iter().enumerate() {
        let What::Read { end, data } = &record.what else {
            continue;
        };
        let left = left.entry(*end).or_insert_with(|| {
            let mut counts = BTreeMap::new();
            for unit in units(evidence, *end, stream) {
                *counts.entry(unit).or_default() += 1;
            }
            counts
        });
        let side = trace.ends[*end].side;
        let Some(count) = left.get_mut(data) else {
            return Err(Fault::at(
                index,
                format!("{side} reads {} bytes that nobody wrote", data.len()),
            ));
        };
        if *count == 0 && numbered {
            return Err(Fault::at(
                index,
                format!("{side} reads {} bytes twice", data.len()),
            ));
        }
        *count = count.saturating_sub(1);
    }
    Ok(())
}

/// What `end` may read: the messages of its peer, or where a stream may have holes the segments it was cut into.
/// Nothing tells one connectionless conversation from the next at the same port, nor one without numbers from that of a client that
/// has forgotten it.
pub fn units<'a>(evidence: &'a Evidence<'_>, end: usize, stream: bool) -> Vec<&'a Bytes> {
    let trace = evidence.trace;
    let composition = evidence.composition(Side::Client);
    let forgets = |record: &Record| matches!(record.what, What::Restarted { side: Side::Client });
    if composition.establishment == Establishment::Connectionless
        || !is_numbered(composition) && trace.records.iter().any(forgets)
    {
        let side = trace.ends[end].side;
        let writers = (0..trace.ends.len()).filter(|writer| trace.ends[*writer].side != side);
        return match stream {
            true => (0..trace.ends.len())
                .flat_map(|conversation| evidence.segments(side.other(), conversation))
                .collect(),
            false => writers.flat_map(|writer| trace.written(writer)).collect(),
        };
    }
    let Some(writer) = evidence.trace.counterpart(end) else {
        return Vec::new();
    };
    if stream {
        let writer = evidence.trace.ends[writer];
        evidence.segments(writer.side, writer.conversation)
    } else {
        evidence.trace.written(writer).collect()
    }
}

fn is_numbered(composition: &ValidComposition) -> bool {
    composition.reliability.retransmits() || Services::of(composition).numbered()
}
