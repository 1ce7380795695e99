//! What happens to a packet, chunk by chunk (RFC 9260 §6.2, §8.5): the tag was checked, and the path is known. Each chunk is one
//! call; no algorithm lives here.

use super::{Association, State};
use crate::sctp::STREAMS;
use crate::sctp::chunk::{Cause, Chunk, Data, Init, MOST_BLOCKS, Sack};
use bytes::Bytes;
use restp_base::flow::CloseReason;
use restp_base::machine::PathAddress;
use restp_base::sequence::expand;
use restp_base::time::Time;
use restp_services::ack::AckReport;
use restp_services::connection_management::{Handshake, Notice};
use restp_services::ordering::Arrival;
use restp_services::sender::{Grant, PeerReport};
use smallvec::smallvec;

/// Answers that may wait to be sent.
const MOST_REPLIES: usize = 16;
/// Numbers that a SACK repeats because they came again.
const MOST_DUPLICATES: usize = 16;

impl Association {
    /// The path that a packet came by, as this end sees it. The first packet from a further address of the peer makes one;
    /// other addresses are nobody's.
    pub(in crate::sctp) fn path_of(&mut self, now: Time, address: PathAddress) -> Option<usize> {
        if let Some(index) = self.paths.iter().position(|path| path.address == address) {
            return Some(index);
        }
        let is_peer = self.peer_addresses.contains(&address.remote.ip());
        (is_peer && !self.state.is_opening()).then(|| self.add(now, address))?
    }

    /// Takes the chunks of a packet of `size` bytes that came by the path `index`.
    pub(in crate::sctp) fn handle(
        &mut self,
        now: Time,
        index: usize,
        chunks: impl IntoIterator<Item = Chunk>,
        size: usize,
    ) {
        self.stats.received_packets += 1;
        self.stats.received_bytes += size as u64;
        self.paths[index].received_bytes += size as u64;
        for chunk in chunks {
            self.on_chunk(now, index, chunk);
        }
        self.conclude(now);
    }

    fn on_chunk(&mut self, now: Time, index: usize, chunk: Chunk) {
        match chunk {
            Chunk::InitAck(init) => self.on_init_ack(now, init),
            Chunk::CookieAck => self.on_cookie_ack(now),
            Chunk::Abort { .. } => {
                let reason = if self.state.is_opening() {
                    CloseReason::Refused
                } else {
                    CloseReason::Reset
                };
                self.end(reason, State::Closed);
            }
            Chunk::ShutdownComplete { .. } => self.on_shutdown_complete(),
            Chunk::Error(causes) => self.on_causes(now, &causes),
            _ if self.state.is_opening() || self.state.is_over() => self.stats.rejected_packets += 1,
            Chunk::Data(data) => self.on_data(now, index, data),
            Chunk::Sack(sack) => self.on_report(now, &sack, sack.blocks.len() < MOST_BLOCKS),
            Chunk::Heartbeat(question) => self.reply(index, Chunk::HeartbeatAck(question)),
            Chunk::HeartbeatAck(answer) => self.on_heartbeat_answer(now, &answer),
            Chunk::Shutdown { cumulative } => {
                let sack = Sack {
                    cumulative,
                    window: u32::try_from(self.sender.free_credit()).unwrap_or(u32::MAX),
                    ..Sack::default()
                };
                self.on_report(now, &sack, false); // of gaps it says nothing
                self.on_shutdown(now);
            }
            Chunk::ShutdownAck => self.on_shutdown_ack(),
            Chunk::Unrecognized(whole) => self.report(index, Cause::unrecognized_chunk(&whole)),
            // The host looks at them where they stand as they should: alone, or in front.
            Chunk::Init(_) | Chunk::CookieEcho(_) => self.stats.rejected_packets += 1,
        }
    }

    /// The peer hears what was wrong, and the association lives.
    fn report(&mut self, index: usize, cause: Cause) {
        self.reply(index, Chunk::Error(smallvec![cause]));
    }

    pub(super) fn reply(&mut self, index: usize, chunk: Chunk) {
        if self.replies.len() < MOST_REPLIES {
            self.replies.push_back((index, chunk));
        }
    }

    /// Our INIT was answered: the cookie goes back.
    fn on_init_ack(&mut self, now: Time, init: Init) {
        let State::CookieWait(_) = &self.state else {
            return; // one more, or late (RFC 9260 §5.2.3)
        };
        let (cookie, cause) = match (init.refusal(), init.cookie) {
            (None, Some(cookie)) => (cookie, None),
            (cause, _) => (Bytes::new(), cause.or(Some(Init::without_cookie()))),
        };
        if cause.is_some() {
            self.stats.rejected_packets += 1;
            self.peer_tag = init.tag;
            return self.end(CloseReason::Refused, State::Aborting(cause));
        }
        let streams = STREAMS.min(init.streams_out);
        self.learn(init.tag, init.first_tsn, init.window, streams);
        if !init.unrecognized.is_empty() {
            // It leaves behind the set-up, as nothing is bundled (RFC 9260 §3.2.2).
            self.report(0, Cause::unrecognized_parameters(&init.unrecognized));
        }
        self.peer_addresses = init.addresses;
        self.echoed_at = now;
        self.state = State::CookieEchoed(Handshake::start(now, self.parameters.handshake), cookie);
    }

