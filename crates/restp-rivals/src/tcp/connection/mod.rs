//! One TCP connection: a handful of services, two short lists of calls ([`intake`], [`outlet`]), and the state they
//! share. Drained as ResTP's: [`Connection::poll_transmit`] until `false`, notices, [`Connection::deadline`].

mod agreement;
mod early;
mod intake;
mod multipath;
mod outlet;
mod state;
mod timers;

pub(crate) use agreement::{UNSCALED, shift_for};
pub(crate) use intake::{Packet, Verdict};

use super::numbers::Numbers;
use super::parameters::TcpParameters;
use super::stream::ByteStream;
use super::wire::Header;
use crate::mptcp::subflow::Subflow;
use agreement::Agreed;
use bytes::Bytes;
use restp_base::flow::{CloseReason, FlowStats, Read, WriteError};
use restp_base::machine::{Datagram, PathAddress};
use restp_base::sequence;
use restp_base::time::Time;
use restp_services::ack::{AckTimer, Detail, NakReporter, Schedule};
use restp_services::congestion::{Congestion, CongestionEvent};
use restp_services::connection_management::{Cookie, Exchange, Handshake, Notice, Release, TIME_WAIT};
use restp_services::flow_control::{ReceiveWindow, SendWindow, WindowParameters};
use restp_services::framing::{Framing, SendQueue};
use restp_services::ordering::Inbox;
use restp_services::path_management::{Load, Path, PathMtu};
use restp_services::recovery::{Recovery, Scoreboard};
use restp_services::reliability::TransmitBuffer;
use state::State;
use std::collections::VecDeque;
use std::sync::Arc;

/// The two ports of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Ports {
    pub(crate) local: u16,
    pub(crate) remote: u16,
}

/// First number of the scoreboard's segments, which never travel.
const FIRST_SEGMENT: u64 = sequence::ORIGIN;

/// What travels from here to the peer.
#[derive(Debug)]
struct Outbound {
    queue: SendQueue,
    board: Scoreboard,
    numbers: Numbers,
    buffer: TransmitBuffer,
    recovery: Recovery,
    /// In bytes.
    window: SendWindow,
    /// Window field of the last acknowledgement, to tell an update from a duplicate.
    advertised: u16,
    /// The next repeat leaves whatever the window says.
    repeat_at_once: bool,
    /// A timeout is being repaired: one segment at a time until something is acknowledged.
    one_at_a_time: bool,
    /// A byte beyond the peer's shut window is out as a probe (RFC 9293 §3.8.6.1).
    window_probe: bool,
    probe_at: Option<Time>,
    /// A pacing wait is what holds the next segment back.
    paced_until: Option<Time>,
    /// When the path last carried something with an answer.
    idle_since: Option<Time>,
    /// A write was refused for lack of room.
    writer_waits: bool,
    /// Before the last acknowledgement, something other than the congestion window held the sender back.
    window_unused: bool,
}

/// What travels from the peer to here.
#[derive(Debug)]
struct Inbound {
    stream: ByteStream,
    /// In units of the scale: `1 << shift` bytes.
    window: ReceiveWindow,
    shift: u8,
    /// First byte beyond everything ever advertised.
    edge: u64,
    /// The byte behind the peer's SYN.
    first: u64,
    ack: AckTimer,
    nak: NakReporter,
    inbox: Inbox,
    /// The application does not read any more.
    discards: bool,
}

/// One end of a connection.
#[derive(Debug)]
pub(crate) struct Connection {
    parameters: Arc<TcpParameters>,
    ports: Ports,
    state: State,
    path: Path,
    out: Outbound,
    inn: Inbound,
    agreed: Agreed,
    /// Its part in a connection of several paths.
    subflow: Option<Box<Subflow>>,
    /// What the set-up says of cookies, and whether data may travel before it is complete.
    exchange: Option<Exchange>,
    /// A cookie from the server, for the next time.
    fresh_cookie: Option<Cookie>,
    release: Release,
    stats: FlowStats,
    notices: VecDeque<Notice>,
    opened_here: bool,
    opened_at: Time,
    /// When data was last acknowledged, or first outstanding.
    progress_at: Time,
    /// An end that nobody holds any more waits for the peer's FIN until then.
    orphan_until: Option<Time>,
}

impl Connection {
    /// Opens a connection from this side.
    pub(crate) fn open(
        now: Time,
        parameters: Arc<TcpParameters>,
        address: PathAddress,
        ports: Ports,
        isn: u32,
        subflow: Option<Subflow>,
    ) -> Self {
        let state = State::SynSent(Handshake::start(now, parameters.handshake));
        let mut connection = Self::new(now, parameters, address, ports, isn, state);
        connection.subflow = subflow.map(Box::new);
        connection
    }

