//! The sender of one stream of numbers: what leaves next, and what feedback and silence mean for it. It owns the record
//! of what is outstanding and everything that judges it; a protocol adds a codec, addresses, set-up and release.
//!
//! | Door | Asked | File |
//! |---|---|---|
//! | [`Sender::write`] | the application writes | here |
//! | [`Sender::next`] | what may leave now? | `transmission` |
//! | [`Sender::on_feedback`] | the peer reports | `feedback` |
//! | [`Sender::on_deadline`] | time has passed | `timeout` |
//! | [`Sender::deadline`] | when to come back | `timeout` |
//! | [`Sender::change`], [`Sender::encode_onwards`] | services change | `change` |
//! | [`Sender::on_answer`], [`Sender::take_lost`] | numbers are answered one by one, and never leave twice | `answers` |
//! | [`Sender::has_room`], [`Sender::assign`] | a scheduler above places segments | `assignment` |
//! | [`Sender::open_lane`], [`Sender::on`] | several paths share the numbers | `lanes` |
//!
//! State that only one of them changes has a type and a file of its own: `admission` (how much the peer takes), `probing`
//! (what leaves to ask a question), `lane` (what is known of the path), `counters`.

mod ack_demand;
mod ack_trial;
mod admission;
mod answers;
mod assignment;
mod change;
mod counters;
mod cutting;
mod ecn;
mod feedback;
mod gate;
mod lane;
mod lanes;
mod losses;
mod probing;
mod rate_reduction;
mod redundancy;
mod repaired_losses;
mod tail_probe;
mod timeout;
mod transmission;

pub use admission::{CreditUnit, Filling};
pub use answers::Answer;
pub use change::{MOST_LEAD, SenderChange};
pub use counters::SenderCounters;
pub use feedback::{Grant, PeerReport};
pub use probing::WindowProbes;
pub use timeout::TimeoutOutcome;
pub use transmission::{LaneShare, Segment, Transmission};

use crate::congestion::{Congestion, CongestionEvent, Controller};
use crate::framing::{Framing, SendBuffer, SendQueue, Streams};
use crate::loss_handling::{Differentiation, LateAfter, LossHandling};
use crate::path_management::{PathMtu, RetransmitTarget};
use crate::recovery::{LateThreshold, Recovery, RtoParameters, Scoreboard};
use crate::reliability::{FecEncoder, TransmitBuffer};
use crate::view::Sibling;
use admission::Admission;
use bytes::Bytes;
use lane::{Lane, Load};
use probing::Probing;
use restp_base::time::{Duration, Time};
use std::ops::Range;

/// Writes that may wait to be numbered, whatever their size: an empty datagram takes memory too.
const MAX_FRAMES: usize = 16_384;

/// What a protocol or a composition decides about its sender.
#[derive(Clone, Copy, Debug)]
pub struct SenderParameters {
    /// How writes become segments.
    pub framing: Framing,
    /// Payload bytes of a full segment.
    pub segment_bytes: u32,
    /// Of these, bytes that data leave free: what an encoded packet needs beside them (OP-39).
    pub reserved_bytes: u32,
    /// Room for what is written.
    pub send_buffer: SendBuffer,
    /// Segments have numbers. Without, nothing is remembered of them.
    pub numbered: bool,
    /// What is lost leaves again.
    pub retransmits: bool,
    /// The peer acknowledges.
    pub has_feedback: bool,
    /// Without blocks a repeated pointer is all that tells of later arrivals.
    pub pointer_only: bool,
    /// Segments are spread in time at the controller's rate (RFC 9002 §7.7).
    pub paces: bool,
    /// A loss episode brings the window down in step with what is delivered (RFC 9937).
    pub reduces_in_proportion: bool,
    /// A tail that is not acknowledged for two round trips is asked for (RFC 8985 §7).
    pub probes_tail: bool,
    /// The peer is asked for fewer acknowledgements while much is in flight.
    pub thins_acks: bool,
    /// What an encoded packet repairs is a loss to congestion control (RFC 9265 §4).
    pub repairs_cost: bool,
    /// Everything not acknowledged counts against the window, whatever duplicates say (OP-50).
    pub limits_outstanding: bool,
    /// What a loss is taken for.
    pub loss_handling: LossHandling,
    /// What the peer's window counts.
    pub credit: CreditUnit,
    /// How often a shut window is probed.
    pub window_probes: WindowProbes,
    /// How far a congestion window is filled.
    pub filling: Filling,
    /// By which of several lanes lost segments leave again.
    pub retransmit_target: RetransmitTarget,
    /// A timer takes nothing for lost that left less than a round trip ago.
    pub spares_fresh: bool,
    /// What the arrivals of several lanes say of what is missing.
    pub differentiation: Differentiation,
}

