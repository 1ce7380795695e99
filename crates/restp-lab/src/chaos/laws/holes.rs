//! Where a flow may have holes, each has a right to be there. A segment that arrives is read, unless it came too late or
//! found no room; and in a run in which no packet was lost, late or hit, everything written is read.

use super::evidence::{Evidence, Fault, Pdu};
use crate::chaos::trace::What;
use crate::chaos::{Attack, Fault as CaseFault, Side, liveness, network};
use bytes::Bytes;
use restp_base::flow::CloseReason;
use restp_base::sequence;
use restp_base::time::{Duration, Time};
use restp_proto::composition::Composition;
use restp_proto::wire::Flags;
use restp_services::connection_management::Establishment;
use restp_services::flow_control::FlowControl;
use restp_services::reliability::FecCode;
use std::collections::{BTreeMap, BTreeSet};

pub fn check(evidence: &Evidence<'_>) -> Result<(), Fault> {
    if evidence.composition(Side::Client).reliability.is_full() {
        return Ok(());
    }
    arrivals(evidence)?;
    lossless(evidence)
}

/// A reader's side of one conversation.
#[derive(Default)]
struct Reader<'a> {
    near: Option<u64>,
    /// The first number that it waited for, by its first acknowledgement.
    first: Option<u64>,
    /// When each number arrived first.
    arrived: BTreeMap<u64, Time>,
    /// When an encoded packet may have repaired a number: that is an arrival, too.
    repaired: BTreeMap<u64, Time>,
    /// What should be read: the record of its arrival, and its payload.
    due: Vec<(usize, &'a Bytes)>,
    /// Payload bytes that arrived, and that were read.
    bytes: [u64; 2],
    /// Its set-up is complete.
    open: bool,
    /// The end of the peer's data has arrived.
    over: bool,
}

/// What the reader promises.
struct Terms {
    /// A hole is held this long at least, from the first later arrival on.
    hold: Duration,
    /// Segments and bytes for which there is room.
    window: [u64; 2],
    connectionless: bool,
    /// Of what comes before the client has heard it, a server takes as much as it likes.
    takes_early: bool,
}

/// What arrives is read, by whichever end of its side.
fn arrivals(evidence: &Evidence<'_>) -> Result<(), Fault> {
    if evidence.several_paths() {
        return Ok(()); // they are for flows without holes
    }
    let moves = |fault: &CaseFault| matches!(fault, CaseFault::Rebind { .. });
    let elsewhere = |attack: &Attack| matches!(attack, Attack::Replay { elsewhere: true, .. });
    let copied = evidence
        .case
        .seal
        .as_ref()
        .is_some_and(|seal| seal.attacks.iter().any(elsewhere));
    if copied || evidence.case.faults.iter().any(moves) {
        return Ok(()); // what comes from an address that is not known yet may be dropped
    }
    let terms = Side::BOTH.map(|side| Terms::of(evidence, side));
    // Who does not read has no room, and who is impatient is gone before a hole has been held long enough.
    let absent = Side::BOTH.map(|side| {
        let composition = evidence.composition(side);
        evidence.pauses(side) || liveness::may_give_up(evidence.case, side, composition)
    });
    let mut readers: BTreeMap<(Side, usize), Reader<'_>> = BTreeMap::new();
    let mut live: BTreeSet<(Side, usize)> = BTreeSet::new();
    let mut read: [BTreeSet<&Bytes>; 2] = Default::default();
    for (index, record) in evidence.trace.records.iter().enumerate() {
        let key = |end: &usize| {
            let end = evidence.trace.ends[*end];
            (end.side, end.conversation)
        };
        match &record.what {
            What::Began { end } if evidence.finishes(*end) => drop(live.insert(key(end))),
            What::Closed { end, .. } => drop(live.remove(&key(end))),
            What::Read { end, data } => {
                let (side, conversation) = key(end);
                readers.entry((side, conversation)).or_default().bytes[1] += data.len() as u64;
                read[side.index()].insert(data);
            }
            What::Sent { packet, from, .. } => {
                if let Some(pdu) = evidence.pdu(*packet)
                    && let Some(conversation) = pdu.conversation
                {
                    readers.entry((*from, conversation)).or_default().tell(pdu);
                }
            }
            What::Delivered { packet, to, .. } => {
                let Some(pdu) = evidence.intact(*packet) else {
                    continue;
                };
                let Some(conversation) = pdu.conversation else {
                    continue;
                };
                let reader = readers.entry((*to, conversation)).or_default();
                let known = live.contains(&(*to, conversation)) && !absent[to.index()];
                if reader.take(record.at, pdu, *to, &terms[to.index()]) && known {
                    reader.due.push((index, &pdu.payload));
                }
            }
            _ => {}
        }
    }
    for ((side, _), reader) in &readers {
        let missing = |(_, payload): &&(usize, &Bytes)| !read[side.index()].contains(payload);
        if let Some((index, payload)) = reader.due.iter().find(missing) {
            let what = format!(
                "{} bytes arrive at {side} in time and where there is room, and are never read",
                payload.len()
            );
            return Err(Fault::at(*index, what));
        }
    }
    Ok(())
}