    /// Answers a SYN.
    pub(crate) fn accept(
        now: Time,
        parameters: Arc<TcpParameters>,
        address: PathAddress,
        syn: &Header,
        isn: u32,
        subflow: Option<Subflow>,
    ) -> Self {
        let ports = Ports {
            local: syn.destination_port,
            remote: syn.source_port,
        };
        let state = State::SynReceived(Handshake::start(now, parameters.handshake));
        let mut connection = Self::new(now, parameters, address, ports, isn, state);
        connection.opened_here = false;
        connection.subflow = subflow.map(Box::new);
        connection.learn(syn);
        connection
    }

    fn new(
        now: Time,
        parameters: Arc<TcpParameters>,
        address: PathAddress,
        ports: Ports,
        isn: u32,
        state: State,
    ) -> Self {
        let controller = parameters.congestion.build(u64::from(parameters.segment_bytes));
        let first_byte = sequence::ORIGIN + u64::from(isn) + 1; // the SYN takes one
        Connection {
            ports,
            state,
            path: Path::new(
                address,
                parameters.rto,
                controller,
                PathMtu::known(parameters.segment_bytes),
            ),
            out: Outbound {
                queue: SendQueue::new(Framing::Coalesce),
                board: Scoreboard::new(FIRST_SEGMENT),
                numbers: Numbers::new(FIRST_SEGMENT, first_byte),
                buffer: TransmitBuffer::new(FIRST_SEGMENT),
                recovery: Recovery::new(
                    parameters.recovery,
                    parameters.congestion.fast_recovery(),
                    true,
                    parameters.evidence(Detail::Pointer, None),
                ),
                window: SendWindow::initial(first_byte, 0),
                advertised: 0,
                repeat_at_once: false,
                one_at_a_time: false,
                window_probe: false,
                probe_at: None,
                paced_until: None,
                idle_since: None,
                writer_waits: false,
                window_unused: false,
            },
            inn: Inbound {
                stream: ByteStream::new(sequence::ORIGIN, 0),
                window: ReceiveWindow::new(sequence::ORIGIN, WindowParameters { segments: 0 }),
                shift: 0,
                edge: sequence::ORIGIN,
                first: sequence::ORIGIN,
                ack: AckTimer::new(Schedule::Positive(parameters.ack), None),
                nak: NakReporter::new(parameters.nak, 1, sequence::ORIGIN),
                inbox: Inbox::default(),
                discards: false,
            },
            agreed: Agreed {
                segment_bytes: parameters.segment_bytes,
                peer_shift: 0,
                detail: Detail::Pointer,
                unit: u64::from(parameters.segment_bytes),
                clock: None,
            },
            subflow: None,
            exchange: None,
            fresh_cookie: None,
            release: Release::default(),
            stats: FlowStats {
                path: Some(address),
                ..FlowStats::default()
            },
            notices: VecDeque::new(),
            opened_here: true,
            opened_at: now,
            progress_at: now,
            orphan_until: None,
            parameters,
        }
    }

    /// What we take, in bytes, whatever the field can say.
    fn window_bytes(&self) -> u64 {
        u64::from(self.parameters.window.segments) * u64::from(self.parameters.segment_bytes)
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.state == State::Closed
    }
    pub(crate) fn is_half_open(&self) -> bool {
        matches!(self.state, State::SynReceived(_))
    }
    /// The application never heard of it, so it will never release it.
    pub(crate) fn is_unknown_to_application(&self) -> bool {
        !self.opened_here && self.stats.handshake.is_none() && !self.trusts()
    }
    /// Reading has made an acknowledgement due.
    pub(crate) fn owes_acknowledgement(&self) -> bool {
        self.inn.ack.is_owed()
    }
    /// Moves the next notice out; changes nothing else.
    pub(crate) fn poll_notice(&mut self) -> Option<Notice> {
        self.notices.pop_front()
    }

    /// Takes data to send. See [`restp_base::flow::Flow::write`].
    pub(crate) fn write(&mut self, now: Time, data: Bytes) -> Result<(), WriteError> {
        if self.release.is_wanted() || self.state.is_over() {
            return Err(WriteError::Closed);
        }
        let full = self.out.queue.bytes() >= self.parameters.send_buffer_bytes;
        if full || self.out.queue.frames() >= MAX_PIECES {
            self.out.writer_waits = true;
            return Err(WriteError::Blocked);
        }
        if self.out.queue.is_empty() && self.out.board.is_empty() {
            self.progress_at = now;
        }
        self.out.queue.push(data);
        self.watch_window(now);
        Ok(())
    }

    /// Takes the next bytes for the reader.
    pub(crate) fn read(&mut self) -> Read {
        if let Some(data) = self.inn.inbox.pop() {
            self.stats.delivered_bytes += data.len() as u64;
            self.stats.delivered_messages += 1;
            self.offer_window();
            return Read::Data(data);
        }
        if self.release.remote_finished() || self.state.is_over() {
            Read::End
        } else {
            Read::Empty
        }
    }

    /// Reading has made room: tell a sender that believes there is none.
    fn offer_window(&mut self) {
        let (next, unread) = self.receive_units();
        if self.state == State::Established && self.inn.window.update_is_due(next, unread) {
            self.inn.ack.on_urgent_once();
        }
    }

