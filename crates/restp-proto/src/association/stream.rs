//! Paths that share the numbers of the association: one stream, lent to whichever path is asked (`numbering = shared`). Set-up,
//! joins, liveness and removal are those of any path; what is different is here and in `lanes`.

use super::dial::CandidatePath;
use super::{Association, Member};
use crate::connection::{Connection, Stream as Lent, Turn, WriteTo, write};
use bytes::Bytes;
use restp_base::flow::{FlowStats, Read, WriteError};
use restp_base::machine::{Datagram, PathAddress, Wakeup};
use restp_base::time::{Duration, Time};
use restp_services::flow_control::FlowControl;
use restp_services::framing::{Framing, Streams};
use restp_services::multipath::{LanePath, LaneScheduler, Path};
use restp_services::path_management::{AckReturn, Health};
use restp_services::recovery::LaneId;
use restp_services::sender::{LaneShare, Sender};
use smallvec::SmallVec;

/// Nothing can be sent: since when, and when the best path asks whether that is still so (OP-25, OP-50).
#[derive(Clone, Copy, Debug)]
pub(super) struct ShutWindow {
    pub(super) since: Time,
    pub(super) ask_at: Time,
}

/// What the paths of an association share, and who has which lane of it.
#[derive(Debug)]
pub(super) struct Stream {
    lent: Lent,
    pub(super) scheduler: LaneScheduler,
    /// What every SYN of the association says of its numbers.
    pub(super) initial_number: u32,
    /// Where the path runs, or ran, that was up first.
    pub(super) founder: PathAddress,
    /// Lanes of paths that have ended.
    free: Vec<LaneId>,
    /// The path that numbers came by last, or a faster one under partial reliability, and when.
    pub(super) latest: (usize, Time),
    /// Paths that numbers have come by since an acknowledgement left by them, those that have waited longest first.
    pub(super) owed: Vec<usize>,
    /// Where we stand, and since when.
    pub(super) stands: (Option<u64>, Time),
    /// Until then acknowledgements return by no path for being named: who has sent asks where we stand.
    pub(super) unheard_until: Time,
    /// The peer's window is shut, and nothing is outstanding.
    pub(super) shut: Option<ShutWindow>,
    /// The earliest deadline; none where something may have moved it.
    pub(super) deadline: Option<Option<(Time, Wakeup)>>,
}

impl Stream {
    /// Asks a path that has the lane `id`.
    fn lend<R>(
        &mut self,
        id: LaneId,
        connection: &mut Connection,
        ask: impl FnOnce(&mut Connection) -> R,
    ) -> R {
        self.deadline = None;
        self.lent.sender.take_in_hand(id);
        connection.exchange_stream(&mut self.lent);
        let answer = ask(connection);
        connection.exchange_stream(&mut self.lent);
        answer
    }

    /// What is lent, in the hands of the association itself.
    pub(super) fn own(&mut self) -> &mut Lent {
        self.deadline = None;
        &mut self.lent
    }
    pub(super) fn seen(&self) -> &Lent {
        &self.lent
    }
    /// The streams that are its queue, for what they have to tell: that moves no deadline.
    pub(super) fn streams_mut(&mut self) -> Option<&mut Streams> {
        self.lent.sender.streams_mut()
    }

    /// A lane for one more path.
    fn open_lane(&mut self, now: Time, connection: &mut Connection) -> bool {
        let parts = connection.lane_parts();
        self.deadline = None;
        let sender = &mut self.lent.sender;
        let lane = match self.free.pop() {
            Some(lane) => {
                sender.renew_lane(now, lane, parts.recovery, parts.controller, parts.rto);
                Some(lane)
            }
            None => sender.open_lane(now, parts.recovery, parts.controller, parts.rto),
        };
        if let Some(lane) = lane {
            sender.on(lane, |lane| lane.set_active(false)); // until it is up
            connection.take_lane(lane);
        }
        lane.is_some()
    }

    /// The path of the lane is gone: what it carried leaves by others.
    pub(super) fn close_lane(&mut self, lane: LaneId) {
        self.own().sender.on(lane, Sender::close_lane);
    }

    /// Nobody has the lane any more.
    pub(super) fn free_lane(&mut self, lane: LaneId) {
        self.close_lane(lane);
        self.free.push(lane);
    }
}

