//! What happens to a segment, in order (RFC 9293 §3.10.7): numbers, RST, SYN, what the sender hears of it, stream,
//! events. Each step is one call; no algorithm lives here.

use super::{Connection, State};
use crate::subflow::set_up::Judgement;
use crate::tcp::numbers::report;
use crate::tcp::options::Timestamps;
use crate::tcp::wire::{Flags, Header};
use bytes::Bytes;
use restp_base::flow::CloseReason;
use restp_base::machine::Ecn;
use restp_base::sequence::{expand, truncate};
use restp_base::time::{Duration, Time};
use restp_services::connection_management::Notice;
use restp_services::ordering::{Arrival, Stretch};
use restp_services::sender::{Grant, PeerReport};
use std::ops::Range;

/// A received segment after the codec.
pub(crate) struct Packet<'a> {
    pub(crate) header: &'a Header,
    pub(crate) payload: Bytes,
    /// What the network says of congestion.
    pub(crate) ecn: Ecn,
    /// Bytes of header and payload.
    pub(crate) size: usize,
}

impl Packet<'_> {
    /// Numbers it takes: payload, SYN and FIN (RFC 9293 §3.4).
    pub(crate) fn sequence_length(&self) -> u32 {
        let flags = self.header.flags;
        self.payload.len() as u32 + u32::from(flags.has(Flags::SYN)) + u32::from(flags.has(Flags::FIN))
    }
}

/// What the host has to do about a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Nothing: the connection took or dropped it.
    Taken,
    /// Answer with RST: it belongs to another life of these ports.
    Refuse,
}

impl Connection {
    /// Takes a segment of this connection.
    pub(crate) fn handle(&mut self, now: Time, packet: Packet<'_>) -> Verdict {
        self.stats.received_packets += 1;
        self.stats.received_bytes += packet.size as u64;
        match self.state {
            State::SynSent(_) => self.on_answer(now, packet.header),
            State::SynReceived(_) | State::Established | State::TimeWait { .. } => {
                self.on_segment(now, packet)
            }
            State::Resetting => Verdict::Taken,
            State::Closed => Verdict::Refuse,
        }
    }

    /// SYN-SENT: only what acknowledges our SYN counts (RFC 9293 §3.10.7.3).
    fn on_answer(&mut self, now: Time, header: &Header) -> Verdict {
        if !header.flags.has(Flags::ACK) || !self.names_our_syn(header.acknowledgement) {
            self.stats.rejected_packets += 1;
            return if header.flags.has(Flags::ACK) {
                Verdict::Refuse
            } else {
                Verdict::Taken
            };
        }
        if header.flags.has(Flags::RST) {
            self.end(CloseReason::Refused, State::Closed);
        } else if header.flags.has(Flags::SYN) {
            if !self.agree(now, header.options.multipath) {
                self.end(CloseReason::Refused, State::Closed);
                return Verdict::Refuse;
            }
            self.learn(header);
            self.establish(now);
            self.on_early_answer(now, header);
            self.receiver.acknowledgement().on_urgent();
        }
        Verdict::Taken
    }

