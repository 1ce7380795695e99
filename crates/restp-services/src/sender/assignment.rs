//! Where a scheduler above places segments on this sender's path (ResTP §3.3): what it may ask and tell.

use super::Sender;
use crate::congestion::Congestion;
use crate::path_management::Unanswered;
use crate::scheduling::{Candidate, Fate};
use bytes::Bytes;
use restp_base::time::{Duration, Time};

impl Sender {
    /// May it be given a segment of `bytes` now? Repairs come first.
    pub fn takes(&mut self, now: Time, bytes: u64) -> bool {
        !self.lane.outage.state.is_active()
            && self.queue.is_empty()
            && (self.board.lost() == 0 || !self.parameters.retransmits)
            && self.keeps_flight_limit(bytes)
            && self.has_room(now, bytes)
    }

    /// Takes a segment, which leaves with the next packet under the number that this returns.
    pub fn assign(&mut self, now: Time, payload: Bytes) -> u64 {
        self.begin_progress(now);
        self.queue.push(payload);
        self.board.next() + self.queue.frames() as u64 - 1
    }

    /// Takes back what was assigned and has not left.
    pub fn unassign(&mut self) {
        self.queue.clear();
        self.lane.gate.send_at_once(false);
    }

    /// What was assigned leaves at once, whatever the window says, as with the first retransmission of a loss (RFC 5681
    /// §3.2 (2)).
    pub fn send_at_once(&mut self) {
        self.lane.gate.send_at_once(true);
    }

    /// What was assigned last asks whether the peer's window is still shut.
    pub fn set_window_probe(&mut self) {
        self.probing.set_window_probe();
    }

    /// Data waits that would be placed here, were there room.
    pub fn set_backlog(&mut self, has_backlog: bool) {
        self.lane.gate.set_backlog(has_backlog);
    }

    /// What became of the segment `number`.
    pub fn fate(&self, number: u64) -> Fate {
        match self.board.in_flight_since(number) {
            Some((_, true)) => Fate::Open,
            Some((_, false)) => Fate::Lost,
            None if self.board.is_lost(number) => Fate::Lost,
            None if number >= self.board.next() => Fate::Open,
            None if self.board.is_presumed(number) => Fate::Open, // so long as the path itself may doubt it
            None => Fate::Arrived,
        }
    }

    /// Did `number` leave last at `from` or later, with its fate open?
    pub fn is_open_since(&self, number: u64, from: Time) -> bool {
        self.board
            .in_flight_since(number)
            .is_some_and(|(at, _)| at >= from)
    }

    /// What a scheduler may know of this path, which has room or not. `unknown` stands for a round trip that was not
    /// measured.
    pub fn candidate(&self, path: usize, weight: u32, has_room: bool, unknown: Duration) -> Candidate {
        let rtt = &self.lane.rtt;
        let smoothed_rtt = rtt.smoothed().unwrap_or(unknown);
        let window = self.window_bytes();
        let delivered = self
            .lane
            .controller
            .delivers()
            .map(|rate| rate.bytes_in(smoothed_rtt));
        Candidate {
            path,
            has_room,
            smoothed_rtt,
            min_rtt: rtt.minimum().unwrap_or(smoothed_rtt),
            rtt_variation: rtt.variation().unwrap_or_default(),
            carries_bytes: delivered.map_or(window, |delivered| delivered.min(window)),
            in_flight_bytes: self.board.in_flight_bytes(),
            weight,
        }
    }

    /// The answer that is due first. `asked_at`: a keep-alive is out since then, where nothing is outstanding.
    pub fn unanswered(&self, asked_at: Option<Time>) -> Option<Unanswered> {
        let uncarried = self.lane.uncarried_since.filter(|_| self.has_several_lanes());
        let since = if self.board.is_quiet() {
            asked_at
        } else {
            // What leaves again and again by a lane that answers nothing is no younger for that.
            let first = self.lane.waits_since.filter(|_| self.has_several_lanes());
            self.board
                .unanswered_since()
                .map(|since| first.map_or(since, |first| first.min(since)))
        };
        Some(Unanswered {
            since: since.into_iter().chain(uncarried).min()?,
            last_answer: self.lane.answered_at,
        })
    }

    /// When the first of what the lane in hand carries left by it, the last time that it did: what left again measures no round trip from
    /// the first time on (Karn), nor does what others have delivered meanwhile.
    pub fn carries_since(&self) -> Option<Time> {
        self.board.unanswered_since().filter(|_| !self.board.is_quiet())
    }

    /// Timeouts in a row, or probing already: nothing comes back.
    pub fn timeouts_in_row(&self) -> u32 {
        if self.lane.outage.state.is_active() {
            u32::MAX
        } else {
            self.lane.rto.expiries()
        }
    }

    /// A timeout is being repaired, and nothing has come back yet.
    pub fn is_failing(&self) -> bool {
        self.lane.gate.is_cautious()
    }

    /// The same of the lane in hand, where what it carried leaves by others.
    pub fn probe_lane_only(&mut self, now: Time) {
        if !self.lane.outage.state.is_active() {
            self.take_for_dead(now);
        }
    }

    /// The path is taken for dead. From now on only probes leave, until something is answered; they do not back off.
    pub fn probe_only(&mut self, now: Time) {
        if !self.lane.outage.state.is_active() {
            self.unassign();
            self.take_for_dead(now);
        }
    }
}