impl Association {
    /// Asks the connection of the path `ordinal`, which has the stream in hand meanwhile, if it has a part in one.
    pub(super) fn with<R>(&mut self, ordinal: usize, ask: impl FnOnce(&mut Connection) -> R) -> R {
        let connection = &mut self.shared.paths_mut()[ordinal].connection;
        match (&mut self.stream, connection.lane()) {
            (Some(stream), Some(lane)) if !connection.is_opening() => stream.lend(lane, connection, ask),
            _ => ask(connection),
        }
    }

    /// The same for a packet, which may complete the set-up and bring numbers.
    pub(super) fn with_packet<R>(&mut self, ordinal: usize, ask: impl FnOnce(&mut Connection) -> R) -> R {
        let connection = &mut self.shared.paths_mut()[ordinal].connection;
        match (&mut self.stream, connection.lane()) {
            (Some(stream), Some(lane)) if !connection.awaits_answer() => stream.lend(lane, connection, ask),
            _ => ask(connection),
        }
    }

    /// The first path is up, and the peer shares its numbers: what it has sent and received is the stream.
    pub(super) fn found_stream(&mut self, now: Time, ordinal: usize) {
        let mut written = self.shared.take_written();
        let connection = &self.shared.paths()[ordinal].connection;
        let initial_number = connection.initial_number();
        let first = connection.sender().next_number();
        let composition = &self.composition;
        let scheduler = LaneScheduler::new(
            composition.paths,
            composition.scheduling.clone(),
            first,
            composition.segment_bytes,
            composition
                .hold
                .deadline
                .filter(|_| composition.reliability.is_partial()),
            &mut written,
        );
        let connection = &mut self.shared.paths_mut()[ordinal].connection;
        let lent = connection.found_stream(now, written.queue, written.ends);
        let founder = self.shared.paths()[ordinal].connection.address();
        self.stream = Some(Box::new(Stream {
            lent,
            scheduler,
            initial_number,
            founder,
            free: Vec::new(),
            latest: (ordinal, now),
            owed: Vec::new(),
            stands: (None, now),
            unheard_until: Time::ZERO,
            shut: None,
            deadline: None,
        }));
        if !self.shared.is_opened_here() {
            self.share_with_others(now);
        }
    }

    /// A join may overtake the last packet of the set-up: whichever path is up first, those that wait have part in the stream.
    fn share_with_others(&mut self, now: Time) {
        let Some(stream) = &mut self.stream else { return };
        for member in self.shared.paths_mut().iter_mut() {
            let connection = &mut member.connection;
            if !member.vacant && connection.is_opening() && connection.shares_numbers() {
                stream.open_lane(now, connection);
            }
        }
    }

    /// A further path has part in the stream. False: there is none, or no lane is left.
    pub(super) fn give_lane(&mut self, now: Time, connection: &mut Connection) -> bool {
        match &mut self.stream {
            Some(stream) => stream.open_lane(now, connection),
            None => true,
        }
    }

    /// The path's set-up is complete: its lane begins.
    pub(super) fn begin_lane(&mut self, now: Time, ordinal: usize) {
        if self.shared.paths()[ordinal].connection.lane().is_some() {
            self.with(ordinal, |connection| {
                let rtt = connection.take_set_up_rtt();
                connection.sender_mut().begin_lane(now, rtt);
            });
            self.learn_rtts();
        }
    }

    /// Writes the next packet into `out`; false when there is none now.
    pub(super) fn poll_stream(&mut self, now: Time, out: &mut Datagram) -> bool {
        let usable = self.usable();
        let lanes = self.lanes_of(&usable);
        if let Some(stream) = &mut self.stream {
            let lanes = lanes.iter().map(|path| path.lane);
            stream.lent.sender.encode_over(lanes);
        }
        let others = (0..self.shared.paths().len()).filter(|ordinal| !usable.contains(ordinal));
        let order: SmallVec<[usize; 8]> = usable.iter().copied().chain(others).collect();
        for ordinal in order {
            let share = if usable.contains(&ordinal) {
                LaneShare::Repairs
            } else {
                LaneShare::Nothing
            };
            if self.poll_lane(now, ordinal, share, false, out) {
                return true;
            }
        }
        if !self.shared.is_over()
            && let Some(ordinal) = self.next_for_new(now, &usable)
            && self.poll_lane(now, ordinal, LaneShare::All, false, out)
        {
            return true;
        }
        let due = |stream: &Stream| stream.lent.receiver.ack_timer().is_due(now);
        if self.stream.as_deref().is_some_and(due)
            && let Some(ordinal) = self.ack_path(now)
            && self.poll_lane(now, ordinal, LaneShare::Nothing, true, out)
        {
            return true;
        }
        if let Some(ordinal) = self.ask_window(now)
            && self.poll_lane(now, ordinal, LaneShare::Nothing, false, out)
        {
            return true;
        }
        self.keep_deadline();
        false
    }

