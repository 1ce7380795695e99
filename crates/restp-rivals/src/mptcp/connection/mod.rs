//! One connection over several subflows (RFC 8684): each is a TCP with numbers, repairs and a window of its own; here is what
//! they share.
//!
//! | File | What |
//! |---|---|
//! | `members` | subflows: dialled, joined, ended |
//! | `intake` | what a segment means for the connection |
//! | `outlet` | which subflow sends what |
//! | `timers` | the earliest deadline |

mod intake;
mod members;
mod outlet;
mod timers;

pub(crate) use members::{Dial, Join};

use super::subflow::{FIRST_DATA, Shared};
use crate::tcp::TcpParameters;
use crate::tcp::connection::{Connection as Tcp, UNSCALED, shift_for};

use bytes::Bytes;
use members::Member;
use restp_base::flow::{CloseReason, FlowStats, Read, WriteError};
use restp_base::time::{Duration, Time};

use restp_services::connection_management::{Key, Keys, Notice, Release};
use restp_services::flow_control::{ReceiveWindow, SendWindow, WindowParameters};
use restp_services::framing::Boundaries;
use restp_services::framing::{Framing, SendQueue};
use restp_services::ordering::{ByteStream, Inbox};
use restp_services::reliability::TransmitBuffer;
use restp_services::scheduling::{Scheduler, Scheduling};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// First number of the pieces that data are given to subflows in; they never travel.
const FIRST_PIECE: u64 = 0;
/// Writes that may wait to be sent, whatever their size.
const MAX_WRITES: usize = 16_384;
/// How long a subflow may take to end behind the connection: one segment lifetime.
const LINGER: Duration = Duration::from_secs(30);

/// What travels from here to the peer.
#[derive(Debug)]
struct Outbound {
    queue: SendQueue,
    /// Which bytes each piece has that the peer has not acknowledged.
    numbers: Boundaries,
    /// The first of these pieces, and the next one.
    first: u64,
    next: u64,
    buffer: TransmitBuffer,
    /// In bytes of the connection.
    window: SendWindow,
    /// Pieces to be given to another subflow, before anything new.
    again: BTreeSet<u64>,
    /// Subflows that need not be given a piece again, by bits.
    tried: BTreeMap<u64, u8>,
    stalled: bool,
    stalls: u64,
    writer_waits: bool,
    /// The peer's window is shut: when the next piece asks.
    probe_at: Option<Time>,
    /// Every subflow has delivered what it carried, and Data ACK has not followed: when the first piece is sent again.
    resend_at: Option<Time>,
    /// Our DATA_FIN: when it is due again.
    fin_at: Option<Time>,
}

/// What travels from the peer to here.
#[derive(Debug)]
struct Inbound {
    stream: ByteStream,
    /// In units of `1 << shift` bytes.
    window: ReceiveWindow,
    shift: u8,
    /// First byte beyond everything ever advertised.
    edge: u64,
    inbox: Inbox,
    /// The application does not read any more.
    discards: bool,
}

/// How far the connection has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Opening,
    Established,
    /// The application has been told that it is over; the subflows end on their own.
    Over,
}

/// One end of a connection.
#[derive(Debug)]
pub(crate) struct Connection {
    parameters: Arc<TcpParameters>,
    local_key: Key,
    members: Vec<Member>,
    /// Paths to join on, once the peer knows both keys.
    lines: VecDeque<Dial>,
    scheduler: Scheduler,
    scheduling: Scheduling,
    /// Whose turn it is to be asked for a segment.
    turn: usize,
    out: Outbound,
    inn: Inbound,
    /// What the subflow of the present segment has handed up; empty between segments.
    arrived: Vec<(u64, Bytes)>,
    release: Release,
    state: State,
    /// When subflows that still have not ended are broken off.
    breaks_at: Option<Time>,
    notices: VecDeque<Notice>,
    opened_here: bool,
    opened_at: Time,
    /// Counters of the connection itself.
    own: FlowStats,
}

