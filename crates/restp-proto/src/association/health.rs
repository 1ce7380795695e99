//! Paths that go silent, fail and come back (OP-54).

use super::{Association, Member};
use restp_base::flow::PathState;
use restp_base::machine::PathAddress;
use restp_base::time::Time;
use restp_services::path_management::Health;
use std::collections::BTreeSet;
use std::net::IpAddr;

impl Association {
    /// Time has passed: who is silent for too long, whose timer ran out too often?
    pub(super) fn judge(&mut self, now: Time) {
        if self.stream.is_some() {
            return self.judge_lanes(now);
        }
        for ordinal in 0..self.shared.paths().len() {
            let member = &self.shared.paths()[ordinal];
            let is_due = self.shared.paths().is_due(ordinal, now);
            if !is_due || member.vacant || !member.connection.is_established() {
                continue;
            }
            let overdue = member.suspect_at().is_some_and(|at| at <= now);
            let timed_out = member.connection.sender().timeouts_in_row() > 0;
            if overdue || timed_out && member.health.verdict() == Health::Good {
                self.suspect(now, ordinal);
            }
            let member = &mut self.shared.paths_mut()[ordinal];
            if member
                .health
                .on_timeouts(member.connection.sender().timeouts_in_row())
            {
                self.fail(now, ordinal);
            }
        }
    }

    /// Silence: what the path carries leaves by others, and it is asked, because one packet that was lost is no failure. Its relatives
    /// are suspected before anything leaves by them.
    pub(super) fn suspect(&mut self, now: Time, ordinal: usize) {
        let mut silent = self.relatives(ordinal);
        silent.insert(ordinal);
        for ordinal in &silent {
            self.doubt(now, *ordinal);
        }
        for ordinal in silent {
            self.reinject(ordinal);
            self.shared.tell(ordinal, PathState::Suspect);
        }
    }

    fn doubt(&mut self, now: Time, ordinal: usize) {
        let member = &mut self.shared.paths_mut()[ordinal];
        member.health.on_silence();
        member.suspicions += 1;
        let has_lane = self.has_lane(ordinal);
        let since = self.with(ordinal, |connection| {
            let since = connection.sender().carries_since();
            if has_lane || connection.unanswered().is_none() {
                connection.doubt(now); // no timer would ask again
            } else {
                connection.ask();
            }
            since
        });
        if has_lane {
            self.shared.paths_mut()[ordinal].silent_since = since;
        }
    }

    /// Working paths that share an address with this one, where not all working paths have it: they may have gone down with it, and
    /// carried too little to show that. Where all have it another path is no better.
    fn relatives(&self, ordinal: usize) -> BTreeSet<usize> {
        let address = |ordinal: usize| self.shared.paths()[ordinal].connection.address();
        let works = |other: &usize| {
            let member = &self.shared.paths()[*other];
            *other != ordinal && !member.vacant && member.works()
        };
        let working = (0..self.shared.paths().len()).filter(works);
        let sides: [fn(PathAddress) -> IpAddr; 2] = [|path| path.local.ip(), |path| path.remote.ip()];
        let mut relatives = BTreeSet::new();
        for side in sides {
            let shares = |other: &usize| side(address(*other)) == side(address(ordinal));
            let (sharing, others): (Vec<_>, Vec<_>) = working.clone().partition(shares);
            if !others.is_empty() {
                relatives.extend(sharing);
            }
        }
        relatives
    }

    pub(super) fn fail(&mut self, now: Time, ordinal: usize) {
        self.reinject(ordinal);
        self.take_back(ordinal);
        self.with(ordinal, |connection| connection.probe(now));
        self.shared.paths_mut()[ordinal].down_events += 1;
        self.shared.tell(ordinal, PathState::Down);
        self.acknowledge_soon(); // answers of ours may have gone down with it
        self.reroute(now, ordinal);
    }

    /// The path is not used any more. Where paths share the numbers it may have brought the answers to what others carry.
    pub(super) fn reroute(&mut self, now: Time, ordinal: usize) {
        for other in 0..self.shared.paths().len() {
            if other != ordinal && self.has_lane(other) {
                self.with(other, |connection| connection.sender_mut().on_route_change(now));
            }
        }
    }