    /// A shut window is asked for once per timeout, without data, because data that the peer does not take would be missing.
    fn ask_window(&mut self, now: Time) -> Option<usize> {
        let over = self.shared.is_over();
        let stream = self.stream.as_mut()?;
        if over || !stream.scheduler.is_shut(&stream.lent.sender) {
            stream.shut = None;
            return None;
        }
        let best = self.shared.paths().best()?;
        let wait = self.with(best, |connection| connection.sender().timeout());
        let stream = self.stream.as_mut()?;
        let shut = stream.shut.get_or_insert(ShutWindow {
            since: now,
            ask_at: now + wait,
        });
        let due = shut.ask_at <= now;
        if due {
            shut.ask_at = now + wait;
            self.with(best, |connection| connection.ask());
        }
        due.then_some(best)
    }

    /// The peer takes nothing, and has not for so long that it is given up.
    pub(super) fn stalled_too_long(&self, now: Time) -> Option<Duration> {
        let since = self.stream.as_ref()?.shut?.since;
        (since + self.composition.stall_timeout() <= now).then(|| now.since(since))
    }

    /// Paths that numbers may use, the fastest first.
    fn usable(&self) -> SmallVec<[usize; 8]> {
        let mut usable = self.shared.paths().usable();
        usable.retain(|ordinal| {
            let connection = &self.shared.paths()[*ordinal].connection;
            connection.lane().is_some() && connection.is_established()
        });
        usable.sort_by_key(|ordinal| self.shared.paths()[*ordinal].smoothed_rtt());
        usable
    }

    /// The path by which new data leaves now.
    fn next_for_new(&mut self, now: Time, usable: &[usize]) -> Option<usize> {
        let mut lanes = self.lanes_of(usable);
        lanes.sort_by_key(|path| path.ordinal);
        let stream = self.stream.as_mut()?;
        let fin = stream.lent.release.must_send_fin();
        stream.deadline = None;
        let chosen = stream.scheduler.choose(now, &mut stream.lent.sender, &lanes, fin);
        for ordinal in stream.scheduler.take_late() {
            self.with(ordinal, |connection| connection.ask_whether_still_slow(now));
        }
        chosen
    }

    fn lanes_of(&self, ordinals: &[usize]) -> SmallVec<[LanePath; 8]> {
        let paths = self.shared.paths();
        let lanes = ordinals.iter().filter_map(|ordinal| {
            Some(LanePath {
                ordinal: *ordinal,
                lane: paths[*ordinal].connection.lane()?,
                address: paths[*ordinal].address(),
                share: paths[*ordinal].share(*ordinal),
            })
        });
        lanes.collect()
    }

    /// The path on candidate `number` of who opened the association, in the order in which he added them, from 0.
    fn path_on(&self, number: usize) -> Option<usize> {
        let of = |candidate: usize| self.candidates.get(candidate).map(CandidatePath::number);
        let is_on = |member: &Member| match self.shared.is_opened_here() {
            true => member.candidate.and_then(of) == Some(number),
            false => member.told_line == Some(number),
        };
        let mut paths = self.shared.paths().iter();
        paths.position(|member| !member.vacant && is_on(member))
    }

    /// May any path acknowledge?
    pub(super) fn can_acknowledge(&self) -> bool {
        self.stream.is_some() && self.shared.paths().iter().any(Member::may_acknowledge)
    }

    /// Acknowledgements return by the path that the composition names, or by those that numbers come by, in turn, while they work, or
    /// else by the best one; see `return_by`.
    fn ack_path(&self, now: Time) -> Option<usize> {
        let stream = self.stream.as_ref()?;
        let (latest, _) = stream.latest;
        let paths = self.shared.paths();
        let may = Member::may_acknowledge;
        let wanted = match self.composition.ack_return {
            AckReturn::Any => None,
            AckReturn::Fixed(candidate) => self.path_on(candidate).filter(|_| stream.unheard_until <= now),
        };
        let in_turn = wanted.into_iter();
        let in_turn = in_turn.chain(stream.owed.iter().copied()).chain([latest]);
        let mut in_turn = in_turn.filter(|ordinal| *ordinal < paths.len() && may(&paths[*ordinal]));
        let is_good = |ordinal: &usize| paths[*ordinal].health.verdict() == Health::Good;
        let any = in_turn.clone().find(is_good).or(in_turn.clone().next());
        let next = in_turn.find(|ordinal| paths[*ordinal].works());
        let best = || paths.best().filter(|best| may(&paths[*best]));
        next.or_else(best).or(any).or_else(|| paths.iter().position(may))
    }

