//! One SCTP association: codec and services, two short lists of calls (`intake`, `outlet`), and the state they share. Drained as
//! ResTP's: [`Association::poll_transmit`] until `false`, notices, [`Association::deadline`].

mod health;
mod intake;
mod outlet;
mod path;
mod restart;
mod state;

pub(super) use restart::{Meaning, Offer, SetUp};

use super::chunk::{Cause, Chunk};
use super::messages::{Inbound, Outbound};
use super::parameters::{SctpParameters, Spread};
use super::state_cookie::StateCookie;
use bytes::Bytes;
use path::Path;
use restp_base::flow::{CloseReason, FlowStats, OpenError, PathStats, Read, WriteError};
use restp_base::machine::{Datagram, Earliest, PathAddress, Wakeup};
use restp_base::observe::Loss;
use restp_base::random::Stream;
use restp_base::sequence::ORIGIN;
use restp_base::time::{Duration, Time};
use restp_services::ack::{AckTimer, NakParameters, NakReporter, Schedule};
use restp_services::connection_management::{Handshake, Notice, Ports};
use restp_services::flow_control::WindowParameters;
use restp_services::receiver::Receiver;
use restp_services::recovery::LaneId;
use restp_services::scheduling::Smos;
use restp_services::sender::Sender;
use smallvec::SmallVec;
use state::State;
use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::Arc;

/// Paths of an association at most.
const MOST_PATHS: usize = 16;

/// One end of an association.
#[derive(Debug)]
pub(super) struct Association {
    parameters: Arc<SctpParameters>,
    ports: Ports,
    local_tag: u32,
    peer_tag: u32,
    local_tsn: u32,
    state: State,
    sender: Sender,
    outbound: Outbound,
    receiver: Receiver,
    inbound: Inbound,
    /// In the order of their lanes; the first is the primary one.
    paths: Vec<Path>,
    /// Further ones, as the application gave them before INIT left.
    further: Vec<PathAddress>,
    peer_addresses: SmallVec<[IpAddr; 2]>,
    /// The path that is asked first for data.
    turn: usize,
    /// Where new data draws its path.
    draws: Option<Smos>,
    /// The path that data came by last.
    latest: usize,
    /// Answers, each with its path.
    replies: VecDeque<(usize, Chunk)>,
    /// Numbers that arrived again since the last SACK.
    duplicates: SmallVec<[u32; 2]>,
    /// Free bytes as told last.
    told_free: u64,
    /// The application writes no more.
    finishing: bool,
    /// SHUTDOWN has left, and all is over by then.
    shutdown_until: Option<Time>,
    /// Errors in a row on all paths, and reports with news when they were counted last.
    errors: u32,
    reports: u64,
    /// COOKIE ECHO left.
    echoed_at: Time,
    /// Cookies that the peer has called too old.
    stale_cookies: u32,
    stats: FlowStats,
    notices: VecDeque<Notice>,
    opened_here: bool,
    opened_at: Time,
    chance: Stream,
}

/// What tells a new association from others.
#[derive(Clone, Copy, Debug)]
pub(super) struct Identity {
    pub ports: Ports,
    pub tag: u32,
    pub tsn: u32,
}

impl Association {
    /// Opens an association from this side.
    pub(super) fn open(
        now: Time,
        parameters: Arc<SctpParameters>,
        address: PathAddress,
        identity: Identity,
        chance: Stream,
    ) -> Self {
        let state = State::CookieWait(Handshake::start(now, parameters.handshake));
        Self::new(now, parameters, address, identity, chance, state)
    }

    /// The peer has brought back a cookie of ours.
    pub(super) fn accept(
        now: Time,
        parameters: Arc<SctpParameters>,
        address: PathAddress,
        cookie: &StateCookie,
        chance: Stream,
    ) -> Self {
        let identity = Identity {
            ports: cookie.ports,
            tag: cookie.local_tag,
            tsn: cookie.local_tsn,
        };
        let mut association = Self::new(now, parameters, address, identity, chance, State::Established);
        association.opened_here = false;
        association.opened_at = cookie.made_at;
        association.learn_from(cookie);
        association.establish(now, None);
        association
    }