/// One end's sender.
#[derive(Debug)]
pub struct Sender {
    parameters: SenderParameters,
    queue: SendQueue,
    board: Scoreboard,
    buffer: TransmitBuffer,
    /// With forward error correction; boxed, as few have it.
    encoder: Option<Box<FecEncoder>>,
    /// The first number that it encodes.
    encoded_from: u64,
    /// Payload bytes of the next new segment at most, where a scheduler above says so.
    new_limit: Option<usize>,
    /// The first number that may not leave yet.
    held_from: Option<u64>,
    /// The lane in hand, and those that wait.
    lane: Lane,
    others: Vec<Lane>,
    admission: Admission,
    /// When what is missing on one lane and not on others is late.
    lateness: LateThreshold,
    probing: Probing,
    /// Set-up is complete, so the retransmission timer runs. Until then the set-up timer stands in for it.
    established: bool,
    progress: Progress,
    counters: SenderCounters,
}

/// When the peer was last seen to take something.
#[derive(Clone, Copy, Debug)]
struct Progress {
    /// Data was last acknowledged, or first outstanding.
    at: Time,
    /// Reports with news so far.
    reports: u64,
}

impl Sender {
    /// Nothing is sent; the first segment will have the number `first`, and the peer's credit for it begins at
    /// `first_credit`.
    pub fn new(
        now: Time,
        first: u64,
        first_credit: u64,
        parameters: SenderParameters,
        recovery: Recovery,
        controller: Controller,
        rto: RtoParameters,
    ) -> Self {
        let mtu = PathMtu::known(parameters.segment_bytes);
        Sender {
            queue: SendQueue::new(parameters.framing),
            board: Scoreboard::new(first),
            buffer: TransmitBuffer::new(first),
            encoder: None,
            encoded_from: first,
            new_limit: None,
            held_from: None,
            lane: Lane::new(now, rto, controller, mtu, recovery).judging(parameters.loss_handling),
            others: Vec::new(),
            admission: Admission::new(first_credit, parameters.credit),
            lateness: LateThreshold::new(match parameters.differentiation {
                Differentiation::InterPath { late_after, .. } => late_after,
                _ => LateAfter::default(),
            }),
            probing: Probing::new(parameters.window_probes),
            established: false,
            progress: Progress { at: now, reports: 0 },
            counters: SenderCounters::default(),
            parameters,
        }
    }

    /// What leaves is encoded. Before anything is sent: what its own encoded packet may repair is judged after that (HARQ).
    pub fn encode_by(&mut self, encoder: FecEncoder) {
        if encoder.encodes_once() {
            self.board = Scoreboard::coded(self.board.first());
        }
        self.encoder = Some(Box::new(encoder));
    }

    /// The path is asked how large a segment it carries (RFC 8899).
    pub fn discover_mtu(&mut self) {
        self.lane.mtu = PathMtu::unknown(self.parameters.segment_bytes);
    }

    /// The set-up has settled the size of a full segment and what reports say.
    pub fn agree(&mut self, segment_bytes: u32, recovery: Recovery) {
        let selective = matches!(recovery, Recovery::Pipe(_));
        self.parameters.probes_tail &= selective;
        self.parameters.reduces_in_proportion &= selective;
        self.parameters.segment_bytes = segment_bytes;
        self.lane.mtu = PathMtu::known(segment_bytes);
        self.lane.recovery = recovery;
    }

    /// Goes on under other parameters, with what was `written` so far and not sent.
    pub fn adopt(&mut self, written: SendQueue, parameters: SenderParameters) {
        self.queue = written;
        self.lane.judge_by(parameters.loss_handling);
        self.parameters = parameters;
    }

    /// The set-up is complete; `rtt` is what it measured, `retransmitted` tells whether a packet of it left twice.
    pub fn establish(&mut self, now: Time, rtt: Option<Duration>, retransmitted: bool) {
        if let Some(rtt) = rtt {
            self.lane.rtt.sample(rtt);
        }
        if retransmitted {
            self.lane.rto.on_retransmitted_set_up();
        }
        self.start_timer();
        self.lane.mtu.start(now);
        self.progress.at = now;
        if !self.board.is_empty() {
            self.lane.rto.restart(now, &self.lane.rtt);
        }
    }

