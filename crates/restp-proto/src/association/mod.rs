//! One association over several paths (ResTP §3.3, §3.1.13): each path is a connection of its own with its own numbers,
//! repairs and window; here is what they share: the numbers of the association, the data not yet acknowledged, the
//! receive buffer, the release, and the choice of paths.
//!
//! | File | What |
//! |---|---|
//! | `dial` | paths to try, the race of the first ones, joins |
//! | `end` | how it ends, and what of its paths |
//! | `intake` | what a packet means for the association |
//! | `outlet` | which path sends what |
//! | `pins` | what belongs on a path that the application chose |
//! | `health` | suspicion, failure, return |
//! | `rescue` | data of a path that went silent |
//! | `timers` | the earliest deadline |

mod dial;
mod end;
mod health;
mod intake;
mod outlet;
mod pins;
mod rescue;
mod timers;

pub(crate) use dial::Dial;

use dial::Line;
use pins::Pins;
use rescue::Rescue;

use crate::composition::ValidComposition;
use crate::connection::{Connection, Setup};
use crate::wire::Services;
use bytes::Bytes;
use restp_base::flow::{FlowStats, PathState, Read, WriteError};
use restp_base::machine::PathAddress;
use restp_base::secret::Hidden;
use restp_base::sequence;
use restp_base::time::{Duration, Time};
use restp_services::connection_management::{EARLY_SEGMENTS, Key, Keys, Notice, Release, first_number};
use restp_services::flow_control::{FlowControl, ReceiveWindow, SendWindow, WindowParameters};
use restp_services::framing::SendQueue;
use restp_services::ordering::{Inbox, Reassembly};
use restp_services::path_management::{Health, PathHealth};
use restp_services::reliability::TransmitBuffer;
use restp_services::scheduling::{Places, Scheduler};
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

/// One path of the association.
#[derive(Debug)]
struct Member {
    connection: Connection,
    health: PathHealth,
    /// What the application was last told.
    told: Option<PathState>,
    /// Only used when no other path works (ResTP §3.1.12, B).
    backup: bool,
    /// Index of the line it was dialled on; none for the peer's.
    line: Option<usize>,
    /// It has ended and the endpoint has forgotten its ports.
    vacant: bool,
    /// Answers counted at the last look.
    answers: u64,
    suspicions: u64,
    down_events: u64,
}

impl Member {
    fn stats(&self) -> FlowStats {
        let mut stats = self.connection.stats();
        for path in &mut stats.paths {
            (path.suspicions, path.down_events) = (self.suspicions, self.down_events);
        }
        stats
    }
}

/// What is numbered by the association and travels from here to the peer.
#[derive(Debug)]
struct Outbound {
    queue: SendQueue,
    /// The first number of all, the lowest that the peer has not acknowledged, and the next new one.
    origin: u64,
    first: u64,
    next: u64,
    buffer: TransmitBuffer,
    /// Which path carries each of them.
    places: Places,
    pins: Pins,
    window: SendWindow,
    /// Numbers to be placed before anything new: they went to a path that is now silent, or a slower path took later ones.
    again: BTreeSet<u64>,
    /// Which of them goes first.
    rescue: Rescue,
    /// The peer's window was shut at the last look although data waits, and how often it came to that.
    stalled: bool,
    stalls: u64,
    writer_waits: bool,
    shut: Option<ShutWindow>,
    /// Every path has delivered what it carried, and the association's pointer has not followed: when the number it
    /// stands at is placed again.
    resend_at: Option<Time>,
    /// Our DATA_FIN: when it is due again.
    fin_at: Option<Time>,
}

/// The peer's window is shut, and nothing is outstanding whose acknowledgement could open it.
#[derive(Clone, Copy, Debug)]
struct ShutWindow {
    since: Time,
    /// When a path asks whether it still is.
    probe_at: Time,
}

/// What travels from the peer to here.
#[derive(Debug)]
struct Inbound {
    reassembly: Option<Reassembly>,
    window: ReceiveWindow,
    inbox: Inbox,
    fin: Option<u64>,
}

/// One end of an association over several paths.
#[derive(Debug)]
pub(crate) struct Association {
    composition: Arc<ValidComposition>,
    /// What each path is composed of: numbers and repairs of its own, nothing that is shared.
    below: Arc<ValidComposition>,
    services: Services,
    local_key: Hidden<Key>,
    /// The service it was opened to.
    port: u16,
    members: Vec<Member>,
    lines: Vec<Line>,
    scheduler: Scheduler,
    /// Whose turn it is to be asked for a packet.
    turn: usize,
    out: Outbound,
    inn: Inbound,
    /// What the path of the present packet has newly received; empty between packets.
    arrived: Vec<(u32, Bytes)>,
    release: Release,
    state: State,
    /// The application has been told that it is over: when paths that still have something to say are broken off.
    breaks_at: Option<Time>,
    notices: VecDeque<Notice>,
    opened_here: bool,
    /// The application knows of it, and will let it go.
    announced: bool,
    opened_at: Time,
    handshake: Option<Duration>,
    /// Counters of paths that are gone, and of the association itself.
    past: FlowStats,
}

