//! What a packet means for the association, after its path has taken it: set-up, connection-level acknowledgement and
//! window, data, the end (ResTP §3.1.13; OP-55).

use super::{Association, State, granted};
use crate::connection::{Packet, Said};
use crate::wire::Flags;
use bytes::Bytes;
use restp_base::sequence;
use restp_base::time::Time;
use restp_services::connection_management::Notice;
use restp_services::flow_control::FlowControl;
use restp_services::ordering::Arrival;

impl Association {
    /// Takes a packet of the path `ordinal`.
    pub(crate) fn handle(&mut self, now: Time, ordinal: usize, packet: Packet<'_>) {
        let Some(member) = self.members.get_mut(ordinal).filter(|member| !member.vacant) else {
            return;
        };
        let mapping = packet.header.dss.and_then(|dss| dss.mapping);
        if let Some(mapping) = mapping.filter(|_| !packet.payload.is_empty())
            && !self
                .inn
                .takes(mapping.dsn, packet.payload.len(), &self.composition)
        {
            // Whoever keeps to the window never sends it.
            self.past.rejected_packets += 1;
            return member.connection.acknowledge_soon();
        }
        let window = packet.header.window;
        let breaks_off = packet.header.flags.has(Flags::RST);
        self.introduce(ordinal);
        self.members[ordinal].connection.handle(now, packet);
        if breaks_off && let Some(said) = self.members[ordinal].connection.take_said() {
            self.on_said(now, ordinal, said); // perhaps everything is over; the path is, in any case
            self.conclude(now);
        }
        self.after_packet(now, ordinal, window);
    }

    fn after_packet(&mut self, now: Time, ordinal: usize, window: Option<u16>) {
        if self.inn.reassembly.is_none()
            && let Some(keys) = self.keys()
        {
            self.begin(keys, window);
        }
        self.collect(now, ordinal);
        let connection = &mut self.members[ordinal].connection;
        let said = connection.take_said();
        let mut arrived = std::mem::take(&mut self.arrived); // its memory is used again
        connection.swap_arrived(&mut arrived);
        for (number, payload) in arrived.drain(..) {
            self.on_data(now, number, payload);
        }
        self.arrived = arrived;
        if let Some(said) = said {
            self.on_said(now, ordinal, said);
        }
        self.on_answers(now, ordinal);
        self.conclude(now);
    }

    /// What the path has to tell: it is up, or over.
    pub(super) fn collect(&mut self, now: Time, ordinal: usize) {
        while let Some(notice) = self.members[ordinal].connection.poll_notice() {
            match notice {
                Notice::Connected | Notice::Accepted => self.on_path_up(now, ordinal),
                Notice::Closed(reason) => self.on_path_closed(now, ordinal, reason),
                Notice::Readable | Notice::Writable | Notice::Path(..) => {}
            }
        }
    }

    fn on_path_up(&mut self, now: Time, ordinal: usize) {
        if self.state == State::Opening {
            (self.state, self.announced) = (State::Established, true);
            self.handshake = Some(now.since(self.opened_at));
            self.notices.push_back(Notice::established(self.opened_here));
            if self.opened_here {
                self.end_race(now, ordinal);
            }
        }
        self.tell(ordinal, restp_base::flow::PathState::Up);
        self.rescue_all();
    }

    /// A segment of the association.
    fn on_data(&mut self, now: Time, number: u32, payload: Bytes) {
        let Some(reassembly) = &mut self.inn.reassembly else {
            return;
        };
        let number = sequence::expand(reassembly.next(), number);
        if self.inn.fin.is_some_and(|fin| number >= fin) {
            self.past.rejected_packets += 1; // nothing follows the end
            return;
        }
        let edge = self
            .inn
            .window
            .edge(reassembly.next(), self.inn.inbox.len() as u64);
        match reassembly.insert(now, number, Some(payload), edge, &mut self.inn.inbox) {
            Arrival::Duplicate | Arrival::Late => self.past.duplicate_packets += 1, // came over two paths
            Arrival::BeyondWindow => self.past.rejected_packets += 1,
            Arrival::InOrder | Arrival::FilledHole | Arrival::OutOfOrder => {}
        }
        self.hand_up(now);
    }

    /// New data for the reader, and perhaps the end.
    fn hand_up(&mut self, now: Time) {
        let mut ended = false;
        if let (Some(fin), Some(reassembly)) = (self.inn.fin, &mut self.inn.reassembly)
            && reassembly.next() == fin
            && !self.release.remote_finished()
        {
            reassembly.insert(now, fin, None, fin + 1, &mut self.inn.inbox);
            self.release.fin_received(fin);
            self.acknowledge_soon();
            ended = true;
        }
        if self.inn.inbox.has_news(ended) {
            self.notices.push_back(Notice::Readable);
        }
    }

    /// Connection-level acknowledgement, window and end.
    fn on_said(&mut self, now: Time, ordinal: usize, said: Said) {
        let number = said
            .data_ack
            .map(|number| sequence::expand(self.out.first, number));
        if number.is_some_and(|number| number > self.out.next) {
            self.past.rejected_packets += 1; // acknowledges what was never sent
            return;
        }
        if let Some(number) = number.filter(|number| *number > self.out.first) {
            self.out.first = number;
            self.out.buffer.release_below(number);
            self.out.places.release_below(number);
            self.out.again = self.out.again.split_off(&number);
            self.out.rescue.on_pointer(number);
            self.release.acknowledged(number);
        }
        // A window says nothing without the pointer that it counts from: packets of other paths were later or earlier.
        if let (Some(number), Some(window)) = (number, said.window)
            && self.composition.flow_control != FlowControl::None
        {
            self.out.window.extend(number, window.into());
        }
        if let Some(fin) = said.fin {
            self.on_fin(now, ordinal, fin);
        }
    }

    /// The peer's DATA_FIN.
    fn on_fin(&mut self, now: Time, ordinal: usize, number: u32) {
        let Some(reassembly) = &self.inn.reassembly else {
            return;
        };
        let number = sequence::expand(reassembly.next(), number);
        let beyond = reassembly.arrived().last().map_or(0, |last| last.end);
        let moved = self.inn.fin.is_some_and(|fin| fin != number);
        let passed = number < reassembly.next() && !self.release.remote_finished();
        if moved || passed || number < beyond {
            self.past.rejected_packets += 1; // the end does not move, and nothing lies beyond it
            return;
        }
        self.inn.fin = Some(number);
        self.hand_up(now);
        self.members[ordinal].connection.acknowledge_soon();
    }
}

impl super::Inbound {
    /// Is the segment within the shared window, and does it fit what memory the window promises?
    fn takes(&self, number: u32, size: usize, composition: &crate::composition::ValidComposition) -> bool {
        let Some(reassembly) = &self.reassembly else {
            return false;
        };
        let (number, next) = (sequence::expand(reassembly.next(), number), reassembly.next());
        let edge = self.window.edge(next, self.inbox.len() as u64);
        if number == next && edge == next {
            return true; // asks whether the window is still shut: the path has to answer, whatever the reader does
        }
        let most_bytes = granted(composition).segments as usize * composition.segment_bytes as usize;
        let fits = if number == next {
            self.inbox.bytes() == 0 || self.inbox.bytes() + size <= most_bytes
        } else {
            reassembly.held_bytes() + self.inbox.bytes() + size <= most_bytes
        };
        fits && number < edge
    }
}
