//! Fields and extensions of each kind of packet, put into one datagram. A data packet is never larger than a full
//! segment with a plain header: blocks ride on it only where the payload leaves room.

use super::eras::Era;
use super::{Connection, State, acknowledgement};
use crate::wire::codes::REPAIRED_WRAPS;
use crate::wire::{EraMessage, ErrorControl, Fec, Flags, Header, Tail};
use bytes::Bytes;
use restp_base::machine::{Datagram, Ecn};
use restp_base::sequence;
use restp_services::ack::AckRatio;
use restp_services::reliability::Encoded;

/// SYN or SYN-ACK, by state.
pub(super) fn handshake(c: &mut Connection, out: &mut Datagram) -> bool {
    let mut header = plain(c);
    let answer = matches!(c.state, State::SynReceived(_));
    header.cookie_exchange = c.exchange.is_some_and(|exchange| exchange.is_about_cookies());
    open(c, &mut header);
    c.unconfirmed_answers += u32::from(answer);
    if c.services_are_numbered() {
        header.sequence = Some(sequence::truncate(c.origin - 1));
        header.acknowledgement = answer.then(|| receive_next(c));
        c.receiver.acknowledgement().on_sent();
    }
    finish(c, out, &mut header, Bytes::new(), Ecn::NotEct)
}

/// Makes `header` one that opens: SYN or SYN-ACK, what ECN has to say, and the cookie.
fn open(c: &Connection, header: &mut Header) {
    header.flags = match (&c.state, c.composition.ecn, c.ecn.agreed) {
        (State::SynReceived(_), _, true) => Flags::SYN | Flags::ACK | Flags::ECE,
        (State::SynReceived(_), ..) => Flags::SYN | Flags::ACK,
        (_, true, _) => Flags::SYN | Flags::ECE | Flags::CWR, // RFC 3168 §6.1.1
        _ => Flags::SYN,
    };
    if let Some(cookie) = c.exchange.and_then(|exchange| exchange.cookie()) {
        header.tail = Tail::Cookie(cookie);
    }
    header.era = c.knows_eras() && (c.eras.understood || c.opened_here);
    if let Some(subflow) = &c.subflow {
        subflow.set_up(header, header.flags.has(Flags::ACK));
    }
}

/// Does the segment `number` double as SYN or SYN-ACK? The first one does until the peer is known to be established,
/// retransmissions included (OP-31).
fn opens(c: &Connection, number: u64) -> bool {
    number == c.origin && matches!(c.state, State::SynSent(_) | State::SynReceived(_))
}

/// A numbered segment; without payload, the FIN.
pub(super) fn segment(
    c: &mut Connection,
    out: &mut Datagram,
    number: u64,
    payload: Option<Bytes>,
    ack_ratio: AckRatio,
    ecn: Ecn,
) -> bool {
    let mut header = of_era(c, c.eras.of_own(number));
    header.ack_ratio = ack_ratio;
    if payload.is_none() {
        header.flags = header.flags | Flags::FIN;
    } else if ecn == Ecn::Ect0 && c.sender.takes_window_reduced(number) {
        header.flags = header.flags | Flags::CWR;
    }
    header.sequence = Some(sequence::truncate(number));
    let payload = payload.unwrap_or_default();
    if opens(c, number) {
        open(c, &mut header);
    }
    if c.has_feedback() && c.receiver.next().is_some() {
        let room = (c.composition.segment_bytes as usize).saturating_sub(payload.len());
        let complete = acknowledge(c, &mut header, room);
        if complete {
            c.receiver.acknowledgement().on_sent();
        }
    }
    finish(c, out, &mut header, payload, ecn)
}

/// An encoded packet: the number of the first packet encoded in it, and how many those are (ResTP §3.1.5). It
/// acknowledges nothing, because its FEC word has no room for a loss range.
pub(super) fn encoded(c: &mut Connection, out: &mut Datagram, kind: u8, encoded: Encoded) -> bool {
    let mut header = of_era(c, c.eras.of_own(encoded.first));
    header.services.error = header.services.error | ErrorControl::ENC;
    header.sequence = Some(sequence::truncate(encoded.first));
    header.fec = Some(Fec {
        kind,
        range: encoded.range,
    });
    let ecn = if c.ecn.agreed { Ecn::Ect0 } else { Ecn::NotEct };
    finish(c, out, &mut header, encoded.payload, ecn)
}

/// A question or an answer about the path's largest packet. Its number is one that the peer has acknowledged, so it is no
/// data to anybody.
pub(super) fn probe(c: &mut Connection, out: &mut Datagram, payload: Bytes) -> bool {
    let mut header = plain(c);
    header.probe = true;
    header.sequence = Some(sequence::truncate(c.sender.first() - 1));
    acknowledge(c, &mut header, 0);
    finish(c, out, &mut header, payload, Ecn::NotEct)
}

/// A message about eras.
pub(super) fn about_eras(c: &mut Connection, out: &mut Datagram, message: EraMessage) -> bool {
    let mut header = plain(c);
    header.about_eras = true;
    header.sequence = Some(sequence::truncate(c.sender.next_number()));
    let payload = Bytes::copy_from_slice(&message.emit());
    let room = (c.composition.segment_bytes as usize).saturating_sub(payload.len());
    acknowledge(c, &mut header, room);
    finish(c, out, &mut header, payload, Ecn::NotEct)
}