    fn poll_lane(
        &mut self,
        now: Time,
        ordinal: usize,
        share: LaneShare,
        acknowledges: bool,
        out: &mut Datagram,
    ) -> bool {
        let up = self.shared.shared().paths;
        let member = &self.shared.paths()[ordinal];
        if member.vacant || member.connection.is_closed() {
            return false;
        }
        let owes = self.owes_ack();
        let sent = self.with(ordinal, |connection| {
            if !connection.is_opening() {
                connection.set_turn(Turn { share, acknowledges }, up);
            }
            connection.poll_transmit(now, out)
        });
        let has_told = owes && !self.owes_ack();
        if (has_told || sent && acknowledges)
            && let Some(stream) = &mut self.stream
        {
            stream.owed.retain(|owed| *owed != ordinal); // it has had its turn
        }
        if sent {
            self.collect(now, ordinal);
        }
        sent
    }

    /// Takes data to send, where paths share the numbers.
    pub(super) fn write_stream(
        &mut self,
        now: Time,
        data: Bytes,
        path: Option<PathAddress>,
    ) -> Result<(), WriteError> {
        let takes = WriteTo {
            limit: self.composition.payload_bytes(),
            empty: self.composition.framing != Framing::Fixed,
        };
        let over = self.shared.is_over();
        match &mut self.stream {
            Some(stream) if !over && !stream.lent.release.is_wanted() => {
                stream.deadline = None;
                let (size, sender) = (data.len(), &mut stream.lent.sender);
                let queued = sender.queued_bytes();
                write(sender, now, data, takes)?;
                stream.scheduler.on_write(queued, size, path);
                Ok(())
            }
            _ => Err(WriteError::Closed),
        }
    }

    /// Takes the next data for the reader, likewise.
    pub(super) fn read_stream(&mut self) -> Read {
        let over = self.shared.is_over();
        let offers = self.composition.flow_control != FlowControl::None && !over;
        let Some(stream) = &mut self.stream else {
            return Read::End;
        };
        let lent = stream.own();
        lent.receiver.read(over || lent.release.remote_finished(), offers)
    }

    /// Adds what the stream counted.
    pub(super) fn count_stream(&self, stats: &mut FlowStats) {
        let Some(stream) = &self.stream else { return };
        let Lent { sender, receiver, .. } = &stream.lent;
        let sent = sender.counters();
        stats.sent_payload_bytes += sent.sent_payload_bytes;
        stats.retransmitted_packets += sent.retransmitted_packets;
        stats.retransmitted_payload_bytes += sent.retransmitted_payload_bytes;
        stats.lost_packets += sent.lost_packets;
        stats.encoded_packets += sent.encoded_packets;
        stats.timed_out_packets += sent.timed_out_packets;
        stats.timeouts += sent.timeouts;
        (stats.delivered_bytes, stats.delivered_messages) = receiver.delivered();
        stats.congestion_window_bytes = sender.total_window_bytes();
        stats.in_flight_segments = sender.total_in_flight();
        stats.memory_bytes += (size_of::<Stream>() + sender.memory() + receiver.memory()) as u64;
        for member in self.shared.paths().iter().filter(|member| !member.vacant) {
            let connection = &member.connection;
            let (Some(lane), address) = (connection.lane(), connection.address()) else {
                continue;
            };
            let mut paths = stats.paths.iter_mut();
            if let Some(path) = paths.find(|path| path.path == address) {
                path.lost_packets = sender.lost_on(lane);
                path.window_cuts = sender.cuts_on(lane);
                path.congestion_window_bytes = Some(sender.window_of(lane));
                path.srtt = sender.smoothed_rtt_of(lane);
                path.causes = sender.causes_on(lane);
                path.mode = path.mode.map(|_| sender.mode_on(lane));
            }
        }
    }
}
