//! Paths that go silent, fail and come back (OP-54).

use super::{Association, Member};
use restp_base::flow::PathState;
use restp_base::machine::PathAddress;
use restp_base::time::Time;
use restp_services::path_management::Health;

impl Association {
    /// When the first path becomes suspect unless it is heard before.
    pub(super) fn suspicion_at(&self) -> Option<Time> {
        let of = |member: &Member| {
            if member.vacant || !member.connection.is_established() {
                return None;
            }
            self.overdue_at(member)
        };
        self.members.iter().filter_map(of).min()
    }

    fn overdue_at(&self, member: &Member) -> Option<Time> {
        let connection = &member.connection;
        let ack_wait = self.composition.ack.unmeasured_wait();
        member
            .health
            .suspect_at(connection.unanswered(), connection.smoothed_rtt(), ack_wait)
    }

    /// Time has passed: who is silent for too long, whose timer ran out too often?
    pub(super) fn judge(&mut self, now: Time) {
        for ordinal in 0..self.members.len() {
            let member = &self.members[ordinal];
            if member.vacant || !member.connection.is_established() {
                continue;
            }
            let overdue = self.overdue_at(member).is_some_and(|at| at <= now);
            let timed_out = member.connection.timeouts_in_row() > 0;
            if overdue || timed_out && member.health.verdict() == Health::Good {
                let member = &mut self.members[ordinal];
                member.health.on_silence();
                member.connection.ask(); // one packet that was lost is no failure
                member.suspicions += 1;
                self.rescue(ordinal);
                self.tell(ordinal, PathState::Suspect);
            }
            let member = &mut self.members[ordinal];
            if member.health.on_timeouts(member.connection.timeouts_in_row()) {
                self.fail(now, ordinal);
            }
        }
    }

    fn fail(&mut self, now: Time, ordinal: usize) {
        self.rescue(ordinal);
        self.take_back(ordinal);
        let member = &mut self.members[ordinal];
        member.connection.probe(now);
        member.down_events += 1;
        self.tell(ordinal, PathState::Down);
        self.acknowledge_soon(); // answers of ours may have gone down with it
    }

    /// The path has been answered since the last look.
    pub(super) fn on_answers(&mut self, _now: Time, ordinal: usize) {
        let member = &mut self.members[ordinal];
        let answers = member.connection.answers();
        let new = answers - std::mem::replace(&mut member.answers, answers);
        if (0..new).any(|_| member.health.on_answer()) {
            member.connection.recover();
            self.tell(ordinal, PathState::Up);
            self.rescue_all();
        }
    }

    /// The lower layer reports a local address up or down (cross-layer notice, ResTP §3.4).
    pub(crate) fn on_path_notice(&mut self, now: Time, local: std::net::SocketAddr, up: bool) {
        for ordinal in 0..self.members.len() {
            let member = &mut self.members[ordinal];
            if member.vacant || !member.connection.is_on(local) {
                continue;
            }
            if !up && member.connection.is_established() && member.health.verdict() != Health::Failed {
                member.health.on_down();
                self.fail(now, ordinal);
            } else {
                member.connection.on_path_notice(now, up);
            }
        }
        if up {
            let lines = self
                .lines
                .iter_mut()
                .filter(|line| line.address.local == local && line.is_waiting());
            lines.for_each(|line| line.dial_at(now));
        }
    }

    /// The lower layer took nothing for this pair of addresses. It is failed, and probed, as after a notice, where another
    /// path works; otherwise its own timer judges, because a refusal may pass.
    pub(crate) fn on_refused(&mut self, now: Time, path: PathAddress) {
        let refused = |member: &Member| {
            let usable = !member.vacant && member.connection.is_established();
            usable && member.connection.address() == path && member.health.verdict() != Health::Failed
        };
        let Some(ordinal) = self.members.iter().position(refused) else {
            return;
        };
        if self.works_beside(ordinal) {
            self.members[ordinal].health.on_down();
            self.fail(now, ordinal);
        }
    }

    /// Is there another path that is good?
    pub(super) fn works_beside(&self, ordinal: usize) -> bool {
        self.members.iter().enumerate().any(|(other, member)| {
            other != ordinal && member.connection.is_established() && member.health.verdict() == Health::Good
        })
    }
}
