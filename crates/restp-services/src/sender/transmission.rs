//! What may leave now (ResTP §3.5.8, §3.5.9): a question to the path, an encoded packet, a retransmission, new data, a probe.
//! Each is booked as sent when it is handed out.

use super::Sender;
use crate::ack::{AckRatio, AckReport};
use crate::congestion::{Congestion, CongestionEvent};
use crate::recovery::LaneId;
use crate::reliability::{Encoded, FecEncoder};
use bytes::Bytes;
use restp_base::time::Time;

/// A segment that leaves. Without payload it is the FIN.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Its number; none for services that have no numbers.
    pub number: Option<u64>,
    /// Its payload.
    pub payload: Option<Bytes>,
    /// It leaves for the first time.
    pub is_new: bool,
    /// How often the peer is to acknowledge from here on.
    pub ack_ratio: AckRatio,
}

/// Something that leaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Transmission {
    /// A segment, new or again.
    Segment(Segment),
    /// A packet that may repair others. It takes no number, and nobody acknowledges it.
    Encoded(Encoded),
    /// Does the path carry segments of so many payload bytes (RFC 8899 §4.1)? The codec makes the packet and says with
    /// [`Sender::on_mtu_probe`] how large it was.
    MtuProbe(u32),
}

/// What of the shared numbers leaves by a lane, questions to its path apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LaneShare {
    /// Nothing.
    Nothing,
    /// What was lost, or is late, by whichever lane.
    Repairs,
    /// New data as well.
    #[default]
    All,
}

/// After so many the smallest window is reached from any.
const MOST_IDLE_TIMEOUTS: u64 = 64;
/// Of a flight that follows its acknowledgements one comes in this part of a round trip at least ([`AckRatio::of_flight`]).
const GROUPS_PER_TRIP: u64 = 8;

impl Sender {
    /// What leaves now. `fin`: a FIN follows the last data.
    pub fn next(&mut self, now: Time, fin: bool) -> Option<Transmission> {
        self.lane.gate.stop_pacing();
        if let Some(bytes) = self.lane.mtu.question(now) {
            return Some(Transmission::MtuProbe(bytes));
        }
        if let Some(encoded) = self.next_encoded(now) {
            return Some(Transmission::Encoded(encoded));
        }
        if self.lane.outage.state.is_active() {
            return self.next_outage_probe().map(Transmission::Segment);
        }
        let segment = self
            .next_tail_probe(now, fin)
            .or_else(|| self.next_in_flow(now, fin))
            .or_else(|| self.next_window_probe(now, fin));
        segment.map(Transmission::Segment)
    }

    /// The same where others may carry it as well: what leaves by the lane in hand of its `share`.
    pub fn next_of(&mut self, now: Time, share: LaneShare, fin: bool) -> Option<Transmission> {
        if share == LaneShare::All {
            return self.next(now, fin);
        }
        self.lane.gate.stop_pacing();
        if let Some(bytes) = self.lane.mtu.question(now) {
            return Some(Transmission::MtuProbe(bytes));
        }
        let repairs = share == LaneShare::Repairs;
        if repairs && let Some(encoded) = self.next_encoded(now) {
            return Some(Transmission::Encoded(encoded));
        }
        if self.lane.outage.state.is_active() {
            return self.next_outage_probe().map(Transmission::Segment);
        }
        let segment = repairs.then(|| self.next_retransmission(now)).flatten();
        segment.map(Transmission::Segment)
    }

    /// What leaves to arrive, not to ask: its acknowledgement may wait for others.
    #[inline]
    fn next_in_flow(&mut self, now: Time, fin: bool) -> Option<Segment> {
        let segment = self
            .next_retransmission(now)
            .or_else(|| self.next_new(now, fin))?;
        let ack_ratio = self.ack_ratio(now);
        Some(Segment { ack_ratio, ..segment })
    }

