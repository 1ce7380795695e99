//! How much may be in flight, where the wire tells: the initial window before anything is answered (OP-33), and
//! without congestion control the flight limit at all times (OP-50), on each path for itself. Where blocks or holes are reported, only the
//! sender knows what it counts as gone, so the limit is not judged then.

use super::evidence::{Evidence, Fault, Pdu};
use crate::chaos::Side;
use crate::chaos::trace::What;
use restp_base::sequence;
use restp_base::time::{Duration, Time};
use restp_proto::composition::Composition;
use restp_proto::wire::{Flags, Tail};
use restp_services::ack::Detail;
use restp_services::congestion::CongestionChoice;
use std::collections::{BTreeMap, BTreeSet};

/// What one side has in flight.
#[derive(Default)]
struct Flight {
    near: Option<u64>,
    /// Sizes of what is not acknowledged, by number.
    sizes: BTreeMap<u64, u64>,
    bytes: u64,
    /// When the first of it left, or some of it was acknowledged.
    since: Option<Time>,
    /// A packet of the set-up has left.
    asked: bool,
    answered: bool,
}

/// The limits of one side, in segments.
struct Limits {
    segment_bytes: u64,
    initial: Option<u64>,
    /// After so long without progress everything in flight may count as lost; without repeats it is forgotten then.
    timeout: Duration,
    forgets: bool,
    always: Option<u64>,
    /// So many segments come on top: what each other path had not sent yet when it went silent, and when it failed.
    rescued: u64,
}

pub fn check(evidence: &Evidence<'_>) -> Result<(), Fault> {
    let limits = evidence
        .compositions
        .each_ref()
        .map(|composition| Limits::of(composition, evidence.case.paths() as u64));
    let mut carriers: BTreeMap<((Side, usize), u32), BTreeSet<usize>> = BTreeMap::new();
    let mut flights: BTreeMap<(Side, usize), Flight> = BTreeMap::new();
    for (index, record) in evidence.trace.records.iter().enumerate() {
        match &record.what {
            What::Sent { packet, from, .. } => {
                let Some(pdu) = evidence.pdu(*packet) else {
                    continue;
                };
                let Some(strand) = pdu.strand else {
                    continue;
                };
                let mut rescued = false;
                if let (Some(numbering), Some(mapping)) = (pdu.numbering(*from), pdu.mapping()) {
                    // The first of what a silent path carries leaves at once on another, full or not, but once.
                    let carriers = carriers.entry((numbering, mapping.dsn)).or_default();
                    rescued = carriers.insert(strand) && carriers.len() > 1;
                }
                let flight = flights.entry((*from, strand)).or_default();
                flight
                    .send(record.at, pdu, rescued, &limits[from.index()])
                    .map_err(|what| Fault::at(index, format!("{from} {what}")))?;
            }
            What::Delivered { packet, to, .. } => {
                let Some(pdu) = evidence.intact(*packet) else {
                    continue;
                };
                let Some(strand) = pdu.strand else {
                    continue;
                };
                flights.entry((*to, strand)).or_default().hear(record.at, pdu);
            }
            What::Jumped { side, .. } => {
                let of_side = flights.iter_mut().filter(|((of, _), _)| of == side);
                of_side.for_each(|(_, flight)| flight.time_out(record.at, &limits[side.index()]));
            }
            _ => {}
        }
    }
    Ok(())
}

impl Limits {
    fn of(composition: &Composition, paths: u64) -> Self {
        let numbers = composition.numbers();
        let initial = numbers.iter().find(|(key, ..)| *key == "initial-window");
        let initial = initial.and_then(|(_, value, _)| value.split(' ').next()?.parse().ok());
        let always = match composition.congestion {
            CongestionChoice::None(limit)
                if composition.ack.is_on() && composition.ack.detail == Detail::Pointer =>
            {
                Some(limit.flight_limit_segments)
            }
            _ => None,
        };
        Limits {
            segment_bytes: u64::from(composition.segment_bytes),
            initial,
            timeout: composition.rto.floor.min(composition.handshake.rto),
            forgets: !composition.reliability.repeats(),
            always,
            rescued: 2 * (paths - 1),
        }
    }
}

impl Flight {
    /// `rescued`: it may leave at any time, and takes no room.
    fn send(&mut self, at: Time, pdu: &Pdu, rescued: bool, limits: &Limits) -> Result<(), String> {
        let Some(wire) = pdu.header.sequence else {
            return Ok(());
        };
        let number = sequence::expand(self.near.unwrap_or(sequence::ORIGIN + u64::from(wire)), wire);
        self.near = Some(number);
        if pdu.header.flags.has(Flags::SYN) && pdu.payload.is_empty() {
            // The second one: a timer has run out, and early data may count as lost.
            self.answered |= std::mem::replace(&mut self.asked, true);
        }
        if !pdu.is_data() || self.sizes.contains_key(&number) {
            return Ok(());
        }
        if at.since(*self.since.get_or_insert(at)) >= limits.timeout {
            self.time_out(at, limits);
        }
        let size = if rescued { 0 } else { pdu.payload.len() as u64 };
        self.sizes.insert(number, size);
        self.bytes += size;
        let within = |segments: u64| {
            let most = segments.saturating_add(limits.rescued);
            self.bytes == size || rescued || self.bytes <= most.saturating_mul(limits.segment_bytes)
        };
        let (bytes, segment) = (self.bytes, limits.segment_bytes);
        if let Some(segments) = limits
            .initial
            .filter(|segments| !self.answered && !within(*segments))
        {
            return Err(format!(
                "has {bytes} bytes in flight before any answer, and the initial window is {segments} of {segment}"
            ));
        }
        if let Some(segments) = limits.always.filter(|segments| !within(*segments)) {
            return Err(format!(
                "has {bytes} bytes in flight, and the limit is {segments} of {segment}"
            ));
        }
        Ok(())
    }

    /// A timer may have run out.
    fn time_out(&mut self, at: Time, limits: &Limits) {
        self.answered = true;
        if limits.forgets {
            (self.bytes, self.since) = (0, Some(at));
            self.sizes.clear();
        }
    }

    fn hear(&mut self, at: Time, pdu: &Pdu) {
        let (Some(near), Some(wire)) = (self.near, pdu.header.acknowledgement) else {
            return;
        };
        if pdu.header.flags.has(Flags::RST) || self.sizes.is_empty() {
            return;
        }
        let number = sequence::expand(near, wire);
        let rest = self.sizes.split_off(&number);
        let gone = std::mem::replace(&mut self.sizes, rest);
        self.bytes -= gone.values().sum::<u64>();
        if !gone.is_empty() {
            self.since = Some(at);
        }
        // Duplicates and blocks tell that segments have left the network: more may follow them (RFC 3042).
        let bare = pdu.payload.is_empty() && !pdu.header.flags.has(Flags::SYN);
        self.answered |= !gone.is_empty() || pdu.header.tail != Tail::None || bare;
    }
}
