//! Paths that go silent, fail and come back (OP-54): what was on them is placed on the others at once.

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
            let since = member.connection.unanswered_since();
            member.health.suspect_at(since, member.connection.smoothed_rtt())
        };
        self.members.iter().filter_map(of).min()
    }

    /// Time has passed: who is silent for too long, whose timer ran out too often?
    pub(super) fn judge(&mut self, now: Time) {
        for ordinal in 0..self.members.len() {
            let member = &mut self.members[ordinal];
            if member.vacant || !member.connection.is_established() {
                continue;
            }
            let since = member.connection.unanswered_since();
            let at = member.health.suspect_at(since, member.connection.smoothed_rtt());
            if at.is_some_and(|at| at <= now) {
                member.health.on_silence();
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
        let member = &mut self.members[ordinal];
        member.connection.probe(now);
        member.down_events += 1;
        self.tell(ordinal, PathState::Down);
    }

    /// The path has been answered since the last look.
    pub(super) fn on_answers(&mut self, _now: Time, ordinal: usize) {
        let member = &mut self.members[ordinal];
        let answers = member.connection.answers();
        let new = answers - std::mem::replace(&mut member.answers, answers);
        if (0..new).any(|_| member.health.on_answer()) {
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
    fn works_beside(&self, ordinal: usize) -> bool {
        self.members.iter().enumerate().any(|(other, member)| {
            other != ordinal && member.connection.is_established() && member.health.verdict() == Health::Good
        })
    }

    /// What the path carries and the peer has not acknowledged is placed again, if another path can take it.
    pub(super) fn rescue(&mut self, ordinal: usize) {
        if !self.works_beside(ordinal) {
            return;
        }
        let first = self.out.first;
        let carried = self.members[ordinal].connection.carried();
        self.out.again.extend(carried.filter(|number| *number >= first));
        self.members[ordinal].connection.unassign();
        self.out.urgent = !self.out.again.is_empty();
    }

    /// A path has come up: it takes over from those that are silent.
    pub(super) fn rescue_all(&mut self) {
        for ordinal in 0..self.members.len() {
            let member = &self.members[ordinal];
            if !member.vacant && member.health.verdict() != Health::Good {
                self.rescue(ordinal);
            }
        }
    }
}
