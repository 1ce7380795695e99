//! What happens to paths that share the numbers: packets, time, silence, the end.

use super::member::suspect_at;
use super::{Association, Member};
use crate::connection::{Connection, Packet, STANDBY_INTERVAL};
use restp_base::flow::CloseReason;
use restp_base::machine::{Earliest, Wakeup};
use restp_base::sequence;
use restp_base::time::{Duration, Time};
use restp_services::multipath::Path;
use restp_services::path_management::{Health, LONGEST_ACK_DELAY};
use restp_services::sender::TimeoutOutcome;

/// Numbers come by a path as well as by others while so little time lies between them: what hurries is
/// acknowledged by then.
const RECENTLY: Duration = Duration::from_nanos(2 * LONGEST_ACK_DELAY.as_nanos());
/// What was told so long ago has come, on most paths.
const UNHEARD: Duration = Duration::from_millis(500);
/// Timeouts without an answer that make a path failed whose data others carry (OP-54).
const TIMEOUTS: u32 = 2;

impl Association {
    /// The path has part in a stream that all share.
    pub(super) fn has_lane(&self, ordinal: usize) -> bool {
        let member = self.shared.paths().iter().nth(ordinal);
        self.stream.is_some()
            && member.is_some_and(|member| !member.vacant && member.connection.lane().is_some())
    }

    /// Takes a packet of the path `ordinal`.
    pub(super) fn handle_lane(&mut self, now: Time, ordinal: usize, packet: Packet<'_>) {
        let is_numbered = !packet.payload.is_empty() || packet.header.flags.has(crate::wire::Flags::FIN);
        self.introduce_lanes();
        let asked_below = (packet.header.sequence).filter(|_| !is_numbered && packet.header.mp.is_none());
        self.with_packet(ordinal, |connection| connection.handle(now, packet));
        if is_numbered {
            self.return_by(now, ordinal);
        } else if let Some(number) = asked_below {
            self.doubt_named(now, number);
        }
        self.collect(now, ordinal);
        self.learn_rtts();
        for ordinal in 0..self.shared.paths().len() {
            if self.has_lane(ordinal) && !self.shared.paths()[ordinal].vacant {
                self.on_answers(now, ordinal); // a report speaks of every lane
            }
        }
        self.conclude_stream(now);
    }

    /// Numbers have come by the path `ordinal`: acknowledgements return by it, in turn with others. If they took the path of the last
    /// number, several in a row could take a slow one, and what a faster one carries would be taken for missing. Where what is lost is of use for a while only, they
    /// keep to a faster one as long as numbers come by that as well: the sooner a loss is known, the sooner it is repaired.
    fn return_by(&mut self, now: Time, ordinal: usize) {
        let in_time = self.composition.reliability.is_partial();
        let paths = self.shared.paths();
        let Some(stream) = &mut self.stream else { return };
        if !in_time && !stream.owed.contains(&ordinal) {
            stream.owed.push(ordinal);
        }
        let next = stream.seen().receiver.next();
        if next != stream.stands.0 {
            stream.stands = (next, now);
        }
        let (latest, since) = stream.latest;
        let is_faster = latest < paths.len()
            && paths[latest].works()
            && paths[latest].smoothed_rtt() < paths[ordinal].smoothed_rtt();
        if !(in_time && is_faster && now.since(since) < RECENTLY) {
            stream.latest = (ordinal, now);
        }
    }

    /// Who asks with `number` where we stand, and has not heard what was told for a while: what returned by the path that is named did
    /// not come, although that may bring numbers. For as long as an idle path is not asked, acknowledgements return as if none were
    /// named.
    fn doubt_named(&mut self, now: Time, number: u32) {
        let Some(stream) = &mut self.stream else { return };
        let (Some(next), since) = stream.stands else {
            return;
        };
        let knows_less = sequence::expand(next, number) + 1 < next;
        if knows_less && now.since(since) >= UNHEARD {
            stream.unheard_until = now + STANDBY_INTERVAL;
        }
    }

    /// Time has passed for paths and stream.
    pub(super) fn on_lane_deadlines(&mut self, now: Time) {
        self.introduce_lanes();
        let over = self.shared.is_over();
        if let Some(waited) = self.stalled_too_long(now).filter(|_| !over) {
            return self.break_off(now, CloseReason::TimedOut(waited));
        }
        if let Some(stream) = self.stream.as_mut().filter(|_| !over) {
            let lent = stream.own();
            lent.receiver.acknowledgement().on_deadline(now);
            if let TimeoutOutcome::GivesUp(waited) = lent.sender.on_deadline(now) {
                return self.break_off(now, CloseReason::TimedOut(waited));
            }
        }
        for ordinal in 0..self.shared.paths().len() {
            if !self.shared.paths()[ordinal].vacant {
                self.with(ordinal, |connection| connection.on_deadline(now));
                self.collect(now, ordinal);
            }
        }
        self.conclude_stream(now); // a hole that was given up may have been all that the end waited for
    }