impl Connection {
    fn new(now: Time, parameters: Arc<TcpParameters>, local_key: Key, opened_here: bool) -> Self {
        let scheduling = parameters.multipath.clone().unwrap_or(Scheduling::FastestRtt);
        let bytes = u64::from(parameters.window.segments) * u64::from(parameters.segment_bytes);
        let shift = if parameters.window_scaling {
            shift_for(bytes)
        } else {
            0
        };
        let units = (bytes >> shift).min(UNSCALED) as u32;
        let pieces = 2 * parameters.window.segments as usize;
        Connection {
            local_key,
            members: Vec::new(),
            lines: VecDeque::new(),
            scheduler: scheduling.build(),
            scheduling,
            turn: 0,
            out: Outbound {
                queue: SendQueue::new(Framing::Coalesce),
                numbers: Boundaries::new(FIRST_PIECE, FIRST_DATA),
                first: FIRST_PIECE,
                next: FIRST_PIECE,
                buffer: TransmitBuffer::new(FIRST_PIECE),
                window: SendWindow::initial(FIRST_DATA, 0),
                again: BTreeSet::new(),
                tried: BTreeMap::new(),
                stalled: false,
                stalls: 0,
                writer_waits: false,
                probe_at: None,
                resend_at: None,
                fin_at: None,
            },
            inn: Inbound {
                stream: ByteStream::new(FIRST_DATA, pieces),
                window: ReceiveWindow::new(FIRST_DATA >> shift, WindowParameters { segments: units }),
                shift,
                edge: FIRST_DATA,
                inbox: Inbox::default(),
                discards: false,
            },
            arrived: Vec::new(),
            release: Release::default(),
            state: State::Opening,
            breaks_at: None,
            notices: VecDeque::new(),
            opened_here,
            opened_at: now,
            own: FlowStats::default(),
            parameters,
        }
    }

    /// Both keys, once they are known: joins are held to them.
    pub(crate) fn keys(&self) -> Option<Keys> {
        self.members.iter().find_map(|member| member.tcp.keys())
    }
    pub(crate) fn is_closed(&self) -> bool {
        self.state == State::Over && self.members.iter().all(|member| member.tcp.is_closed())
    }
    pub(crate) fn is_half_open(&self) -> bool {
        !self.opened_here && self.state == State::Opening
    }
    pub(crate) fn is_unknown_to_application(&self) -> bool {
        !self.opened_here && self.own.handshake.is_none()
    }
    pub(crate) fn owes_acknowledgement(&self) -> bool {
        self.members
            .iter()
            .any(|member| member.tcp.owes_acknowledgement())
    }
    pub(crate) fn poll_notice(&mut self) -> Option<Notice> {
        self.notices.pop_front()
    }

    /// The one TCP that is left when the peer knows no other, with everything written so far.
    pub(crate) fn take_single(&mut self, now: Time) -> Option<Tcp> {
        let alone = self.members.iter().position(|member| member.tcp.is_alone())?;
        let mut tcp = self.members.swap_remove(alone).tcp;
        let written = std::mem::replace(&mut self.out.queue, SendQueue::new(Framing::Coalesce));
        tcp.adopt(written);
        if self.release.is_wanted() {
            tcp.finish();
        }
        if self.inn.discards {
            tcp.discard(now);
        }
        Some(tcp)
    }

    /// Takes data to send. See [`restp_base::flow::Flow::write`].
    pub(crate) fn write(&mut self, _now: Time, data: Bytes) -> Result<(), WriteError> {
        if self.release.is_wanted() || self.state == State::Over {
            return Err(WriteError::Closed);
        }
        let full = self.out.queue.bytes() >= self.parameters.send_buffer_bytes;
        if full || self.out.queue.frames() >= MAX_WRITES {
            self.out.writer_waits = true;
            return Err(WriteError::Blocked);
        }
        self.out.queue.push(data);
        Ok(())
    }