    fn on_segment(&mut self, now: Time, packet: Packet<'_>) -> Verdict {
        let Packet {
            header, payload, ecn, ..
        } = packet;
        let flags = header.flags;
        let stretch = Stretch {
            start: expand(self.receive_next(), header.sequence),
            payload,
            fin: flags.has(Flags::FIN),
        };
        if flags.has(Flags::RST) {
            self.on_reset(stretch.start);
            return Verdict::Taken;
        }
        if flags.has(Flags::SYN) {
            self.on_late_syn(header);
            return Verdict::Taken;
        }
        if !self.is_current(header.options.timestamps) || !self.is_acceptable(&stretch) {
            self.on_unacceptable(now, &stretch);
            return Verdict::Taken;
        }
        self.note_clock(header.options.timestamps, stretch.start);
        if !flags.has(Flags::ACK) {
            self.stats.rejected_packets += 1;
            return Verdict::Taken;
        }
        if self.is_half_open() {
            if !self.names_our_syn(header.acknowledgement) {
                self.stats.rejected_packets += 1;
                return Verdict::Refuse;
            }
            match self.complete(header.options.multipath) {
                Judgement::Take | Judgement::Alone => self.establish(now),
                judgement => return self.turn_down(judgement),
            }
        }
        if !self.takes_signal(header, &stretch) {
            if stretch.start < stretch.end() {
                self.receiver.acknowledgement().on_urgent_once(); // perhaps a question whether the window is still shut
            }
            return self.turn_down(Judgement::Ignore);
        }
        // What speaks of addresses is no duplicate (RFC 8684 §3.4.1).
        let of_addresses = header
            .options
            .multipath
            .is_some_and(|option| option.is_of_addresses());
        let bare = stretch.start == stretch.end() && !self.data_ack_moved() && !of_addresses;
        if !self.on_feedback(now, header, bare) {
            return Verdict::Taken;
        }
        self.ecn.on_segment(header, &stretch.payload, ecn);
        if stretch.start < stretch.end() {
            self.on_data(now, stretch);
        }
        self.conclude(now);
        Verdict::Taken
    }

    /// A segment that breaks a rule of several paths, and what it did to the subflow.
    fn turn_down(&mut self, judgement: Judgement) -> Verdict {
        self.stats.rejected_packets += 1;
        if judgement != Judgement::Refuse {
            return Verdict::Taken;
        }
        self.end(CloseReason::Refused, State::Closed);
        Verdict::Refuse
    }

    /// RST counts when it names exactly the byte we expect; one elsewhere in the window is asked to prove itself
    /// (RFC 5961 §3.2). TIME-WAIT ignores it (RFC 1337).
    fn on_reset(&mut self, start: u64) {
        let next = self.receive_next();
        if self.state.is_over() {
        } else if start == next {
            self.end(CloseReason::Reset, State::Closed);
        } else if (next..self.receiver.edge()).contains(&start) {
            self.receiver.acknowledgement().on_urgent_once();
        } else {
            self.stats.rejected_packets += 1;
        }
    }

    /// A SYN where there is a connection: a retransmission, or one that must be proved by a reset (RFC 5961 §4.2).
    fn on_late_syn(&mut self, header: &Header) {
        let retransmitted = truncate(self.first_received) == header.sequence.wrapping_add(1);
        match self.state {
            State::SynReceived(_) if retransmitted => self.retransmit_set_up(),
            _ => self.receiver.acknowledgement().on_urgent_once(),
        }
    }

