//! The window of several paths: it counts from the association's pointer, which any path may bring (OP-55).

use super::evidence::{Evidence, Fault, Pdu};
use crate::chaos::Side;
use crate::chaos::trace::What;
use restp_base::sequence;
use restp_proto::wire::Flags;
use restp_proto::wire::{Keys, MpCapable, MpSetup};
use restp_services::connection_management::{EARLY_SEGMENTS, first_number};
use std::collections::BTreeMap;

/// What one side knows of its peer's window.
#[derive(Default)]
struct Sender {
    /// The highest pointer heard, or the first number of all.
    pointer: Option<u64>,
    /// The first number it may not send.
    granted: u64,
    /// A window that came before there was a number to count from.
    waiting: Option<u16>,
}

pub fn check(evidence: &Evidence<'_>) -> Result<(), Fault> {
    let mut senders: BTreeMap<(Side, usize), Sender> = BTreeMap::new();
    for (index, record) in evidence.trace.records.iter().enumerate() {
        let (packet, from, to) = match &record.what {
            What::Sent { packet, from, .. } => (*packet, Some(*from), None),
            What::Delivered { packet, to, .. } => (*packet, None, Some(*to)),
            _ => continue,
        };
        match (from, to) {
            (Some(from), _) => {
                let Some(pdu) = evidence.pdu(packet) else { continue };
                let Some(numbering) = pdu.numbering(from) else {
                    continue;
                };
                let sender = senders.entry(numbering).or_default();
                sender.begin(pdu);
                sender
                    .send(pdu)
                    .map_err(|what| Fault::at(index, format!("{from} {what}")))?;
            }
            (None, Some(to)) => {
                let Some(pdu) = evidence.intact(packet) else {
                    continue;
                };
                if let Some(numbering) = pdu.numbering(to) {
                    senders.entry(numbering).or_default().hear(pdu);
                }
            }
            (None, None) => {}
        }
    }
    Ok(())
}

impl Sender {
    /// Its key, which travels in its first packets, says where its numbers begin.
    fn begin(&mut self, pdu: &Pdu) {
        let Some(MpSetup::Capable(MpCapable {
            keys: Keys::Initiator(own) | Keys::Responder(own),
            ..
        })) = pdu.header.mp
        else {
            return;
        };
        let first = sequence::ORIGIN + u64::from(first_number(own)) + 1;
        if self.pointer.is_none() {
            self.pointer = Some(first);
            let early = self.waiting.map_or(EARLY_SEGMENTS, u64::from);
            self.granted = first + early;
        }
    }

    fn send(&mut self, pdu: &Pdu) -> Result<(), String> {
        let (Some(mapping), Some(pointer)) = (pdu.mapping(), self.pointer) else {
            return Ok(());
        };
        let number = sequence::expand(pointer, mapping.dsn);
        match number.checked_sub(self.granted) {
            None | Some(0) => Ok(()), // within, or the probe
            Some(beyond) => Err(format!(
                "sends number {} of the association, {beyond} beyond the window, and it is no probe",
                mapping.dsn
            )),
        }
    }

    fn hear(&mut self, pdu: &Pdu) {
        let header = &pdu.header;
        let told = header.dss.and_then(|dss| dss.data_ack);
        if header.flags.has(Flags::RST) {
            // What the peer has by then counts; a window does not.
            let told =
                |pointer| told.map_or(pointer, |number| sequence::expand(pointer, number).max(pointer));
            self.pointer = self.pointer.map(told);
            return;
        }
        let Some(window) = header.window else { return };
        let Some(pointer) = self.pointer else {
            self.waiting = Some(window).filter(|_| header.flags.has(Flags::SYN));
            return;
        };
        if !header.flags.has(Flags::ACK) {
            return;
        }
        let pointer = told.map_or(pointer, |number| sequence::expand(pointer, number).max(pointer));
        self.pointer = Some(pointer);
        self.granted = self.granted.max(pointer + u64::from(window));
    }
}
