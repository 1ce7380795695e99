//! A connection as one path of several (RFC 8684): what the connection above asks and tells, and where the calls of
//! [`intake`](super::intake) and [`outlet`](super::outlet) lead. Without a part in one each of them does nothing.

use super::{Connection, Packet, State, Verdict};
use crate::subflow::News;
use crate::subflow::options::Multipath;
use crate::subflow::set_up::Judgement;
use crate::tcp::wire::Header;
use bytes::Bytes;
use restp_base::flow::CloseReason;
use restp_base::machine::{Datagram, PathAddress};
use restp_base::time::Time;
use restp_services::connection_management::Keys;
use restp_services::framing::SendQueue;
use restp_services::multipath::Shared;
use restp_services::ordering::Stretch;
use restp_services::path_management::ByteMapping;
use restp_services::sender::Sender;

/// Asked and told by the connection above.
impl Connection {
    /// Established, and the peer takes data on it.
    pub(crate) fn is_usable(&self) -> bool {
        let ready = self
            .subflow
            .as_ref()
            .is_some_and(|subflow| subflow.set_up.is_ready());
        self.state == State::Established && ready && !self.release.is_wanted()
    }
    /// The peer uses one path only: this is all there is.
    pub(crate) fn is_alone(&self) -> bool {
        self.subflow.is_none()
    }
    /// The peer is known to know both keys.
    pub(crate) fn is_settled(&self) -> bool {
        self.subflow
            .as_ref()
            .is_some_and(|subflow| subflow.set_up.is_settled())
    }
    pub(crate) fn is_backup(&self) -> bool {
        self.subflow
            .as_ref()
            .is_some_and(|subflow| subflow.set_up.is_backup())
    }
    pub(crate) fn is_over(&self) -> bool {
        self.state.is_over()
    }
    /// The peer has ended its direction of this path.
    pub(crate) fn was_finished(&self) -> bool {
        self.release.remote_finished()
    }
    pub(crate) fn keys(&self) -> Option<Keys> {
        self.subflow.as_ref().and_then(|subflow| subflow.set_up.keys())
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
    /// Payload of a full segment.
    pub(crate) fn segment_bytes(&self) -> u32 {
        self.agreed.segment_bytes
    }
    /// Bytes that the peer took at first, by its last window.
    pub(crate) fn peer_window_bytes(&self) -> u64 {
        self.sender.credit_edge() - self.numbers.first_byte()
    }
    /// The next bytes to send are those of the connection from `data` on.
    pub(crate) fn assign(&mut self, now: Time, data: u64, payload: Bytes) -> u64 {
        let start = self.numbers.next_byte() + self.sender.queued_bytes() as u64;
        if let Some(subflow) = &mut self.subflow {
            subflow.map(start, data, payload.len() as u64);
        }
        self.sender.assign(now, payload)
    }

    /// The bytes of the connection that it has been given and that TCP has no acknowledgement for.
    pub(crate) fn carried(&self) -> impl Iterator<Item = &ByteMapping> {
        self.subflow.iter().flat_map(|subflow| subflow.tx().iter())
    }

    /// Takes a segment of this subflow of a connection that stands where `shared` says. Returns what it said and brought.
    pub(crate) fn handle_path(&mut self, now: Time, shared: Shared, packet: Packet<'_>) -> (Verdict, News) {
        self.learn_of(shared);
        let verdict = self.handle(now, packet);
        let Some(subflow) = &mut self.subflow else {
            return (verdict, News::default());
        };
        let mut news = subflow.take_news();
        for piece in self.receiver.drain() {
            subflow.hand_up(piece, &mut news.arrived);
        }
        (verdict, news)
    }

    /// Writes its next segment.
    pub(crate) fn poll_path(&mut self, now: Time, shared: Shared, out: &mut Datagram) -> bool {
        self.learn_of(shared);
        self.poll_transmit(now, out)
    }

    fn learn_of(&mut self, shared: Shared) {
        // How much may come is decided by the mappings; the subflow's own numbers only bound it.
        self.receiver.promise_bytes(self.window_bytes());
        if let Some(subflow) = &mut self.subflow {
            subflow.stamp(shared);
        }
    }

    pub(crate) fn acknowledge_soon(&mut self) {
        self.receiver.acknowledgement().on_urgent_once();
    }
    /// An acknowledgement that says where our data end leaves now.
    pub(crate) fn announce_end(&mut self, fin: u64) {
        if let Some(subflow) = &mut self.subflow {
            subflow.announce_end(fin);
        }
        self.receiver.acknowledgement().on_urgent_once();
    }
    /// An acknowledgement leaves now that says this of addresses. False while another such waits.
    pub(crate) fn notify(&mut self, notice: Multipath) -> bool {
        self.receiver.acknowledgement().on_urgent_once();
        self.subflow
            .as_mut()
            .is_some_and(|subflow| subflow.notify(notice))
    }
    /// Identifier of the peer's address, once it is known.
    pub(crate) fn remote_address(&self) -> Option<u8> {
        self.subflow.as_ref()?.set_up.remote_address()
    }
    /// It is alone: what was written to the connection above is its own.
    pub(crate) fn adopt(&mut self, written: SendQueue) {
        let parameters = self.parameters.sending(self.agreed.segment_bytes);
        self.sender.adopt(written, parameters);
    }
}

/// Called by intake, outlet and timers.
impl Connection {
    /// The peer's answer to our SYN; false: it is not believed.
    pub(super) fn agree(&mut self, now: Time, option: Option<Multipath>) -> bool {
        let Some(subflow) = &mut self.subflow else {
            return true;
        };
        let judgement = subflow.set_up.on_answer(now, option, self.parameters.handshake);
        if judgement == Judgement::Alone {
            self.subflow = None;
            self.sender.bind_credit(true);
        }
        judgement != Judgement::Refuse
    }

