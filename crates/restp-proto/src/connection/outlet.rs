//! What a packet is made of, in order: control packet? repeat? new data? probe? acknowledgement? Each question is
//! one call; no algorithm lives here.

use super::pdu_builder as pdu;
use super::{Connection, State};
use crate::wire::Flags;
use bytes::Bytes;
use restp_base::machine::{Datagram, Ecn};
use restp_base::time::Time;
use restp_services::ack::AckReport;
use restp_services::congestion::{Congestion, CongestionChoice, CongestionEvent};
use restp_services::connection_management::Notice;
use restp_services::recovery::RecoveryChoice;

/// Writes the next datagram; `false` when there is nothing to send now.
pub(super) fn poll(c: &mut Connection, now: Time, out: &mut Datagram) -> bool {
    match &mut c.state {
        State::Established => poll_established(c, now, out),
        State::SynSent(handshake) | State::SynReceived(handshake) => {
            let due = handshake.take_due();
            poll_opening(c, now, due, out)
        }
        State::TimeWait { .. } => c.inn.ack.is_due(now) && pdu::acknowledgement(c, out, c.out.board.next()),
        State::Resetting { .. } => c.state.take_reset(now) && pdu::reset(c, out),
        State::Closed => false,
    }
}

/// A set-up packet if one is due, then what may travel beside it; fast open lets data take its place.
fn poll_opening(c: &mut Connection, now: Time, due: bool, out: &mut Datagram) -> bool {
    let inside = c.exchange.is_some_and(|exchange| exchange.sends_inside());
    if due {
        return inside && poll_early(c, now, due, out) || pdu::handshake(c, out);
    }
    poll_early(c, now, due, out) || c.inn.ack.is_due(now) && pdu::handshake(c, out)
}

fn poll_early(c: &mut Connection, now: Time, due: bool, out: &mut Datagram) -> bool {
    c.out.paced_until = None;
    let Some(exchange) = c.exchange else {
        return false;
    };
    if exchange.may_send(0, due)
        && let Some(number) = c.repeat_due(now)
    {
        return c.send_repeat(now, number, out);
    }
    let sent = c.out.board.next() - c.out.origin;
    if !exchange.may_send(sent, due) || c.out.queue.is_empty() {
        return false;
    }
    let bytes = c.next_segment_bytes().unwrap_or(0);
    // A server has been told the window, a client has its limit instead of one (OP-33).
    let allowed = matches!(c.state, State::SynSent(_)) || c.out.window.allows(c.out.board.next());
    allowed && c.keeps_flight_limit(bytes) && c.has_room(now, bytes) && c.send_new(now, out)
}

fn poll_established(c: &mut Connection, now: Time, out: &mut Datagram) -> bool {
    c.out.paced_until = None;
    if std::mem::take(&mut c.confirmation_due) {
        return pdu::acknowledgement(c, out, c.out.board.next());
    }
    if c.send_mtu_probe(now, out) || c.send_encoded(now, out) {
        return true;
    }
    if c.out.outage.is_active() {
        return c.poll_outage(now, out);
    }
    if let Some(number) = c.repeat_due(now) {
        return c.send_repeat(now, number, out);
    }
    if let Some(bytes) = c.next_segment_bytes()
        && c.out.window.allows(c.out.board.next())
        && (c.out.rescue_at_once || c.keeps_flight_limit(bytes) && c.has_room(now, bytes))
    {
        let sent = c.send_new(now, out);
        c.out.rescue_at_once &= !c.out.queue.is_empty();
        return sent;
    }
    if c.window_probe_is_due(now) {
        c.out.window_probe = true;
        return c.send_new(now, out);
    }
    if c.inn.ack.is_due(now) {
        return pdu::acknowledgement(c, out, c.out.board.next());
    }
    if std::mem::take(&mut c.keepalive_due) {
        c.asked_at.get_or_insert(now);
        // One below what the peer expects: it has to answer (RFC 9293 §3.8.4).
        return pdu::acknowledgement(c, out, c.out.board.next() - 1);
    }
    false
}

