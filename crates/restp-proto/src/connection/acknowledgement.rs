//! Between what the header can say of the numbers and the neutral report (ResTP §3.1.7 to §3.1.9, §3.5.9, OP-16).

use super::Connection;
use crate::composition::Composition;
use crate::wire::{ErrorControl, Header, Snack, Tail, sack, snack};
use restp_base::ranges::Ranges;
use restp_services::ack::{
    AckReport, Acknowledgement, Detail, NakEmission, NakParameters, NakReporter, Schedule,
};
use restp_services::recovery::{Again, Holes, PipeParameters, Reordering};

/// Bytes of one SACK block, and of a NAK.
const BLOCK_BYTES: usize = 8;
const NAK_BYTES: usize = 4;

/// What the peer says beside its pointer.
pub(super) fn detail(header: &Header, report: &mut AckReport) {
    let next = report.cumulative;
    match &header.tail {
        Tail::Sack(blocks) => report.received.extend(sack::ranges(blocks, next)),
        Tail::Snack(snack) => {
            report.received.extend(snack.received(next));
            report.missing.extend(snack.missing(next));
        }
        Tail::None | Tail::Cookie(_) => {}
    }
}

/// What reports are taken for. When a hole is retransmitted follows from reliability, not from the format (OP-44); what an
/// encoded packet may still repair waits for more evidence than its name (ResTP §3.5.8).
pub(super) fn evidence(composition: &Composition) -> PipeParameters {
    let mut evidence = PipeParameters::new(composition.ack.detail);
    let named = matches!(composition.ack.detail, Detail::Nak | Detail::Snack);
    if named && matches!(composition.ack.schedule, Schedule::Delayed(_)) {
        // Three duplicates would be three periods, and what was only reordered has mostly come within one.
        evidence.holes = Holes::AtOnce;
    }
    let evidence = if composition.reliability.is_partial() {
        evidence.in_time()
    } else if composition.reliability.encodes() {
        PipeParameters {
            holes: Holes::Overtaken,
            ..evidence
        }
    } else if composition.ack.detail == Detail::Nak {
        // One hole shows too little of what left later to judge a retransmission by, but it is named as long as it is open.
        PipeParameters {
            again: Again::Late,
            ..evidence
        }
    } else {
        evidence
    };
    let reordering = if composition.reliability.is_partial() {
        // The pointer passes what the peer has given up: that is no proof that it was only late (RFC 4015 §3.2).
        Reordering::Threshold
    } else {
        composition.reordering
    };
    PipeParameters {
        reordering,
        ..evidence.with_lost_retransmissions(composition.lost_retransmissions)
    }
}

/// The receiver side of NAK. Absence of a hole in the header means that there is none (ResTP §3.4), so every
/// acknowledgement names one, in turn.
pub(super) fn nak_reporter(next: u64) -> NakReporter {
    let parameters = NakParameters {
        emission: NakEmission::EveryAck,
        ..NakParameters::default()
    };
    NakReporter::new(parameters, u64::from(u16::MAX), next)
}

/// What a packet with these bits says beside the pointer: of which blocks there are at most so many as the composition has.
fn detail_of(error: ErrorControl, composition: &Composition) -> Detail {
    match (error.has(ErrorControl::NAK), error.has(ErrorControl::SAK)) {
        (false, false) => Detail::Pointer,
        (true, false) => Detail::Nak,
        (true, true) => Detail::Snack,
        (false, true) => Detail::Sack {
            max_blocks: match composition.ack.detail {
                Detail::Sack { max_blocks } => max_blocks,
                _ => Acknowledgement::SACK_BLOCKS,
            },
        },
    }
}

/// What a header with the bits `error` says beside the pointer in at most `room` bytes, and whether that is all there is to say.
pub(super) fn tail(c: &mut Connection, error: ErrorControl, room: usize) -> (Tail, bool) {
    let Some(next) = c.receiver.next() else {
        return (Tail::None, true);
    };
    let Some(arrived) = c.receiver.beyond_hole() else {
        return (Tail::None, true);
    };
    match detail_of(error, &c.composition) {
        Detail::Pointer => (Tail::None, true),
        Detail::Sack { max_blocks } => {
            let max_blocks = c.receiver.blocks(max_blocks);
            let wanted = usize::from(max_blocks).min(arrived.ranges().len());
            let count = wanted.min(room / BLOCK_BYTES);
            let blocks = sack::blocks(arrived, count);
            (Tail::Sack(blocks), count == wanted)
        }
        Detail::Nak if room < NAK_BYTES => (Tail::None, false),
        Detail::Nak => {
            let hole = c.receiver.next_gap();
            (
                hole.and_then(|hole| one_hole(next, hole))
                    .map_or(Tail::None, Tail::Snack),
                true,
            )
        }
        Detail::Snack => whole_state(next, arrived.ranges(), room),
    }
}

fn one_hole(next: u64, hole: std::ops::Range<u64>) -> Option<Snack> {
    Some(Snack {
        offset: u16::try_from(hole.start - next).ok()?,
        size: u16::try_from(hole.end - hole.start).ok()?,
        vector: Default::default(),
    })
}

fn whole_state(next: u64, arrived: &Ranges, room: usize) -> (Tail, bool) {
    match snack::from_ranges(next, arrived) {
        Some(snack) if 4 * (1 + snack.vector.len()) > room => (Tail::None, false),
        Some(snack) => (Tail::Snack(snack), true),
        None => (Tail::None, true),
    }
}
