//! Early data is taken at most once, whoever sends it again and however often a server starts again: in another life it may
//! come once more under the keys of a session, because its client cannot know what became of it.

use super::evidence::{Evidence, Fault};
use crate::chaos::Side;
use crate::chaos::trace::What;
use std::collections::BTreeSet;

pub fn check(evidence: &Evidence<'_>) -> Result<(), Fault> {
    let mut early = BTreeSet::new();
    let mut in_this_life = BTreeSet::new();
    for (index, record) in evidence.trace.records.iter().enumerate() {
        match record.what {
            What::Restarted { side: Side::Server } => in_this_life.clear(),
            What::Delivered { packet, .. } if in_this_life.contains(&packet) => {
                let what = format!("packet {packet} was early data, and is taken again");
                return Err(Fault::at(index, what));
            }
            What::Early { packet } => {
                if !early.insert(packet) {
                    let what = format!("packet {packet} is taken as early data twice");
                    return Err(Fault::at(index, what));
                }
                in_this_life.insert(packet);
            }
            _ => {}
        }
    }
    Ok(())
}
