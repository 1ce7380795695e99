//! What a segment is made of, in order: set-up? retransmission? new data? probe? acknowledgement? Each question is one call;
//! no algorithm lives here.

use super::agreement::UNSCALED;
use super::{Connection, FIRST_SEGMENT, State};
use crate::tcp::nak::{self, Nak};
use crate::tcp::options::{Options, Timestamps, block_bytes, block_room, blocks, padded};
use crate::tcp::snack::Snack;
use crate::tcp::wire::{Flags, Header};
use bytes::Bytes;
use restp_base::machine::{Datagram, Ecn};
use restp_base::observe::Transmitted;
use restp_base::sequence::truncate;
use restp_base::time::Time;
use restp_services::ack::Detail;
use restp_services::connection_management::Notice;
use restp_services::sender::{Segment, Transmission};
use std::ops::Range;

/// Writes the next segment; `false` when there is nothing to send now.
pub(super) fn poll(c: &mut Connection, now: Time, out: &mut Datagram) -> bool {
    match c.state {
        State::Established => c.poll_established(now, out),
        State::SynSent(_) | State::SynReceived(_) => {
            if c.take_set_up() {
                c.send_syn(now, out);
                return true;
            }
            c.trusts() && c.poll_established(now, out)
        }
        State::TimeWait { .. } => c.receiver.ack_timer().is_due(now) && c.send_acknowledgement(now, out),
        State::Resetting => {
            c.take_reset();
            c.send_reset(now, out);
            true
        }
        State::Closed => false,
    }
}

/// The clock of timestamps: milliseconds (RFC 7323 §5.4).
pub(super) fn ticks(now: Time) -> u32 {
    (now.as_nanos() / 1_000_000) as u32
}

impl Connection {
    fn poll_established(&mut self, now: Time, out: &mut Datagram) -> bool {
        if self.has_notice() {
            return self.send_acknowledgement(now, out); // data would not bring it
        }
        if let Some(Transmission::Segment(segment)) = self.sender.next(now, self.release.must_send_fin()) {
            return self.send_segment(now, segment, out);
        }
        self.receiver.ack_timer().is_due(now) && self.send_acknowledgement(now, out)
    }

    /// A segment that the sender has let out; without payload, the FIN.
    fn send_segment(&mut self, now: Time, segment: Segment, out: &mut Datagram) -> bool {
        let Segment {
            number,
            payload,
            is_new,
            ..
        } = segment;
        let bytes = payload.as_ref().map_or(0, Bytes::len);
        let number = number.unwrap_or(FIRST_SEGMENT);
        if is_new {
            self.numbers.push(bytes.max(1) as u64); // the FIN takes one
            if payload.is_none() {
                self.release.fin_sent(number);
            }
            self.wake_writer();
        }
        let Some(start) = self.numbers.start_of(number) else {
            return false;
        };
        let mut header = self.plain(start);
        header.flags = match payload {
            None => Flags::FIN,
            Some(_) if self.sender.has_nothing_queued() => Flags::PSH,
            Some(_) => Flags::default(),
        };
        // Blocks ride on a segment only where the payload leaves room, so none is larger than a full one.
        let room = (self.agreed.segment_bytes as usize).saturating_sub(bytes);
        if let Some(duplicates) = self.duplicates.as_mut().filter(|_| !is_new) {
            duplicates.on_retransmitted(start..start + bytes as u64, number);
        }
        if self.acknowledge(now, &mut header, payload.as_ref().map(|_| start), room) {
            self.receiver.acknowledgement().on_sent();
        }
        let ecn = if is_new && payload.is_some() {
            self.mark_new_data(number, &mut header)
        } else {
            Ecn::NotEct
        };
        self.finish_segment(header, payload.unwrap_or_default(), out);
        out.ecn = ecn;
        out.segment = Some(Transmitted { number, at: now });
        true
    }

    /// A segment that only acknowledges. Its number lies within the peer's window, or it would not be believed.
    fn send_acknowledgement(&mut self, now: Time, out: &mut Datagram) -> bool {
        let mut header = self.plain(self.believable_number());
        let had_notice = self.has_notice();
        self.acknowledge(now, &mut header, None, usize::MAX);
        self.receiver.acknowledgement().on_sent();
        if had_notice && !self.has_notice() {
            self.receiver.acknowledgement().on_urgent_once(); // the Data ACK follows
        }
        self.finish_segment(header, Bytes::new(), out);
        true
    }

    fn send_syn(&mut self, now: Time, out: &mut Datagram) {
        let answers = self.is_half_open();
        let mut header = self.plain(self.numbers.first_byte() - 1);
        let payload = self.early_payload(now);
        header.options = self.offer(answers);
        if self.parameters.timestamps && (!answers || self.agreed.clock.is_some()) {
            header.options.timestamps = Some(self.clock(now));
        }
        header.flags = Flags::SYN | self.ecn.greeting(self.parameters.ecn, answers);
        let granted = self.subflow.as_ref().map(|subflow| subflow.window_bytes());
        header.window = granted.unwrap_or(self.window_bytes()).min(UNSCALED) as u16;
        if answers {
            header.flags = header.flags | Flags::ACK;
            header.acknowledgement = truncate(self.receive_next());
            self.receiver.promise_bytes(u64::from(header.window));
            // The field says less than is granted, without a scale; the first acknowledgement says the rest, and
            // needs no update of its own before.
            self.receiver.needs_no_update();
            self.receiver.acknowledgement().on_sent();
        }
        let carries = !payload.is_empty();
        self.emit(header, payload, out);
        out.segment = carries.then_some(Transmitted {
            number: FIRST_SEGMENT,
            at: now,
        });
    }

