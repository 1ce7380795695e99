//! What arrives for the application: numbered segments, datagrams, the end (ResTP §3.5.7).

use super::Connection;
use crate::wire::Flags;
use bytes::Bytes;
use restp_base::sequence;
use restp_base::time::Time;
use restp_services::connection_management::Notice;
use restp_services::ordering::Arrival;

impl Connection {
    /// A numbered segment, or (without payload) the FIN.
    pub(super) fn on_segment(&mut self, now: Time, number: u32, payload: Option<Bytes>) {
        let most_bytes = self.most_unread_bytes();
        let Some(reassembly) = &mut self.inn.reassembly else {
            return;
        };
        let number = sequence::expand(reassembly.next(), number);
        if self
            .inn
            .fin
            .is_some_and(|fin| number > fin || (number == fin) != payload.is_none())
        {
            self.counters.rejected_packets += 1; // nothing follows a FIN, nothing replaces it
            return;
        }
        let is_fin = payload.is_none();
        let (held, unread) = (reassembly.held_bytes(), self.inn.inbox.bytes());
        let size = payload.as_ref().map_or(0, Bytes::len);
        // The peer's segments may be larger than ours. What can be handed up at once has only unread data before it.
        let too_many = if number == reassembly.next() {
            unread > 0 && unread + size > most_bytes
        } else {
            held + unread + size > most_bytes
        };
        let edge = if too_many {
            number
        } else {
            self.inn
                .window
                .edge(reassembly.next(), self.inn.inbox.len() as u64)
        };
        let kept = self
            .inn
            .decoder
            .is_some()
            .then(|| payload.clone().unwrap_or_default());
        let arrival = reassembly.insert(now, number, payload, edge, &mut self.inn.inbox);
        match arrival {
            Arrival::Duplicate => self.counters.duplicate_packets += 1,
            Arrival::Late => self.counters.late_packets += 1,
            Arrival::BeyondWindow => {
                self.counters.beyond_window += 1;
                if !self.composition.reliability.repeats() {
                    // A probe: its sender has nothing else out, and repeats neither it nor what we miss.
                    reassembly.expect_below(now, number + 1);
                }
            }
            Arrival::InOrder | Arrival::FilledHole | Arrival::OutOfOrder => {}
        }
        let (ack, rtt) = (&mut self.inn.ack, self.sender.smoothed_rtt());
        match arrival {
            Arrival::InOrder => ack.on_in_order(now, rtt),
            Arrival::FilledHole | Arrival::OutOfOrder => ack.on_out_of_order(now, rtt),
            Arrival::Duplicate | Arrival::Late | Arrival::BeyondWindow => ack.on_unwanted(now, rtt),
        }
        if is_fin && self.has_feedback() {
            self.inn.ack.on_urgent_once();
        }
        if is_fin
            && !matches!(
                arrival,
                Arrival::Duplicate | Arrival::Late | Arrival::BeyondWindow
            )
        {
            self.inn.fin = Some(number);
        }
        if let (Some(decoder), Some(payload)) = (&mut self.inn.decoder, kept)
            && !matches!(arrival, Arrival::Duplicate | Arrival::BeyondWindow)
        {
            decoder.on_received(number, &payload);
        }
        self.hand_up();
    }

    /// Bytes a window holds when its segments are as large as ours.
    fn most_unread_bytes(&self) -> usize {
        self.inn.window.capacity() as usize * self.composition.segment_bytes as usize
    }

    /// After RCV.NXT moved: new data for the reader, and perhaps the end.
    pub(super) fn hand_up(&mut self) {
        if let Some(subflow) = &mut self.subflow {
            subflow.take_in(self.inn.inbox.drain());
        }
        let mut ended = false;
        if let (Some(fin), Some(reassembly)) = (self.inn.fin, &self.inn.reassembly)
            && reassembly.next() > fin
            && !self.release.remote_finished()
        {
            self.release.fin_received(fin);
            ended = true;
        }
        self.tell_reader(ended);
    }

    fn tell_reader(&mut self, ended: bool) {
        if self.inn.inbox.has_news(ended) {
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
        if self.inn.inbox.len() as u64 >= self.inn.window.capacity()
            || self.inn.inbox.bytes() + payload.len() > self.most_unread_bytes()
        {
            self.counters.beyond_window += 1;
            return;
        }
        self.inn.inbox.extend([payload]);
        self.hand_up();
    }
}