impl Connection {
    /// Bytes of the segment that would be sent next, were it allowed: data, or the FIN after the last of them.
    fn next_segment_bytes(&self) -> Option<u64> {
        if !self.out.queue.is_empty() {
            return Some(self.out.queue.next_bytes(self.payload_bytes()) as u64);
        }
        self.release.must_send_fin().then_some(0)
    }

    /// Is the flight limit kept? Without congestion control nothing shrinks the flight when losses pile up faster
    /// than one repair per round trip, so duplicates do not make room for new data: everything not acknowledged
    /// counts (OP-50). Blocks say exactly what has left; then the pipe counts, which has its own test.
    pub(super) fn keeps_flight_limit(&self, bytes: u64) -> bool {
        let fixed = matches!(self.composition.congestion, CongestionChoice::None { .. });
        if !fixed || self.composition.recovery == RecoveryChoice::Pipe {
            return true;
        }
        let outstanding = self.out.board.outstanding_bytes();
        outstanding == 0 || outstanding + bytes <= self.path.controller.window_bytes()
    }

    /// The peer's window is shut, nothing is outstanding, and something wants to be sent: once per timeout the next
    /// segment asks whether that is still so (OP-25).
    fn window_probe_is_due(&mut self, now: Time) -> bool {
        let blocked = self.next_segment_bytes().is_some() && !self.out.window.allows(self.out.board.next());
        if !blocked || !self.out.board.is_empty() {
            self.out.probe_at = None;
            return false;
        }
        let at = *self
            .out
            .probe_at
            .get_or_insert(now + self.path.rto.value(&self.path.rtt));
        if at <= now {
            self.out.probe_at = None;
        }
        at <= now
    }

    /// The lost segment to send again now.
    fn repeat_due(&mut self, now: Time) -> Option<u64> {
        if self.out.board.lost() == 0 || !self.composition.reliability.repeats() {
            return None;
        }
        let number = self.out.board.next_lost()?;
        if number != self.out.board.first() && !self.out.window.allows(number) {
            return None; // early data may turn out to be more than the peer takes (RFC 9293 §3.8.6)
        }
        if std::mem::take(&mut self.out.repeat_at_once) {
            return Some(number);
        }
        let bytes = self.out.buffer.get(number).map_or(0, Bytes::len) as u64;
        self.has_room(now, bytes).then_some(number)
    }

    /// Do window, pacing and the caution after a timeout allow `bytes` more?
    pub(super) fn has_room(&mut self, now: Time, bytes: u64) -> bool {
        let in_flight = self.out.board.in_flight_bytes();
        if self.out.board.in_flight() > 0
            && (self.out.one_at_a_time || in_flight + bytes > self.path.controller.window_bytes())
        {
            return false;
        }
        if self.composition.pacing && !self.path.pacer.allows(now) {
            self.out.paced_until = Some(self.path.pacer.next_at());
            return false;
        }
        true
    }

    /// During an outage the last data packet asks whether the link is back (OP-51); what the peer sends is answered.
    fn poll_outage(&mut self, now: Time, out: &mut Datagram) -> bool {
        if self.out.outage.take_due() && !self.out.board.is_empty() {
            let number = self.out.board.next() - 1;
            self.out.board.on_probed(number);
            let before = if self.out.probed.0 == number + 1 {
                self.out.probed.1
            } else {
                0
            };
            self.out.probed = (number + 1, before + 1);
            let payload = self.out.buffer.get(number).cloned();
            let bytes = payload.as_ref().map_or(0, Bytes::len) as u64;
            self.counters.retransmitted_packets += 1;
            self.counters.repeated_payload_bytes += bytes;
            self.counters.sent_payload_bytes += bytes;
            return pdu::segment(self, out, number, payload, Ecn::NotEct);
        }
        self.inn.ack.is_due(now) && pdu::acknowledgement(self, out, self.out.board.next())
    }

