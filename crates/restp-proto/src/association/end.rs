//! How an association ends: finished by both sides, broken off by one, or left by its last path (ResTP §3.1.13, §3.5.5).

use super::Association;
use restp_base::flow::{CloseReason, PathState};
use restp_base::time::Time;

impl Association {
    /// No more writes will come.
    pub(crate) fn finish(&mut self) {
        self.shared.finish();
        if let Some(stream) = &mut self.stream {
            stream.own().release.finish();
        }
    }

    /// Breaks off on every path.
    pub(crate) fn abort(&mut self, now: Time) {
        self.break_off(now, CloseReason::Aborted);
    }

    pub(super) fn break_off(&mut self, now: Time, reason: CloseReason) {
        self.candidates.clear();
        self.shared.break_off(now, reason);
        self.stop_stream();
    }

    pub(crate) fn discard(&mut self) {
        self.shared.discard(false);
        if let Some(stream) = &mut self.stream {
            stream.own().receiver.discard(false);
        }
    }

    /// Both directions may be over: each path that answers is released, a silent one is broken off. Where none answers they
    /// are all released, because the peer may not know of the end yet.
    pub(super) fn conclude(&mut self, now: Time) {
        if !self.shared.concludes(now) {
            return;
        }
        self.candidates.clear();
        let none = !self.shared.paths().iter().any(|member| member.works());
        for member in self.shared.paths_mut().iter_mut() {
            if member.works() || none && member.connection.is_established() {
                member.connection.finish();
            } else {
                member.connection.abort(now);
            }
        }
    }

    /// A path is gone. The association goes with the last one, unless another is being dialled.
    pub(super) fn on_path_closed(&mut self, now: Time, ordinal: usize, reason: CloseReason) {
        self.salvage(ordinal);
        self.reroute(now, ordinal);
        self.shared.forget_path(ordinal);
        self.shared.tell(ordinal, PathState::Closed);
        let candidate = self.shared.paths()[ordinal].candidate;
        let racing =
            self.shared.is_opening() && self.candidates.iter().any(|candidate| candidate.is_waiting());
        if !self.any(|connection| !connection.is_over()) && !racing {
            self.candidates.clear();
            self.shared.end(now, reason);
            return self.stop_stream();
        }
        if !self.shared.is_established() {
            return;
        }
        // What is still being dialled then is as silent as the last path that worked was, and would be dialled for ever.
        let works = self.any(|connection| connection.is_established());
        if !works && matches!(reason, CloseReason::TimedOut(_)) {
            return self.break_off(now, reason);
        }
        if let Some(candidate) = candidate.and_then(|candidate| self.candidates.get_mut(candidate)) {
            candidate.redial(now);
        }
    }
}
