//! A packet's services are those of its era (docs/adr/0007). What the eras are follows from what was said on the wire: a proposal has the first number of its
//! own direction, what it asks for, and is in force when it was accepted with the first number of the other. No
//! counter of an engine is asked. A message that was forged, or is stale, makes no era: nobody sends as if it had.

use super::evidence::{Evidence, Fault, Pdu};
use crate::chaos::Side;
use crate::chaos::trace::What;
use restp_base::sequence;
use restp_proto::wire::{EraMessage, EraVerb, Flags, Services};
use std::collections::BTreeMap;

/// One era that was accepted: where it begins in each direction, and its services.
struct Era {
    number: u32,
    first: [u64; 2],
    services: Services,
}

/// What was said so far in one conversation.
#[derive(Default)]
struct Talk {
    /// Proposals by proposer, attempt and era: the first number of their own direction, and what they ask for.
    proposed: BTreeMap<(usize, u16, u32), (u64, Services)>,
    /// Those that were accepted, in their order.
    eras: Vec<Era>,
    /// The services of the set-up.
    first: Option<Services>,
    /// The latest number of each side.
    near: [Option<u64>; 2],
}

pub fn check(evidence: &Evidence<'_>) -> Result<(), Fault> {
    if evidence.several_paths() {
        return Ok(()); // they have one
    }
    let mut talks: BTreeMap<usize, Talk> = BTreeMap::new();
    for (index, record) in evidence.trace.records.iter().enumerate() {
        let What::Sent { packet, from, .. } = &record.what else {
            continue;
        };
        let Some(pdu) = evidence.pdu(*packet) else {
            continue;
        };
        let Some(strand) = pdu.strand else { continue };
        let talk = talks.entry(strand).or_default();
        talk.on_sent(*from, pdu)
            .map_err(|what| Fault::at(index, format!("{from} {what}")))?;
    }
    Ok(())
}

impl Talk {
    fn on_sent(&mut self, from: Side, pdu: &Pdu) -> Result<(), String> {
        let header = &pdu.header;
        if header.flags.has(Flags::SYN) {
            self.first = Some(header.services);
            self.near[from.index()] = header.sequence.map(|number| sequence::ORIGIN + u64::from(number));
            return Ok(());
        }
        let (Some(number), Some(first)) = (header.sequence, self.first) else {
            return Ok(()); // nothing names its place
        };
        if header.about_eras {
            if let Some(message) = EraMessage::parse(&pdu.payload) {
                self.on_message(from.index(), message, header.services);
            }
            return Ok(());
        }
        if !pdu.is_data() {
            return Ok(()); // of the era that its sender is in, which no number says
        }
        let near = self.near[from.index()].unwrap_or(sequence::ORIGIN + u64::from(number));
        let number = sequence::expand(near, number);
        self.near[from.index()] = Some(near.max(number));
        let era = self
            .eras
            .iter()
            .rev()
            .find(|era| era.first[from.index()] <= number);
        let (of, services) = era.map_or((0, first), |era| (era.number, era.services));
        if header.era == of.is_multiple_of(2) {
            return Err(format!("sends number {number} as if it were not of era {of}"));
        }
        if !services.agree(&header.services) {
            return Err(format!("sends number {number} of era {of} with other services"));
        }
        Ok(())
    }

    fn on_message(&mut self, from: usize, message: EraMessage, now: Services) {
        match message.verb {
            EraVerb::Propose {
                order,
                error,
                boundary,
                ..
            } => {
                let services = Services { order, error, ..now };
                let first = self.expanded(from, boundary);
                self.proposed
                    .insert((from, message.attempt, message.era), (first, services));
            }
            EraVerb::Accept { boundary } => {
                let said = self.proposed.get(&(1 - from, message.attempt, message.era));
                let is_next = message.era == self.eras.last().map_or(0, |era| era.number) + 1;
                if let Some((theirs, services)) = said.copied().filter(|_| is_next) {
                    let mut first = [theirs; 2];
                    first[from] = self.expanded(from, boundary);
                    self.eras.push(Era {
                        number: message.era,
                        first,
                        services,
                    });
                }
            }
            EraVerb::Refuse | EraVerb::Confirm => {}
        }
    }

    fn expanded(&self, side: usize, number: u32) -> u64 {
        let near = self.near[side].unwrap_or(sequence::ORIGIN + u64::from(number));
        sequence::expand(near, number)
    }
}