    /// How often the peer is to acknowledge while so much is in flight.
    fn ack_ratio(&mut self, now: Time) -> AckRatio {
        let waits = !self.queue.is_empty() || self.lane.gate.has_backlog();
        if !self.parameters.thins_acks || !waits {
            return AckRatio::SCHEDULE;
        }
        let asked = if self.more_follows(now) {
            let answers = self.lane.controller.answers();
            self.lane.ack_demand.ratio(self.board.in_flight(), answers)
        } else {
            AckRatio::SCHEDULE
        };
        match asked {
            // The window may be full: who waits there for the answer to a lone segment waits half a round trip at most.
            AckRatio::SCHEDULE => AckRatio::by_schedule(self.lane.rtt.smoothed()),
            asked => asked,
        }
    }

    /// Will what waits leave soon enough to complete a ratio? Not after the segment that fills the window, while the next answer is far:
    /// what leaves after a pause leaves at once, and the rest of it would wait for the receiver's timer, which looks like a queue that
    /// has begun.
    fn more_follows(&self, now: Time) -> bool {
        let segment = u64::from(self.lane.mtu.segment_bytes());
        let has_room = self.board.in_flight_bytes() + segment <= self.lane.controller.window_bytes();
        let (Some(left), Some(rtt)) = (self.board.next_to_arrive_left_at(), self.lane.rtt.smoothed()) else {
            return true;
        };
        has_room || left + rtt <= now + rtt / GROUPS_PER_TRIP
    }

    /// What leaves before the exchange is complete. New data leaves `beside` bytes of a full segment to what the header
    /// says of the set-up; none when the exchange allows none.
    pub fn next_early(&mut self, now: Time, may_retransmit: bool, beside: Option<usize>) -> Option<Segment> {
        self.lane.gate.stop_pacing();
        if may_retransmit && let Some(segment) = self.next_retransmission(now) {
            return Some(segment);
        }
        let room = self.full_payload().saturating_sub(beside?).max(1);
        if self.queue.is_empty() {
            return None;
        }
        let bytes = self.next_bytes();
        let allowed = self.has_credit(bytes) && self.keeps_flight_limit(bytes);
        (allowed && self.has_room(now, bytes)).then(|| self.send_new(now, room))
    }

    /// The first segment of all leaves inside a set-up packet, which is what is retransmitted until it is answered.
    pub fn next_in_set_up(&mut self, now: Time, most_bytes: usize) -> Option<Bytes> {
        let payload = self.queue.next_segment(most_bytes)?;
        self.book_new(now, Some(&payload));
        self.counters.sent_payload_bytes += payload.len() as u64;
        Some(payload)
    }

    /// A question about the largest packet leaves: `bytes` of a segment, `length` with what the codec added.
    pub fn on_mtu_probe(&mut self, now: Time, bytes: u32, length: u64) {
        let timeout = self.timeout();
        self.lane.mtu.on_probe_sent(now, bytes, timeout);
        self.pace(now, length);
    }

    /// Payload bytes of the segment that would leave next; the FIN has none.
    pub(super) fn next_bytes(&self) -> u64 {
        self.queue.next_bytes(self.full_payload()) as u64
    }

    fn next_encoded(&mut self, now: Time) -> Option<Encoded> {
        let encoded = self.encoder.as_mut()?.poll(now, self.board.in_hand())?;
        let bytes = encoded.payload.len() as u64;
        self.counters.encoded_packets += 1;
        self.board.on_encoded();
        self.lane.redundancy.on_sent(now, bytes);
        self.pace(now, bytes);
        Some(encoded)
    }

    /// The last data packet asks whether the link is back (OP-51).
    fn next_outage_probe(&mut self) -> Option<Segment> {
        let last = self.board.last_in_hand();
        let last = last.filter(|_| self.lane.outage.state.take_due())?;
        self.board.on_probed(last);
        self.lane.outage.on_probe(last + 1);
        Some(self.ask_with(last))
    }

    /// The tail was silent for too long: something new leaves, or the last segment again (RFC 8985 §7.3).
    #[inline]
    fn next_tail_probe(&mut self, now: Time, fin: bool) -> Option<Segment> {
        if !self.lane.tail.take_due() {
            return None;
        }
        let has_new = !self.queue.is_empty() || fin;
        let segment = if has_new && !self.holds_new() && self.has_credit(self.next_bytes()) {
            self.send_new(now, self.full_payload().max(1))
        } else {
            let last = self.board.last_in_hand()?;
            self.board.on_probed(last);
            let segment = self.ask_with(last);
            self.pace(now, segment.payload.as_ref().map_or(0, Bytes::len) as u64);
            segment
        };
        self.lane.tail.on_sent(self.board.next(), !segment.is_new);
        Some(segment)
    }