    fn new(
        now: Time,
        parameters: Arc<SctpParameters>,
        address: PathAddress,
        identity: Identity,
        mut chance: Stream,
        state: State,
    ) -> Self {
        let first = ORIGIN + u64::from(identity.tsn);
        let none = NakReporter::new(NakParameters::default(), 1, ORIGIN);
        let ack = AckTimer::new(Schedule::Positive(parameters.ack), None);
        let nothing = WindowParameters { segments: 0 };
        let mut association = Association {
            ports: identity.ports,
            local_tag: identity.tag,
            peer_tag: 0,
            local_tsn: identity.tsn,
            state,
            sender: parameters.sender(now, first),
            outbound: Outbound::new(first),
            receiver: Receiver::new(parameters.segment_bytes, nothing, ack, none, None),
            inbound: Inbound::new(ORIGIN, 0, 0),
            paths: vec![Path::new(address, LaneId::FIRST, true)],
            further: Vec::new(),
            peer_addresses: SmallVec::new(),
            turn: 0,
            draws: match &parameters.spread {
                Spread::Rates(rates) => Some(Smos::new(rates.clone(), Stream::named(chance.bits(), "smos"))),
                Spread::Bursts | Spread::Packets => None,
            },
            latest: 0,
            replies: VecDeque::new(),
            duplicates: SmallVec::new(),
            told_free: parameters.receive_buffer_bytes,
            finishing: false,
            shutdown_until: None,
            errors: 0,
            reports: 0,
            echoed_at: now,
            stale_cookies: 0,
            stats: FlowStats {
                path: Some(address),
                ..FlowStats::default()
            },
            notices: VecDeque::new(),
            opened_here: true,
            opened_at: now,
            chance,
            parameters,
        };
        association.tell_losses(0);
        association
    }

    /// What the peer said of itself in the INIT that was answered with `cookie`.
    fn learn_from(&mut self, cookie: &StateCookie) {
        self.peer_addresses = cookie.addresses.clone();
        self.learn(
            cookie.peer_tag,
            cookie.peer_tsn,
            cookie.peer_window,
            cookie.streams_in.into(),
        );
    }

    /// What the peer said of itself; it sends by so many `streams`.
    fn learn(&mut self, tag: u32, first_tsn: u32, window: u32, streams: u16) {
        let next = ORIGIN + u64::from(first_tsn);
        let buffer = self.parameters.receive_buffer_bytes as usize;
        self.peer_tag = tag;
        let none = NakReporter::new(NakParameters::default(), 1, next);
        self.receiver.begin_messages(next, buffer, none);
        self.inbound = Inbound::new(next, buffer / 2, streams);
        let first = self.sender.next_number();
        self.sender.grant_afresh(first, window.into());
    }

    /// The set-up is complete; `rtt` is what it measured.
    fn establish(&mut self, now: Time, rtt: Option<Duration>) {
        self.state = State::Established;
        self.stats.handshake = Some(now.since(self.opened_at));
        self.sender.establish(now, rtt, false);
        self.notices.push_back(Notice::established(self.opened_here));
        for address in std::mem::take(&mut self.further) {
            self.add(now, address);
        }
        self.begin_idle(now, 0);
    }

    /// One path more, which has to be confirmed.
    fn add(&mut self, now: Time, address: PathAddress) -> Option<usize> {
        if self.paths.len() >= MOST_PATHS {
            return None;
        }
        let parameters = &self.parameters;
        let (recovery, controller) = (parameters.recovery(), parameters.controller());
        let lane = self.sender.open_lane(now, recovery, controller, parameters.rto)?;
        self.sender.on(lane, |sender| sender.set_active(false));
        let mut path = Path::new(address, lane, false);
        path.ask_now(now);
        self.paths.push(path);
        self.tell_losses(self.paths.len() - 1);
        Some(self.paths.len() - 1)
    }

    /// What the user knows of losses on the path `index`.
    fn tell_losses(&mut self, index: usize) {
        if let Some(&rate) = self.parameters.losses_per_million.get(index) {
            let lane = self.paths[index].lane;
            self.sender.on(lane, |sender| sender.expect_losses(rate));
        }
    }