impl Terms {
    fn of(evidence: &Evidence<'_>, side: Side) -> Self {
        let composition: &Composition = evidence.composition(side);
        let jumps = evidence
            .trace
            .records
            .iter()
            .any(|record| matches!(record.what, What::Jumped { side: of, .. } if of == side));
        let segments = match composition.flow_control {
            FlowControl::Window(parameters) => u64::from(parameters.segments),
            FlowControl::None => u64::MAX,
        };
        Terms {
            // The receiver's estimate is no shorter than the propagation; perhaps it has none. Queues make it as long as
            // they like, and a deadline leaves less time the longer it is.
            hold: if jumps || (composition.hold.hold.is_none() && composition.hold.deadline.is_some()) {
                Duration::ZERO
            } else {
                // Copies beside the path come sooner than it lets anything through.
                let copies = |attack: &Attack| matches!(attack, Attack::Replay { .. });
                let seal = evidence.case.seal.as_ref();
                let shortest = if seal.is_some_and(|seal| seal.attacks.iter().any(copies)) {
                    Duration::ZERO
                } else {
                    network::shortest_round_trip(evidence.case)
                };
                let holds = [None, Some(shortest)].map(|rtt| composition.hold.time(rtt));
                holds[0].min(holds[1])
            },
            window: [
                segments,
                segments.saturating_mul(u64::from(composition.segment_bytes)),
            ],
            connectionless: composition.establishment == Establishment::Connectionless,
            takes_early: composition.establishment.is_opportunistic() && composition.ack.is_on(),
        }
    }
}

