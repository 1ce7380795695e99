//! Where order is promised, what is read comes in the order written; with full reliability without holes.

use super::evidence::{Evidence, Fault};
use super::once::units;
use crate::chaos::Side;
use crate::chaos::trace::What;
use restp_services::framing::Framing;
use restp_services::ordering::Ordering;
use std::collections::BTreeMap;

pub fn check(evidence: &Evidence<'_>) -> Result<(), Fault> {
    let composition = evidence.composition(Side::Client);
    if composition.ordering == Ordering::Unordered || evidence.changes(&["ordering"]) {
        return Ok(());
    }
    match (composition.reliability.is_full(), composition.framing) {
        (true, Framing::Coalesce) => whole_stream(evidence),
        (full, framing) => pieces(evidence, full, framing == Framing::Coalesce),
    }
}

/// Every byte read is the one that was written at its place.
fn whole_stream(evidence: &Evidence<'_>) -> Result<(), Fault> {
    let trace = evidence.trace;
    let mut streams: BTreeMap<usize, (Vec<u8>, usize)> = BTreeMap::new();
    for (index, record) in trace.records.iter().enumerate() {
        let What::Read { end, data } = &record.what else {
            continue;
        };
        let (written, place) = streams.entry(*end).or_insert_with(|| {
            let mut written = Vec::new();
            for piece in trace
                .counterpart(*end)
                .into_iter()
                .flat_map(|writer| trace.written(writer))
            {
                written.extend_from_slice(piece);
            }
            (written, 0)
        });
        if written.get(*place..*place + data.len()) != Some(&data[..]) {
            let side = trace.ends[*end].side;
            let what = format!(
                "{side} reads {} bytes after {place} that are not those written there",
                data.len()
            );
            return Err(Fault::at(index, what));
        }
        *place += data.len();
    }
    Ok(())
}

/// What is read is part of what was written, in its order; all of it up to there when `full`.
fn pieces(evidence: &Evidence<'_>, full: bool, stream: bool) -> Result<(), Fault> {
    let mut rests: BTreeMap<usize, std::vec::IntoIter<&bytes::Bytes>> = BTreeMap::new();
    for (index, record) in evidence.trace.records.iter().enumerate() {
        let What::Read { end, data } = &record.what else {
            continue;
        };
        let rest = rests
            .entry(*end)
            .or_insert_with(|| units(evidence, *end, stream).into_iter());
        let found = if full {
            rest.next() == Some(data)
        } else {
            rest.any(|unit| unit == data)
        };
        if !found {
            let side = evidence.trace.ends[*end].side;
            return Err(Fault::at(
                index,
                format!("{side} reads {} bytes out of their order", data.len()),
            ));
        }
    }
    Ok(())
}
