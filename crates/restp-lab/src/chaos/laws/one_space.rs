//! The window of several paths that share one space of numbers: any path may bring it, and it counts from the pointer beside it. A
//! shut one is asked for without data, so that nothing is sent beyond it.

use super::evidence::{Evidence, Fault, Pdu};
use crate::chaos::Side;
use crate::chaos::trace::What;
use restp_base::sequence;
use restp_proto::wire::Flags;
use std::collections::BTreeMap;

/// One direction of one association.
#[derive(Default)]
struct Direction {
    /// The number sent last.
    near: Option<u64>,
    /// The first number that may not be sent.
    granted: u64,
}

/// What the answer to a SYN grants, by the connection that it is of: pointer and window.
type Answers = BTreeMap<(Side, usize), (u32, u16)>;

pub fn check(evidence: &Evidence<'_>) -> Result<(), Fault> {
    let mut directions: BTreeMap<(Side, usize), Direction> = BTreeMap::new();
    let mut answers = Answers::new();
    for (index, record) in evidence.trace.records.iter().enumerate() {
        match &record.what {
            What::Sent { packet, from, .. } => {
                let pdu = evidence.pdu(*packet).filter(|pdu| pdu.is_data());
                let Some((pdu, own)) = pdu.and_then(|pdu| Some((pdu, pdu.numbering(*from)?))) else {
                    continue;
                };
                let answer = pdu.strand.and_then(|strand| answers.get(&(*from, strand)));
                let direction = directions.entry(own).or_default();
                direction
                    .send(pdu, answer)
                    .map_err(|what| Fault::at(index, format!("{from} {what}")))?;
            }
            What::Delivered { packet, to, .. } => {
                let Some(pdu) = evidence.intact(*packet) else {
                    continue;
                };
                let Some((pointer, window)) = grant(pdu) else {
                    continue;
                };
                let (Some(own), Some(strand)) = (pdu.numbering(*to), pdu.strand) else {
                    continue;
                };
                let direction = directions.entry(own).or_default();
                match direction.near {
                    Some(_) if !pdu.header.flags.has(Flags::SYN) => direction.on_received(pointer, window),
                    Some(_) => {}
                    // Before its first number nobody knows which connection founds the association.
                    None => {
                        let before = answers.insert((*to, strand), (pointer, window));
                        let (edge, later) = (
                            |(at, of): (u32, u16)| at.wrapping_add(of.into()),
                            (pointer, window),
                        );
                        if let Some(before) = before.filter(|before| is_after(edge(*before), edge(later))) {
                            answers.insert((*to, strand), before);
                        }
                    }
                }
            }
            _ => {}
        }
    }
    Ok(())
}

fn is_after(a: u32, b: u32) -> bool {
    a.wrapping_sub(b) as i32 > 0
}

/// What a packet grants: its window counts from its pointer.
fn grant(pdu: &Pdu) -> Option<(u32, u16)> {
    let header = &pdu.header;
    let counts = header.flags.has(Flags::ACK) && !header.flags.has(Flags::RST);
    Some((header.acknowledgement?, header.window.filter(|_| counts)?))
}

impl Direction {
    fn send(&mut self, pdu: &Pdu, answer: Option<&(u32, u16)>) -> Result<(), String> {
        let Some(wire) = pdu.header.sequence else {
            return Ok(());
        };
        let is_first = self.near.is_none();
        let number = sequence::expand(self.near.unwrap_or(sequence::ORIGIN + u64::from(wire)), wire);
        self.near = Some(number);
        if let Some((pointer, window)) = answer.filter(|_| is_first) {
            self.on_received(*pointer, *window);
        }
        match number.checked_sub(self.granted) {
            None => Ok(()),
            Some(beyond) => Err(format!(
                "sends number {wire}, {beyond} beyond the window that its paths share"
            )),
        }
    }

    fn on_received(&mut self, pointer: u32, window: u16) {
        if let Some(near) = self.near {
            let edge = sequence::expand(near, pointer) + u64::from(window);
            self.granted = self.granted.max(edge);
        }
    }
}