impl Reader<'_> {
    /// A packet arrives. True when it carries data that has to be read.
    fn take(&mut self, at: Time, pdu: &Pdu, side: Side, terms: &Terms) -> bool {
        let flags = pdu.header.flags;
        let opens = flags.has(Flags::SYN);
        let was_open = self.open;
        let confirms = !opens && (flags.has(Flags::ACK) || !terms.takes_early);
        self.open |= if side == Side::Client { opens } else { confirms };
        let number = pdu.header.sequence.map(|wire| {
            let near = self.near.unwrap_or(sequence::ORIGIN + u64::from(wire));
            let number = sequence::expand(near, wire);
            self.near = Some(number);
            number
        });
        let was_over = self.over;
        self.over |= flags.has(Flags::FIN) && number.is_none();
        if let Some(fin) = number.filter(|_| flags.has(Flags::FIN)) {
            self.arrived.entry(fin).or_insert(at); // what is missing before it is missing from now on
        }
        if let (Some(first), Some(fec)) = (number.filter(|_| !pdu.is_data()), pdu.header.fec)
            && let Some(code) = FecCode::from_kind(fec.kind)
        {
            let may_repair = code.covered(first, fec.range);
            self.repaired.extend(may_repair.map(|number| (number, at)));
        }
        if !pdu.is_data() || opens || flags.has(Flags::RST) {
            return false;
        }
        let Some(number) = number else {
            return (was_open || terms.connectionless) && !was_over;
        };
        if self.arrived.contains_key(&number) {
            return false;
        }
        let size = pdu.payload.len() as u64;
        let in_time = self.is_in_time(at, number, terms);
        let fits = self.fits(number, size, terms);
        self.arrived.insert(number, at);
        self.bytes[0] += size;
        (was_open || terms.connectionless) && in_time && fits
    }

    /// It sends a packet, and tells the number that it waits for.
    fn tell(&mut self, pdu: &Pdu) {
        let counts = pdu.header.flags.has(Flags::ACK) && !pdu.header.flags.has(Flags::RST);
        if let (Some(near), Some(wire)) = (self.near, pdu.header.acknowledgement.filter(|_| counts)) {
            self.first.get_or_insert(sequence::expand(near, wire));
        }
    }

    /// Nothing later came so long ago that the hole may have been skipped.
    fn is_in_time(&self, at: Time, number: u64, terms: &Terms) -> bool {
        let mut later = [&self.arrived, &self.repaired]
            .map(|numbers| numbers.range(number + 1..))
            .into_iter()
            .flatten();
        later.all(|(_, since)| at.since(*since) < terms.hold)
    }

    /// It lies within a window from the lowest number that is missing, and what is held leaves room for it. The very first
    /// numbers may be missing: then only what the reader tells says where they begin.
    fn fits(&self, number: u64, size: u64, terms: &Terms) -> bool {
        let [segments, bytes] = terms.window;
        let arrived = self.arrived.keys().next().copied();
        let lowest = [arrived, self.first].into_iter().flatten().fold(number, u64::min);
        let run = self
            .arrived
            .keys()
            .zip(lowest..)
            .take_while(|(arrived, next)| *arrived == next);
        let missing = lowest + run.count() as u64;
        let held = self.bytes[0].saturating_sub(self.bytes[1]);
        number.saturating_sub(missing) < segments && held + size <= bytes
    }
}

/// May what left by one of several paths be behind what left after it by another for longer than `side` holds a hole? A queue
/// alone can do that.
fn may_be_late(evidence: &Evidence<'_>, side: Side) -> bool {
    let segment = u64::from(evidence.composition(side).segment_bytes);
    let hold = Terms::of(evidence, side).hold;
    evidence.several_paths() && network::longest_of_all(evidence.case, segment) >= hold
}

/// In a run in which no packet was lost, late or hit, no machine restarted, every reader read and nobody is impatient.
fn lossless(evidence: &Evidence<'_>) -> Result<(), Fault> {
    let (trace, case) = (evidence.trace, evidence.case);
    let attacked = case.seal.as_ref().is_some_and(|seal| !seal.attacks.is_empty());
    let lost = trace
        .packets()
        .iter()
        .any(|record| matches!(record.what, What::Dropped { .. }));
    let gives_up = |side: &Side| liveness::may_give_up(case, *side, evidence.composition(*side));
    if lost || attacked || !case.faults.is_empty() || Side::BOTH.iter().any(gives_up) {
        return Ok(());
    }
    for (reader, end) in trace.ends.iter().enumerate() {
        let Some(writer) = trace.counterpart(reader) else {
            continue;
        };
        let finished = |end| trace.closed(end) == Some(&CloseReason::Finished);
        // Until it has keys a seal holds back what fits.
        let held_back = case.seal.is_some() && Terms::of(evidence, end.side).connectionless;
        if end.again || held_back || !finished(reader) || !finished(writer) || may_be_late(evidence, end.side)
        {
            continue;
        }
        let read: usize = trace.read(reader).map(Bytes::len).sum();
        let written: usize = trace.written(writer).map(Bytes::len).sum();
        if read < written {
            let what = format!(
                "{} read {read} of {written} bytes, and nothing was lost",
                end.side
            );
            return Err(Fault::whole(what));
        }
    }
    Ok(())
}
