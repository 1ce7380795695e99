//! One association over several paths (ResTP §3.3, §3.1.13): each path is a connection of its own with its own numbers,
//! repairs and window. What they share is a service, [`Multipath`]; here is what only ResTP knows of it.
//!
//! | File | What |
//! |---|---|
//! | `change` | services that change while it runs |
//! | `member` | one path, as the service sees it |
//! | `dial` | paths to try, the race of the first ones, joins |
//! | `end` | how it ends, and what of its paths |
//! | `intake` | what a packet means for the association |
//! | `health` | suspicion, failure, return, and data of a path that went silent |
//! | `stream`, `lanes` | paths that share one space of numbers |

mod change;
mod dial;
mod end;
mod health;
mod intake;
mod lanes;
mod member;
mod stream;

pub(crate) use dial::Dial;

use change::Changes;
use dial::CandidatePath;
use member::Member;
use stream::Stream;

use crate::composition::ValidComposition;
use crate::connection::{Connection, Setup, granted, window_bytes};
use crate::wire::Services;
use bytes::Bytes;
use restp_base::flow::{FlowStats, Read, WriteError};
use restp_base::machine::{Datagram, PathAddress, Wakeup};
use restp_base::observe::Loss;
use restp_base::secret::Hidden;
use restp_base::sequence;
use restp_base::time::Time;
use restp_services::connection_management::{EARLY_SEGMENTS, Key, Keys, Notice, first_number};
use restp_services::flow_control::FlowControl;
use restp_services::framing::{SendBuffer, Streams};
use restp_services::multipath::{
    DataReceiver, DataSender, DataSenderParameters, Multipath, Numbering, Reinjection,
};
use restp_services::path_management::NumberSpace;
use std::sync::Arc;

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
    candidates: Vec<CandidatePath>,
    /// The number of the next, unless one has it.
    next_number: u8,
    opened_at: Time,
    shared: Multipath<Member>,
    /// Where paths share the numbers, once the first one is up.
    stream: Option<Box<Stream>>,
    changes: Changes,
}

impl Association {
    fn new(
        now: Time,
        composition: Arc<ValidComposition>,
        services: Services,
        local_key: Key,
        port: u16,
        opened_here: bool,
    ) -> Self {
        let mut tx = DataSender::new(DataSenderParameters {
            numbering: Numbering::Segments,
            first: sequence::ORIGIN + u64::from(first_number(local_key)) + 1,
            window: EARLY_SEGMENTS,
            framing: composition.framing,
            segment_bytes: composition.payload_bytes() as u32,
            send_buffer: SendBuffer::of_waiting(composition.send_buffer_bytes),
            paths: composition.paths,
            scheduling: composition.scheduling.clone(),
            reinjection: Reinjection::Early,
            stall_timeout: Some(composition.stall_timeout()),
        });
        if let Some(streams) = tx.streams_mut() {
            streams.begin(
                opened_here,
                window_bytes(&composition),
                composition.send_buffer_bytes,
            );
        }
        let advertises = composition.flow_control != FlowControl::None;
        let rx = DataReceiver::of_segments(granted(&composition), advertises, composition.segment_bytes);
        let coupled = composition.congestion.looks_at_siblings();
        Association {
            below: Arc::new(below(&composition)),
            services,
            local_key: Hidden(local_key),
            port,
            candidates: Vec::new(),
            next_number: 0,
            opened_at: now,
            shared: Multipath::new(now, opened_here, tx, rx, coupled),
            stream: None,
            changes: Changes::default(),
            composition,
        }
    }

    /// The peer's key is known: so is its first number, and what it takes.
    fn begin(&mut self, keys: Keys, window: Option<u16>) {
        let expected = sequence::ORIGIN + u64::from(first_number(keys.remote)) + 1;
        let window = window.map_or(u64::MAX / 2, u64::from);
        self.shared.sender_mut().set_window(window);
        let ordering = self.composition.ordering;
        let granted = granted(&self.composition);
        self.shared.receiver_mut().begin(expected, ordering, granted);
    }