    /// See [`restp_base::flow::Flow::add_path`]. Addresses are told in INIT and INIT ACK alone (no RFC 5061).
    pub(super) fn add_path(&mut self, address: PathAddress) -> Result<(), OpenError> {
        let State::CookieWait(timer) = &self.state else {
            return Err(OpenError::Unsupported(format!(
                "an SCTP association takes no address after its set-up has begun, so not {}; add it right after opening",
                address.local
            )));
        };
        if timer.is_retransmitted() || self.further.len() + 1 >= MOST_PATHS {
            let most = MOST_PATHS;
            return Err(OpenError::Unsupported(format!(
                "an SCTP association has {most} paths at most"
            )));
        }
        self.further.push(address);
        Ok(())
    }

    pub(super) fn local_tag(&self) -> u32 {
        self.local_tag
    }
    pub(super) fn peer_tag(&self) -> u32 {
        self.peer_tag
    }
    pub(super) fn ports(&self) -> Ports {
        self.ports
    }
    /// Between which addresses its paths are, and will be.
    pub(super) fn addresses(&self) -> impl Iterator<Item = PathAddress> + '_ {
        let paths = self.paths.iter().map(|path| path.address);
        paths.chain(self.further.iter().copied())
    }
    pub(super) fn path_count(&self) -> usize {
        self.paths.len()
    }
    /// It is not over, and its peer has shown that it receives there.
    pub(super) fn is_confirmed(&self, address: PathAddress) -> bool {
        let is_it = |path: &Path| path.address == address && path.confirmed;
        !self.state.is_over() && self.paths.iter().any(is_it)
    }
    pub(super) fn is_over(&self) -> bool {
        self.state.is_over()
    }
    pub(super) fn is_closed(&self) -> bool {
        matches!(self.state, State::Closed)
    }
    pub(super) fn poll_notice(&mut self) -> Option<Notice> {
        self.notices.pop_front()
    }

    /// Takes a message to send. See [`restp_base::flow::Flow::write`].
    pub(super) fn write(&mut self, now: Time, message: Bytes) -> Result<(), WriteError> {
        let (size, limit) = (message.len(), self.parameters.longest_message());
        if self.finishing || self.peer_has_ended() {
            return Err(WriteError::Closed);
        }
        if size == 0 {
            return Err(WriteError::Empty);
        }
        if size > limit {
            return Err(WriteError::TooLarge { size, limit });
        }
        let parts = Outbound::cut(&message, self.parameters.segment_bytes as usize);
        let count = parts.len();
        if !self.sender.write_all(now, parts) {
            return Err(WriteError::Blocked);
        }
        self.outbound.push(count);
        Ok(())
    }

    /// Takes the next message for the reader.
    pub(super) fn read(&mut self) -> Read {
        let ended = self.peer_has_ended();
        let read = loop {
            match self.receiver.read(ended, false) {
                Read::Data(payload) => {
                    if let Some(message) = self.inbound.take(payload) {
                        break Read::Data(message);
                    }
                }
                other => break other,
            }
        };
        // A sender that believes there is no room hears when half of the buffer is free again (RFC 9260 §6.2).
        let segment = u64::from(self.parameters.segment_bytes);
        let half = (self.parameters.receive_buffer_bytes / 2).max(segment);
        if self.told_free < segment && self.free_bytes() >= half && !self.state.is_over() {
            self.told_free = self.free_bytes();
            self.receiver.acknowledgement().on_urgent_once();
        }
        read
    }

    /// Reading has made a SACK due.
    pub(super) fn owes_acknowledgement(&self) -> bool {
        self.receiver.ack_timer().is_owed()
    }

    fn free_bytes(&self) -> u64 {
        self.receiver.free_bytes(self.inbound.held_bytes())
    }

    /// No more writes will come.
    pub(super) fn finish(&mut self, now: Time) {
        self.finishing = true;
        self.conclude(now);
    }

    /// Breaks off and tells the peer.
    pub(super) fn abort(&mut self) {
        self.end(CloseReason::Aborted, State::Aborting(None));
    }

    /// The same, because the peer has broken a rule.
    pub(super) fn abort_for(&mut self, cause: Cause) {
        self.end(CloseReason::Aborted, State::Aborting(Some(cause)));
    }

    /// The application has lost interest: what is unread is dropped, and no more will be written.
    pub(super) fn discard(&mut self, now: Time) {
        self.receiver.discard(true);
        self.inbound.discard();
        self.finish(now);
    }

    /// Writes the next packet into `out`; `false` when there is nothing to send now.
    pub(super) fn poll_transmit(&mut self, now: Time, out: &mut Datagram) -> bool {
        outlet::poll(self, now, out)
    }

    /// When to call [`Association::on_deadline`], and why.
    pub(super) fn deadline(&self) -> Option<(Time, Wakeup)> {
        let timer = self.state.timer().and_then(Handshake::deadline);
        let guard = self.shutdown_until.filter(|_| !self.state.is_over());
        let mut earliest =
            Earliest::of(timer.map(|at| (at, Wakeup::Retransmission))).or(guard, Wakeup::Expiry);
        if !self.state.is_opening() && !self.state.is_over() {
            let sender = self.sender.deadline();
            earliest = earliest
                .or(
                    sender.map(|(at, _)| at),
                    sender.map_or(Wakeup::Expiry, |(_, why)| why),
                )
                .or(self.receiver.ack_timer().deadline(), Wakeup::Acknowledgement);
            for path in &self.paths {
                earliest = earliest.or(path.heartbeat_at(), Wakeup::Probe);
            }
        }
        earliest.deadline()
    }

    /// Acts on every deadline that has come. Early calls do no harm.
    pub(super) fn on_deadline(&mut self, now: Time) {
        let timer = self.state.timer_mut();
        let is_given_up = timer.is_some_and(|timer| !timer.expire(now));
        if is_given_up || self.shutdown_until.is_some_and(|until| until <= now) {
            let waited = now.since(self.opened_at);
            return self.end(CloseReason::TimedOut(waited), State::Aborting(None));
        }
        if !self.state.is_opening() && !self.state.is_over() {
            self.receiver.acknowledgement().on_deadline(now);
            self.sender.on_deadline(now);
            self.check_heartbeats(now);
            self.review(now);
        }
    }

    pub(super) fn stats(&self) -> FlowStats {
        let sent = self.sender.counters();
        let sending = self.sender.memory() + self.outbound.memory();
        let receiving = self.receiver.memory() + self.inbound.memory();
        let (delivered_bytes, delivered_messages) = self.inbound.delivered();
        FlowStats {
            delivered_bytes,
            delivered_messages,
            sent_payload_bytes: sent.sent_payload_bytes,
            retransmitted_packets: sent.retransmitted_packets,
            retransmitted_payload_bytes: sent.retransmitted_payload_bytes,
            lost_packets: sent.lost_packets,
            timed_out_packets: sent.timed_out_packets,
            timeouts: sent.timeouts,
            srtt: self.sender.smoothed_rtt(),
            rto: Some(self.sender.timeout()),
            congestion_window_bytes: self.sender.total_window_bytes(),
            memory_bytes: (size_of::<Association>() + sending + receiving) as u64,
            in_flight_segments: self.sender.total_in_flight(),
            paths: self.stats_of_paths(),
            ..self.stats.clone()
        }
    }

    /// Each path by itself, where there are several.
    fn stats_of_paths(&self) -> Vec<PathStats> {
        let of = |path: &Path| PathStats {
            sent_packets: path.sent_packets,
            sent_bytes: path.sent_bytes,
            received_bytes: path.received_bytes,
            lost_packets: self.sender.lost_on(path.lane),
            srtt: self.sender.smoothed_rtt_of(path.lane),
            down_events: path.down_events,
            window_cuts: self.sender.cuts_on(path.lane),
            congestion_window_bytes: Some(self.sender.window_of(path.lane)),
            arrived_payload_bytes: path.arrived_payload_bytes,
            duplicate_payload_bytes: path.duplicate_payload_bytes,
            ..PathStats::new(path.address)
        };
        let several = self.paths.iter().filter(|_| self.paths.len() > 1);
        several.map(of).collect()
    }

    /// See [`restp_base::flow::Flow::take_losses`].
    pub(super) fn take_losses(&mut self, into: &mut Vec<Loss>) {
        let paths = &self.paths;
        self.sender.take_losses(|lane| paths[lane.index()].address, into);
    }
}
