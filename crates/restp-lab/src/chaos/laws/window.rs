//! Nothing is sent beyond the window that has reached the sender (ResTP §3.1.3), but one probe (OP-25): with
//! retransmits it is the first number outside, without them each probe is a new number, one per timeout. Several paths
//! share one window, which counts the association's numbers (OP-55).

use super::evidence::{Evidence, Fault, Pdu};
use super::{one_space, shared_window as shared};
use crate::chaos::Side;
use crate::chaos::trace::What;
use restp_base::sequence;
use restp_base::time::{Duration, Time};
use restp_proto::wire::Flags;
use restp_services::flow_control::FlowControl;
use std::collections::BTreeMap;

/// What one side knows of its peer's window.
#[derive(Default)]
struct Sender {
    /// The number sent last.
    near: Option<u64>,
    /// The first number it may not send.
    granted: Option<u64>,
    /// A window that came before there was a number to count from.
    waiting: Option<u16>,
    /// It opened, and has no answer yet: nothing else counts (RFC 9293 §3.10.7.3).
    asks: bool,
    probed: Option<Time>,
    highest: u64,
}

/// What a sender may do beyond the window.
struct Probes {
    /// Least distance of two probes of a sender that does not retransmit.
    interval: Option<Duration>,
    /// During an outage the last data packet asks whether the link is back, wherever the window ends (OP-51).
    last: bool,
}

pub fn check(evidence: &Evidence<'_>) -> Result<(), Fault> {
    if evidence.composition(Side::Client).flow_control == FlowControl::None {
        return Ok(());
    }
    if evidence.shares_numbers() {
        return one_space::check(evidence);
    }
    if evidence.several_paths() {
        return shared::check(evidence);
    }
    let mut senders: BTreeMap<(Side, usize), Sender> = BTreeMap::new();
    for (index, record) in evidence.trace.records.iter().enumerate() {
        match &record.what {
            What::Sent { packet, from, .. } => {
                let Some(pdu) = evidence.pdu(*packet) else {
                    continue;
                };
                let Some(conversation) = pdu.conversation else {
                    continue;
                };
                let sender = sender_of(&mut senders, (*from, conversation));
                let composition = evidence.composition(*from);
                let probes = Probes {
                    interval: (!composition.reliability.retransmits()).then_some(composition.rto.floor),
                    last: composition.loss_handling.probes(),
                };
                sender
                    .send(record.at, pdu, &probes)
                    .map_err(|what| Fault::at(index, format!("{from} {what}")))?;
            }
            What::Delivered { packet, to, .. } => {
                let Some(pdu) = evidence.intact(*packet) else {
                    continue;
                };
                let Some(conversation) = pdu.conversation else {
                    continue;
                };
                sender_of(&mut senders, (*to, conversation)).on_received(pdu);
            }
            What::Jumped { side, .. } => {
                // Its timer counts by its own clock.
                let of_side = senders.iter_mut().filter(|((of, _), _)| of == side);
                of_side.for_each(|(_, sender)| sender.probed = None);
            }
            _ => {}
        }
    }
    Ok(())
}

fn sender_of(senders: &mut BTreeMap<(Side, usize), Sender>, of: (Side, usize)) -> &mut Sender {
    senders.entry(of).or_insert_with(|| Sender {
        asks: of.0 == Side::Client,
        ..Sender::default()
    })
}

impl Sender {
    fn send(&mut self, at: Time, pdu: &Pdu, probes: &Probes) -> Result<(), String> {
        let Some(wire) = pdu.header.sequence else {
            return Ok(());
        };
        let number = sequence::expand(self.near.unwrap_or(sequence::ORIGIN + u64::from(wire)), wire);
        if self.near.is_none()
            && let Some(window) = self.waiting
        {
            self.granted = Some(number + 1 + u64::from(window));
        }
        self.near = Some(number);
        let before = self.highest;
        if pdu.is_data() {
            self.highest = before.max(number);
        }
        let Some(granted) = self.granted.filter(|granted| pdu.is_data() && number >= *granted) else {
            return Ok(());
        };
        let again = probes.last && number == before;
        let allowed = match probes.interval {
            None => number == granted,
            Some(interval) => self.probed.is_none_or(|probed| at.since(probed) >= interval),
        };
        self.probed = Some(at);
        if allowed || again {
            Ok(())
        } else {
            Err(format!(
                "sends number {}, {} beyond the window, and it is no probe",
                sequence::truncate(number),
                number - granted
            ))
        }
    }

    fn on_received(&mut self, pdu: &Pdu) {
        let header = &pdu.header;
        self.asks &= !header.flags.has(Flags::SYN | Flags::ACK);
        let Some(window) = header.window.filter(|_| !self.asks) else {
            return;
        };
        match (self.near, header.acknowledgement) {
            (Some(near), Some(number)) if header.flags.has(Flags::ACK) && !header.flags.has(Flags::RST) => {
                let edge = sequence::expand(near, number) + u64::from(window);
                self.granted = Some(self.granted.map_or(edge, |granted| granted.max(edge)));
            }
            (None, _) if header.flags.has(Flags::SYN) => self.waiting = Some(window),
            _ => {}
        }
    }
}
