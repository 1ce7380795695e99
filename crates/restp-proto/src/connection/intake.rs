//! What happens to a packet, in order (ResTP layout: connection management, acknowledgement, recovery, loss
//! handling, congestion, flow control, ordering, events). Each step is one call; no algorithm lives here.

use super::eras::Place;
use super::fec::is_encoded;
use super::packet::Packet;
use super::subflow::{Answer, DssUpdate};
use super::{Connection, State, acknowledgement, receive};
use crate::wire::{Flags, Header};
use bytes::Bytes;
use restp_base::flow::CloseReason;
use restp_base::sequence;
use restp_base::time::Time;
use restp_services::ack::AckReport;
use restp_services::connection_management::{Cookie, EARLY_SEGMENTS, Exchange};
use restp_services::sender::{Grant, PeerReport};

impl Connection {
    /// Takes a packet of this association. Returns what it says to one of several paths.
    pub(crate) fn handle(&mut self, now: Time, packet: Packet<'_>) -> DssUpdate {
        self.peer.get_or_insert(packet.peer);
        self.counters.received_packets += 1;
        self.counters.received_bytes += packet.bytes as u64;
        let header = packet.header;
        let declines = self.declines_paths(header) || self.declines_sharing(header);
        if !self.belongs(header, !packet.payload.is_empty()) && !declines {
            self.counters.rejected_packets += 1;
            if header.flags.has(Flags::SYN) && !header.flags.has(Flags::ACK) {
                self.on_other_request(now, header);
            }
            return DssUpdate::default();
        }
        if packet.is_damaged {
            self.counters.corrupted_packets += 1; // treated as missing (OP-24)
            return DssUpdate::default();
        }
        if header.flags.has(Flags::RST) {
            return self.on_reset(now, header);
        }
        match self.state {
            State::SynSent(_) => return self.on_answer(now, packet),
            State::SynReceived(_) => return self.on_confirmation(now, packet),
            State::Established => return self.on_established(now, packet),
            State::TimeWait { .. } => {
                if header.flags.has(Flags::FIN) || (!packet.payload.is_empty() && !is_encoded(header)) {
                    self.receiver.acknowledgement().on_urgent_once(); // the peer did not hear our last acknowledgement
                } else if let Some(number) = header.sequence {
                    self.on_bare(number);
                }
            }
            State::Resetting { .. } | State::Closed => {}
        }
        DssUpdate::default()
    }

    /// The answer to our SYN leaves out the bits of several paths: the one thing that may be answered otherwise (OP-27).
    pub(super) fn declines_paths(&self, header: &Header) -> bool {
        let asked = matches!(self.state, State::SynSent(_)) && self.subflow.is_some();
        asked && self.services.on_one_path().agree(&header.services)
    }

    /// SYN-SENT: only a SYN-ACK of our SYN counts, or after early data a response that doubles as one.
    fn on_answer(&mut self, now: Time, packet: Packet<'_>) -> DssUpdate {
        let header = packet.header;
        let answers = header.acknowledgement.is_none_or(|number| self.is_ours(number));
        let proved = matches!(self.exchange, Some(Exchange::Prove { .. }));
        let opens = header.flags.has(Flags::SYN | Flags::ACK) && (packet.payload.is_empty() || proved);
        if !opens || !answers || !self.agrees_on_code(header) {
            self.on_unplaced(packet, answers && proved);
            return DssUpdate::default();
        }
        match self.subflow.as_mut().map(|subflow| subflow.on_answer(header)) {
            Some(Answer::SinglePath) => self.leave_association(header),
            Some(Answer::Forged) => {
                self.counters.rejected_packets += 1;
                self.end(CloseReason::Refused, State::resetting(now));
                return DssUpdate::default();
            }
            Some(Answer::Accepted) | None => {}
        }
        if self.declines_sharing(header) {
            self.number_per_path();
        }
        self.liveness.on_heard(now);
        self.learn_peer_number(&packet);
        self.ecn.agreed =
            self.composition.ecn && header.flags.has(Flags::ECE) && !header.flags.has(Flags::CWR);
        self.eras.understood = header.era && self.knows_eras();
        self.establish(now, header.acknowledgement, packet.payload.is_empty());
        self.receiver.acknowledgement().on_urgent();
        self.confirmation_due = true;
        self.given = header.cookie().copied();
        if self.given.is_some() {
            self.sender.retransmit_all(); // the early data was not taken (OP-30)
        } else {
            self.counters.early_segments = self.sender.next_number() - self.origin;
        }
        let update = if proved {
            self.on_established(now, packet)
        } else {
            DssUpdate::default()
        };
        for (number, payload) in std::mem::take(&mut self.unplaced) {
            self.on_segment(now, number, Some(payload));
        }
        update
    }

