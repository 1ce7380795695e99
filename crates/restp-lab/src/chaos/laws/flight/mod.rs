//! How much may be in flight, on each connection of each path for itself. What is in flight at least follows from the
//! packets ([`Outstanding`]), what the window can be at most from the algorithm's own rules and from what the network did
//! ([`Envelope`]). The engine's books are not asked.
//!
//! New data may only leave while both agree. Of the segments that are retransmitted, the first after each acknowledgement may
//! leave whatever the window says (RFC 5681 §3.2 (2), RFC 6675 §5 (4.3)). An open loop has no window, but a rate ([`Pace`]). Without congestion control everything that the
//! pointer has not passed counts, unless blocks or holes say what has left (OP-50).

mod envelope;
mod measured;
mod outstanding;
mod pace;

use super::evidence::{Evidence, Fault, Pdu};
use crate::chaos::Side;
use crate::chaos::trace::What;
use envelope::Envelope;
use outstanding::{Cause, Conclusions, Outstanding, Retransmission};
use pace::Pace;
use restp_base::time::{Duration, Time};
use restp_proto::composition::ValidComposition;
use restp_proto::wire::Flags;
use restp_services::ack::Detail;
use restp_services::congestion::CongestionChoice;
use restp_services::recovery::{FastRecovery, RecoveryChoice};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

/// One direction of one connection.
struct Flight {
    outstanding: Outstanding,
    limit: Limit,
    /// Losses below this number are answered.
    recover: u64,
    /// A segment may leave once more whatever the window says.
    urgent: bool,
    /// A packet of the set-up has left.
    asked: bool,
}

/// What limits what a sender sends.
#[derive(Clone)]
enum Limit {
    /// What is in flight.
    Window(Box<Envelope>),
    /// What leaves in a time.
    Pace(Pace),
}

impl Limit {
    /// None: nothing does that a trace could tell.
    fn of(composition: &ValidComposition, began: Time) -> Option<Self> {
        if !composition.ack.is_on() {
            return None;
        }
        let window = |envelope| Limit::Window(Box::new(envelope));
        let envelope = Envelope::new(composition, began).map(window);
        envelope.or_else(|| Pace::new(composition).map(Limit::Pace))
    }

    fn window(&mut self) -> Option<&mut Envelope> {
        match self {
            Limit::Window(envelope) => Some(envelope),
            Limit::Pace(_) => None,
        }
    }

    /// The sender's clock leaps.
    fn leap(&mut self, by: Duration) {
        match self {
            Limit::Window(envelope) => envelope.leap(by),
            Limit::Pace(pace) => pace.leap(),
        }
    }
}

/// A path of several is not suspected sooner.
const SILENCE: Duration = Duration::from_millis(30);

/// What a sender's composition means for its flight.
struct Terms {
    segment_bytes: u64,
    conclusions: Conclusions,
    /// The highest number asks whether a link is back, and takes no room (OP-51).
    probes: bool,
    /// Everything that the pointer has not passed counts.
    strict: bool,
    /// What the network lost tells what the window must be: no outage of one of several paths keeps it as it was.
    cuts: bool,
    /// So many bytes come on top: what each other path had not sent yet when it went silent, and when it failed; and one
    /// segment that left again and is named as missing once more, which the sender counts as lost.
    extra: u64,
}