    /// News leave as an acknowledgement.
    fn acknowledge_soon(&mut self) {
        match &mut self.stream {
            Some(stream) => stream.own().receiver.acknowledgement().on_urgent_once(),
            None => self.shared.acknowledge_soon(),
        }
    }

    /// The path has been answered since the last look.
    pub(super) fn on_answers(&mut self, now: Time, ordinal: usize) {
        let answers = self.with(ordinal, |connection| connection.answers());
        let member = &mut self.shared.paths_mut()[ordinal];
        let new = answers.saturating_sub(std::mem::replace(&mut member.answers, answers));
        let was_silent = member.silent_since;
        let before = member.health.verdict();
        if (0..new).any(|_| member.health.on_answer()) {
            member.silent_since = None;
            member.connection.recover();
            if self.has_lane(ordinal) {
                let was_silent = was_silent.filter(|_| before == Health::Suspect);
                let silence = was_silent.map(|since| now.since(since));
                self.with(ordinal, |connection| {
                    connection.sender_mut().resume_lane(now, silence)
                });
            }
            self.shared.tell(ordinal, PathState::Up);
            self.reinject_all();
        }
    }

    /// The lower layer reports a local address up or down (cross-layer notice, ResTP §3.4).
    pub(crate) fn on_path_notice(&mut self, now: Time, local: std::net::SocketAddr, up: bool) {
        for ordinal in 0..self.shared.paths().len() {
            let member = &mut self.shared.paths_mut()[ordinal];
            if member.vacant || !member.connection.is_on(local) {
                continue;
            }
            if !up && member.connection.is_established() && member.health.verdict() != Health::Failed {
                member.health.on_down();
                self.fail(now, ordinal);
            } else {
                self.with(ordinal, |connection| connection.on_path_notice(now, up));
            }
        }
        if up {
            let candidates = self
                .candidates
                .iter_mut()
                .filter(|candidate| candidate.address.local == local && candidate.is_waiting());
            candidates.for_each(|candidate| candidate.dial_at(now));
        }
    }

    /// The lower layer took nothing for this pair of addresses. It is failed, and probed, as after a notice, where another
    /// path works; otherwise its own timer judges, because a refusal may pass.
    pub(crate) fn on_refused(&mut self, now: Time, path: PathAddress) {
        let refused = |member: &Member| {
            let usable = !member.vacant && member.connection.is_established();
            usable && member.connection.address() == path && member.health.verdict() != Health::Failed
        };
        let Some(ordinal) = self.shared.paths().iter().position(refused) else {
            return;
        };
        if self.shared.paths().works_beside(ordinal) {
            self.shared.paths_mut()[ordinal].health.on_down();
            self.fail(now, ordinal);
        }
    }

    /// What the path carries and the peer has not acknowledged is placed again, if another path can take it.
    fn reinject(&mut self, ordinal: usize) {
        if self.has_lane(ordinal) {
            return self.yield_lane(ordinal);
        }
        if self.shared.paths().works_beside(ordinal) {
            self.salvage(ordinal);
        }
    }

    /// The same, whenever a path can take it: this one will not.
    pub(super) fn salvage(&mut self, ordinal: usize) {
        let lane = self.shared.paths()[ordinal].connection.lane();
        if let (Some(stream), Some(lane)) = (&mut self.stream, lane) {
            return stream.close_lane(lane);
        }
        let half = self.shared.paths()[ordinal].connection.lost_with_both();
        self.shared.reinject(ordinal, half);
        self.take_back(ordinal);
    }

    /// What was given to the path and has not left waits to be placed again.
    fn take_back(&mut self, ordinal: usize) {
        if self.has_lane(ordinal) {
            return; // numbers are given when they leave
        }
        let numbers = self.shared.paths_mut()[ordinal].connection.unassign();
        self.shared.take_back(ordinal, numbers);
    }

    /// A path has come up: it takes over from those that are silent.
    pub(super) fn reinject_all(&mut self) {
        for ordinal in 0..self.shared.paths().len() {
            let member = &self.shared.paths()[ordinal];
            if !member.vacant && !member.works() {
                self.reinject(ordinal);
            }
        }
    }
}
