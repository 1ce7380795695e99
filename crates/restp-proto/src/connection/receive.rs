//! What arrives for the application: numbered segments, datagrams, the end (ResTP §3.5.7).

use super::{Connection, acknowledgement};
use crate::composition::Composition;
use crate::wire::Flags;
use bytes::Bytes;
use restp_base::sequence;
use restp_base::time::Time;
use restp_services::ack::AckTimer;
use restp_services::connection_management::Notice;
use restp_services::flow_control::{FlowControl, WindowParameters};
use restp_services::ordering::{Arrival, Ordering};
use restp_services::receiver::{Contradiction, Receiver, UNADVERTISED_WINDOW};

/// The receiver that a composition asks for.
pub(super) fn receiver(composition: &Composition) -> Receiver {
    let ack = AckTimer::new(composition.ack.schedule, composition.ack.repeat);
    let nak = acknowledgement::nak_reporter(sequence::ORIGIN);
    let hold = (!composition.reliability.is_full()).then_some(composition.hold);
    Receiver::new(composition.segment_bytes, granted(composition), ack, nak, hold)
}

/// What the receiver takes, advertised or not.
pub(crate) fn granted(composition: &Composition) -> WindowParameters {
    match composition.flow_control {
        FlowControl::Window(parameters) => parameters,
        FlowControl::None => UNADVERTISED_WINDOW,
    }
}

/// Memory that the window promises, which is what streams may hold in all.
pub(crate) fn window_bytes(composition: &Composition) -> u64 {
    u64::from(granted(composition).segments) * u64::from(composition.segment_bytes)
}

/// The peer's first number is `next`.
pub(super) fn begin(receiver: &mut Receiver, next: u64, composition: &Composition) {
    let nak = acknowledgement::nak_reporter(next);
    receiver.begin_segments(next, composition.ordering, granted(composition), nak);
}

/// A segment that has to wait must not keep a whole receive buffer alive: its sender decides for how long.
pub(crate) fn kept(payload: Bytes, is_slice: bool) -> Bytes {
    if is_slice {
        Bytes::copy_from_slice(&payload)
    } else {
        payload
    }
}

impl Connection {
    /// A numbered segment as it was received.
    pub(super) fn on_data(&mut self, now: Time, number: u32, payload: Bytes, is_slice: bool) {
        let waits = is_slice && self.has_to_wait(number);
        self.on_segment(now, number, Some(kept(payload, waits)));
    }

    /// Something before `number` is missing, and has to be handed up before it.
    fn has_to_wait(&self, number: u32) -> bool {
        let is_ahead = |next: u64| sequence::expand(next, number) > next;
        let next = self.receiver.next();
        let waits = self.composition.ordering != Ordering::Unordered
            || self.eras.is_turning(self.sender.first(), next);
        waits && next.is_some_and(is_ahead)
    }

    /// A numbered segment, or (without payload) the FIN.
    pub(super) fn on_segment(&mut self, now: Time, number: u32, payload: Option<Bytes>) {
        let Some(next) = self.receiver.next() else {
            return;
        };
        let number = sequence::expand(next, number);
        let (is_fin, rtt) = (payload.is_none(), self.sender.smoothed_rtt());
        let lost_for_good = !self.composition.reliability.retransmits();
        match self.receiver.on_segment(now, number, payload, rtt, lost_for_good) {
            Ok(Arrival::Duplicate) => self.counters.duplicate_packets += 1,
            Ok(Arrival::Late) => self.counters.late_packets += 1,
            Ok(Arrival::BeyondWindow) => self.counters.beyond_window += 1,
            Ok(Arrival::InOrder | Arrival::FilledHole | Arrival::OutOfOrder) => {}
            Err(Contradiction) => {
                self.counters.rejected_packets += 1;
                return;
            }
        }
        if is_fin && self.has_feedback() {
            self.receiver.acknowledgement().on_urgent_once();
        }
        self.hand_up();
    }

    /// After RCV.NXT moved: new data for the reader, and perhaps the end.
    pub(super) fn hand_up(&mut self) {
        let mut ended = false;
        if let Some(fin) = self.receiver.end().filter(|_| !self.release.remote_finished()) {
            self.release.fin_received(fin);
            ended = true;
        }
        if self.numbers_data() {
            self.tell_reader(ended); // else the association does
        }
    }

    fn tell_reader(&mut self, ended: bool) {
        if self.receiver.has_news(ended) {
            self.notices.push_back(Notice::Readable);
        }
    }

    /// The end of what is not numbered: whatever is under way still comes too late.
    pub(super) fn on_unnumbered_fin(&mut self) {
        let ended = !self.release.remote_finished();
        self.release.fin_received(0);
        self.tell_reader(ended);
    }

    /// A payload without a number: hand it up, or drop it when the reader is too slow.
    pub(super) fn on_datagram(&mut self, payload: Bytes, flags: Flags) {
        if payload.is_empty() && flags != Flags::NONE {
            return; // a control packet
        }
        if self.release.remote_finished() {
            self.counters.rejected_packets += 1; // overtaken by the FIN: the reader has seen the end
            return;
        }
        if !self.receiver.on_datagram(payload) {
            self.counters.beyond_window += 1;
            return;
        }
        self.hand_up();
    }
}