/// How far the association has come. Each path has states of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// No path is established yet.
    Opening,
    Established,
    /// The application has been told that it is over; the paths end on their own.
    Over,
}

/// How long a path may still say its own end after the association's: one segment lifetime (OP-61). A path that carries
/// one direction only would say it for ever.
const LINGER: Duration = Duration::from_secs(30);
/// Receive limits where the composition advertises no window.
const UNADVERTISED_WINDOW: WindowParameters = WindowParameters { segments: 8192 };

impl Association {
    fn new(
        now: Time,
        composition: Arc<ValidComposition>,
        services: Services,
        local_key: Key,
        port: u16,
        opened_here: bool,
    ) -> Self {
        let below = Arc::new(composition.of_each_path());
        let first = sequence::ORIGIN + u64::from(first_number(local_key)) + 1;
        Association {
            below,
            services,
            local_key: Hidden(local_key),
            port,
            members: Vec::new(),
            lines: Vec::new(),
            scheduler: Scheduler::new(composition.paths, composition.scheduling.as_ref()),
            turn: 0,
            out: Outbound {
                queue: SendQueue::new(composition.framing),
                origin: first,
                first,
                next: first,
                buffer: TransmitBuffer::new(first),
                places: Places::new(first),
                pins: Pins::default(),
                stalled: false,
                stalls: 0,
                window: SendWindow::initial(first, EARLY_SEGMENTS),
                again: BTreeSet::new(),
                rescue: Rescue::default(),
                writer_waits: false,
                shut: None,
                resend_at: None,
                fin_at: None,
            },
            inn: Inbound {
                reassembly: None,
                window: ReceiveWindow::new(sequence::ORIGIN, granted(&composition)),
                inbox: Inbox::default(),
                fin: None,
            },
            arrived: Vec::new(),
            release: Release::default(),
            state: State::Opening,
            breaks_at: None,
            notices: VecDeque::new(),
            opened_here,
            announced: opened_here,
            opened_at: now,
            handshake: None,
            past: FlowStats::default(),
            composition,
        }
    }

    /// The peer's key is known: so is its first number, and what it takes.
    fn begin(&mut self, keys: Keys, window: Option<u16>) {
        let expected = sequence::ORIGIN + u64::from(first_number(keys.remote)) + 1;
        match window {
            Some(window) => {
                self.out.window.update(self.out.first, window.into());
            }
            None => self.out.window = SendWindow::initial(self.out.first, u64::MAX / 2),
        }
        self.inn.reassembly = Some(Reassembly::new(self.composition.ordering, expected));
        self.inn.window = ReceiveWindow::new(expected, granted(&self.composition));
    }

    /// The keys of the association, once both are known: joins are held to them.
    pub(crate) fn keys(&self) -> Option<Keys> {
        self.members.iter().find_map(|member| member.connection.keys())
    }

    /// Mappings carry a CRC-32: this side asks for it, or the peer did on the first path.
    fn has_integrity(&self) -> bool {
        let asked = |member: &Member| member.connection.has_integrity();
        self.composition.mapping_crc || self.members.iter().any(asked)
    }

    pub(crate) fn composition(&self) -> &Arc<ValidComposition> {
        &self.composition
    }
    pub(crate) fn is_closed(&self) -> bool {
        self.state == State::Over && self.members.iter().all(|member| member.connection.is_closed())
    }
    pub(crate) fn is_unknown(&self) -> bool {
        !self.announced
    }
    pub(crate) fn is_half_open(&self) -> bool {
        !self.opened_here && self.state == State::Opening && !self.is_closed()
    }
    pub(crate) fn takes_early_data(&self) -> bool {
        self.members
            .iter()
            .any(|member| member.connection.takes_early_data())
    }
    pub(crate) fn wants_turn(&self) -> bool {
        self.members.iter().any(|member| member.connection.wants_turn())
    }
    pub(crate) fn is_on(&self, local: std::net::SocketAddr) -> bool {
        let dialled = self.lines.iter().any(|line| line.address.local == local);
        dialled || self.members.iter().any(|member| member.connection.is_on(local))
    }
    pub(crate) fn poll_notice(&mut self) -> Option<Notice> {
        self.notices.pop_front()
    }

    /// The one connection that is left when the peer knows no multipath, with everything written so far.
    pub(crate) fn take_single(&mut self) -> Option<Connection> {
        let single = self
            .members
            .iter()
            .position(|member| member.connection.is_alone())?;
        let mut connection = self.members.swap_remove(single).connection;
        let written = std::mem::replace(&mut self.out.queue, SendQueue::new(self.composition.framing));
        connection.adopt(written, self.composition.clone());
        if self.release.is_wanted() {
            connection.finish();
        }
        Some(connection)
    }