    /// PAWS (RFC 7323 §5.3): once agreed, every segment has a clock, and it does not go back.
    fn is_current(&self, theirs: Option<Timestamps>) -> bool {
        match (self.agreed.clock, theirs) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(clock), Some(theirs)) => theirs.value.wrapping_sub(clock.recent) as i32 >= 0,
        }
    }

    /// Does any of it lie in our window (RFC 9293 §3.10.7.4)? A bare segment may stand at the edge itself: a sender
    /// that has filled the window numbers its acknowledgements so.
    fn is_acceptable(&self, stretch: &Stretch) -> bool {
        let (next, edge) = (self.receive_next(), self.receiver.edge());
        if stretch.start == stretch.end() {
            (next..=edge).contains(&stretch.start)
        } else {
            stretch.start < edge && stretch.end() > next && !self.receiver.contradicts(stretch)
        }
    }

    /// Says where we stand, and nothing else is believed.
    fn on_unacceptable(&mut self, now: Time, stretch: &Stretch) {
        let bare = stretch.start == stretch.end();
        if bare {
            return self.receiver.acknowledgement().on_urgent_once();
        }
        if stretch.end() <= self.receive_next() {
            self.stats.duplicate_packets += 1;
            self.note_duplicate(stretch.start..stretch.start + stretch.payload.len() as u64);
        } else {
            self.stats.rejected_packets += 1;
        }
        self.wait_again(now);
        self.receiver.acknowledgement().on_urgent();
    }

    /// Remembers the clock to echo (RFC 7323 §4.3).
    fn note_clock(&mut self, theirs: Option<Timestamps>, start: u64) {
        if let (Some(clock), Some(theirs)) = (&mut self.agreed.clock, theirs)
            && start <= clock.acknowledged
        {
            clock.recent = theirs.value;
        }
    }

    /// What the segment says of what was sent. False when the peer acknowledges what was never sent; then nothing else in
    /// it is believed.
    pub(super) fn on_feedback(&mut self, now: Time, header: &Header, bare: bool) -> bool {
        let (detail, unit) = (self.agreed.detail, self.agreed.unit);
        let (number, options) = (header.acknowledgement, &header.options);
        let unacknowledged = self.numbers.first_byte();
        let acknowledged = expand(unacknowledged, number);
        let mut report = report(&self.numbers, number, options, detail, unit);
        if let Some((report, known)) = report.as_mut().zip(self.duplicates.as_ref()) {
            report.duplicates = known.named(options, acknowledged);
        }
        let is_duplicate = header.window == self.advertised && acknowledged == unacknowledged;
        let taken = report.is_some_and(|report| {
            let peer = PeerReport {
                report: &report,
                grant: (acknowledged >= unacknowledged).then(|| Grant {
                    at: acknowledged,
                    units: u64::from(header.window) << self.shift_of(header),
                }),
                is_bare_duplicate: bare && is_duplicate,
                echoed_rtt: self.echoed_rtt(now, header.options.timestamps),
                echoes_mark: self.ecn.is_echoed(header.flags),
                repaired: 0,
            };
            self.sender.on_feedback(now, &peer).is_ok()
        });
        if !taken {
            self.stats.rejected_packets += 1;
            self.receiver.acknowledgement().on_urgent_once();
            return false;
        }
        if acknowledged >= unacknowledged {
            self.advertised = header.window;
        }
        let first = self.sender.first();
        self.numbers.release_below(first);
        self.release_mappings();
        self.release.acknowledged(first);
        self.wake_writer(); // where the send buffer holds what is in flight
        true
    }

    /// With timestamps every acknowledgement of new data measures the round trip, of retransmitted segments too
    /// (RFC 7323 §4.1).
    fn echoed_rtt(&self, now: Time, theirs: Option<Timestamps>) -> Option<Duration> {
        self.agreed.clock?;
        let ticks = super::outlet::ticks(now).wrapping_sub(theirs?.echo);
        (ticks < u32::MAX / 2).then(|| Duration::from_millis(u64::from(ticks)))
    }

    /// Payload, FIN, or both.
    pub(super) fn on_data(&mut self, now: Time, stretch: Stretch) {
        let bytes = stretch.start..stretch.start + stretch.payload.len() as u64;
        let next = self.receive_next();
        if bytes.start < next {
            self.note_duplicate(bytes.start..bytes.end.min(next));
        }
        match self.receiver.on_bytes(now, stretch, self.sender.smoothed_rtt()) {
            // A stream skips nothing, so nothing comes late.
            Arrival::Duplicate | Arrival::Late => {
                self.stats.duplicate_packets += 1;
                self.note_duplicate(bytes);
            }
            Arrival::BeyondWindow => self.stats.rejected_packets += 1,
            Arrival::InOrder | Arrival::FilledHole | Arrival::OutOfOrder => {}
        }
        self.hand_up();
    }

    /// These bytes had arrived before.
    fn note_duplicate(&mut self, bytes: Range<u64>) {
        if let Some(duplicates) = &mut self.duplicates {
            duplicates.on_arrival(bytes);
        }
    }

    /// After RCV.NXT moved: new data for the reader, and perhaps the end.
    fn hand_up(&mut self) {
        let mut ended = false;
        if let Some(fin) = self.receiver.end().filter(|_| !self.release.remote_finished()) {
            self.release.fin_received(fin);
            ended = true;
        }
        if self.receiver.has_news(ended) {
            self.notices.push_back(Notice::Readable);
        }
    }
}