    /// RCV.NXT and what waits for the reader, in units of our window.
    fn receive_units(&self) -> (u64, u64) {
        let shift = self.inn.shift;
        let unread = (self.inn.inbox.bytes() as u64).div_ceil(1 << shift);
        (self.inn.stream.next() >> shift, unread)
    }

    /// No more writes will come.
    pub(crate) fn finish(&mut self, now: Time) {
        self.release.finish();
        self.watch_window(now);
    }

    /// Breaks off and tells the peer.
    pub(crate) fn abort(&mut self) {
        if !self.state.is_over() {
            self.end(CloseReason::Aborted, State::Resetting);
        }
    }

    /// The application has lost interest: what is unread is dropped, and no more will be written.
    pub(crate) fn discard(&mut self, now: Time) {
        self.inn.inbox.clear();
        self.inn.discards = true;
        self.finish(now);
        self.orphan_until = Some(now + TIME_WAIT);
    }

    pub(crate) fn stats(&self) -> FlowStats {
        let sending = self.out.queue.bytes()
            + self.out.buffer.bytes()
            + self.out.board.memory()
            + self.out.numbers.memory();
        let receiving = self.inn.stream.held_bytes() + self.inn.inbox.bytes();
        FlowStats {
            srtt: self.path.rtt.smoothed(),
            rto: Some(self.path.rto.value(&self.path.rtt)),
            congestion_window_bytes: self.path.controller.window_bytes(),
            memory_bytes: (size_of::<Connection>() + sending + receiving) as u64,
            in_flight_segments: self.out.board.in_flight(),
            ..self.stats.clone()
        }
    }

    /// Ends the connection for the application; what the protocol still has to do is in `next`.
    fn end(&mut self, reason: CloseReason, next: State) {
        self.state = next;
        if !self.is_unknown_to_application() {
            self.notices.push_back(Notice::Closed(reason));
        }
        self.out.queue.clear();
        self.out.buffer.clear();
        self.path.rto.stop();
        self.out.probe_at = None;
        self.out.paced_until = None;
    }

    /// Tells the controller of the path. `in_flight_bytes` is what was outstanding before anything was marked lost,
    /// for events that cut the window, and what is now in flight for all others.
    fn tell_controller(&mut self, now: Time, event: &CongestionEvent, in_flight_bytes: u64) {
        let load = self.load(in_flight_bytes);
        self.path.tell(now, event, load);
    }

    fn load(&self, in_flight_bytes: u64) -> Load {
        Load {
            segment_bytes: u64::from(self.agreed.segment_bytes),
            in_flight_bytes,
            application_limited: self.out.window_unused,
            in_recovery: self.out.recovery.is_active(),
        }
    }

    /// Payload of the segment that would be sent next, were it allowed; nothing for FIN.
    fn next_payload(&self) -> Option<u64> {
        if !self.out.queue.is_empty() {
            let full = self.agreed.segment_bytes as usize;
            return Some(self.out.queue.bytes().min(full) as u64);
        }
        self.release.must_send_fin().then_some(0)
    }

    /// Does a whole segment of `payload` bytes (or the FIN) fit into the peer's window? What does not fit waits
    /// instead of being cut (RFC 9293 §3.8.6.2.1, silly windows).
    /// What a subflow is given was checked against the window that all of them share.
    fn fits_window(&self, payload: u64) -> bool {
        self.subflow.is_some()
            || self
                .out
                .window
                .allows(self.out.numbers.next_byte() + payload.max(1) - 1)
    }

    /// The window is not in use, because nobody writes or the peer takes no more (RFC 7661 §4).
    fn leaves_window_unused(&self, in_flight_bytes: u64) -> bool {
        let segment = u64::from(self.agreed.segment_bytes);
        in_flight_bytes + segment <= self.path.controller.window_bytes()
            && self.out.board.lost() == 0
            && !self.is_fed()
            && (self.out.queue.is_empty()
                || !self.next_payload().is_some_and(|bytes| self.fits_window(bytes)))
    }

    /// Nothing is outstanding whose acknowledgement could open the peer's window: probe it.
    fn watch_window(&mut self, now: Time) {
        let shut = self.next_payload().is_some_and(|bytes| !self.fits_window(bytes));
        if shut && self.out.board.is_empty() && self.state == State::Established {
            let wait = self.path.rto.value(&self.path.rtt);
            self.out.probe_at.get_or_insert(now + wait);
        } else {
            self.out.probe_at = None;
        }
    }

    /// Writes the next segment into `out`; `false` when there is nothing to send now.
    pub(crate) fn poll_transmit(&mut self, now: Time, out: &mut Datagram) -> bool {
        outlet::poll(self, now, out)
    }
}

/// Writes that may wait to be numbered, and segments that may wait to be read, whatever their size.
const MAX_PIECES: usize = 16_384;