    /// The segment that completes what the peer began.
    pub(super) fn complete(&mut self, option: Option<Multipath>) -> Judgement {
        let Some(subflow) = &mut self.subflow else {
            return Judgement::Take;
        };
        let judgement = subflow.set_up.on_third(option);
        if judgement == Judgement::Alone {
            self.subflow = None;
            self.sender.bind_credit(true);
        }
        judgement
    }

    /// What the segment says of the connection; false: it breaks a rule.
    pub(super) fn takes_signal(&mut self, header: &Header, stretch: &Stretch) -> bool {
        let Some(subflow) = &mut self.subflow else {
            return true;
        };
        let bytes = (stretch.start, stretch.start + stretch.payload.len() as u64);
        let window = u64::from(header.window) << self.agreed.peer_shift;
        let judgement = subflow.on_segment(header.options.multipath, bytes, self.receiver.edge(), window);
        if std::mem::take(&mut subflow.must_answer) {
            self.receiver.acknowledgement().on_urgent_once();
        }
        judgement == Judgement::Take
    }

    /// A bare segment whose Data ACK is news is no duplicate.
    pub(super) fn data_ack_moved(&mut self) -> bool {
        self.subflow
            .as_mut()
            .is_some_and(|subflow| subflow.data_ack_moved())
    }

    /// The next acknowledgement says something of addresses.
    pub(super) fn has_notice(&self) -> bool {
        self.subflow.as_ref().is_some_and(|subflow| subflow.has_notice())
    }

    pub(super) fn release_mappings(&mut self) {
        let below = self.numbers.first_byte();
        if let Some(subflow) = &mut self.subflow {
            subflow.acknowledged_below(below);
        }
    }

    pub(super) fn proof_deadline(&self) -> Option<Time> {
        self.subflow
            .as_ref()
            .and_then(|subflow| subflow.set_up.proof_deadline())
    }

    /// The proof of a join may be due again, or has been sent often enough.
    pub(super) fn check_proof(&mut self, now: Time) {
        let due = match &mut self.subflow {
            Some(subflow) if self.state == State::Established => subflow.set_up.proof_due(now),
            _ => return,
        };
        match due {
            Some(true) => self.receiver.acknowledgement().on_urgent_once(),
            Some(false) => {}
            None => {
                let waited = now.since(self.opened_at);
                self.end(CloseReason::TimedOut(waited), State::Resetting);
            }
        }
    }
}