    /// The peer's SYN, or its answer to ours, says where its numbers begin and what it takes. Data that doubles as one
    /// carries its own number, the one after (OP-17).
    pub(super) fn learn_peer_number(&mut self, packet: &Packet<'_>) {
        let header = packet.header;
        if let Some(first) = header.sequence {
            let next = sequence::ORIGIN + u64::from(first) + u64::from(packet.payload.is_empty());
            receive::begin(&mut self.receiver, next, &self.composition);
        }
        if let Some(window) = header.window {
            self.advertised = window;
            if self.numbers_data() {
                // Early data that is not retransmitted may have been forgotten before anything was acknowledged.
                let first = self.sender.first();
                let asked = header
                    .acknowledgement
                    .map(|number| sequence::expand(first, number));
                let from = asked.map_or(first, |number| number.min(first));
                self.sender.grant(from, window.into());
                self.sender.bind_credit(true);
            }
        }
    }

    /// Moves out the cookie that the peer has given.
    pub(crate) fn take_cookie(&mut self) -> Option<Cookie> {
        self.given.take()
    }

    /// The packet that completes our set-up is to leave.
    pub(super) fn take_confirmation(&mut self) -> bool {
        std::mem::take(&mut self.confirmation_due)
    }

    /// Later data of a server waits a little for the packet that says where its numbers begin (ResTP §3.5.5).
    fn on_unplaced(&mut self, packet: Packet<'_>, credible: bool) {
        let header = packet.header;
        let placed_later =
            header.flags == Flags::ACK && credible && !is_encoded(header) && self.subflow.is_none();
        match header.sequence.filter(|_| placed_later) {
            Some(number) if !packet.payload.is_empty() && self.unplaced.len() < MAX_UNPLACED => {
                self.unplaced
                    .push((number, receive::kept(packet.payload, packet.is_slice)));
            }
            _ => self.counters.rejected_packets += 1,
        }
    }

    /// Does `number` acknowledge our SYN, and nothing that was not sent?
    pub(super) fn is_ours(&self, number: u32) -> bool {
        let number = sequence::expand(self.origin, number);
        (self.origin..=self.sender.next_number()).contains(&number)
    }

    /// SYN-RECEIVED: anything that acknowledges our SYN completes the exchange; a retransmitted SYN asks again.
    fn on_confirmation(&mut self, now: Time, packet: Packet<'_>) -> DssUpdate {
        let header = packet.header;
        if header.flags.has(Flags::SYN) && packet.payload.is_empty() {
            self.retransmit_set_up();
            return DssUpdate::default();
        }
        if self.exchange.is_some() && !header.flags.has(Flags::ACK) {
            return self.on_early_data(now, packet);
        }
        let confirmed = header.acknowledgement.is_some_and(|number| self.is_ours(number));
        let confirms = self.services_are_numbered() && self.has_feedback();
        if (confirms && !confirmed) || header.flags.has(Flags::SYN) {
            self.counters.rejected_packets += 1;
            return DssUpdate::default();
        }
        if self
            .subflow
            .as_ref()
            .is_some_and(|subflow| !subflow.is_confirmed_by(header))
        {
            self.counters.rejected_packets += 1; // whoever joins has to prove itself first (OP-36)
            return DssUpdate::default();
        }
        self.peer = Some(packet.peer); // who only asked may have been somebody else
        let bare = packet.payload.is_empty() && !header.flags.has(Flags::FIN);
        self.establish(now, header.acknowledgement, bare);
        if self.subflow.is_some() {
            self.answer_here(); // until it hears us the initiator retransmits its proof (OP-22)
        }
        self.on_established(now, packet)
    }

