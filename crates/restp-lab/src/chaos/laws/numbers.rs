//! A segment is immutable once numbered (OP-18).

use super::evidence::{Evidence, Fault};
use crate::chaos::trace::What;
use std::collections::BTreeMap;

pub fn check(evidence: &Evidence<'_>) -> Result<(), Fault> {
    let mut known = BTreeMap::new();
    for (index, record) in evidence.trace.records.iter().enumerate() {
        let What::Sent { packet, from, .. } = &record.what else {
            continue;
        };
        let Some(pdu) = evidence.pdu(*packet).filter(|pdu| pdu.is_data()) else {
            continue;
        };
        let (Some(number), Some(conversation)) = (pdu.header.sequence, pdu.conversation) else {
            continue;
        };
        let before = known.insert((*from, conversation, number), &pdu.payload);
        if before.is_some_and(|before| *before != pdu.payload) {
            return Err(Fault::at(
                index,
                format!("number {number} of {from} has another payload now"),
            ));
        }
    }
    Ok(())
}