    /// Who is silent for too long, whose timer ran out too often?
    pub(super) fn judge_lanes(&mut self, now: Time) {
        for ordinal in 0..self.shared.paths().len() {
            let member = &self.shared.paths()[ordinal];
            let health = member.health;
            if member.vacant || !member.connection.is_established() || !self.has_lane(ordinal) {
                continue;
            }
            let (overdue, in_row) = self.with(ordinal, |connection| {
                let overdue = suspect_at(&health, connection).is_some_and(|at| at <= now);
                let silent = connection.silent_for(TIMEOUTS).is_some_and(|at| at <= now);
                let in_row = connection.sender().timeouts_in_row();
                (overdue, if silent { TIMEOUTS.max(in_row) } else { in_row })
            });
            if overdue || in_row > 0 && health.verdict() == Health::Good {
                self.suspect(now, ordinal);
            }
            if self.shared.paths_mut()[ordinal].health.on_timeouts(in_row) {
                self.fail(now, ordinal);
            }
        }
    }

    /// What the lane of the path carries leaves by others, if one works.
    pub(super) fn yield_lane(&mut self, ordinal: usize) {
        if self.shared.paths().works_beside(ordinal) {
            self.with(ordinal, |connection| connection.sender_mut().yield_lane());
        }
    }

    /// Both directions are over: every path that is up ends as the stream does, and the others are broken off.
    fn conclude_stream(&mut self, now: Time) {
        let is_complete = |stream: &super::stream::Stream| stream.seen().release.is_complete();
        if !self.shared.is_established() || !self.stream.as_deref().is_some_and(is_complete) {
            return;
        }
        self.shared.end(now, CloseReason::Finished);
        self.candidates.clear();
        for ordinal in 0..self.shared.paths().len() {
            if self.shared.paths()[ordinal].connection.is_established() {
                self.with(ordinal, |connection| connection.conclude(now));
            } else {
                self.with(ordinal, |connection| connection.abort(now));
            }
            self.collect(now, ordinal);
        }
        self.stop_stream();
    }

    /// Nothing more is sent.
    pub(super) fn stop_stream(&mut self) {
        if let Some(stream) = &mut self.stream {
            let lent = stream.own();
            lent.sender.stop();
            lent.receiver.stop();
        }
    }

    /// Each lane learns of the others, where their congestion controls look at each other (RFC 6356 §3).
    fn introduce_lanes(&mut self) {
        if !self.composition.congestion.is_coupled() {
            return;
        }
        let carries = |member: &&Member| !member.vacant && !member.backup && member.works();
        let carrying = self.shared.paths().iter().filter(carries);
        let lanes: Vec<_> = carrying.filter_map(|member| member.connection.lane()).collect();
        let Some(stream) = &mut self.stream else { return };
        let sender = &mut stream.own().sender;
        for lane in &lanes {
            let others = lanes.iter().filter(|other| *other != lane);
            let siblings: Vec<_> = others.filter_map(|other| sender.sibling_of(*other)).collect();
            sender.on(*lane, |sender| *sender.siblings() = siblings);
        }
    }

    /// What is known of the lanes' round trips, for who compares paths.
    pub(super) fn learn_rtts(&mut self) {
        let Some(stream) = &self.stream else { return };
        for ordinal in 0..self.shared.paths().len() {
            let member = &self.shared.paths()[ordinal];
            let rtt = member
                .connection
                .lane()
                .and_then(|lane| stream.seen().sender.smoothed_rtt_of(lane));
            if member.lane_rtt != rtt {
                self.shared.paths_mut()[ordinal].lane_rtt = rtt;
            }
        }
    }

    /// Nobody has anything to send: keeps when somebody may have.
    pub(super) fn keep_deadline(&mut self) {
        let is_judged = self.shared.is_established();
        let mut earliest = Earliest::NONE;
        let mut add = |deadline: Option<(Time, Wakeup)>| {
            if let Some((at, why)) = deadline {
                earliest = earliest.or(Some(at), why);
            }
        };
        for ordinal in 0..self.shared.paths().len() {
            let member = &self.shared.paths()[ordinal];
            let health = member.health;
            if member.vacant || !self.has_lane(ordinal) {
                continue;
            }
            let judge = move |connection: &mut Connection| {
                let suspicion = suspect_at(&health, connection);
                let failure = connection.silent_for(TIMEOUTS);
                let failure = failure.filter(|_| health.verdict() != Health::Failed);
                let judged = suspicion.into_iter().chain(failure).min();
                let judged = judged.filter(|_| is_judged && connection.is_established());
                (connection.lane_deadline(), judged)
            };
            let (own, judged) = self.with(ordinal, judge);
            add(own);
            add(judged.map(|at| (at, Wakeup::Probe)));
        }
        let (over, returns) = (self.shared.is_over(), self.can_acknowledge());
        let is_up = self.shared.paths().best().is_some();
        let stall_timeout = self.composition.stall_timeout();
        let Some(stream) = &mut self.stream else { return };
        if let Some(shut) = stream.shut {
            add(Some((shut.ask_at, Wakeup::Probe)).filter(|_| is_up));
            add(Some((shut.since + stall_timeout, Wakeup::Expiry)));
        }
        let lent = stream.seen();
        add(lent.sender.deadline().filter(|_| !over));
        let hold = lent.receiver.hold_deadline(lent.sender.longest_rtt());
        add(hold.filter(|_| is_up && !over).map(|at| (at, Wakeup::Expiry)));
        let acknowledgement = lent.receiver.ack_timer().deadline().filter(|_| returns);
        add(acknowledgement.map(|at| (at, Wakeup::Acknowledgement)));
        stream.deadline = Some(earliest.deadline());
    }
}