    /// Data that comes before the exchange is complete: taken from a client whose cookie was valid. That the first of
    /// it carries SYN and cookie again means nothing now (ResTP §3.5.5).
    fn on_early_data(&mut self, now: Time, packet: Packet<'_>) -> DssUpdate {
        let Some(update) = self.on_dss(packet.header, &packet.payload) else {
            return DssUpdate::default();
        };
        match packet
            .header
            .sequence
            .filter(|number| self.takes_early(&packet, *number))
        {
            Some(number) => {
                self.liveness.on_heard(now);
                self.counters.early_segments += 1;
                self.on_data(now, number, packet.payload, packet.is_slice);
            }
            None => self.counters.rejected_packets += 1,
        }
        update
    }

    /// What the packet says to the association, if there is one. None when its data belong nowhere.
    fn on_dss(&mut self, header: &Header, payload: &Bytes) -> Option<DssUpdate> {
        let update = match &mut self.subflow {
            Some(subflow) => subflow.on_dss(header, payload),
            None => Some(DssUpdate::default()),
        };
        self.counters.rejected_packets += u64::from(update.is_none());
        update
    }

    fn takes_early(&self, packet: &Packet<'_>, number: u32) -> bool {
        let (Some(exchange), Some(next)) = (&self.exchange, self.receiver.next()) else {
            return false;
        };
        let is_data = !packet.payload.is_empty() && !packet.header.flags.has(Flags::FIN);
        let ahead = sequence::expand(next, number).saturating_sub(next);
        let held = self.receiver.held_bytes();
        let most_bytes = EARLY_SEGMENTS as usize * self.composition.segment_bytes as usize;
        let fits = held == 0 || held + packet.payload.len() <= most_bytes;
        is_data && !is_encoded(packet.header) && exchange.takes(ahead) && fits
    }

    /// Whoever has heard this side acknowledges in every packet but repairs (RFC 9293 §3.10.7.4). Who has not sends a request, and
    /// early data behind it, which may be late; or has started again, and does not know of this connection.
    fn is_of_another_life(&self, header: &Header) -> bool {
        let (Some(number), Some(next)) = (header.sequence, self.receiver.next()) else {
            return false;
        };
        let ahead = sequence::expand(next, number).saturating_sub(next);
        let has_heard = header.flags.has(Flags::ACK) || is_encoded(header);
        self.has_feedback() && !has_heard && ahead >= EARLY_SEGMENTS
    }

    fn on_established(&mut self, now: Time, packet: Packet<'_>) -> DssUpdate {
        let Packet {
            header,
            payload,
            is_slice,
            ecn,
            ..
        } = packet;
        let (syn, is_strange) = (header.flags.has(Flags::SYN), self.is_of_another_life(header));
        if is_strange && !syn {
            self.counters.rejected_packets += 1;
            return DssUpdate::default();
        }
        self.liveness.on_heard(now);
        if !self.subflow.as_ref().is_some_and(|subflow| subflow.failed) {
            self.liveness.wait_for_silence(); // one that is taken for dead is asked however much it says: only answers count
        }
        let asks = payload.is_empty() && !header.flags.has(Flags::ACK);
        if syn && (asks || is_strange || self.exchange.is_none()) {
            // A late retransmission: the peer does not know yet that we know. Or it has started again, and refuses what this says,
            // whatever its number is (RFC 9293 §3.10.7.4).
            if self.lane().is_some() {
                self.answer_here();
            } else {
                self.receiver.acknowledgement().on_urgent();
            }
            return DssUpdate::default();
        }
        let next = self.receiver.next();
        let turns = self.eras.has_accepted()
            && self.eras.place(header, !payload.is_empty(), next) == Some(Place::Next);
        let about_eras = self.eras.understood && header.about_eras && !payload.is_empty();
        if header.probe && !payload.is_empty() {
            self.on_mtu_probe(now, header.sequence, &payload);
            return DssUpdate::default();
        }
        let fin = header.flags.has(Flags::FIN);
        if fin && !payload.is_empty() {
            self.counters.rejected_packets += 1; // a FIN takes a number of its own (OP-17)
            return DssUpdate::default();
        }
        let Some(update) = self.on_dss(header, &payload) else {
            return DssUpdate::default();
        };
        if self.eras.deadline().is_some() {
            self.eras.on_heard(now, self.sender.single_timeout());
        }
        if header.flags.has(Flags::ACK) && !self.on_feedback(now, header, payload.is_empty() && !fin && !syn)
        {
            return update;
        }
        if turns {
            self.turn_to_next(now);
        }
        if about_eras {
            self.on_era_message(now, &payload);
            self.take_wish(now);
            return update;
        }
        if let Some(asked_at) = self.liveness.on_answer() {
            self.measure_idle_lane(now, now.since(asked_at), header, &payload);
        }
        self.on_mark(header, ecn, !payload.is_empty());
        match header.sequence {
            Some(_) if is_encoded(header) => self.on_encoded(header, &payload),
            Some(number) if fin => self.on_segment(now, number, None),
            Some(number) if !payload.is_empty() => {
                self.receiver.acknowledgement().on_ratio(header.ack_ratio);
                self.on_data(now, number, payload, is_slice);
            }
            Some(number) => self.on_bare(number),
            None if fin => self.on_unnumbered_fin(),
            None => self.on_datagram(payload, header.flags),
        }
        self.take_rebuilt(now);
        self.take_wish(now);
        self.conclude(now);
        update
    }

