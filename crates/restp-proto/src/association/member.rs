//! One path of the association: a connection of its own, and what the association thinks of it.

use crate::connection::Connection;
use bytes::Bytes;
use restp_base::flow::FlowStats;
use restp_base::machine::{Datagram, PathAddress, Wakeup};
use restp_base::time::{Duration, Time};
use restp_services::multipath::{Path, Shared};
use restp_services::path_management::{Health, PathHealth};
use restp_services::sender::Sender;

/// One path.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) connection: Connection,
    pub(super) health: PathHealth,
    /// Only used when no other path works (ResTP §3.1.12, B).
    pub(super) backup: bool,
    /// Index of the candidate it was dialled on; none for the peer's.
    pub(super) candidate: Option<usize>,
    /// Which of the peer's candidates it was dialled on, from 0, as its set-up said; none where this end dialled it.
    pub(super) told_line: Option<usize>,
    /// It has ended and the endpoint has forgotten its ports.
    pub(super) vacant: bool,
    /// Answers counted at the last look.
    pub(super) answers: u64,
    pub(super) suspicions: u64,
    pub(super) down_events: u64,
    /// Since when it did not answer, if it is suspected and others carry its numbers.
    pub(super) silent_since: Option<Time>,
    /// Smoothed round trip of its lane, where paths share the numbers.
    pub(super) lane_rtt: Option<Duration>,
}

/// When silence makes a path suspect, unless it is heard before.
pub(super) fn suspect_at(health: &PathHealth, connection: &Connection) -> Option<Time> {
    let ack_wait = connection.composition().ack.unmeasured_wait();
    let sender = connection.sender();
    let round_trip = match connection.lane() {
        Some(_) => sender.expected_rtt(), // what it carried and others retransmit is no sample
        None => sender.smoothed_rtt(),
    };
    let at = health.suspect_at(connection.unanswered(), round_trip, ack_wait);
    at.filter(|_| connection.is_established())
}

impl Member {
    pub(super) fn new(connection: Connection, backup: bool, candidate: Option<usize>) -> Self {
        Member {
            connection,
            health: PathHealth::default(),
            backup,
            candidate,
            told_line: None,
            vacant: false,
            answers: 0,
            suspicions: 0,
            down_events: 0,
            silent_since: None,
            lane_rtt: None,
        }
    }

    pub(super) fn is_established(&self) -> bool {
        self.connection.is_established()
    }

    /// Established, and nobody doubts that it works.
    pub(super) fn works(&self) -> bool {
        self.is_established() && self.health.verdict() == Health::Good
    }

    /// May an acknowledgement of shared numbers leave by it?
    pub(super) fn may_acknowledge(&self) -> bool {
        !self.vacant && self.connection.lane().is_some() && self.connection.says_what_arrived()
    }

    /// When silence makes it suspect, unless it is heard before.
    pub(super) fn suspect_at(&self) -> Option<Time> {
        suspect_at(&self.health, &self.connection)
    }

    pub(super) fn stats(&self) -> FlowStats {
        let mut stats = self.connection.stats();
        if self.connection.lane().is_some() {
            (stats.congestion_window_bytes, stats.rto) = (0, None); // the stream has them
        }
        for path in &mut stats.paths {
            (path.suspicions, path.down_events) = (self.suspicions, self.down_events);
        }
        stats
    }
}

impl Path for Member {
    /// No path is established without a sample, but one may be Karn's.
    const UNMEASURED_RTT: Duration = Duration::from_millis(100);

    fn sender(&self) -> &Sender {
        self.connection.sender()
    }
    fn smoothed_rtt(&self) -> Option<Duration> {
        if self.connection.lane().is_some() {
            self.lane_rtt
        } else {
            self.connection.sender().smoothed_rtt()
        }
    }
    fn sender_mut(&mut self) -> &mut Sender {
        self.connection.sender_mut()
    }
    fn address(&self) -> PathAddress {
        self.connection.address()
    }
    fn is_over(&self) -> bool {
        self.connection.is_over()
    }
    fn is_closed(&self) -> bool {
        self.connection.is_closed()
    }

    fn standing(&self) -> Option<(u8, bool)> {
        let health = match self.health.verdict() {
            Health::Good => 0,
            Health::Suspect => 1,
            Health::Failed => 2,
        };
        self.connection.is_established().then_some((health, self.backup))
    }

    /// The good ones; of these, backups only when there is no other; the suspect ones only when none is good, or for copies,
    /// which nobody waits for; one whose set-up is not complete, because nobody judges it yet, only when there is no other.
    fn rank(&self, copies: bool) -> Option<u8> {
        match (self.health.verdict(), self.backup) {
            _ if self.vacant || !self.connection.is_open() => None,
            _ if !self.connection.is_established() => Some(3),
            (Health::Good, false) => Some(0),
            (Health::Suspect, false) if copies => Some(0),
            (Health::Good, true) => Some(1),
            (Health::Suspect, _) => Some(2),
            (Health::Failed, _) => None,
        }
    }

    fn share(&self, ordinal: usize) -> usize {
        self.candidate.unwrap_or(ordinal)
    }
    fn segment_bytes(&self) -> Option<u32> {
        (!self.vacant).then(|| self.sender().expected_segment_bytes())
    }
    fn largest_segment_bytes(&self) -> u32 {
        self.sender().segment_bytes()
    }
    fn takes(&mut self, now: Time, bytes: u64) -> bool {
        self.connection.takes(now, bytes)
    }
    fn assign(&mut self, now: Time, number: u64, payload: Bytes) -> u64 {
        self.connection.assign(now, number, payload)
    }
    fn carried(&self) -> impl Iterator<Item = u64> + '_ {
        self.connection.carried()
    }
    fn acknowledge_soon(&mut self) {
        self.connection.acknowledge_soon();
    }
    fn announce_end(&mut self, fin: u64) {
        self.connection.announce_end(fin);
    }
    fn asks_window(&mut self) -> bool {
        self.connection.ask();
        true
    }
    fn abort(&mut self, now: Time) {
        self.connection.abort(now);
    }

    fn poll_transmit(&mut self, now: Time, shared: &Shared, out: &mut Datagram) -> bool {
        !self.vacant && self.connection.poll_path(now, shared, out)
    }
    fn deadline(&self, judged: bool) -> Option<(Time, Wakeup)> {
        let is_lent = self.connection.lane().is_some() && !self.connection.is_opening();
        if self.vacant || is_lent {
            return None;
        }
        let suspect_at = judged.then(|| self.suspect_at()).flatten();
        let suspicion = suspect_at.map(|at| (at, Wakeup::Probe));
        self.connection.deadline().into_iter().chain(suspicion).min()
    }
    fn count(&self, total: &mut FlowStats) {
        let stats = self.stats();
        if self.vacant {
            total.memory_bytes += stats.memory_bytes; // its place is kept
        } else {
            total.add(&stats);
        }
    }
}
