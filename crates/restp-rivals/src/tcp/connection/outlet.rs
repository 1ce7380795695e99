//! What a segment is made of, in order: set-up? repeat? new data? probe? acknowledgement? Each question is one call;
//! no algorithm lives here.

use super::agreement::UNSCALED;
use super::{Connection, State};
use crate::tcp::nak::{self, Nak};
use crate::tcp::options::{Options, Timestamps, block_bytes, block_room, blocks, padded};
use crate::tcp::snack::Snack;
use crate::tcp::wire::{Flags, Header};
use bytes::Bytes;
use restp_base::machine::{Datagram, Ecn};
use restp_base::sequence::truncate;
use restp_base::time::Time;
use restp_services::ack::Detail;
use restp_services::congestion::{Congestion, CongestionEvent};
use restp_services::connection_management::Notice;

/// Writes the next segment; `false` when there is nothing to send now.
pub(super) fn poll(c: &mut Connection, now: Time, out: &mut Datagram) -> bool {
    match &mut c.state {
        State::Established => c.poll_established(now, out),
        State::SynSent(handshake) | State::SynReceived(handshake) => {
            let due = handshake.take_due();
            if due {
                c.send_syn(now, out);
                return true;
            }
            c.trusts() && c.poll_established(now, out)
        }
        State::TimeWait { .. } => c.inn.ack.is_due(now) && c.send_acknowledgement(now, out),
        State::Resetting => {
            c.state = State::Closed;
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
        self.out.paced_until = None;
        if let Some(number) = self.repeat_due(now) {
            return self.send_repeat(now, number, out);
        }
        if let Some(bytes) = self.next_payload()
            && self.fits_window(bytes)
            && self.has_room(now, bytes)
        {
            return self.send_new(now, self.agreed.segment_bytes as usize, out);
        }
        if self.out.probe_at.is_some_and(|at| at <= now) {
            self.out.probe_at = None;
            self.out.window_probe = true;
            return self.send_new(now, 1, out);
        }
        self.inn.ack.is_due(now) && self.send_acknowledgement(now, out)
    }

    /// The lost segment to send again now.
    fn repeat_due(&mut self, now: Time) -> Option<u64> {
        let number = self.out.board.next_lost()?;
        if std::mem::take(&mut self.out.repeat_at_once) {
            return Some(number);
        }
        let bytes = self.out.buffer.get(number).map_or(0, Bytes::len) as u64;
        self.has_room(now, bytes).then_some(number)
    }

    /// Do the congestion window, the caution after a timeout and pacing allow `bytes` more?
    pub(super) fn has_room(&mut self, now: Time, bytes: u64) -> bool {
        let in_flight = self.out.board.in_flight_bytes();
        let fits = in_flight + bytes <= self.path.controller.window_bytes();
        if self.out.board.in_flight() > 0 && (self.out.one_at_a_time || !fits) {
            return false;
        }
        if self.paces() && !self.path.pacer.allows(now) {
            self.out.paced_until = Some(self.path.pacer.next_at());
            return false;
        }
        true
    }

    /// As the kernel's TCP: where the congestion control decides a rate.
    fn paces(&self) -> bool {
        self.parameters.congestion.needs_pacing()
    }

    fn send_repeat(&mut self, now: Time, number: u64, out: &mut Datagram) -> bool {
        let (Some(start), Some(order)) = (
            self.out.numbers.start_of(number),
            self.out.board.on_repeated(now, number),
        ) else {
            return false;
        };
        self.out.recovery.on_repeated(order, number);
        let payload = self.out.buffer.get(number).cloned();
        self.stats.retransmitted_packets += 1;
        self.stats.repeated_payload_bytes += payload.as_ref().map_or(0, Bytes::len) as u64;
        self.send_segment(now, start, payload, out);
        true
    }

    /// New data, at most `most` bytes, or the FIN.
    fn send_new(&mut self, now: Time, most: usize, out: &mut Datagram) -> bool {
        self.restart_after_idle(now);
        let payload = self.out.queue.next_segment(most);
        let bytes = payload.as_ref().map_or(0, Bytes::len) as u64;
        let start = self.out.numbers.next_byte();
        let number = self.out.board.on_sent(now, bytes as u32);
        self.out.numbers.push(bytes.max(1)); // the FIN takes one
        self.out.buffer.push(payload.clone());
        if payload.is_none() {
            self.release.fin_sent(number);
        }
        self.wake_writer();
        self.send_segment(now, start, payload, out);
        true
    }

    fn send_segment(&mut self, now: Time, start: u64, payload: Option<Bytes>, out: &mut Datagram) {
        let bytes = payload.as_ref().map_or(0, Bytes::len);
        self.stats.sent_payload_bytes += bytes as u64;
        let in_flight = self.out.board.in_flight_bytes();
        let event = CongestionEvent::Sent { bytes: bytes as u64 };
        self.tell_controller(now, &event, in_flight);
        self.path.rto.start(now, &self.path.rtt);
        if self.paces()
            && let Some(rate) = self.path.controller.pacing()
        {
            let segment = u64::from(self.agreed.segment_bytes);
            self.path.pacer.on_sent(now, bytes as u64, segment, rate);
        }

        let mut header = self.plain(start);
        header.flags = match payload {
            None => Flags::FIN,
            Some(_) if self.out.queue.is_empty() => Flags::PSH,
            Some(_) => Flags::default(),
        };
        // Blocks ride on a segment only where the payload leaves room, so none is larger than a full one.
        let room = (self.agreed.segment_bytes as usize).saturating_sub(bytes);
        if self.acknowledge(now, &mut header, payload.as_ref().map(|_| start), room) {
            self.inn.ack.on_sent();
        }
        self.finish_segment(header, payload.unwrap_or_default(), out);
    }

    /// A segment that only acknowledges. Its number lies within the peer's window, or it would not be believed.
    fn send_acknowledgement(&mut self, now: Time, out: &mut Datagram) -> bool {
        let mut header = self.plain(self.believable_number());
        self.acknowledge(now, &mut header, None, usize::MAX);
        self.inn.ack.on_sent();
        self.finish_segment(header, Bytes::new(), out);
        true
    }

    fn send_syn(&mut self, now: Time, out: &mut Datagram) {
        let answers = self.is_half_open();
        let mut header = self.plain(self.out.numbers.first_byte() - 1);
        let payload = self.early_payload(now);
        header.options = self.offer(answers);
        if self.parameters.timestamps && (!answers || self.agreed.clock.is_some()) {
            header.options.timestamps = Some(self.clock(now));
        }
        header.flags = Flags::SYN;
        let granted = self.subflow.as_ref().map(|subflow| subflow.window_bytes());
        header.window = granted.unwrap_or(self.window_bytes()).min(UNSCALED) as u16;
        if answers {
            let next = self.inn.stream.next();
            header.flags = Flags::SYN | Flags::ACK;
            header.acknowledgement = truncate(next);
            self.inn.edge = self.inn.edge.max(next + u64::from(header.window));
            // The field says less than is granted, without a scale; the first acknowledgement says the rest, and
            // needs no update of its own before.
            let (next, unread) = self.receive_units();
            self.inn.window.advertise(next, unread);
            self.inn.ack.on_sent();
        }
        self.emit(header, payload, out);
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
        let numbers = &self.out.numbers;
        numbers
            .next_byte()
            .min(self.out.window.edge())
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
        let stream = &self.inn.stream;
        header.flags = header.flags | Flags::ACK;
        header.acknowledgement = truncate(stream.next());
        let with_clock = self.agreed.clock.is_some();
        header.options = Options {
            timestamps: with_clock.then(|| self.clock(now)),
            multipath,
            ..Options::default()
        };
        if let Some(clock) = &mut self.agreed.clock {
            clock.acknowledged = stream.next();
        }
        let complete = stream.arrived().is_empty() || self.report_holes(&mut header.options, room);
        *self.stats.report_bytes.get_or_insert(0) += header.options.report_bytes() as u64;
        complete
    }

    /// What is missing or has arrived beyond a hole, in the detail agreed on.
    fn report_holes(&mut self, options: &mut Options, room: usize) -> bool {
        let (stream, unit, space) = (&self.inn.stream, self.agreed.unit, options.room());
        let (next, arrived) = (stream.next(), stream.arrived());
        match self.agreed.detail {
            Detail::Pointer => true,
            Detail::Sack { max_blocks } => {
                let wanted = usize::from(max_blocks).min(block_room(space)).min(arrived.len());
                let fitting = (0..=wanted).rev().find(|count| block_bytes(*count) <= room);
                options.sack = blocks(arrived, stream.newest(), fitting.unwrap_or(0));
                fitting == Some(wanted)
            }
            Detail::Nak if room < padded(nak::BYTES) => false,
            Detail::Nak => {
                let gap = self.inn.nak.next_report(next, arrived);
                options.nak = gap.map(|gap| Nak::of(&gap, unit));
                true
            }
            Detail::Snack => {
                let report = Snack::of(next, arrived, unit, space);
                let fits = |snack: &Snack| padded(snack.bytes()) <= room;
                let complete = report.as_ref().is_none_or(fits);
                options.snack = report.filter(fits);
                complete
            }
        }
    }

    /// Adds the window.
    fn finish_segment(&mut self, mut header: Header, payload: Bytes, out: &mut Datagram) {
        header.window = match &self.subflow {
            Some(subflow) => (subflow.window_bytes() >> self.inn.shift).min(UNSCALED) as u16,
            None => {
                let (next, unread) = self.receive_units();
                self.inn.window.advertise(next, unread)
            }
        };
        let edge = self.inn.stream.next() + (u64::from(header.window) << self.inn.shift);
        self.inn.edge = self.inn.edge.max(edge);
        self.emit(header, payload, out);
    }

    fn emit(&mut self, header: Header, payload: Bytes, out: &mut Datagram) {
        header.emit(&payload, self.path.address, &mut out.head);
        (out.path, out.ecn, out.body) = (self.path.address, Ecn::NotEct, payload);
        self.stats.sent_packets += 1;
        self.stats.sent_bytes += out.len() as u64;
    }

    /// The first segment after a silence longer than one timeout (RFC 5681 §4.1).
    fn restart_after_idle(&mut self, now: Time) {
        let Some(since) = self.out.idle_since.take() else {
            return;
        };
        let gap = now.since(since);
        if gap > self.path.rto.value(&self.path.rtt) {
            self.tell_controller(now, &CongestionEvent::Idle { gap }, 0);
        }
        self.progress_at = now;
    }

    /// Half the send buffer is free again: tell a writer that was refused.
    pub(super) fn wake_writer(&mut self) {
        let half_empty = self.out.queue.bytes() <= self.parameters.send_buffer_bytes / 2;
        if self.out.writer_waits && half_empty {
            self.out.writer_waits = false;
            self.notices.push_back(Notice::Writable);
        }
    }
}