pub fn check(evidence: &Evidence<'_>) -> Result<(), Fault> {
    if !evidence.case.changes.is_empty() {
        return Ok(()); // it knows of one algorithm, and of one way to find losses
    }
    let terms = Side::BOTH.map(|side| Terms::of(evidence, side));
    let mut carriers: BTreeMap<((Side, usize), u32), BTreeSet<usize>> = BTreeMap::new();
    let mut flights: BTreeMap<(Side, usize), Flight> = BTreeMap::new();
    let mut sharing: BTreeMap<(Side, usize), BTreeSet<usize>> = BTreeMap::new();
    for (index, record) in evidence.trace.records.iter().enumerate() {
        let (side, packet) = match &record.what {
            What::Sent { packet, from, .. } => (*from, *packet),
            What::Delivered { packet, to, .. } => (*to, *packet),
            What::Jumped { side, by } => {
                let of_side = flights.iter_mut().filter(|((of, _), _)| of == side);
                of_side.for_each(|(_, flight)| flight.leap(*by));
                continue;
            }
            _ => continue,
        };
        let sent = matches!(record.what, What::Sent { .. });
        let pdu = if sent {
            evidence.pdu(packet)
        } else {
            evidence.intact(packet)
        };
        let Some((pdu, strand)) = pdu.and_then(|pdu| Some((pdu, pdu.strand?))) else {
            continue;
        };
        let shares = pdu.header.services.shared_numbers;
        let mut siblings = Vec::new();
        if let Some(numbering) = pdu.numbering(side).filter(|_| shares) {
            let strands = sharing.entry(numbering).or_default();
            strands.insert(strand);
            siblings.extend(strands.iter().copied().filter(|other| *other != strand));
        }
        for sibling in siblings {
            if let Some(sibling) = flights.get_mut(&(side, sibling)) {
                match sent {
                    // What answers a set-up speaks of its number, which is another one where the paths still raced.
                    false if pdu.header.flags.has(Flags::SYN) => {}
                    false => sibling.on_received(record.at, pdu), // a report speaks of every path
                    true => sibling.hand_over(pdu),
                }
            }
        }
        let flight = match flights.entry((side, strand)) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => match Limit::of(evidence.composition(side), record.at) {
                Some(limit) => new.insert(Flight::new(limit, &terms[side.index()])),
                None => continue,
            },
        };
        if !sent {
            flight.on_received(record.at, pdu);
            continue;
        }
        let mut reinjected = false;
        let mapped = pdu.mapping().map(|mapping| mapping.dsn);
        let number = mapped.or(pdu.header.sequence.filter(|_| shares && pdu.is_data()));
        if let (Some(numbering), Some(number)) = (pdu.numbering(side), number) {
            // The first of what a silent path carries leaves at once on another, full or not, but once. Where paths share the
            // numbers a path that carries one once more may have lost it or not.
            let carriers = carriers.entry((numbering, number)).or_default();
            let is_new = carriers.insert(strand);
            reinjected = (is_new || shares) && carriers.len() > 1;
        }
        flight
            .send(
                record.at,
                (packet, pdu),
                reinjected,
                &terms[side.index()],
                evidence,
            )
            .map_err(|what| Fault::at(index, format!("{side} {what}")))?;
    }
    Ok(())
}

impl Terms {
    fn of(evidence: &Evidence<'_>, side: Side) -> Self {
        let composition: &ValidComposition = evidence.composition(side);
        let fixed = matches!(composition.congestion, CongestionChoice::None { .. });
        let others = evidence.case.paths() as u64 - 1;
        let segment_bytes = u64::from(composition.segment_bytes);
        let shares = evidence.shares_numbers();
        let timeout = composition.rto.floor.min(composition.handshake.rto);
        let blocks = matches!(composition.ack.detail, Detail::Sack { .. });
        Terms {
            segment_bytes,
            conclusions: Conclusions {
                // Silence makes a path yield what others can carry (OP-54).
                timeout: if shares { timeout.min(SILENCE) } else { timeout },
                shows: composition.reliability.retransmits() && !composition.pacing && !shares,
                forgets: !composition.reliability.retransmits(),
                departs: composition.recovery != RecoveryChoice::Pipe || !blocks,
                measures: !composition.reliability.encodes()
                    && !composition.loss_handling.probes()
                    && !shares
                    && matches!(composition.ack.detail, Detail::Pointer | Detail::Sack { .. }),
                starts_over: composition.recovery == RecoveryChoice::DuplicateAck
                    && composition.congestion.fast_recovery() == FastRecovery::None,
                asks: composition.loss_handling.probes(),
                counts: composition.recovery == RecoveryChoice::DuplicateAck,
            },
            probes: composition.loss_handling.probes(),
            strict: fixed && composition.ack.detail == Detail::Pointer,
            cuts: !evidence.several_paths() && !composition.reliability.encodes(),
            extra: (2 * others + 1) * segment_bytes,
        }
    }
}