    fn send_reset(&mut self, now: Time, out: &mut Datagram) {
        let mut header = self.plain(self.believable_number());
        header.flags = Flags::RST;
        if self.stats.handshake.is_some() {
            self.acknowledge(now, &mut header, None, 0);
        }
        self.emit(header, Bytes::new(), out);
    }

    fn believable_number(&self) -> u64 {
        let numbers = &self.numbers;
        numbers
            .next_byte()
            .min(self.sender.credit_edge())
            .max(numbers.first_byte())
    }

    fn plain(&self, start: u64) -> Header {
        Header {
            source_port: self.ports.local,
            destination_port: self.ports.remote,
            sequence: truncate(start),
            ..Header::default()
        }
    }

    fn clock(&self, now: Time) -> Timestamps {
        Timestamps {
            value: ticks(now),
            echo: self.agreed.clock.map_or(0, |clock| clock.recent),
        }
    }

    /// Adds ACK, clock, what the payload from byte `carried` on is on a subflow, and at most `room` bytes of detail. True
    /// when everything known was said.
    fn acknowledge(&mut self, now: Time, header: &mut Header, carried: Option<u64>, room: usize) -> bool {
        let multipath = self.subflow.as_mut().and_then(|subflow| subflow.sign(carried));
        let next = self.receive_next();
        header.flags = header.flags | Flags::ACK;
        self.echo_mark(header);
        header.acknowledgement = truncate(next);
        let with_clock = self.agreed.clock.is_some();
        header.options = Options {
            timestamps: with_clock.then(|| self.clock(now)),
            multipath,
            ..Options::default()
        };
        if let Some(clock) = &mut self.agreed.clock {
            clock.acknowledged = next;
        }
        let complete = self.report_holes(&mut header.options, room);
        *self.stats.report_bytes.get_or_insert(0) += header.options.report_bytes() as u64;
        complete
    }

    /// What is missing or has arrived beyond a hole, in the detail agreed on.
    fn report_holes(&mut self, options: &mut Options, room: usize) -> bool {
        if let Some(bytes) = self.duplicates.as_ref().and_then(|known| known.arrived()) {
            return self.report_duplicate(options, room, bytes);
        }
        let (next, unit, space) = (self.receive_next(), self.agreed.unit, options.room());
        let Some(arrived) = self.receiver.beyond_hole() else {
            return true;
        };
        match self.agreed.detail {
            Detail::Pointer => true,
            Detail::Sack { max_blocks } => {
                let wanted = usize::from(max_blocks)
                    .min(block_room(space))
                    .min(arrived.ranges().len());
                let fitting = (0..=wanted).rev().find(|count| block_bytes(*count) <= room);
                options.sack = blocks(arrived, fitting.unwrap_or(0));
                fitting == Some(wanted)
            }
            Detail::Nak if room < padded(nak::BYTES) => false,
            Detail::Nak => {
                let gap = self.receiver.next_gap();
                options.nak = gap.map(|gap| Nak::of(&gap, unit));
                true
            }
            Detail::Snack => {
                let report = Snack::of(next, arrived.ranges(), unit, space);
                let fits = |snack: &Snack| padded(snack.bytes()) <= room;
                let complete = report.as_ref().is_none_or(fits);
                options.snack = report.filter(fits);
                complete
            }
        }
    }

    /// What has arrived twice comes first, then what lies behind it, if that is beyond a hole, then the others (RFC 2883 §4).
    fn report_duplicate(&mut self, options: &mut Options, room: usize, bytes: Range<u64>) -> bool {
        let Detail::Sack { max_blocks } = self.agreed.detail else {
            return true;
        };
        let beyond = self.receiver.beyond_hole();
        let known = 1 + beyond.map_or(0, |arrived| arrived.ranges().len());
        let wanted = usize::from(max_blocks).min(block_room(options.room())).min(known);
        let fitting = (1..=wanted).rev().find(|count| block_bytes(*count) <= room);
        let Some(fitting) = fitting else {
            return false;
        };
        options.sack.push((truncate(bytes.start), truncate(bytes.end)));
        if let Some(arrived) = beyond {
            options.sack.extend(blocks(arrived, fitting - 1));
        }
        if let Some(duplicates) = &mut self.duplicates {
            duplicates.on_named();
        }
        fitting == wanted
    }

    /// Adds the window.
    fn finish_segment(&mut self, mut header: Header, payload: Bytes, out: &mut Datagram) {
        header.window = match &self.subflow {
            Some(subflow) => {
                let shift = self.receiver.window_shift();
                let window = (subflow.window_bytes() >> shift).min(UNSCALED) as u16;
                self.receiver.promise_units(window);
                window
            }
            None => self.receiver.advertise(),
        };
        self.emit(header, payload, out);
    }

    fn emit(&mut self, header: Header, payload: Bytes, out: &mut Datagram) {
        header.emit(&payload, self.address, &mut out.head);
        (out.path, out.ecn, out.body) = (self.address, Ecn::NotEct, payload);
        out.segment = None;
        self.stats.sent_packets += 1;
        self.stats.sent_bytes += out.len() as u64;
    }

    /// Half the send buffer is free again: tell a writer that was refused.
    pub(super) fn wake_writer(&mut self) {
        if self.sender.takes_writes_again() {
            self.notices.push_back(Notice::Writable);
        }
    }
}