    /// The tail is watched while nothing is known to be missing.
    pub(super) fn arm_tail_probe(&mut self, now: Time) {
        if !self.parameters.probes_tail {
            return;
        }
        let repairs = self.lane.recovery.is_active() || self.lane.gate.is_cautious() || self.board.lost() > 0;
        if !self.established || repairs || self.board.arrived() > 0 || self.lane.outage.state.is_active() {
            return self.lane.tail.disarm();
        }
        let timeout_at = self.lane.rto.deadline();
        let rtt = self.lane.rtt.smoothed();
        self.lane.tail.arm(now, rtt, self.board.in_flight(), timeout_at);
    }

    /// The segment `number` leaves again only to ask.
    fn ask_with(&mut self, number: u64) -> Segment {
        let payload = self.buffer.get(number).cloned();
        let bytes = payload.as_ref().map_or(0, Bytes::len) as u64;
        self.counters.sent_payload_bytes += bytes;
        self.retransmission(number, payload)
    }

    #[inline]
    fn next_retransmission(&mut self, now: Time) -> Option<Segment> {
        if self.board.lost() == 0 || !self.parameters.retransmits {
            self.lane.gate.retransmit_at_once(false); // it came late, or left by another lane
            return None;
        }
        self.retransmit_lowest(now)
    }

    /// The lowest number that is lost leaves again, if it may.
    fn retransmit_lowest(&mut self, now: Time) -> Option<Segment> {
        let (number, lost_on) = self.next_worth_retransmitting(now)?;
        if number != self.board.first() && !self.admission.still_covers(number) {
            return None;
        }
        let payload = self.buffer.get(number).cloned();
        let bytes = payload.as_ref().map_or(0, Bytes::len) as u64;
        if !self.takes_retransmission_at_once(lost_on) && !self.has_room(now, bytes) {
            return None;
        }
        let order = self.board.on_retransmitted(now, number)?;
        self.lane.recovery.on_retransmitted(now, order, number);
        self.on_left(now, bytes);
        Some(self.retransmission(number, payload))
    }

    /// The lowest number that is lost, and by which lane. What would come too late is given up, but for the FIN, where the receiver
    /// knows of it by something later: nothing else would make it go on without.
    fn next_worth_retransmitting(&mut self, now: Time) -> Option<(u64, LaneId)> {
        loop {
            let (number, lost_on) = self.next_lost()?;
            let is_late = |encoder: &FecEncoder| {
                let sent_at = self.board.sent_at(number);
                sent_at.is_some_and(|sent_at| !encoder.is_in_time(now, sent_at))
            };
            let is_known = number >= self.encoded_from
                && self.board.is_overtaken(number)
                && self.buffer.get(number).is_some();
            if !(is_known && self.encoder().is_some_and(is_late) && self.board.give_up(number)) {
                return Some((number, lost_on));
            }
        }
    }

    fn retransmission(&mut self, number: u64, payload: Option<Bytes>) -> Segment {
        self.counters.retransmitted_packets += 1;
        self.counters.retransmitted_payload_bytes += payload.as_ref().map_or(0, Bytes::len) as u64;
        Segment {
            number: Some(number),
            payload,
            is_new: false,
            ack_ratio: AckRatio::SCHEDULE,
        }
    }

    fn next_new(&mut self, now: Time, fin: bool) -> Option<Segment> {
        if (self.queue.is_empty() && !fin) || self.holds_new() {
            return None;
        }
        let bytes = self.next_bytes();
        let at_once = self.lane.gate.sends_at_once();
        let allowed = self.has_credit(bytes)
            && (at_once || self.keeps_flight_limit(bytes) && self.has_room(now, bytes));
        if !allowed {
            return None;
        }
        let segment = self.send_new(now, self.full_payload().max(1));
        self.lane.gate.send_at_once(at_once && !self.queue.is_empty());
        Some(segment)
    }

