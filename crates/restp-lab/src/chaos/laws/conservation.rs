//! Sent and copied = delivered + lost + on the way, packet by packet, and what arrives is what was sent.

use super::evidence::{Evidence, Fault};
use crate::chaos::trace::{Ending, What};
use std::collections::{BTreeMap, BTreeSet};

pub fn check(evidence: &Evidence<'_>) -> Result<(), Fault> {
    let mut under_way = BTreeMap::new();
    let mut flipped = BTreeSet::new();
    for (index, record) in evidence.trace.records.iter().enumerate() {
        match &record.what {
            What::Sent { packet, datagram, .. } => drop(under_way.insert(*packet, datagram)),
            What::Copied { packet, of } => {
                let Some(datagram) = under_way.get(of).copied() else {
                    return Err(Fault::at(
                        index,
                        format!("packet {packet} is a copy of nothing on its way"),
                    ));
                };
                if flipped.contains(of) {
                    flipped.insert(*packet);
                }
                under_way.insert(*packet, datagram);
            }
            What::Flipped { packet } => drop(flipped.insert(*packet)),
            What::Dropped { packet } => {
                let gone = under_way.remove(packet);
                gone.ok_or_else(|| {
                    Fault::at(index, format!("packet {packet} is lost, but was not on its way"))
                })?;
            }
            What::Delivered { packet, datagram, .. } => {
                let Some(sent) = under_way.remove(packet) else {
                    return Err(Fault::at(
                        index,
                        format!("packet {packet} arrives, but was not on its way"),
                    ));
                };
                let same = sent.head == datagram.head && sent.body == datagram.body;
                if !same && !flipped.contains(packet) {
                    return Err(Fault::at(
                        index,
                        format!("packet {packet} arrives changed, and no bit flipped"),
                    ));
                }
            }
            _ => {}
        }
    }
    let (left, counted) = (under_way.len() as u64, evidence.trace.in_flight);
    let cut_short = matches!(evidence.trace.ending, Ending::Stuck | Ending::Storm);
    if left != counted && !cut_short {
        let what = format!("{left} packets neither arrived nor were lost, and {counted} are on their way");
        return Err(Fault::whole(what));
    }
    Ok(())
}
