//! Sent and copied = delivered + lost + on the way, packet by packet and so on every path, and what arrives is what was
//! sent, at the other end of the path that it took.

use super::evidence::{Evidence, Fault};
use crate::chaos::trace::{Ending, What};
use std::collections::{BTreeMap, BTreeSet};

pub fn check(evidence: &Evidence<'_>) -> Result<(), Fault> {
    let mut under_way = BTreeMap::new();
    let mut flipped = BTreeSet::new();
    for (index, record) in evidence.trace.packets().iter().enumerate() {
        match &record.what {
            What::Sent {
                packet,
                from,
                path,
                datagram,
                ..
            } => drop(under_way.insert(*packet, (from.other(), *path, datagram))),
            What::Copied { packet, of } => {
                let Some(original) = under_way.get(of).copied() else {
                    return Err(Fault::at(
                        index,
                        format!("packet {packet} is a copy of nothing on its way"),
                    ));
                };
                if flipped.contains(of) {
                    flipped.insert(*packet);
                }
                under_way.insert(*packet, original);
            }
            What::Flipped { packet } => drop(flipped.insert(*packet)),
            What::Dropped { packet } => {
                let gone = under_way.remove(packet);
                gone.ok_or_else(|| {
                    Fault::at(index, format!("packet {packet} is lost, but was not on its way"))
                })?;
            }
            What::Delivered {
                packet,
                to,
                path,
                datagram,
            } => {
                let Some((end, way, sent)) = under_way.remove(packet) else {
                    return Err(Fault::at(
                        index,
                        format!("packet {packet} arrives, but was not on its way"),
                    ));
                };
                if (end, way) != (*to, *path) {
                    let what = format!(
                        "packet {packet} arrives at {to} on path {path}, and left on path {way} for {end}"
                    );
                    return Err(Fault::at(index, what));
                }
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
