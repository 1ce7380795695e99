//! An encoded packet is the sum of the segments it names, each times its coefficient; in an XOR every segment is encoded once (OP-38,
//! OP-39).

use super::evidence::{Evidence, Fault, Pdu};
use crate::chaos::Side;
use crate::chaos::trace::What;
use bytes::Bytes;
use restp_base::sequence;
use restp_proto::wire::ErrorControl;
use restp_services::reliability::{FecCode, LENGTH_BYTES, add_scaled};
use std::collections::{BTreeMap, BTreeSet};

/// Whose numbers they are: those of one path, or of all that share them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Space {
    OfPath(usize),
    Of((Side, usize)),
}

/// What one side sent in one space of numbers.
#[derive(Default)]
struct Sent<'a> {
    near: Option<u64>,
    segments: BTreeMap<u64, &'a Bytes>,
    encoded: BTreeSet<u64>,
}

pub fn check(evidence: &Evidence<'_>) -> Result<(), Fault> {
    if evidence.changes(&["reliability", "fec"]) {
        return Ok(()); // each era has a code of its own
    }
    let mut sent = BTreeMap::new();
    for (index, record) in evidence.trace.records.iter().enumerate() {
        let What::Sent { packet, from, .. } = &record.what else {
            continue;
        };
        let Some(pdu) = evidence.pdu(*packet) else {
            continue;
        };
        let (Some(wire), Some(strand), Some(numbering)) =
            (pdu.header.sequence, pdu.strand, pdu.numbering(*from))
        else {
            continue;
        };
        let is_encoded = pdu.header.services.error.has(ErrorControl::ENC) && !pdu.payload.is_empty();
        if !pdu.is_data() && !is_encoded {
            continue; // a path that is dropped may have had another number in its set-up
        }
        let shares = pdu.header.services.shared_numbers;
        let space = if shares {
            Space::Of(numbering)
        } else {
            Space::OfPath(strand)
        };
        let sent: &mut Sent<'_> = sent.entry((*from, space)).or_default();
        let number = sequence::expand(sent.near.unwrap_or(sequence::ORIGIN + u64::from(wire)), wire);
        sent.near = Some(number);
        if pdu.is_data() {
            sent.segments.insert(number, &pdu.payload);
        } else {
            sent.judge(number, pdu, evidence.case.seal.is_some())
                .map_err(|what| Fault::at(index, format!("{from} {what}")))?;
        }
    }
    Ok(())
}

impl Sent<'_> {
    /// Under a seal what an address that has proved nothing would get may have been kept back, and cannot be looked at.
    fn judge(&mut self, first: u64, pdu: &Pdu, is_sealed: bool) -> Result<(), String> {
        let Some(fec) = pdu.header.fec else {
            return Err("sends an encoded packet that does not say of what".into());
        };
        let Some(code) = FecCode::from_kind(fec.kind) else {
            return Err(format!("sends a code {} that nobody knows", fec.kind));
        };
        if !code.allows(fec.range) {
            return Err(format!("sends an encoded packet of {:#x}", fec.range));
        }
        for number in code.covered(first, fec.range) {
            if !self.encoded.insert(number) && code != FecCode::Rlc {
                return Err(format!("encodes number {} twice", sequence::truncate(number)));
            }
        }
        let mut sum = pdu.payload.to_vec();
        for (number, coefficient) in code.covered(first, fec.range).zip(code.coefficients(fec.range)) {
            let payload = self.segments.get(&number).map_or(&[][..], |payload| payload); // none: the FIN
            let length = (payload.len() as u16).to_be_bytes();
            if sum.len() < LENGTH_BYTES + payload.len() {
                return Err(format!("cuts number {} short", sequence::truncate(number)));
            }
            let term: Vec<u8> = length.iter().chain(payload).copied().collect();
            add_scaled(&mut sum, coefficient, &term);
        }
        let is_unseen = |number| !self.segments.contains_key(&number);
        let is_kept_back = is_sealed && code.covered(first, fec.range).any(is_unseen);
        match sum.iter().all(|byte| *byte == 0) || is_kept_back {
            true => Ok(()),
            false => Err("sends an encoded packet that is not the sum of its segments".into()),
        }
    }
}
