//! Numbers that are answered one by one and never leave twice (ITP, 2020, §IV): each answer names the one number it is for, each number
//! has a timer of its own, and what is lost leaves again under a new one.

use super::{PeerReport, Sender, TimeoutOutcome};
use crate::ack::AckReport;
use crate::congestion::CongestionEvent;
use crate::loss_handling::LossSignal;
use restp_base::time::{Duration, Time};

/// A number that was taken for lost is known for so long, because its answer may only be late.
const KEPT: Duration = Duration::from_secs(60);
/// And no longer than until so many more have left: what is known of them takes memory.
const MOST_KEPT: u64 = 8192;

/// What an answer was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The first for a number that was waited for.
    Awaited,
    /// For a number that had been taken for lost.
    Late,
    /// For one that was answered before, is forgotten, or has not left.
    Unknown,
}

impl Sender {
    /// The peer answers `number`. `is_sample`: it is known which transmission it answers, so it tells the round trip.
    pub fn on_answer(&mut self, now: Time, number: u64, is_sample: bool) -> Answer {
        let Some(rtt) = self.board.sent_at(number).map(|sent_at| now.since(sent_at)) else {
            return Answer::Unknown;
        };
        let lane = self.board.lane_of(number).unwrap_or_default();
        if self.board.is_lost(number) {
            self.board.give_up(number);
            if is_sample {
                self.on(lane, |sender| sender.on_echo(rtt));
            }
            self.watch_each(now);
            return Answer::Late;
        }
        if self.board.in_flight_since(number).is_none() {
            return Answer::Unknown;
        }
        if !is_sample {
            self.board.on_probed(number); // Karn's rule
        }
        self.forget_old(now);
        let cumulative = self.board.first_open_but(number);
        let mut report = AckReport::pointer(cumulative);
        if number > cumulative {
            report.received.push(number..number + 1);
        }
        let peer = PeerReport {
            report: &report,
            grant: None,
            is_bare_duplicate: false,
            echoed_rtt: is_sample.then_some(rtt),
            echoes_mark: false,
            repaired: 0,
        };
        // It names a number that is in flight and nothing else, so it cannot be false.
        let told = self.on_feedback(now, &peer);
        debug_assert!(told.is_ok(), "{told:?}");
        self.watch_each(now);
        Answer::Awaited
    }

    /// May something new of `bytes` leave? The first retransmission of a loss event may, whatever the window says.
    pub fn may_leave(&mut self, now: Time, bytes: u64) -> bool {
        // Where the window has closed meanwhile there is nothing to wake up for.
        self.lane.gate.stop_pacing();
        self.lane.gate.sends_at_once() || self.has_room(now, bytes)
    }

    /// The next number that was taken for lost, once each.
    pub fn take_lost(&mut self) -> Option<u64> {
        self.lanes()
            .find_map(|id| self.on(id, |sender| sender.lane.recovery.receiver_driven()?.take_lost()))
    }

    /// Rule (a): the numbers whose timers have run out are lost, and only those. The timer doubles once per window of them.
    pub(super) fn on_overdue(&mut self, now: Time) -> TimeoutOutcome {
        let outstanding = self.board.in_flight_bytes();
        let lane = &mut self.lane;
        let Some(rules) = lane.recovery.receiver_driven() else {
            return TimeoutOutcome::Nothing;
        };
        let found = rules.on_deadline(&mut self.board, now, &lane.rto, &lane.rtt);
        if found.lost == 0 {
            self.watch(now);
            return TimeoutOutcome::Nothing;
        }
        let reaction = self.parameters.loss_handling.reaction(LossSignal::Timeout);
        let (back_off, count) = (reaction.back_off_timer, reaction.count_attempt);
        self.counters.timeouts += 1;
        self.counters.lost_packets += found.lost;
        self.counters.timed_out_packets += found.lost;
        self.lane.lost_packets += found.lost;
        if found.backs_off && !self.lane.rto.expire(now, &self.lane.rtt, back_off, count) {
            return self.on_last_attempt(now);
        }
        self.lane.gate.send_at_once(true);
        if reaction.reduce_window {
            let event = CongestionEvent::Timeout {
                repeated: !found.cuts,
            };
            self.tell_controller(now, &event, outstanding);
        }
        self.watch(now);
        TimeoutOutcome::Lost
    }

    fn watch_each(&mut self, now: Time) {
        self.each_lane(|sender| sender.watch(now));
    }

    /// The timer is that of the number on the lane in hand whose own runs out first.
    fn watch(&mut self, now: Time) {
        let watched = match self.lane.recovery.receiver_driven() {
            Some(rules) => rules.watched(&self.board),
            None => return,
        };
        match watched {
            Some((since, doubled)) => self.lane.rto.watch(since, &self.lane.rtt, doubled),
            None if self.lane.failed_at.is_none() => self.lane.rto.stop(),
            None => self.lane.rto.start(now, &self.lane.rtt),
        }
    }

    /// Gives up what was lost long ago.
    fn forget_old(&mut self, now: Time) {
        let next = self.board.next();
        while let Some(number) = self.board.next_lost() {
            let is_old = self.board.sent_at(number).is_some_and(|at| now.since(at) > KEPT);
            if !is_old && next - number <= MOST_KEPT {
                return;
            }
            self.board.give_up(number);
        }
    }
}