    /// Takes the next bytes for the reader.
    pub(crate) fn read(&mut self) -> Read {
        if let Some(data) = self.inn.inbox.pop() {
            self.own.delivered_bytes += data.len() as u64;
            self.own.delivered_messages += 1;
            self.offer_window();
            return Read::Data(data);
        }
        if self.release.remote_finished() || self.state == State::Over {
            Read::End
        } else {
            Read::Empty
        }
    }

    /// Reading has made room: tell a sender that believes there is none.
    fn offer_window(&mut self) {
        let (next, unread) = self.receive_units();
        if self.state == State::Established
            && self.inn.window.update_is_due(next, unread)
            && let Some(best) = self.best()
        {
            self.members[best].tcp.acknowledge_soon();
        }
    }

    /// What is expected next and what waits for the reader, in units of our window.
    fn receive_units(&self) -> (u64, u64) {
        let shift = self.inn.shift;
        let unread = (self.inn.inbox.bytes() as u64).div_ceil(1 << shift);
        (self.inn.stream.next() >> shift, unread)
    }

    /// What every subflow has to know before it handles or sends anything.
    fn shared(&self) -> Shared {
        let (units, unread) = self.receive_units();
        let window_bytes = u64::from(self.inn.window.offer(units, unread)) << self.inn.shift;
        let next = self.inn.stream.next();
        Shared {
            next,
            window_bytes,
            edge: self.inn.edge.max(next + window_bytes),
        }
    }

    /// No more writes will come.
    pub(crate) fn finish(&mut self) {
        self.release.finish();
    }

    /// Breaks off on every subflow.
    pub(crate) fn abort(&mut self) {
        self.end(CloseReason::Aborted);
        self.members.iter_mut().for_each(|member| member.tcp.abort());
    }

    /// The application has lost interest: what is unread is dropped, and no more will be written.
    pub(crate) fn discard(&mut self) {
        self.inn.inbox.clear();
        self.inn.discards = true;
        self.finish();
    }

    /// Ends the connection for the application.
    fn end(&mut self, reason: CloseReason) {
        if self.state == State::Over {
            return;
        }
        if !self.is_unknown_to_application() {
            self.notices.push_back(Notice::Closed(reason));
        }
        self.state = State::Over;
        self.lines.clear();
        self.out.queue.clear();
        self.out.buffer.clear();
        self.out.again.clear();
        self.out.tried.clear();
        (self.out.fin_at, self.out.probe_at, self.out.resend_at) = (None, None, None);
    }

    /// Both directions are over: the subflows end (RFC 8684 §3.3.3), those that do not answer are broken off.
    fn conclude(&mut self, now: Time) {
        if self.state != State::Established || !self.release.is_complete() {
            return;
        }
        self.end(CloseReason::Finished);
        self.breaks_at = Some(now + LINGER);
        for member in &mut self.members {
            if member.tcp.is_failing() {
                member.tcp.abort();
            } else {
                member.tcp.finish();
            }
        }
    }

    pub(crate) fn stats(&self) -> FlowStats {
        let mut total = self.own.clone();
        for member in &self.members {
            total.add(&member.stats());
        }
        // Deliveries are the connection's: subflows hand nothing to a reader.
        total.delivered_bytes = self.own.delivered_bytes;
        total.delivered_messages = self.own.delivered_messages;
        let shown = self.best().or((!self.members.is_empty()).then_some(0));
        if let Some(member) = shown.and_then(|shown| self.members.get(shown)) {
            total.path = Some(member.tcp.address());
            total.srtt = member.tcp.smoothed_rtt();
            total.rto = Some(member.tcp.timeout());
        }
        let kept = self.out.queue.bytes() + self.out.buffer.bytes() + self.out.numbers.memory();
        let held = self.inn.stream.held_bytes() + self.inn.inbox.bytes();
        total.memory_bytes += (size_of::<Connection>() + kept + held) as u64;
        total
    }
}
