//! Which paths answer, and what follows (RFC 9260 §8): heartbeats on idle ones, errors counted by path and in all, fail-over and
//! the way back.

use super::{Association, State};
use crate::sctp::chunk::Chunk;
use restp_base::flow::{CloseReason, PathState};
use restp_base::time::Time;
use restp_services::connection_management::Notice;

impl Association {
    /// By which path new data leaves where not all carry it: the primary one, or the first that is used. Where none is, the
    /// primary one (RFC 9260 §8.2, dormant).
    pub(super) fn current(&self) -> usize {
        self.paths.iter().position(|path| path.is_usable()).unwrap_or(0)
    }

    /// Does new data leave by the path `index`?
    pub(super) fn carries_new(&self, index: usize) -> bool {
        if self.parameters.concurrent && self.paths[index].is_usable() {
            return true;
        }
        index == self.current()
    }

    /// May data leave by the path `index`, new or again? By one that is for acknowledgements only where no other works.
    pub(super) fn carries_data(&self, index: usize) -> bool {
        let for_data = self.parameters.data_paths.min(self.paths.len());
        index < for_data || !self.paths[..for_data].iter().any(|path| path.is_usable())
    }

    /// Data has left by the path, or it has answered.
    pub(super) fn begin_idle(&mut self, now: Time, index: usize) {
        let path = &mut self.paths[index];
        let timeout = self.sender.on(path.lane, |sender| sender.timeout());
        path.begin_idle(now, self.parameters.heartbeat, timeout, &mut self.chance);
    }

    /// Heartbeats that were not answered in time.
    pub(super) fn check_heartbeats(&mut self, now: Time) {
        for index in 0..self.paths.len() {
            if self.paths[index].was_ignored(now) {
                if self.paths[index].confirmed {
                    self.on_error(now, index);
                    self.begin_idle(now, index);
                } else {
                    self.on_unconfirmed(now, index);
                }
            }
        }
    }

    /// A path that was never confirmed is asked again, as often as one that was is before it is given up.
    fn on_unconfirmed(&mut self, now: Time, index: usize) {
        let path = &mut self.paths[index];
        path.errors += 1;
        if path.errors <= self.parameters.path_attempts {
            path.ask_now(now);
        } else {
            self.begin_idle(now, index);
        }
    }

    /// Something on the path was not answered.
    fn on_error(&mut self, now: Time, index: usize) {
        self.errors += 1;
        let most = self.parameters.path_attempts;
        let path = &mut self.paths[index];
        path.erred_at = now;
        if path.on_error(most) {
            let (address, lane) = (path.address, path.lane);
            self.sender.on(lane, |sender| sender.set_active(false));
            self.tell(address, PathState::Down);
        }
    }

    /// Something on the path was answered.
    pub(super) fn on_path_answer(&mut self, index: usize) {
        self.errors = 0;
        let path = &mut self.paths[index];
        if path.on_answer() {
            let (address, lane) = (path.address, path.lane);
            let for_data = index < self.parameters.data_paths;
            self.sender.on(lane, |sender| sender.set_active(for_data));
            self.tell(address, PathState::Up);
        }
    }

    /// Looks at what reports and timers have made of the paths.
    pub(super) fn review(&mut self, now: Time) {
        if std::mem::replace(&mut self.reports, self.sender.reports()) != self.reports {
            self.errors = 0;
        }
        for index in 0..self.paths.len() {
            let lane = self.paths[index].lane;
            let (expiries, answered) = self
                .sender
                .on(lane, |sender| (sender.timeouts_in_row(), sender.answered_at()));
            let before = std::mem::replace(&mut self.paths[index].expiries, expiries);
            for _ in before..expiries {
                self.on_error(now, index);
            }
            // One that is not confirmed carries nothing yet that could be answered (RFC 9260 §5.4).
            let path = &self.paths[index];
            if path.confirmed && path.errors > 0 && answered > path.erred_at {
                self.on_path_answer(index);
            }
            if !self.paths[index].active && self.paths[index].heartbeat_at().is_none() {
                self.begin_idle(now, index);
            }
        }
        if self.errors > self.parameters.association_attempts {
            let waited = now.since(self.sender.progress_at());
            self.end(CloseReason::TimedOut(waited), State::Aborting(None));
        }
    }

    /// A heartbeat that is due leaves.
    pub(super) fn next_heartbeat(&mut self, now: Time) -> Option<(usize, Chunk)> {
        let index = self.paths.iter().position(|path| path.is_due(now))?;
        let path = &mut self.paths[index];
        let timeout = self.sender.on(path.lane, |sender| sender.timeout());
        let question = path.question(now, timeout, &mut self.chance);
        Some((index, Chunk::Heartbeat(question)))
    }

    /// An answer to a heartbeat has come.
    pub(super) fn on_heartbeat_answer(&mut self, now: Time, answer: &[u8]) {
        let answered = |(index, path): (usize, &mut super::Path)| Some((index, path.answered(now, answer)?));
        let Some((index, rtt)) = self.paths.iter_mut().enumerate().find_map(answered) else {
            self.stats.rejected_packets += 1;
            return;
        };
        let lane = self.paths[index].lane;
        self.sender.on(lane, |sender| sender.on_echo(rtt));
        self.on_path_answer(index);
        self.begin_idle(now, index);
    }

    fn tell(&mut self, address: restp_base::machine::PathAddress, state: PathState) {
        if self.paths.len() > 1 {
            self.notices.push_back(Notice::Path(address, state));
        }
    }
}