    /// What the packet says of what was sent. False when the peer acknowledges what was never sent; then nothing else in
    /// the packet is believed.
    fn on_feedback(&mut self, now: Time, header: &Header, bare: bool) -> bool {
        let Some(number) = header.acknowledgement else {
            return true;
        };
        let mut report = AckReport::pointer(sequence::expand(self.sender.first(), number));
        acknowledgement::detail(header, &mut report);
        report.lost = self.reported_loss(header, report.cumulative);
        report.uncarried = self.reported_uncarried(header, report.cumulative);
        // Each SYN-ACK is acknowledged; that repeats nothing said of data.
        let of_answer = report.cumulative == self.origin && self.unconfirmed_answers > 0;
        let echoes_mark = self.ecn.agreed && header.flags.has(Flags::ECE) && !header.flags.has(Flags::SYN);
        let has_lane = self.lane().is_some();
        let peer = PeerReport {
            report: &report,
            grant: header.window.filter(|_| self.numbers_data()).map(|window| Grant {
                at: report.cumulative,
                units: window.into(),
            }),
            is_bare_duplicate: self.is_duplicate_ack(header, bare) && !of_answer,
            echoed_rtt: None,
            echoes_mark: echoes_mark && !has_lane,
            repaired: header.repaired,
        };
        if self.sender.on_feedback(now, &peer).is_err() {
            self.refuse(now);
            return false;
        }
        // What does not leave again is forgotten when its timer runs out, and an acknowledgement that comes later shows no less that it was
        // taken.
        if self.liveness.on_acknowledged(number) && !self.composition.reliability.retransmits() {
            self.sender.on_late_progress(now);
        }
        self.unconfirmed_answers -= u32::from(of_answer);
        if echoes_mark && has_lane {
            self.sender.on_lane_mark(now); // marks are echoed by the path that they came by
        }
        let first = self.sender.first();
        if let Some(subflow) = self.subflow.as_mut().filter(|subflow| !subflow.shares) {
            subflow.mapping.release_below(first);
        }
        self.release.acknowledged(first);
        true
    }

    /// A bare packet that says what the last one said beside its pointer: the window, and the pointer of an association.
    fn is_duplicate_ack(&mut self, header: &Header, bare: bool) -> bool {
        if let Some(subflow) = self.subflow.as_mut().filter(|subflow| !subflow.shares) {
            return bare && subflow.is_duplicate(header);
        }
        let advertised = header.window.unwrap_or(self.advertised);
        std::mem::replace(&mut self.advertised, advertised) == advertised && bare
    }

    /// A packet with a number but nothing numbered in it. One below the pointer is a keep-alive: it wants to hear
    /// where we stand (RFC 9293 §3.8.4).
    fn on_bare(&mut self, number: u32) {
        let Some(next) = self.receiver.next() else {
            return;
        };
        if sequence::expand(next, number) < next && self.has_feedback() {
            if let Some(subflow) = &mut self.subflow {
                subflow.on_data_ack_wanted();
            }
            self.answer_here();
        }
    }
}

/// Segments of a server that wait for its SYN-ACK: about its first window.
const MAX_UNPLACED: usize = 10;
