//! The window of several paths (where they share the numbers, it counts these: `one_space`): it counts from the association's pointer, which any path may bring (OP-55). A packet
//! grants what its sender had told when it left: the pointer in it, or without one the highest told before, and its
//! window from there. What has been told since does not move it, however late the packet arrives.

use super::evidence::{Evidence, Fault, Pdu};
use crate::chaos::Side;
use crate::chaos::trace::What;
use restp_base::sequence;
use restp_proto::wire::Flags;
use restp_proto::wire::{Keys, MpCapable, MpSetup};
use restp_services::connection_management::{EARLY_SEGMENTS, first_number};
use std::collections::BTreeMap;

/// One direction of one association.
#[derive(Default)]
struct Direction {
    /// The highest pointer that the receiver has told, or the first number of all.
    told: Option<u64>,
    /// The edge that each packet of the receiver grants, by the packet's number.
    grants: BTreeMap<u64, u64>,
    /// The first number that the sender may not send.
    granted: u64,
    /// A window that came before there was a number to count from.
    waiting: Option<u16>,
}

pub fn check(evidence: &Evidence<'_>) -> Result<(), Fault> {
    let mut directions: BTreeMap<(Side, usize), Direction> = BTreeMap::new();
    for (index, record) in evidence.trace.records.iter().enumerate() {
        match &record.what {
            What::Sent { packet, from, .. } => {
                let Some(pdu) = evidence.pdu(*packet) else {
                    continue;
                };
                if let Some(peers) = pdu.numbering(from.other()) {
                    directions.entry(peers).or_default().offer(*packet, pdu);
                }
                let Some(own) = pdu.numbering(*from) else { continue };
                let direction = directions.entry(own).or_default();
                direction.begin(pdu);
                direction
                    .send(pdu)
                    .map_err(|what| Fault::at(index, format!("{from} {what}")))?;
            }
            What::Delivered { packet, to, .. } => {
                let Some(pdu) = evidence.intact(*packet) else {
                    continue;
                };
                if let Some(own) = pdu.numbering(*to) {
                    let original = evidence.original(*packet);
                    directions.entry(own).or_default().on_received(original, pdu);
                }
            }
            _ => {}
        }
    }
    Ok(())
}

impl Direction {
    /// The sender's key, which travels in its first packets, says where its numbers begin.
    fn begin(&mut self, pdu: &Pdu) {
        let Some(MpSetup::Capable(MpCapable {
            keys: Keys::Initiator(own) | Keys::Responder(own),
            ..
        })) = pdu.header.mp
        else {
            return;
        };
        let first = sequence::ORIGIN + u64::from(first_number(own)) + 1;
        if self.told.is_none() {
            self.told = Some(first);
            let early = self.waiting.map_or(EARLY_SEGMENTS, u64::from);
            self.granted = first + early;
        }
    }

    fn send(&self, pdu: &Pdu) -> Result<(), String> {
        let (Some(mapping), Some(told)) = (pdu.mapping(), self.told) else {
            return Ok(());
        };
        let number = sequence::expand(told, mapping.dsn);
        match number.checked_sub(self.granted) {
            None | Some(0) => Ok(()), // within, or the probe
            Some(beyond) => Err(format!(
                "sends number {} of the association, {beyond} beyond the window, and it is no probe",
                mapping.dsn
            )),
        }
    }

    /// The receiver sends a packet: what it tells, and what it grants.
    fn offer(&mut self, packet: u64, pdu: &Pdu) {
        let header = &pdu.header;
        let Some(before) = self.told else { return };
        let pointer = header.dss.and_then(|dss| dss.data_ack);
        let told = pointer.map_or(before, |number| sequence::expand(before, number).max(before));
        self.told = Some(told);
        // What breaks a path off tells what has come; a window does not count there.
        let counts = header.flags.has(Flags::ACK) && !header.flags.has(Flags::RST);
        if let Some(window) = header.window.filter(|_| counts) {
            self.grants.insert(packet, told + u64::from(window));
        }
    }

    /// It reaches the sender.
    fn on_received(&mut self, packet: u64, pdu: &Pdu) {
        if self.told.is_none() {
            self.waiting = pdu.header.window.filter(|_| pdu.header.flags.has(Flags::SYN));
        }
        if let Some(edge) = self.grants.get(&packet) {
            self.granted = self.granted.max(*edge);
        }
    }
}
