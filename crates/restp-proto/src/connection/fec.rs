//! Forward error correction between packets and services (ResTP §3.5.8, §3.1.5): which packets carry the FEC word and
//! what it says (OP-12, OP-40), when an encoded packet leaves, and what becomes of one that arrives.
//!
//! Encoded packets take no number and nobody acknowledges them. They count against the congestion window and are charged to
//! the pacer like data (RFC 9265 §4), and wait for nothing: late redundancy is none.

use super::{Connection, pdu_builder as pdu};
use crate::wire::{ErrorControl, Fec, Flags, Header, Order};
use restp_base::machine::Datagram;
use restp_base::sequence;
use restp_base::time::Time;
use restp_services::ack::Uncarried;
use restp_services::receiver::Repair;
use restp_services::reliability::{Encoded, FecCode, FecDecoder, FecEncoder, FecParameters};
use std::ops::Range;

/// The payload is the XOR of others.
pub(super) fn is_encoded(header: &Header) -> bool {
    header.services.error.has(ErrorControl::ENC)
}

/// What cannot be rebuilt is reported by packets of full reliability with forward error correction: HARQ.
fn reports_losses(header: &Header) -> bool {
    let services = &header.services;
    services.error.has(ErrorControl::ARQ | ErrorControl::FEC) && services.order != Order::Partial
}

impl Connection {
    /// The association encodes by `code`, which is its initiator's.
    pub(super) fn encode_by(&mut self, code: FecCode) {
        if self.composition.reliability.encodes() {
            self.sender.encode_by(self.new_encoder(code));
            let reports = self.composition.reliability.is_full();
            self.receiver.repair_by(FecDecoder::new(code), reports);
        }
    }

    fn new_encoder(&self, code: FecCode) -> FecEncoder {
        let parameters = FecParameters {
            code,
            ..self.composition.fec
        };
        let retransmits = self.composition.reliability.retransmits();
        FecEncoder::new(parameters, self.composition.hold.deadline, retransmits)
    }

    /// From the next new segment on encoded packets are made as the composition says now, by the code of before.
    pub(super) fn renew_encoder(&mut self) {
        let code = self.sender.encoder().map(FecEncoder::code);
        self.encode_onwards_by(code);
    }

    /// From the next new segment on packets are encoded by `code`, or not.
    pub(super) fn encode_onwards_by(&mut self, code: Option<FecCode>) {
        let encoder = code.map(|code| self.new_encoder(code));
        let reserved = self.composition.segment_bytes - self.composition.payload_bytes() as u32;
        self.sender.encode_onwards(encoder, reserved);
    }

    /// The answer to our SYN names our code, if there is one (OP-27).
    pub(super) fn agrees_on_code(&self, header: &Header) -> bool {
        let ours = self.sender.encoder().map(|encoder| encoder.code().kind());
        header.fec.map(|fec| fec.kind) == ours
    }

    /// The FEC word of a packet that is not encoded (OP-12): a loss range, which only HARQ reports, or what came by no path, with
    /// the sliding window code. A set-up packet cannot know either.
    pub(super) fn fec_word(&self, header: &Header) -> Option<Fec> {
        let (flags, terms) = (header.flags, &self.eras.named(header).terms);
        let code = terms.code?;
        let range = match self.receiver.next() {
            _ if flags.has(Flags::SYN) => 0,
            _ if reports_losses(header) => self.receiver.beyond_repair(),
            Some(next) if code == FecCode::Rlc => self.receiver.uncarried().range(next),
            _ => 0,
        };
        let kind = code.kind();
        (flags.has(Flags::SYN) || flags.has(Flags::ACK)).then_some(Fec { kind, range })
    }

    /// Sends an encoded packet.
    pub(super) fn send_encoded(&mut self, now: Time, encoded: Encoded, out: &mut Datagram) -> bool {
        let Some(encoder) = self.sender.encoder() else {
            return false;
        };
        let (kind, is_idle) = (encoder.code().kind(), encoder.is_idle());
        let last = is_idle && !self.composition.reliability.retransmits();
        if let Some(fin) = self.release.local_fin().filter(|_| last) {
            self.end_without_answer(now, fin);
        }
        pdu::encoded(self, out, kind, encoded)
    }

    /// An encoded packet arrived: what it rebuilds goes the way of every segment; or, with HARQ, reports what cannot be rebuilt
    /// at once (OP-41).
    pub(super) fn on_encoded(&mut self, header: &Header, payload: &[u8]) {
        let (Some(next), Some(fec), Some(number)) = (self.receiver.next(), header.fec, header.sequence)
        else {
            self.counters.rejected_packets += 1;
            return;
        };
        let first = sequence::expand(next, number);
        match self.receiver.on_encoded(fec.kind, first, fec.range, payload) {
            Repair::Taken => {}
            Repair::BeyondWindow => self.counters.beyond_window += 1,
            Repair::Malformed => self.counters.rejected_packets += 1,
        }
    }

    /// What was rebuilt, by an encoded packet or by what an earlier one lacked, goes the way of every segment.
    pub(super) fn take_rebuilt(&mut self, now: Time) {
        while let Some((number, payload)) = self.receiver.next_rebuilt() {
            self.on_segment(now, sequence::truncate(number), payload);
            if !self.receiver.is_missing(number) {
                self.receiver.note_rebuilt(number);
                if self.has_feedback() {
                    self.receiver.acknowledgement().on_urgent_once(); // OP-41
                }
                self.counters.repaired_packets += 1;
            }
        }
    }

    /// What an acknowledgement beside the pointer `cumulative` reports as beyond repair (OP-42).
    pub(super) fn reported_loss(&self, header: &Header, cumulative: u64) -> Range<u64> {
        let reports = reports_losses(header) && !is_encoded(header);
        let range = header.fec.filter(|_| reports).map_or(0, |fec| fec.range);
        cumulative..cumulative + u64::from(range)
    }

    /// What it reports as rebuilt or given up, with the sliding window code.
    pub(super) fn reported_uncarried(&self, header: &Header, cumulative: u64) -> Uncarried {
        let reports = !reports_losses(header) && !is_encoded(header) && !header.flags.has(Flags::SYN);
        let fec = header
            .fec
            .filter(|fec| reports && FecCode::from_kind(fec.kind) == Some(FecCode::Rlc));
        fec.map_or_else(Uncarried::default, |fec| {
            Uncarried::from_range(fec.range, cumulative)
        })
    }
}