    /// The peer's window is shut, nothing is outstanding, and something wants to be sent: once per timeout the next
    /// segment asks whether that is still so.
    fn next_window_probe(&mut self, now: Time, fin: bool) -> Option<Segment> {
        let waits = !self.queue.is_empty() || fin;
        if !waits || self.holds_new() || self.has_credit(self.next_bytes()) || !self.board.is_empty() {
            self.probing.needs_no_credit();
            return None;
        }
        let at = now + self.timeout();
        let room = self.full_payload().min(self.probing.window_probe_bytes());
        let due = self.probing.window_probe_is_due(now, at);
        due.then(|| self.send_new(now, room.max(1)))
    }

    /// New data of at most `room` bytes, or the FIN.
    fn send_new(&mut self, now: Time, room: usize) -> Segment {
        self.restart_after_idle(now);
        let payload = self.queue.next_segment(room);
        let bytes = payload.as_ref().map_or(0, Bytes::len) as u64;
        let number = self
            .parameters
            .numbered
            .then(|| self.book_new(now, payload.as_ref()));
        if number.is_some() {
            self.on_left(now, bytes);
        } else {
            self.counters.sent_payload_bytes += bytes;
        }
        Segment {
            number,
            payload,
            is_new: true,
            ack_ratio: AckRatio::SCHEDULE,
        }
    }

    /// A new segment takes its number.
    fn book_new(&mut self, now: Time, payload: Option<&Bytes>) -> u64 {
        let bytes = payload.map_or(0, Bytes::len);
        let number = self.board.on_sent(now, bytes as u32);
        self.admission.on_sent(bytes as u64);
        if let Some(encoder) = &mut self.encoder {
            let rtt = self.lane.rtt.smoothed();
            encoder.on_sent(now, number, payload, self.board.in_hand(), rtt);
        }
        if self.parameters.retransmits {
            self.buffer.push(payload.cloned());
        }
        if !self.parameters.has_feedback {
            // Nobody will report on it: it leaves our books as it leaves this host.
            let _ = self.board.acknowledge(now, &AckReport::pointer(number + 1));
        }
        number
    }

    /// A numbered segment of `bytes` has left.
    fn on_left(&mut self, now: Time, bytes: u64) {
        self.counters.sent_payload_bytes += bytes;
        if !self.parameters.has_feedback {
            return;
        }
        self.lane.waits_since.get_or_insert(now);
        let in_flight = self.board.in_flight_bytes();
        self.tell_controller(now, &CongestionEvent::Sent { bytes }, in_flight);
        // With several lanes what this one waited for may have left again by another.
        let alone = self.has_several_lanes() && self.board.in_flight() == 1;
        if self.established && alone {
            self.lane.rto.restart(now, &self.lane.rtt);
        } else if self.established {
            self.lane.rto.start(now, &self.lane.rtt);
        }
        self.lane.reduction.on_sent(bytes);
        self.arm_tail_probe(now);
        self.pace(now, bytes);
    }

    /// Charges `bytes` that leave to the pacer.
    fn pace(&mut self, now: Time, bytes: u64) {
        if self.parameters.paces
            && let Some(rate) = self.lane.controller.pacing()
        {
            let segment = u64::from(self.parameters.segment_bytes);
            self.lane.pacer.on_sent(now, bytes, segment, rate);
        }
    }

    /// The first segment after a silence longer than one timeout (RFC 5681 §4.1).
    fn restart_after_idle(&mut self, now: Time) {
        let Some(since) = self.lane.idle_since.take() else {
            return;
        };
        let gap = now.since(since);
        if self.parameters.has_feedback && gap > self.timeout() {
            let times = if self.lane.controller.shrinks_while_idle() {
                gap.as_nanos() / self.timeout().as_nanos().max(1)
            } else {
                1
            };
            for _ in 0..times.min(MOST_IDLE_TIMEOUTS) {
                self.tell_controller(now, &CongestionEvent::Idle { gap }, 0);
            }
        }
        if self.board.is_empty() {
            self.progress.at = now;
        }
    }
}
