//! What a packet means for the association, after its path has taken it: set-up, connection-level acknowledgement and
//! window, data, the end (ResTP §3.1.13; OP-55).

use super::Association;
use crate::connection::{DssUpdate, Packet, kept};
use crate::wire::Flags;
use bytes::Bytes;
use restp_base::flow::PathState;
use restp_base::sequence;
use restp_base::time::Time;
use restp_services::connection_management::Notice;
use restp_services::flow_control::FlowControl;
use std::sync::Arc;

impl Association {
    /// Takes a packet of the path `ordinal`.
    pub(crate) fn handle(&mut self, now: Time, ordinal: usize, packet: Packet<'_>) {
        let member = self.shared.paths_mut().get_mut(ordinal);
        if member.is_none_or(|member| member.vacant) {
            return;
        }
        if self.has_lane(ordinal) {
            return self.handle_lane(now, ordinal, packet);
        }
        let mapping = packet.header.dss.and_then(|dss| dss.mapping);
        if let Some(mapping) = mapping.filter(|_| !packet.payload.is_empty())
            && !self.takes(mapping.dsn, packet.payload.len())
        {
            // Whoever keeps to the window never sends it.
            self.shared.counters().rejected_packets += 1;
            return self.shared.paths_mut()[ordinal].connection.acknowledge_soon();
        }
        let (window, is_slice) = (packet.header.window, packet.is_slice);
        let breaks_off = packet.header.flags.has(Flags::RST);
        self.shared.paths_mut().introduce(now, ordinal);
        let (mut update, arrived) = self.shared.paths_mut()[ordinal]
            .connection
            .handle_path(now, packet);
        if breaks_off {
            self.on_dss_update(now, ordinal, std::mem::take(&mut update)); // perhaps everything is over; the path is, in any case
            self.conclude(now);
        }
        if self.shared.receiver().next().is_none()
            && let Some(keys) = self.keys()
        {
            self.begin(keys, window);
        }
        self.collect(now, ordinal);
        if let Some(number) = update.data {
            arrived
                .into_iter()
                .for_each(|payload| self.on_data(now, number, payload, is_slice));
        }
        self.on_dss_update(now, ordinal, update);
        self.on_answers(now, ordinal);
        self.conclude(now);
    }

    /// Is the segment within the shared window, and does it fit what memory the window promises?
    fn takes(&self, number: u32, size: usize) -> bool {
        let receiver = self.shared.receiver();
        receiver
            .next()
            .is_some_and(|next| receiver.takes(sequence::expand(next, number), size))
    }

    /// What the path has to tell: it is up, or over.
    pub(super) fn collect(&mut self, now: Time, ordinal: usize) {
        while let Some(notice) = self.shared.paths_mut()[ordinal].connection.poll_notice() {
            match notice {
                Notice::Connected | Notice::Accepted => self.on_path_up(now, ordinal),
                Notice::Closed(reason) => self.on_path_closed(now, ordinal, reason),
                notice @ (Notice::Readable | Notice::Writable) if self.shares(ordinal) => {
                    self.shared.note(notice);
                }
                Notice::Readable | Notice::Writable | Notice::Stream(_) | Notice::Path(..) => {}
            }
        }
    }

    fn on_path_up(&mut self, now: Time, ordinal: usize) {
        let is_first = self.shared.establish(now);
        if is_first && self.shares(ordinal) {
            self.found_stream(now, ordinal);
        } else if is_first {
            self.number_per_path();
        }
        if is_first && self.shared.is_opened_here() {
            self.end_race(now, ordinal);
        }
        self.begin_lane(now, ordinal);
        self.catch_up(now, ordinal);
        self.shared.tell(ordinal, PathState::Up);
        self.reinject_all();
    }

    /// Does the path carry numbers of the association?
    fn shares(&self, ordinal: usize) -> bool {
        self.shared.paths()[ordinal].connection.shares_numbers()
    }

    /// The first path does not, whatever was asked for: the peer knows no shared numbers.
    fn number_per_path(&mut self) {
        if self.services.shared_numbers {
            self.services = self.services.numbered_per_path();
            self.composition = Arc::new(self.composition.numbered_per_path());
            self.below = Arc::new(self.composition.of_each_path());
        }
    }

    /// A segment of the association.
    fn on_data(&mut self, now: Time, number: u32, payload: Bytes, is_slice: bool) {
        let Some(next) = self.shared.receiver().next() else {
            return;
        };
        let number = sequence::expand(next, number);
        let payload = kept(payload, is_slice && number > next);
        if self.shared.on_data(now, number, payload) == Ok(true) {
            self.shared.acknowledge_soon();
        }
    }

    /// Connection-level acknowledgement, window and end.
    fn on_dss_update(&mut self, now: Time, ordinal: usize, update: DssUpdate) {
        // A window says nothing without the pointer that it counts from: packets of other paths were later or earlier.
        if let Some(number) = update.data_ack {
            let number = sequence::expand(self.shared.sender().first_data(), number);
            let counts = self.composition.flow_control != FlowControl::None;
            let window = update.window.filter(|_| counts).map(u64::from);
            if !self.shared.on_data_ack(number, window) {
                return; // acknowledges what was never sent
            }
        }
        if let Some(fin) = update.fin {
            self.on_fin(now, ordinal, fin);
        }
    }

    /// The peer's DATA_FIN.
    fn on_fin(&mut self, now: Time, ordinal: usize, number: u32) {
        let Some(next) = self.shared.receiver().next() else {
            return;
        };
        let number = sequence::expand(next, number);
        if let Ok(ended) = self.shared.on_data_fin(now, number) {
            if ended {
                self.shared.acknowledge_soon();
            }
            self.shared.paths_mut()[ordinal].connection.acknowledge_soon();
        }
    }
}
