//! What a packet is made of, in order: control packet? retransmission? new data? probe? acknowledgement? Each question is
//! one call; no algorithm lives here.

use super::pdu_builder as pdu;
use super::{Connection, State};
use crate::wire::Flags;
use bytes::Bytes;
use restp_base::machine::{Datagram, Ecn};
use restp_base::observe::Transmitted;
use restp_base::time::Time;
use restp_services::connection_management::Notice;
use restp_services::sender::{Segment, Transmission};

/// Writes the next datagram; `false` when there is nothing to send now.
pub(super) fn poll(c: &mut Connection, now: Time, out: &mut Datagram) -> bool {
    match c.state {
        State::Established => poll_established(c, now, out),
        State::SynSent(_) | State::SynReceived(_) => {
            let due = c.take_set_up();
            poll_opening(c, now, due, out)
        }
        State::TimeWait { .. } => {
            let due = c.lane_turn().acknowledges && c.receiver.ack_timer().is_due(now);
            let asked = c.take_confirmation(); // by one of several paths, which answers for itself
            (asked || due) && pdu::acknowledgement(c, out, c.sender.next_number())
        }
        State::Resetting { .. } => c.take_reset(now) && pdu::reset(c, out),
        State::Closed => false,
    }
}

/// A set-up packet if one is due, then what may travel beside it; fast open lets data take its place.
fn poll_opening(c: &mut Connection, now: Time, due: bool, out: &mut Datagram) -> bool {
    let inside = c.exchange.is_some_and(|exchange| exchange.sends_inside());
    if due {
        return inside && poll_early(c, now, due, out) || pdu::handshake(c, out);
    }
    poll_early(c, now, due, out) || c.receiver.ack_timer().is_due(now) && pdu::handshake(c, out)
}

fn poll_early(c: &mut Connection, now: Time, due: bool, out: &mut Datagram) -> bool {
    let Some(exchange) = c.exchange else {
        return false;
    };
    let sent = c.sender.next_number() - c.origin;
    // The first segment doubles as SYN or SYN-ACK, and leaves room for the cookie.
    let cookie = exchange.cookie().filter(|_| sent == 0);
    let cookie_bytes = cookie.map_or(0, |cookie| cookie.as_bytes().len());
    let beside = exchange.may_send(sent, due).then_some(cookie_bytes);
    let segment = c.sender.next_early(now, exchange.may_send(0, due), beside);
    segment.is_some_and(|segment| c.send_segment(now, segment, out))
}

fn poll_established(c: &mut Connection, now: Time, out: &mut Datagram) -> bool {
    if c.take_confirmation() {
        return pdu::acknowledgement(c, out, c.sender.next_number());
    }
    if let Some(length) = c.take_mtu_answer() {
        return pdu::probe(c, out, Bytes::copy_from_slice(&length.to_be_bytes()));
    }
    c.turn_encoder();
    c.take_wish(now); // what was still encoded, or missing, may have been all that it waited for
    if let Some(message) = c.eras.take_due() {
        return c.send_era_message(message, out);
    }
    let turn = c.lane_turn();
    let fin = c.release.must_send_fin();
    if let Some(transmission) = c.sender.next_of(now, turn.share, fin) {
        return match transmission {
            Transmission::Segment(segment) => c.send_segment(now, segment, out),
            Transmission::Encoded(encoded) => c.send_encoded(now, encoded, out),
            Transmission::MtuProbe(bytes) => c.send_mtu_probe(now, bytes, out),
        };
    }
    if turn.acknowledges && c.receiver.ack_timer().is_due(now) {
        return pdu::acknowledgement(c, out, c.sender.next_number());
    }
    if !c.sender.is_in_outage() && c.liveness.take_due(now) {
        // One below what the peer expects: it has to answer (RFC 9293 §3.8.4). Of numbers that paths share others may be out.
        let expected = if c.lane().is_some() {
            c.sender.first()
        } else {
            c.sender.next_number()
        };
        return pdu::acknowledgement(c, out, expected - 1);
    }
    false
}

impl Connection {
    /// A segment that the sender has let out.
    fn send_segment(&mut self, now: Time, segment: Segment, out: &mut Datagram) -> bool {
        let number = segment.number;
        let sent = self.write_segment(now, segment, out);
        out.segment = number.map(|number| Transmitted { number, at: now });
        sent
    }

    /// Without payload it is the FIN.
    fn write_segment(&mut self, now: Time, segment: Segment, out: &mut Datagram) -> bool {
        let Segment {
            number,
            payload,
            is_new,
            ack_ratio,
        } = segment;
        self.liveness.on_sent(now);
        let Some(number) = number else {
            return self.send_unnumbered(now, payload, out);
        };
        if !is_new {
            return pdu::segment(self, out, number, payload, ack_ratio, Ecn::NotEct);
        }
        if let Some(subflow) = self.subflow.as_mut().filter(|subflow| !subflow.shares) {
            subflow.on_numbered(payload.is_some());
        }
        if payload.is_none() {
            self.release.fin_sent(number);
            if !self.composition.reliability.retransmits() && self.sender.encoder().is_none() {
                self.end_without_answer(now, number);
            }
        }
        self.wake_writer();
        let ecn = if self.ecn.agreed && payload.is_some() {
            Ecn::Ect0
        } else {
            Ecn::NotEct
        };
        pdu::segment(self, out, number, payload, ack_ratio, ecn)
    }

    /// A datagram without a number: nothing is remembered of it.
    fn send_unnumbered(&mut self, now: Time, payload: Option<Bytes>, out: &mut Datagram) -> bool {
        let flags = if payload.is_some() {
            Flags::NONE
        } else {
            Flags::FIN
        };
        if payload.is_none() {
            self.release.fin_sent(0);
            self.end_without_answer(now, 0);
        }
        self.wake_writer();
        pdu::unnumbered(self, out, flags, payload)
    }

    /// The FIN `fin` leaves once and nobody acknowledges it (OP-35). From now on silence means that the peer's own
    /// was lost.
    pub(super) fn end_without_answer(&mut self, now: Time, fin: u64) {
        self.release.acknowledged(fin + 1);
        self.liveness.on_heard(now);
        self.conclude(now);
    }

    /// Half the send buffer is free again: tell a writer that was refused.
    fn wake_writer(&mut self) {
        if self.sender.takes_writes_again() {
            self.notices.push_back(Notice::Writable);
        }
    }
}
