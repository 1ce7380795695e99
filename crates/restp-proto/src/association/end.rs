//! How an association ends: finished by both sides, broken off by one, or left by its last path (ResTP §3.1.13, §3.5.5).

use super::pins::Pins;
use super::{Association, LINGER, Member, State};
use restp_base::flow::{CloseReason, PathState};
use restp_base::time::Time;
use restp_services::connection_management::Notice;
use restp_services::path_management::Health;
use restp_services::scheduling::Places;

impl Association {
    /// No more writes will come.
    pub(crate) fn finish(&mut self) {
        self.release.finish();
    }

    /// Breaks off on every path.
    pub(crate) fn abort(&mut self, now: Time) {
        self.break_off(now, CloseReason::Aborted);
    }

    pub(super) fn break_off(&mut self, now: Time, reason: CloseReason) {
        self.end(now, reason);
        for member in &mut self.members {
            member.connection.abort(now);
        }
    }

    pub(crate) fn discard(&mut self) {
        self.inn.inbox.clear();
    }

    /// Ends the association for the application.
    pub(super) fn end(&mut self, now: Time, reason: CloseReason) {
        if self.state == State::Over {
            return;
        }
        if self.announced {
            self.notices.push_back(Notice::Closed(reason));
        }
        self.state = State::Over;
        self.breaks_at = Some(now + LINGER);
        self.lines.clear();
        self.out.queue.clear();
        self.out.buffer.clear();
        self.out.again.clear();
        (self.out.places, self.out.pins) = (Places::new(self.out.next), Pins::default());
        (self.out.fin_at, self.out.shut) = (None, None);
    }

    /// Both directions may be over: each path that answers is released, a silent one is broken off. Where none answers they
    /// are all released, because the peer may not know of the end yet.
    pub(super) fn conclude(&mut self, now: Time) {
        if self.state != State::Established || !self.release.is_complete() {
            return;
        }
        self.end(now, CloseReason::Finished);
        let good =
            |member: &Member| member.connection.is_established() && member.health.verdict() == Health::Good;
        let none = !self.members.iter().any(good);
        for member in &mut self.members {
            if good(member) || none && member.connection.is_established() {
                member.connection.finish();
            } else {
                member.connection.abort(now);
            }
        }
    }

    /// A path is gone. The association goes with the last one, unless another is being dialled.
    pub(super) fn on_path_closed(&mut self, now: Time, ordinal: usize, reason: CloseReason) {
        self.salvage(ordinal);
        self.out.places.forget_path(ordinal);
        self.tell(ordinal, PathState::Closed);
        let line = self.members[ordinal].line;
        let alive = self.members.iter().any(|member| !member.connection.is_over());
        let racing = self.state == State::Opening && self.lines.iter().any(|line| line.is_waiting());
        if !alive && !racing {
            return self.end(now, reason);
        }
        // What is still being dialled then is as silent as the last path that worked was, and would be dialled for ever.
        let works = self
            .members
            .iter()
            .any(|member| member.connection.is_established());
        if self.state == State::Established && !works && matches!(reason, CloseReason::TimedOut(_)) {
            return self.break_off(now, reason);
        }
        if self.state == State::Established
            && let Some(line) = line.and_then(|line| self.lines.get_mut(line))
        {
            line.redial(now);
        }
    }
}