impl Flight {
    fn new(limit: Limit, terms: &Terms) -> Self {
        Flight {
            outstanding: Outstanding::new(terms.conclusions),
            limit,
            recover: 0,
            urgent: false,
            asked: false,
        }
    }

    /// The sender's clock leaps.
    fn leap(&mut self, by: Duration) {
        self.outstanding.expire();
        self.limit.leap(by);
    }

    /// What it carries leaves by another path, which answers for it from now on.
    fn hand_over(&mut self, pdu: &Pdu) {
        if let Some(wire) = pdu.header.sequence.filter(|_| pdu.is_data()) {
            self.outstanding.hand_over(wire);
        }
    }

    /// A packet leaves. `reinjected`: it may leave at any time, and takes no room.
    fn send(
        &mut self,
        at: Time,
        (packet, pdu): (u64, &Pdu),
        reinjected: bool,
        terms: &Terms,
        evidence: &Evidence<'_>,
    ) -> Result<(), String> {
        let Some(wire) = pdu.header.sequence else {
            return Ok(());
        };
        let number = self.outstanding.number(wire);
        if pdu.header.flags.has(Flags::SYN)
            && pdu.payload.is_empty()
            && std::mem::replace(&mut self.asked, true)
        {
            self.outstanding.expire(); // the second one: its timer has run out, and early data may count as lost
        }
        if !pdu.is_data() {
            if pdu.header.flags.has(Flags::FIN) {
                self.outstanding.finish(number);
            }
            return Ok(());
        }
        let probe = terms.probes && number + 1 == self.outstanding.next();
        let again = self
            .outstanding
            .send(at, (number, packet), pdu, reinjected || probe);
        if let Some(again) = again {
            self.on_retransmission(at, &again, terms.cuts && !evidence.arrives(again.packet));
            if std::mem::take(&mut self.urgent) || again.cause != Cause::Feedback {
                return Ok(());
            }
        }
        if reinjected || probe {
            return Ok(());
        }
        self.judge(at, pdu.payload.len() as u64, terms)
    }

    /// A segment leaves once more. If the network had `lost` it, the algorithm has answered that, unless it is part of an
    /// episode that it has answered before.
    fn on_retransmission(&mut self, at: Time, again: &Retransmission, lost: bool) {
        let answered = again.number < self.recover || self.outstanding.first() < Some(self.recover);
        match (again.cause, self.limit.window()) {
            (Cause::Feedback, _) if answered => return,
            (Cause::Feedback, Some(envelope)) if lost => envelope.on_loss(at),
            (Cause::Feedback, Some(envelope)) => envelope.on_episode(),
            (Cause::Timeout, Some(envelope)) if lost => envelope.on_timeout(at),
            _ => {}
        }
        self.recover = self.outstanding.next();
    }

    fn judge(&mut self, at: Time, size: u64, terms: &Terms) -> Result<(), String> {
        let bytes = match terms.strict {
            true => self.outstanding.unacknowledged(),
            false => self.outstanding.in_flight(),
        };
        let most = match &mut self.limit {
            Limit::Window(envelope) => envelope.bytes(),
            Limit::Pace(pace) => {
                let allowed = pace.sends(at, size);
                let why = || format!("sends {size} bytes sooner than its rate allows");
                return allowed.then_some(()).ok_or_else(why);
            }
        };
        if bytes <= size || bytes <= most.saturating_add(terms.extra) {
            return Ok(());
        }
        Err(format!(
            "has {bytes} bytes in flight, and its window is {most} at most, in segments of {}",
            terms.segment_bytes
        ))
    }

    fn on_received(&mut self, at: Time, pdu: &Pdu) {
        let news = self.outstanding.on_received(at, pdu);
        if let Some(envelope) = self.limit.window() {
            envelope.on_acked(at, news);
        }
        self.urgent = true;
    }
}
