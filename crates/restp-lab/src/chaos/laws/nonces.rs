//! Numbers of a seal's packets. One key must not encrypt two packets under one number, or what they say can be read and others
//! forged (RFC 5116 §3.2.1); and who brings a packet again is not heard again (RFC 9001 §9.3). Packets that share a datagram with
//! an answer are not looked at: they take their numbers from the same place.

use super::evidence::{Evidence, Fault};
use crate::chaos::trace::{Mark, What};
use std::collections::BTreeSet;

pub fn check(evidence: &Evidence<'_>) -> Result<(), Fault> {
    let (mut sealed, mut opened) = (BTreeSet::new(), BTreeSet::new());
    // The packet that came last, until something of it is handed up.
    let mut arriving = None;
    for (index, record) in evidence.trace.records.iter().enumerate() {
        match record.what {
            What::Went {
                mark: Some(Mark::Packet(packet)),
                ..
            } if !sealed.insert(packet) => {
                let what = format!("two packets of a session have number {}", packet.number);
                return Err(Fault::at(index, what));
            }
            What::Came { mark, .. } => {
                arriving = match mark {
                    Some(Mark::Packet(packet)) => Some(packet),
                    _ => None,
                };
            }
            What::Delivered { .. } | What::Strange { .. } => {
                if let Some(packet) = arriving.take().filter(|packet| !opened.insert(*packet)) {
                    let what = format!("what packet {} carries is handed up again", packet.number);
                    return Err(Fault::at(index, what));
                }
            }
            _ => {}
        }
    }
    Ok(())
}