    /// Takes data to send, on `path` if the application chose one. See [`restp_base::flow::Flow::write_on`].
    pub(crate) fn write(&mut self, data: Bytes, path: Option<PathAddress>) -> Result<(), WriteError> {
        if self.release.is_wanted() || self.state == State::Over {
            return Err(WriteError::Closed);
        }
        let limit = self.composition.segment_bytes as usize;
        if !self.out.queue.fits(&data, limit) {
            return Err(WriteError::TooLarge {
                size: data.len(),
                limit,
            });
        }
        if data.is_empty() {
            return Err(WriteError::Empty);
        }
        if self.out.queue.bytes() >= self.composition.send_buffer_bytes {
            self.out.writer_waits = true;
            return Err(WriteError::Blocked);
        }
        if let Some(path) = path {
            self.out.pins.add(self.out.queue.bytes(), data.len(), path);
        }
        self.out.queue.push(data);
        Ok(())
    }

    /// Takes the next data for the reader.
    pub(crate) fn read(&mut self) -> Read {
        if let Some(data) = self.inn.inbox.pop() {
            self.past.delivered_bytes += data.len() as u64;
            self.past.delivered_messages += 1;
            self.offer_window();
            return Read::Data(data);
        }
        if self.release.remote_finished() || self.state == State::Over {
            Read::End
        } else {
            Read::Empty
        }
    }

    /// Reading has made room: tell a sender that believes there is none, on the path most likely to arrive.
    fn offer_window(&mut self) {
        let Some(reassembly) = &self.inn.reassembly else {
            return;
        };
        let due = self
            .inn
            .window
            .update_is_due(reassembly.next(), self.inn.inbox.len() as u64);
        if due && self.composition.flow_control != FlowControl::None && self.state == State::Established {
            self.acknowledge_soon();
        }
    }

    /// News of the association leave as an acknowledgement on the best path.
    fn acknowledge_soon(&mut self) {
        if let Some(best) = self.best() {
            self.members[best].connection.acknowledge_soon();
        }
    }

    /// The established path with the best health, then the least round-trip time.
    fn best(&self) -> Option<usize> {
        let usable = self
            .members
            .iter()
            .enumerate()
            .filter(|(_, member)| member.connection.is_established());
        let rank = |member: &Member| {
            let health = match member.health.verdict() {
                Health::Good => 0,
                Health::Suspect => 1,
                Health::Failed => 2,
            };
            (health, member.backup, member.connection.smoothed_rtt())
        };
        usable
            .min_by_key(|(ordinal, member)| (rank(member), *ordinal))
            .map(|(ordinal, _)| ordinal)
    }

    /// The path `ordinal` learns of the others, where its congestion control looks at them: those that carry data, or
    /// could (RFC 6356 §3).
    fn introduce(&mut self, ordinal: usize) {
        if !self.composition.congestion.is_coupled() {
            return;
        }
        let mut siblings = std::mem::take(self.members[ordinal].connection.siblings());
        siblings.clear();
        let others = self.members.iter().enumerate().filter(|(other, member)| {
            let works = member.connection.is_established() && member.health.verdict() == Health::Good;
            *other != ordinal && works && !member.backup
        });
        siblings.extend(others.filter_map(|(_, member)| member.connection.as_sibling()));
        *self.members[ordinal].connection.siblings() = siblings;
    }

    /// Tells the application what became of a path, once.
    fn tell(&mut self, ordinal: usize, state: PathState) {
        let member = &mut self.members[ordinal];
        if member.told != Some(state) && (member.told.is_some() || state == PathState::Up) {
            member.told = Some(state);
            self.notices
                .push_back(Notice::Path(member.connection.address(), state));
        }
    }

    pub(crate) fn stats(&self) -> FlowStats {
        let mut total = self.past.clone();
        for member in self.members.iter().filter(|member| !member.vacant) {
            total.add(&member.stats());
        }
        // Deliveries are the association's: paths hand nothing to a reader.
        total.delivered_bytes = self.past.delivered_bytes;
        total.delivered_messages = self.past.delivered_messages;
        total.handshake = self.handshake;
        let best = self.best().map(|best| &self.members[best].connection);
        total.path = best.map(|best| best.address());
        total.srtt = best.and_then(|best| best.smoothed_rtt());
        let held = self
            .inn
            .reassembly
            .as_ref()
            .map_or(0, |reassembly| reassembly.held_bytes());
        let kept = self.out.queue.bytes()
            + self.out.buffer.bytes()
            + self.out.places.memory()
            + held
            + self.inn.inbox.bytes();
        total.memory_bytes += (size_of::<Association>() + kept) as u64;
        total
    }

    /// The address of every path, for the endpoint's table.
    pub(crate) fn member(&mut self, ordinal: usize) -> Option<&mut Connection> {
        self.members.get_mut(ordinal).map(|member| &mut member.connection)
    }

    fn paths_in_use(&self) -> u8 {
        let live = self
            .members
            .iter()
            .filter(|member| member.connection.is_established());
        live.count().clamp(1, 15) as u8
    }

    fn capable(&self) -> Setup {
        Setup::Capable {
            local: self.local_key.0,
            remote: None,
            hash: restp_services::connection_management::JoinHash::default(),
        }
    }
}

/// What the receiver takes, advertised or not.
fn granted(composition: &ValidComposition) -> WindowParameters {
    match composition.flow_control {
        FlowControl::Window(parameters) => parameters,
        FlowControl::None => UNADVERTISED_WINDOW,
    }
}
