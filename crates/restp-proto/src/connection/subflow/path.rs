//! A connection as one of several paths: what the association asks of it and tells it (OP-20, OP-54, OP-55).

use super::{DssUpdate, Setup, Subflow};
use crate::composition::{Terms, ValidComposition};
use crate::connection::eras::Eras;
use crate::connection::{Connection, Packet, Ports, State, outgoing, receive};
use crate::wire::Header;
use bytes::Bytes;
use restp_base::machine::{Datagram, PathAddress};
use restp_base::time::Time;
use restp_services::connection_management::Keys;
use restp_services::framing::SendQueue;
use restp_services::multipath::Shared;
use restp_services::path_management::Unanswered;
use restp_services::sender::Sender;
use smallvec::SmallVec;
use std::collections::VecDeque;
use std::sync::Arc;

/// Payloads that have newly arrived.
pub(crate) type Arrived = SmallVec<[Bytes; 1]>;

impl Connection {
    /// Makes this connection a path of an association; with `integrity` its mappings carry a CRC-32.
    pub(crate) fn into_path(mut self, setup: Setup, k: u8, integrity: bool) -> Self {
        let first = self.sender.first();
        self.eras.understood = false;
        let mut subflow = Subflow::new(setup, first, k, integrity);
        subflow.shares = self.services.shared_numbers;
        if !subflow.shares {
            self.sender.bind_credit(false); // the shared window binds
        }
        self.subflow = Some(Box::new(subflow));
        self
    }

    /// Makes it a connection on one path again: the peer knows no others.
    pub(in crate::connection) fn leave_association(&mut self, header: &Header) {
        self.subflow = None;
        self.exchange = None;
        self.sender.retransmit_all(); // data beside the SYN was not taken
        self.services = self.services.on_one_path();
        self.eras = Eras::new(
            Terms::at_first(&self.composition, self.services),
            &self.composition,
        );
        if let Some(window) = header.window {
            self.sender.grant_afresh(self.sender.first(), window.into());
            self.sender.bind_credit(true);
        }
    }

    /// May the association give it a segment of `bytes` now? Repairs come first.
    pub(crate) fn takes(&mut self, now: Time, bytes: u64) -> bool {
        let sent = self.sender.next_number() - self.origin;
        let open = match self.state {
            State::Established => true,
            State::SynSent(_) | State::SynReceived(_) => self
                .exchange
                .is_some_and(|exchange| exchange.may_send(sent, true)),
            _ => false,
        };
        open && self.sender.takes(now, bytes)
    }

    /// The association gives it the segment `number`. It leaves with the next packet, under the path's number that this
    /// returns.
    pub(crate) fn assign(&mut self, now: Time, number: u64, payload: Bytes) -> u64 {
        if let Some(subflow) = &mut self.subflow {
            subflow.queued.push_back(number);
        }
        self.sender.assign(now, payload)
    }

    /// The next acknowledgement carries DATA_FIN with the number `fin`, and leaves now.
    pub(crate) fn announce_end(&mut self, fin: u64) {
        if let Some(subflow) = &mut self.subflow {
            subflow.fin_due = Some(fin);
            self.receiver.acknowledgement().on_urgent_once();
        }
    }

    pub(crate) fn keys(&self) -> Option<Keys> {
        self.subflow.as_ref()?.keys()
    }
    /// Its mappings carry a CRC-32.
    pub(crate) fn has_integrity(&self) -> bool {
        self.subflow.as_ref().is_some_and(|subflow| subflow.integrity)
    }
    /// The peer has declined to have several paths.
    pub(crate) fn is_alone(&self) -> bool {
        self.subflow.is_none()
    }
    /// It carries data, or may already carry some beside its set-up.
    pub(crate) fn is_open(&self) -> bool {
        self.is_established() || self.exchange.is_some_and(|exchange| exchange.may_send(0, true))
    }
    pub(crate) fn is_established(&self) -> bool {
        self.state == State::Established
    }
    pub(crate) fn is_over(&self) -> bool {
        self.state.is_over()
    }
    pub(crate) fn sender(&self) -> &Sender {
        &self.sender
    }
    pub(crate) fn sender_mut(&mut self) -> &mut Sender {
        &mut self.sender
    }
    pub(crate) fn address(&self) -> PathAddress {
        self.address
    }
    pub(crate) fn ports(&self) -> Ports {
        self.ports
    }
    /// Feedback with news, and answers to keep-alives, so far.
    pub(crate) fn answers(&self) -> u64 {
        self.liveness.answers() + self.sender.lane_reports()
    }
    /// Takes a packet of this path. Returns what it said to the association, and what it brought.
    pub(crate) fn handle_path(&mut self, now: Time, packet: Packet<'_>) -> (DssUpdate, Arrived) {
        let update = self.handle(now, packet);
        if self.numbers_data() {
            return (update, Arrived::new()); // its reader takes it
        }
        (update, self.receiver.drain().collect())
    }
    /// Writes the next packet of this path of the association that stands where `shared` says.
    pub(crate) fn poll_path(&mut self, now: Time, shared: &Shared, out: &mut Datagram) -> bool {
        let (established, advertises) = (self.is_established(), self.services.flow_control != 0);
        if let Some(subflow) = &mut self.subflow {
            subflow.stamp(shared, advertises, established);
        }
        self.poll_transmit(now, out)
    }
    /// Connection numbers that are queued or outstanding here.
    pub(crate) fn carried(&self) -> impl Iterator<Item = u64> + '_ {
        self.subflow.iter().flat_map(|subflow| subflow.carried())
    }
    /// The association is this one connection: what was written belongs to it.
    pub(crate) fn adopt(&mut self, queue: SendQueue, composition: Arc<ValidComposition>) {
        let parameters = outgoing::parameters(&composition, self.services);
        self.sender.adopt(queue, parameters);
        if let Some(next) = self.receiver.next() {
            receive::begin(&mut self.receiver, next, &composition);
        }
        self.composition = composition;
    }

    /// Takes back what was assigned and has not left: its connection numbers.
    pub(crate) fn unassign(&mut self) -> VecDeque<u64> {
        self.sender.unassign();
        let subflow = self.subflow.as_mut();
        subflow.map_or_else(VecDeque::new, |subflow| std::mem::take(&mut subflow.queued))
    }

    /// The answer that is due first.
    pub(crate) fn unanswered(&self) -> Option<Unanswered> {
        self.sender.unanswered(self.liveness.asked_at())
    }

    /// The lowest connection number whose packet left so late that it died with both directions of the path.
    pub(crate) fn lost_with_both(&self) -> Option<u64> {
        // Its answer did not come back in time; an eighth of the way is allowed for what is not known of it.
        let back = self.sender.minimum_rtt()? / 2;
        let from = self.unanswered()?.since + back.scaled(7, 8);
        let mut outstanding = self.subflow.as_ref()?.mapping.outstanding();
        let late = outstanding.find(|(number, _)| self.sender.is_open_since(*number, from));
        late.map(|(_, carried)| carried)
    }

    /// The peer is asked for an answer now, whatever is outstanding.
    pub(crate) fn ask(&mut self) {
        self.liveness.ask();
    }

    /// An acknowledgement leaves with the next turn, because the association has news.
    pub(crate) fn acknowledge_soon(&mut self) {
        if let Some(subflow) = &mut self.subflow {
            subflow.on_data_ack_wanted();
        }
        self.receiver.acknowledgement().on_urgent_once();
    }
}