    /// Data is acknowledged from now on: the retransmission timer watches it.
    pub fn start_timer(&mut self) {
        self.established = true;
    }

    /// Takes data to send. False: there is no room, and [`Sender::takes_writes_again`] tells when there is.
    pub fn write(&mut self, now: Time, data: Bytes) -> bool {
        self.write_all(now, [data])
    }

    /// The same of several frames: all of them, or none.
    pub fn write_all(&mut self, now: Time, frames: impl IntoIterator<Item = Bytes>) -> bool {
        let is_full = (self.parameters.send_buffer).is_full(self.queue.bytes(), self.outstanding_bytes());
        if is_full || self.queue.frames() >= MAX_FRAMES {
            self.queue.refuse();
            return false;
        }
        self.begin_progress(now);
        frames.into_iter().for_each(|frame| self.queue.push(frame));
        true
    }

    /// Data may be written: where nothing waited before, the peer is measured from now on.
    pub fn begin_progress(&mut self, now: Time) {
        if self.queue.is_empty() && self.board.is_empty() {
            self.progress.at = now;
        }
    }

    /// The streams, where there are any.
    pub fn streams(&self) -> Option<&Streams> {
        self.queue.streams()
    }
    /// The same, to be written and read: after [`Sender::begin_progress`].
    pub fn streams_mut(&mut self) -> Option<&mut Streams> {
        self.queue.streams_mut()
    }

    fn outstanding_bytes(&self) -> usize {
        self.board.outstanding_bytes() as usize
    }

    /// True once when a writer was refused and there is room again.
    pub fn takes_writes_again(&mut self) -> bool {
        if !self.queue.has_waiting_writer() {
            return false;
        }
        let buffer = self.parameters.send_buffer;
        let has_room = buffer.has_room_again(self.queue.bytes(), self.outstanding_bytes());
        self.queue.takes_writes_again(has_room)
    }

    /// Nothing more will be sent: gives the memory back and stops every timer.
    pub fn stop(&mut self) {
        self.queue.clear();
        self.buffer.clear();
        if let Some(encoder) = &mut self.encoder {
            encoder.clear();
        }
        self.probing.stop();
        self.each_lane(|sender| {
            sender.lane.rto.stop();
            sender.lane.gate.stop_pacing();
        });
    }

    /// Takes everything outstanding for lost: the peer is known not to have it.
    pub fn retransmit_all(&mut self) {
        self.each_lane(|sender| {
            sender.board.mark_all_lost();
        });
    }

    /// `number` is not worth sending again, whatever becomes of it (RFC 3758 §3.5). True when that is news.
    pub fn give_up(&mut self, number: u64) -> bool {
        self.board.give_up(number)
    }

    /// The peer has discarded what it had reported of `range` (RFC 2018 §8): that is in flight again, and a timer watches it
    /// (RFC 9260 §6.3.2 (R4)). Returns how many segments that are.
    pub fn renege(&mut self, now: Time, range: &Range<u64>) -> u64 {
        let discarded = self.board.renege(range);
        self.each_lane(|sender| {
            if sender.established && !sender.board.is_quiet() {
                sender.lane.rto.start(now, &sender.lane.rtt);
            }
        });
        discarded
    }

