//! What a segment of one subflow means for the connection, in order: set-up, Data ACK, data, DATA_FIN, the subflow's own end.

use super::{Connection, State};
use crate::mptcp::subflow::FIRST_DATA;
use crate::tcp::connection::{Packet, Verdict};
use bytes::Bytes;
use restp_base::flow::{CloseReason, PathState};
use restp_base::time::Time;
use restp_services::connection_management::Notice;
use restp_services::flow_control::SendWindow;
use restp_services::ordering::Arrival;
use restp_services::ordering::Stretch;

impl Connection {
    /// Takes a segment of the subflow `ordinal`.
    pub(crate) fn handle(&mut self, now: Time, ordinal: usize, packet: Packet<'_>) -> Verdict {
        self.introduce(ordinal);
        let shared = self.shared();
        let tcp = &mut self.members[ordinal].tcp;
        tcp.stamp(shared);
        let verdict = tcp.handle(now, packet);
        self.collect(now, ordinal);
        verdict
    }

    /// Everything the subflow has to tell after a segment or a deadline.
    pub(super) fn collect(&mut self, now: Time, ordinal: usize) {
        if self.members[ordinal].tcp.is_alone() {
            return; // the host makes it a connection of its own, with its notices
        }
        let mut ended = None;
        while let Some(notice) = self.members[ordinal].tcp.poll_notice() {
            match notice {
                Notice::Connected | Notice::Accepted => self.on_established(now, ordinal),
                Notice::Closed(reason) => ended = Some(reason),
                _ => {}
            }
        }
        if self.members[ordinal].tcp.is_usable() {
            self.tell(ordinal, PathState::Up);
        }
        let news = self.members[ordinal].tcp.take_news();
        if let Some((ack, window_bytes)) = news.ack {
            self.on_data_ack(ack, window_bytes);
        }
        self.on_arrivals(ordinal, news.fin);
        let tcp = &mut self.members[ordinal].tcp;
        if tcp.was_finished() && !tcp.is_over() {
            tcp.finish(); // the peer gives this path up; what it has not delivered goes elsewhere
        }
        if self.members[ordinal].tcp.take_timeout() {
            self.on_timeout(ordinal);
        }
        if self.members[ordinal].tcp.is_over() && !self.members[ordinal].gone {
            self.on_member_closed(ordinal, ended.unwrap_or(CloseReason::Reset));
        }
        self.conclude(now);
    }

    /// The first subflow establishes the connection.
    fn on_established(&mut self, now: Time, ordinal: usize) {
        if self.state != State::Opening {
            return;
        }
        self.state = State::Established;
        self.own.handshake = Some(now.since(self.opened_at));
        let granted = self.members[ordinal].tcp.peer_window_bytes();
        self.out.window = SendWindow::initial(FIRST_DATA, granted);
        self.notices.push_back(Notice::established(self.opened_here));
    }

    /// Every byte below `ack` has arrived, and `window_bytes` from there on may come.
    fn on_data_ack(&mut self, ack: u64, window_bytes: u64) {
        let fin = self.release.local_fin().map_or(0, |_| 1);
        if ack > self.out.numbers.next_byte() + fin {
            self.own.rejected_packets += 1; // never sent
            return;
        }
        self.out.window.extend(ack, window_bytes);
        let first = self.out.numbers.ended_by(ack);
        if first > self.out.first {
            self.out.first = first;
            self.out.buffer.release_below(first);
            self.out.numbers.release_below(first);
            self.out.again = self.out.again.split_off(&first);
            self.out.tried = self.out.tried.split_off(&first);
            self.out.resend_at = None;
        }
        self.release.acknowledged(ack);
    }

    /// Puts what the subflow has delivered where it belongs.
    fn on_arrivals(&mut self, ordinal: usize, fin: Option<u64>) {
        let mut arrived = std::mem::take(&mut self.arrived);
        self.members[ordinal].tcp.take_arrived(&mut arrived);
        for (start, payload) in arrived.drain(..) {
            self.on_stretch(Stretch {
                start,
                payload,
                fin: false,
            });
        }
        self.arrived = arrived;
        if let Some(fin) = fin {
            self.on_stretch(Stretch {
                start: fin,
                payload: Bytes::new(),
                fin: true,
            });
            self.members[ordinal].tcp.acknowledge_soon();
        }
        if self.inn.discards {
            self.inn.inbox.clear();
        }
        let mut ended = false;
        if self.inn.stream.is_finished() && !self.release.remote_finished() {
            self.release.fin_received(self.inn.stream.next() - 1);
            ended = true;
        }
        if self.inn.inbox.has_news(ended) {
            self.notices.push_back(Notice::Readable);
        }
    }

    fn on_stretch(&mut self, stretch: Stretch) {
        // An end stands behind the last byte that the window allows.
        let edge = self.shared().edge + u64::from(stretch.fin);
        if self.inn.stream.contradicts(&stretch) {
            self.own.rejected_packets += 1;
            return;
        }
        match self.inn.stream.insert(stretch, edge, &mut self.inn.inbox) {
            Arrival::Duplicate | Arrival::Late => self.own.duplicate_packets += 1,
            Arrival::BeyondWindow => self.own.rejected_packets += 1,
            Arrival::InOrder | Arrival::FilledHole | Arrival::OutOfOrder => {}
        }
    }
}
