//! A segment is immutable once numbered (OP-18), by its path and by its association (ResTP §3.1.13).

use super::evidence::{Evidence, Fault};
use crate::chaos::trace::What;
use bytes::Bytes;
use std::collections::BTreeMap;

pub fn check(evidence: &Evidence<'_>) -> Result<(), Fault> {
    let (mut known, mut shared) = (BTreeMap::new(), BTreeMap::new());
    for (index, record) in evidence.trace.records.iter().enumerate() {
        let What::Sent { packet, from, .. } = &record.what else {
            continue;
        };
        let Some(pdu) = evidence.pdu(*packet).filter(|pdu| pdu.is_data()) else {
            continue;
        };
        let (Some(number), Some(strand), Some(numbering)) =
            (pdu.header.sequence, pdu.strand, pdu.numbering(*from))
        else {
            continue;
        };
        let changes = |before: Option<&Bytes>| before.is_some_and(|before| *before != pdu.payload);
        if pdu.header.services.shared_numbers {
            if changes(shared.insert((numbering, number), &pdu.payload)) {
                let what = format!("number {number}, which its paths share, has another payload now");
                return Err(Fault::at(index, format!("{from}: {what}")));
            }
            if pdu.header.dss.is_some() {
                let what =
                    format!("number {number} of {from} is mapped, although its paths share the numbers");
                return Err(Fault::at(index, what));
            }
            continue;
        }
        if changes(known.insert((*from, strand, number), &pdu.payload)) {
            return Err(Fault::at(
                index,
                format!("number {number} of {from} has another payload now"),
            ));
        }
        if !evidence.several_paths() {
            continue;
        }
        let mapping = pdu.header.dss.and_then(|dss| dss.mapping);
        let Some(mapping) = mapping.filter(|mapping| (mapping.ssn, mapping.length) == (number, 1)) else {
            let what = format!("number {number} of {from} is not mapped to one of the association");
            return Err(Fault::at(index, what));
        };
        if changes(shared.insert((numbering, mapping.dsn), &pdu.payload)) {
            let what = format!(
                "number {} of the association has another payload now",
                mapping.dsn
            );
            return Err(Fault::at(index, format!("{from}: {what}")));
        }
    }
    Ok(())
}