    fn send_repeat(&mut self, now: Time, number: u64, out: &mut Datagram) -> bool {
        let Some(order) = self.out.board.on_repeated(now, number) else {
            return false;
        };
        self.out.recovery.on_repeated(order, number);
        let payload = self.out.buffer.get(number).cloned();
        let bytes = payload.as_ref().map_or(0, Bytes::len) as u64;
        self.counters.retransmitted_packets += 1;
        self.counters.repeated_payload_bytes += bytes;
        self.after_segment(now, bytes);
        pdu::segment(self, out, number, payload, Ecn::NotEct)
    }

    /// New data, or the FIN.
    fn send_new(&mut self, now: Time, out: &mut Datagram) -> bool {
        self.restart_after_idle(now);
        let beside = pdu::cookie_bytes(self, self.out.board.next());
        let room = self.payload_bytes().saturating_sub(beside).max(1);
        let payload = self.out.queue.next_segment(room);
        let bytes = payload.as_ref().map_or(0, Bytes::len) as u64;
        if !self.services_are_numbered() {
            return self.send_unnumbered(now, payload, out);
        }
        let number = self.out.board.on_sent(now, bytes as u32);
        if let Some(subflow) = &mut self.subflow {
            subflow.on_numbered(payload.is_some());
        }
        if payload.is_none() {
            self.release.fin_sent(number);
        }
        self.encode(now, number, payload.as_ref());
        if self.composition.reliability.repeats() {
            self.out.buffer.push(payload.clone());
        }
        if !self.has_feedback() {
            // Nobody will report on it: it leaves our books as it leaves this host.
            let _ = self.out.board.acknowledge(now, &AckReport::pointer(number + 1));
        }
        if payload.is_none() && !self.composition.reliability.repeats() && self.out.encoder.is_none() {
            self.end_without_answer(now, number);
        }
        self.after_segment(now, bytes);
        self.wake_writer();
        let ecn = if self.ecn.agreed && payload.is_some() {
            Ecn::Ect0
        } else {
            Ecn::NotEct
        };
        pdu::segment(self, out, number, payload, ecn)
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
        self.heard_at = now;
        self.conclude(now);
    }

    fn after_segment(&mut self, now: Time, bytes: u64) {
        self.counters.sent_payload_bytes += bytes;
        if !self.has_feedback() {
            return;
        }
        let in_flight = self.out.board.in_flight_bytes();
        self.tell_controller(now, &CongestionEvent::Sent { bytes }, in_flight);
        if self.state == State::Established {
            self.path.rto.start(now, &self.path.rtt); // until then the set-up timer repeats data too
        }
        self.pace(now, bytes);
    }

    /// Charges `bytes` that leave to the pacer.
    pub(super) fn pace(&mut self, now: Time, bytes: u64) {
        if self.composition.pacing
            && let Some(rate) = self.path.controller.pacing()
        {
            self.path
                .pacer
                .on_sent(now, bytes, u64::from(self.composition.segment_bytes), rate);
        }
    }

    /// The first segment after a silence longer than one timeout (RFC 5681 §4.1).
    fn restart_after_idle(&mut self, now: Time) {
        let Some(since) = self.out.idle_since.take() else {
            return;
        };
        let gap = now.since(since);
        if self.has_feedback() && gap > self.path.rto.value(&self.path.rtt) {
            self.tell_controller(now, &CongestionEvent::Idle { gap }, 0);
        }
        self.progress_at = now;
    }

    /// Half the send buffer is free again: tell a writer that was refused.
    pub(super) fn wake_writer(&mut self) {
        let half_empty = self.out.queue.bytes() <= self.composition.send_buffer_bytes / 2;
        if self.out.writer_waits && half_empty {
            self.out.writer_waits = false;
            self.notices.push_back(Notice::Writable);
        }
    }
}