/// A packet that only acknowledges, carrying `number` (SND.NXT, OP-17).
pub(super) fn acknowledgement(c: &mut Connection, out: &mut Datagram, number: u64) -> bool {
    let mut header = plain(c);
    if c.services_are_numbered() {
        header.sequence = Some(sequence::truncate(number));
        acknowledge(c, &mut header, usize::MAX);
    } else {
        header.flags = Flags::ACK;
    }
    // What a path says that is asked, or asks, may be lost with it: what is owed by another is owed all the same.
    if c.lane_turn().acknowledges {
        c.receiver.acknowledgement().on_sent();
    }
    finish(c, out, &mut header, Bytes::new(), Ecn::NotEct)
}

/// A datagram of a service without numbers.
pub(super) fn unnumbered(
    c: &mut Connection,
    out: &mut Datagram,
    flags: Flags,
    payload: Option<Bytes>,
) -> bool {
    let mut header = plain(c);
    header.flags = flags;
    finish(c, out, &mut header, payload.unwrap_or_default(), Ecn::NotEct)
}

/// RST of an association broken off here.
pub(super) fn reset(c: &mut Connection, out: &mut Datagram) -> bool {
    let mut header = plain(c);
    if c.services_are_numbered() {
        // A number the peer's window takes, or it would not believe us (RFC 5961 §3).
        let edge = c.sender.binding_edge().unwrap_or(u64::MAX);
        let number = c.sender.next_number().min(edge);
        header.sequence = Some(sequence::truncate(number));
        if c.receiver.next().is_some() {
            acknowledge(c, &mut header, 0); // in SYN-SENT there is nothing to acknowledge
        }
    }
    header.flags = header.flags | Flags::RST;
    finish(c, out, &mut header, Bytes::new(), Ecn::NotEct)
}

/// Ports and service bits, which every packet of the era repeats (ResTP §3.2). What takes no number is of the era that this end
/// is in.
fn plain(c: &Connection) -> Header {
    of_era(c, &c.eras.current)
}

fn of_era(c: &Connection, era: &Era) -> Header {
    Header {
        era: c.eras.understood && era.is_odd(),
        ..Header::new(era.terms.services, c.ports.local, c.ports.remote)
    }
}

fn receive_next(c: &Connection) -> u32 {
    c.receiver.next().map_or(0, sequence::truncate)
}

/// Adds ACK, the pointer, the echo of a mark, and at most `room` bytes of detail. True when everything known was said.
fn acknowledge(c: &mut Connection, header: &mut Header, room: usize) -> bool {
    header.flags = header.flags | Flags::ACK;
    if c.ecn.echo {
        header.flags = header.flags | Flags::ECE;
    }
    header.acknowledgement = Some(receive_next(c));
    header.repaired = (c.receiver.rebuilt() % REPAIRED_WRAPS) as u8;
    let (tail, complete) = acknowledgement::tail(c, header.services.error, room);
    header.tail = tail;
    complete
}

/// On a SNACK connection SAK says whether this packet has a bit vector (OP-16); set-up packets say that it may.
fn announce_vector(header: &mut Header) {
    let vector = matches!(&header.tail, Tail::Snack(snack) if !snack.vector.is_empty());
    let is_snack = header.services.error.has(ErrorControl::NAK | ErrorControl::SAK);
    if is_snack && !header.flags.has(Flags::SYN) && !vector {
        header.services.error = header.services.error.without(ErrorControl::SAK);
    }
}

/// Adds the FEC word and the window, counts the packet and writes it.
fn finish(c: &mut Connection, out: &mut Datagram, header: &mut Header, payload: Bytes, ecn: Ecn) -> bool {
    header.fec = header.fec.or_else(|| c.fec_word(header));
    let shares = c.numbers_data();
    if let Some(subflow) = c.subflow.as_mut().filter(|_| !shares) {
        let carried = header.sequence.filter(|_| !payload.is_empty());
        let number = carried.map(|number| sequence::expand(c.sender.next_number(), number));
        subflow.fill(header, number, &payload, payload.is_empty());
    } else if c.services.flow_control != 0 {
        header.window = Some(c.receiver.advertise());
    }
    if let Some(subflow) = c.subflow.as_ref().filter(|_| shares) {
        subflow.fill_shared(header);
    }
    announce_vector(header);
    let is_probe = header.probe;
    if let Err(contradiction) = header.emit(&payload, &mut out.head) {
        // A fault of this program, not of a peer: visible in tests, silent for users.
        debug_assert!(false, "built a contradictory header: {contradiction}");
        c.counters.unbuildable_packets += 1;
        return false;
    }
    out.path = c.address;
    out.ecn = ecn;
    out.may_fragment = !is_probe && payload.len() > c.sender.segment_bytes() as usize;
    out.segment = None;
    out.body = payload;
    c.counters.sent_packets += 1;
    c.counters.sent_bytes += out.len() as u64;
    true
}