    /// Can `frame` be sent at all with payloads of `limit` bytes?
    pub fn fits(&self, frame: &Bytes, limit: usize) -> bool {
        self.queue.fits(frame, limit)
    }
    /// SND.UNA: the lowest number not acknowledged.
    pub fn first(&self) -> u64 {
        self.board.first()
    }
    /// SND.NXT: the next new number.
    pub fn next_number(&self) -> u64 {
        self.board.next()
    }
    /// Everything sent is acknowledged.
    pub fn is_drained(&self) -> bool {
        self.board.is_empty()
    }
    /// Nothing waits to be numbered.
    pub fn has_nothing_queued(&self) -> bool {
        self.queue.is_empty()
    }
    /// Bytes that wait to be numbered.
    pub fn queued_bytes(&self) -> usize {
        self.queue.bytes()
    }
    /// First unit of credit that the peer does not take, by what it said last.
    pub fn credit_edge(&self) -> u64 {
        self.admission.edge()
    }
    /// The same, where credit binds.
    pub fn binding_edge(&self) -> Option<u64> {
        self.admission.credit_binds().then(|| self.admission.edge())
    }
    /// Encoded packets are sent, by this code.
    pub fn encoder(&self) -> Option<&FecEncoder> {
        self.encoder.as_deref()
    }
    /// Smoothed round-trip time.
    pub fn smoothed_rtt(&self) -> Option<Duration> {
        self.lane.rtt.smoothed()
    }
    /// Least round-trip time.
    pub fn minimum_rtt(&self) -> Option<Duration> {
        self.lane.rtt.minimum()
    }
    /// The retransmission timer's value in force.
    pub fn timeout(&self) -> Duration {
        self.lane.rto.value(&self.lane.rtt)
    }
    /// The same as if it had not been doubled.
    pub fn single_timeout(&self) -> Duration {
        self.lane.rto.value_of(&self.lane.rtt, false)
    }
    /// Payload bytes of a segment that the path is known to carry.
    pub fn segment_bytes(&self) -> u32 {
        self.lane.mtu.segment_bytes()
    }
    /// The same for who may have to send a segment on another path later.
    pub fn expected_segment_bytes(&self) -> u32 {
        self.lane.mtu.expected_bytes()
    }
    /// The link is taken for down: only probes leave.
    pub fn is_in_outage(&self) -> bool {
        self.lane.outage.state.is_active()
    }
    /// The congestion window.
    pub fn window_bytes(&self) -> u64 {
        self.lane.controller.window_bytes()
    }
    /// Segments believed to be in the network.
    pub fn in_flight(&self) -> u64 {
        self.board.in_flight()
    }
    /// When data was last acknowledged, or first outstanding.
    pub fn progress_at(&self) -> Time {
        self.progress.at
    }
    /// Reports with news so far.
    pub fn reports(&self) -> u64 {
        self.progress.reports
    }
    /// Something waits for the peer: an acknowledgement, or credit.
    pub fn waits_for_peer(&self) -> bool {
        let waits = self.probing.waits_for_credit() || self.holds_new();
        !self.board.is_empty() || (!self.queue.is_empty() && waits)
    }
    /// What was forgotten has arrived all the same.
    pub fn on_late_progress(&mut self, now: Time) {
        self.progress.at = now;
    }
    /// When something was answered last that left by the lane in hand.
    pub fn answered_at(&self) -> Time {
        self.lane.answered_at
    }
    /// Free bytes of the peer's buffer as it said last, where credit counts what is in flight.
    pub fn free_credit(&self) -> u64 {
        self.admission.free_credit()
    }
    /// What it counted.
    pub fn counters(&self) -> &SenderCounters {
        &self.counters
    }
    /// Bytes of memory that it keeps.
    pub fn memory(&self) -> usize {
        let encoder = self.encoder().map_or(0, FecEncoder::bytes);
        self.queue.memory() + self.buffer.bytes() + self.board.memory() + encoder
    }

    /// Payload of a full segment of new data.
    fn full_payload(&self) -> usize {
        let full =
            (self.lane.mtu.segment_bytes() as usize).saturating_sub(self.parameters.reserved_bytes as usize);
        self.new_limit.map_or(full, |limit| full.min(limit))
    }

    /// Tells the controller. `in_flight_bytes` is what was outstanding before anything was marked lost, for events that
    /// cut the window, and what is now in flight for all others.
    fn tell_controller(&mut self, now: Time, event: &CongestionEvent, in_flight_bytes: u64) {
        let load = self.load(in_flight_bytes);
        self.lane.tell(now, event, load);
    }

    fn load(&self, in_flight_bytes: u64) -> Load {
        Load {
            segment_bytes: u64::from(self.lane.mtu.segment_bytes()),
            in_flight_bytes,
            application_limited: self.lane.gate.is_unused(),
            in_recovery: self.is_repairing(),
        }
    }

    /// Are losses repaired that were answered as the composition says? Where causes are inferred, those that cut the window.
    fn is_repairing(&self) -> bool {
        match &self.lane.cutting {
            Some(cutting) => cutting.is_cut(self.board.own_head()),
            None => self.lane.recovery.is_active(),
        }
    }

    /// What other paths may know of this one, once it was measured.
    pub fn as_sibling(&self) -> Option<Sibling> {
        self.lane.as_sibling()
    }
    /// How many round trips were measured, and the last of them.
    pub fn latest_rtt(&self) -> Option<(u64, Duration)> {
        Some((self.lane.rtt.samples(), self.lane.rtt.latest()?))
    }
    /// What its congestion control knows of other paths.
    pub fn siblings(&mut self) -> &mut Vec<Sibling> {
        &mut self.lane.siblings
    }
}

#[cfg(test)]
mod tests;