    /// The keys of the association, once both are known: joins are held to them.
    pub(crate) fn keys(&self) -> Option<Keys> {
        let mut members = self.shared.paths().iter();
        members.find_map(|member| member.connection.keys())
    }

    /// Mappings carry a CRC-32: this side asks for it, or the peer did on the first path.
    fn has_integrity(&self) -> bool {
        self.composition.mapping_crc || self.any(Connection::has_integrity)
    }

    fn any(&self, holds: impl Fn(&Connection) -> bool) -> bool {
        self.shared.paths().iter().any(|member| holds(&member.connection))
    }

    pub(crate) fn composition(&self) -> &Arc<ValidComposition> {
        &self.composition
    }
    pub(crate) fn is_closed(&self) -> bool {
        self.shared.is_closed()
    }
    pub(crate) fn is_unknown(&self) -> bool {
        self.shared.is_unknown()
    }
    pub(crate) fn is_half_open(&self) -> bool {
        self.shared.is_half_open()
    }
    pub(crate) fn takes_early_data(&self) -> bool {
        self.any(Connection::takes_early_data)
    }
    pub(crate) fn wants_turn(&self) -> bool {
        self.owes_ack() || self.any(Connection::wants_turn)
    }
    /// Is an acknowledgement of the shared numbers owed?
    fn owes_ack(&self) -> bool {
        let owes = |stream: &Stream| stream.seen().receiver.ack_timer().is_owed();
        self.stream.as_deref().is_some_and(owes)
    }
    pub(crate) fn is_on(&self, local: std::net::SocketAddr) -> bool {
        let dialled = self
            .candidates
            .iter()
            .any(|candidate| candidate.address.local == local);
        dialled || self.any(|connection| connection.is_on(local))
    }
    pub(crate) fn has_notices(&self) -> bool {
        self.shared.has_notices()
    }
    pub(crate) fn poll_notice(&mut self) -> Option<Notice> {
        self.shared.poll_notice()
    }
    pub(crate) fn poll_transmit(&mut self, now: Time, out: &mut Datagram) -> bool {
        if self.stream.is_some() {
            return self.poll_stream(now, out);
        }
        self.shared.poll_transmit(now, out).is_some()
    }

    /// The one connection that is left when the peer knows no multipath, with everything written so far.
    pub(crate) fn take_single(&mut self) -> Option<Connection> {
        let mut members = self.shared.paths().iter();
        let single = members.position(|member| member.connection.is_alone())?;
        let (member, written, ends) = self.shared.take_single(single);
        let mut connection = member.connection;
        connection.adopt(written, self.composition.clone());
        if ends {
            connection.finish();
        }
        Some(connection)
    }

    /// Its streams, where it carries some. They are the queue of whoever numbers their segments.
    pub(crate) fn streams(&self) -> Option<&Streams> {
        match &self.stream {
            Some(stream) => stream.seen().sender.streams(),
            None => self.shared.sender().streams(),
        }
    }
    /// The same, for what they have to tell.
    pub(crate) fn streams_mut(&mut self) -> Option<&mut Streams> {
        match &mut self.stream {
            Some(stream) => stream.streams_mut(),
            None => self.shared.sender_mut().streams_mut(),
        }
    }
    /// Streams may be written now, by the application or because the peer takes more.
    pub(crate) fn begin_progress(&mut self, now: Time) {
        if let Some(stream) = &mut self.stream {
            stream.own().sender.begin_progress(now);
        }
    }

    /// Takes data to send, on `path` if the application chose one. See [`restp_base::flow::Flow::write_on`].
    pub(crate) fn write(
        &mut self,
        now: Time,
        data: Bytes,
        path: Option<PathAddress>,
    ) -> Result<(), WriteError> {
        if self.stream.is_some() {
            return self.write_stream(now, data, path);
        }
        self.shared.write(data, path)
    }

