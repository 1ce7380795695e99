//! A connection as one of several paths: what the association asks of it and tells it (OP-20, OP-54, OP-55).

use super::{Said, Setup, Subflow};
use crate::composition::ValidComposition;
use crate::connection::{Connection, Ports, State, granted};
use crate::wire::Header;
use bytes::Bytes;
use restp_base::machine::PathAddress;
use restp_base::time::{Duration, Time};
use restp_services::congestion::Congestion;
use restp_services::connection_management::Keys;
use restp_services::flow_control::{ReceiveWindow, SendWindow};
use restp_services::framing::SendQueue;
use restp_services::ordering::Reassembly;
use restp_services::path_management::Unanswered;
use restp_services::scheduling::{Candidate, Fate};
use restp_services::view::Sibling;
use std::sync::Arc;

impl Connection {
    /// Makes this connection a path of an association; with `integrity` its mappings carry a CRC-32.
    pub(crate) fn into_path(mut self, setup: Setup, k: u8, integrity: bool) -> Self {
        let first = self.out.board.first();
        self.out.window = SendWindow::initial(first, u64::MAX / 2); // the shared one binds
        self.subflow = Some(Box::new(Subflow::new(setup, first, k, integrity)));
        self
    }

    /// Makes it a connection on one path again: the peer knows no others.
    pub(in crate::connection) fn leave_association(&mut self, header: &Header) {
        self.subflow = None;
        self.exchange = None;
        self.out.board.mark_all_lost(); // data beside the SYN was not taken
        self.services = self.services.on_one_path();
        if let Some(window) = header.window {
            self.out.window = SendWindow::initial(self.out.board.first(), window.into());
        }
    }

    /// May the association give it a segment of `bytes` now? Repairs come first.
    pub(crate) fn takes(&mut self, now: Time, bytes: u64) -> bool {
        let sent = self.out.board.next() - self.out.origin;
        let open = match self.state {
            State::Established => true,
            State::SynSent(_) | State::SynReceived(_) => self
                .exchange
                .is_some_and(|exchange| exchange.may_send(sent, true)),
            _ => false,
        };
        open && !self.out.outage.is_active()
            && self.out.queue.is_empty()
            && (self.out.board.lost() == 0 || !self.composition.reliability.repeats())
            && self.keeps_flight_limit(bytes)
            && self.has_room(now, bytes)
    }

    /// The association gives it the segment `number`. It leaves with the next packet, under the path's number that this
    /// returns.
    pub(crate) fn assign(&mut self, now: Time, number: u64, payload: Bytes) -> u64 {
        if self.out.board.is_empty() {
            self.progress_at = now;
        }
        self.out.queue.push(payload);
        if let Some(subflow) = &mut self.subflow {
            subflow.queued.push_back(number);
        }
        self.out.board.next() + self.out.queue.frames() as u64 - 1
    }

    /// What became of the segment with this number of the path's.
    pub(crate) fn fate(&self, number: u64) -> Fate {
        match self.out.board.in_flight_since(number) {
            Some((_, true)) => Fate::Open,
            Some((_, false)) => Fate::Lost,
            None if self.out.board.is_lost(number) => Fate::Lost,
            None if number >= self.out.board.next() => Fate::Open,
            None => Fate::Arrived,
        }
    }

    /// Data waits that the association would place here, were there room.
    pub(crate) fn set_fed(&mut self, fed: bool) {
        if let Some(subflow) = &mut self.subflow {
            subflow.fed = fed;
        }
    }

    /// What was assigned last asks whether the peer's window is still shut.
    pub(crate) fn set_probe(&mut self) {
        self.out.window_probe = true;
    }

    /// The shared window has opened: what asked was not taken, and would be now.
    pub(crate) fn window_opened(&mut self) {
        if std::mem::take(&mut self.out.window_probe) {
            self.out.board.mark_all_lost();
        }
    }

    /// The next acknowledgement carries DATA_FIN with the number `fin`, and leaves now.
    pub(crate) fn announce_end(&mut self, fin: u64) {
        if let Some(subflow) = &mut self.subflow {
            subflow.fin_due = Some(fin);
            self.inn.ack.on_urgent_once();
        }
    }

    /// What other paths may know of it, once it was measured.
    pub(crate) fn as_sibling(&self) -> Option<Sibling> {
        self.path.as_sibling()
    }
    /// What its congestion control knows of other paths.
    pub(crate) fn siblings(&mut self) -> &mut Vec<Sibling> {
        &mut self.path.siblings
    }