    fn on_cookie_ack(&mut self, now: Time) {
        if let State::CookieEchoed(timer, _) = &self.state {
            let took = now.since(self.echoed_at);
            let rtt = (!timer.is_retransmitted()).then_some(took);
            self.establish(now, rtt);
        }
    }

    /// What the peer found wrong. Its cookie came too late: the next one may not (RFC 9260 §5.2.6).
    fn on_causes(&mut self, now: Time, causes: &[Cause]) {
        let is_stale = causes.iter().any(|cause| cause.code == Cause::STALE_COOKIE);
        if !is_stale || !matches!(self.state, State::CookieEchoed(..)) {
            return;
        }
        self.stale_cookies += 1;
        if self.stale_cookies >= self.parameters.handshake.attempts {
            return self.end(CloseReason::Refused, State::Closed);
        }
        self.peer_tag = 0;
        self.replies.clear();
        self.state = State::CookieWait(Handshake::start(now, self.parameters.handshake));
    }

    fn on_data(&mut self, now: Time, index: usize, data: Data) {
        if !self.state.takes_data() {
            self.stats.rejected_packets += 1;
            return;
        }
        if data.payload.is_empty() {
            return self.abort_for(Cause::no_user_data(data.fragment.tsn)); // RFC 9260 §6.2
        }
        if !self.inbound.has_stream(data.fragment.stream) {
            self.report(index, Cause::invalid_stream(data.fragment.stream)); // and acknowledged all the same
        }
        let Some(next) = self.receiver.next() else { return };
        let number = expand(next, data.fragment.tsn);
        self.latest = index;
        let rtt = self.sender.smoothed_rtt();
        let bytes = data.payload.len() as u64;
        self.paths[index].arrived_payload_bytes += bytes;
        if self.receiver.make_room(number, data.payload.len()) > 0 {
            self.receiver.acknowledgement().on_urgent_once(); // the sender takes it for held (CMT §1.5)
        }
        let arrival = self
            .receiver
            .on_segment(now, number, Some(data.payload), rtt, false)
            .unwrap_or(Arrival::Late);
        match arrival {
            Arrival::InOrder | Arrival::FilledHole | Arrival::OutOfOrder => {
                self.inbound.note(number, data.fragment);
            }
            Arrival::Duplicate | Arrival::Late => {
                self.stats.duplicate_packets += 1;
                self.paths[index].duplicate_payload_bytes += bytes;
                if self.duplicates.len() < MOST_DUPLICATES {
                    self.duplicates.push(data.fragment.tsn);
                }
            }
            Arrival::BeyondWindow => self.stats.rejected_packets += 1,
        }
        let is_ending = self.retransmit_shutdown_for_data(now);
        if data.fragment.asks_at_once || is_ending {
            self.receiver.acknowledgement().on_urgent_once(); // RFC 7053, RFC 9260 §9.2
        }
        self.tell_reader();
    }

    /// The peer's report goes to the sender; when it `is_complete`, what it does not name was discarded. What cannot be true is
    /// counted.
    fn on_report(&mut self, now: Time, sack: &Sack, is_complete: bool) {
        let pointer = expand(self.sender.first(), sack.cumulative.wrapping_add(1));
        let block = |(start, end): &(u16, u16)| {
            let at = |offset: u16| pointer - 1 + u64::from(offset);
            at(*start)..at(*end) + 1
        };
        let report = AckReport {
            received: sack.blocks.iter().map(block).collect(),
            arrivals: if self.parameters.dac { sack.arrivals } else { 0 },
            is_complete,
            ..AckReport::pointer(pointer)
        };
        let peer = PeerReport {
            report: &report,
            grant: Some(Grant {
                at: pointer,
                units: sack.window.into(),
            }),
            is_bare_duplicate: false,
            echoed_rtt: None,
            echoes_mark: false,
            repaired: 0,
        };
        if self.sender.on_feedback(now, &peer).is_err() {
            self.stats.rejected_packets += 1;
            return;
        }
        self.outbound.release_below(self.sender.first());
        self.wake_writer();
        self.review(now);
    }

    /// Half the send buffer is free again: tell a writer that was refused.
    pub(super) fn wake_writer(&mut self) {
        if self.sender.takes_writes_again() {
            self.notices.push_back(Notice::Writable);
        }
    }
}