    /// Takes the next data for the reader.
    pub(crate) fn read(&mut self) -> Read {
        if self.stream.is_some() {
            return self.read_stream();
        }
        self.shared.read()
    }

    /// When to call [`Association::on_deadline`], and why.
    pub(crate) fn deadline(&self) -> Option<(Time, Wakeup)> {
        let dials = self
            .candidates
            .iter()
            .filter_map(|candidate| candidate.deadline())
            .min();
        let dials = dials.map(|at| (at, Wakeup::Retransmission));
        let stream = self.stream.as_deref().and_then(|stream| {
            // One that was touched and not polled since has something to do at once.
            stream.deadline.unwrap_or(Some((Time::ZERO, Wakeup::Pacing)))
        });
        dials
            .into_iter()
            .chain(self.shared.deadline())
            .chain(stream)
            .min()
    }

    /// Acts on every deadline that has come.
    pub(crate) fn on_deadline(&mut self, now: Time) {
        if self.stream.is_some() {
            self.on_lane_deadlines(now);
        }
        for ordinal in 0..self.shared.paths().len() {
            let paths = self.shared.paths();
            if paths.is_due(ordinal, now) && !paths[ordinal].vacant && self.stream.is_none() {
                self.shared.paths_mut().introduce(now, ordinal);
                self.shared.paths_mut()[ordinal].connection.on_deadline(now);
                self.collect(now, ordinal);
            }
        }
        self.shared.on_deadline(now);
        if self.shared.is_over() {
            self.candidates.clear();
        }
        if self.shared.is_established() {
            self.judge(now);
            self.conclude(now);
        }
    }

    /// See [`restp_base::flow::Flow::take_losses`].
    pub(crate) fn take_losses(&mut self, into: &mut Vec<Loss>) {
        let Some(stream) = &mut self.stream else {
            return self.shared.take_losses(into);
        };
        let paths = self.shared.paths();
        // A lane that nobody has any more was that of a path that has ended.
        let of = |lane| {
            let is_of = move |member: &&Member| member.connection.lane() == Some(lane);
            let mut live = paths.iter().filter(|member| !member.vacant);
            live.find(is_of).or_else(|| paths.iter().rfind(is_of))
        };
        let address = |lane| {
            of(lane)
                .or(paths.iter().next())
                .map(|member| member.connection.address())
        };
        let founder = stream.founder;
        stream
            .own()
            .sender
            .take_losses(|lane| address(lane).unwrap_or(founder), into);
    }

    pub(crate) fn stats(&self) -> FlowStats {
        let mut stats = self.shared.stats();
        stats.memory_bytes += (size_of::<Association>() - size_of::<Multipath<Member>>()) as u64;
        self.count_stream(&mut stats);
        stats
    }

    /// The path `ordinal`, without what all share.
    pub(crate) fn path(&self, ordinal: usize) -> Option<&Connection> {
        let mut members = self.shared.paths().iter();
        members.nth(ordinal).map(|member| &member.connection)
    }

    /// Asks the connection on the path `ordinal`.
    pub(crate) fn on_member<R>(
        &mut self,
        ordinal: usize,
        ask: impl FnOnce(&mut Connection) -> R,
    ) -> Option<R> {
        (ordinal < self.shared.paths().len()).then(|| self.with(ordinal, ask))
    }

    fn capable(&self, address_id: u8) -> Setup {
        Setup::Capable {
            local: self.local_key.0,
            remote: None,
            hash: restp_services::connection_management::JoinHash::default(),
            address_id,
        }
    }
}

/// What each path of an association with `composition` is composed of.
fn below(composition: &ValidComposition) -> ValidComposition {
    match composition.numbering {
        NumberSpace::PerPath => composition.of_each_path(),
        NumberSpace::Shared => composition.of_all_paths(),
    }
}