    /// What a scheduler may know of it.
    pub(crate) fn candidate(&mut self, now: Time, ordinal: usize, bytes: u64) -> Candidate {
        let has_room = self.takes(now, bytes);
        let rtt = &self.path.rtt;
        let unknown = Duration::from_millis(100); // no path is established without a sample, but one may be Karn's
        Candidate {
            path: ordinal,
            has_room,
            smoothed_rtt: rtt.smoothed().unwrap_or(unknown),
            min_rtt: rtt.minimum().unwrap_or(unknown),
            rtt_variation: rtt.variation().unwrap_or_default(),
            window_bytes: self.path.controller.window_bytes(),
            in_flight_bytes: self.out.board.in_flight_bytes(),
            weight: 1,
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
    pub(crate) fn address(&self) -> PathAddress {
        self.path.address
    }
    pub(crate) fn ports(&self) -> Ports {
        self.ports
    }
    pub(crate) fn smoothed_rtt(&self) -> Option<Duration> {
        self.path.rtt.smoothed()
    }
    pub(crate) fn minimum_rtt(&self) -> Option<Duration> {
        self.path.rtt.minimum()
    }
    pub(crate) fn timeout(&self) -> Duration {
        self.path.rto.value(&self.path.rtt)
    }
    /// Feedback with news, and answers to keep-alives, so far.
    pub(crate) fn answers(&self) -> u64 {
        self.answers
    }
    pub(crate) fn stamp(&mut self, data_ack: u64, window: Option<u16>, paths: u8) {
        let established = self.is_established();
        if let Some(subflow) = &mut self.subflow {
            subflow.stamp(data_ack, window);
            if established {
                subflow.k = paths;
            }
        }
    }
    pub(crate) fn take_said(&mut self) -> Option<Said> {
        self.subflow.as_mut()?.said.take()
    }
    /// Moves what has newly arrived into `arrived`, which is empty.
    pub(crate) fn swap_arrived(&mut self, arrived: &mut Vec<(u32, Bytes)>) {
        if let Some(subflow) = &mut self.subflow {
            std::mem::swap(&mut subflow.arrived, arrived);
        }
    }
    /// Connection numbers that are queued or outstanding here.
    pub(crate) fn carried(&self) -> impl Iterator<Item = u64> + '_ {
        self.subflow.iter().flat_map(|subflow| subflow.carried())
    }
    /// The association is this one connection: what was written belongs to it.
    pub(crate) fn adopt(&mut self, queue: SendQueue, composition: Arc<ValidComposition>) {
        self.out.queue = queue;
        if let Some(reassembly) = &self.inn.reassembly {
            let next = reassembly.next();
            self.inn.reassembly = Some(Reassembly::new(composition.ordering, next));
            self.inn.window = ReceiveWindow::new(next, granted(composition.flow_control));
        }
        self.composition = composition;
    }

    /// What was assigned leaves at once, whatever the window says, as with the first repeat of a loss (RFC 5681
    /// §3.2 (2)).
    pub(crate) fn rescue(&mut self) {
        self.out.rescue_at_once = true;
    }

    /// Takes back what was assigned and has not left.
    pub(crate) fn unassign(&mut self) {
        self.out.queue.clear();
        if let Some(subflow) = &mut self.subflow {
            subflow.queued.clear();
        }
    }

    /// The answer that is due first.
    pub(crate) fn unanswered(&self) -> Option<Unanswered> {
        let since = if self.out.board.is_empty() {
            self.asked_at
        } else {
            self.out.board.unanswered_since()
        };
        Some(Unanswered {
            since: since?,
            last_answer: self.answered_at,
        })
    }

    /// The first connection number that left here at `from` or later and is not answered.
    pub(crate) fn first_sent_since(&self, from: Time) -> Option<u64> {
        let board = &self.out.board;
        let later = |number: u64| board.in_flight_since(number).is_some_and(|(at, _)| at >= from);
        let mut outstanding = self.subflow.as_ref()?.mapping.outstanding();
        outstanding
            .find(|(number, _)| later(*number))
            .map(|(_, carried)| carried)
    }

    /// The peer is asked for an answer now, whatever is outstanding.
    pub(crate) fn ask(&mut self) {
        self.keepalive_due = true;
    }

    /// Timeouts in a row, or probing already: nothing comes back.
    pub(crate) fn timeouts_in_row(&self) -> u32 {
        if self.out.outage.is_active() {
            u32::MAX
        } else {
            self.path.rto.expiries()
        }
    }

    /// An acknowledgement leaves with the next turn, because the association has news.
    pub(crate) fn acknowledge_soon(&mut self) {
        self.inn.ack.on_urgent_once();
    }
}
