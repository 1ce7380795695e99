//! What happens when nothing can be placed: the peer's window is shut, its pointer stands although every path has delivered,
//! or all is sent and the data end (RFC 8684 §3.3.3, §3.3.6; OP-25).

use super::{DataSender, Reinjection};
use crate::connection_management::Release;
use crate::multipath::{Path, Paths};
use restp_base::machine::Wakeup;
use restp_base::time::{Duration, Time};

/// What is due when.
#[derive(Debug, Default)]
pub(super) struct Deadlines {
    shut: Option<ShutWindow>,
    /// Every path has delivered what it carried, and the connection's pointer has not followed: when the segment it stands
    /// at is placed again.
    resend_at: Option<Time>,
    /// Our end is out: when it is due again.
    fin_at: Option<Time>,
}

/// The peer's window is shut, and nothing is outstanding whose acknowledgement could open it.
#[derive(Clone, Copy, Debug)]
struct ShutWindow {
    since: Time,
    /// When a path asks whether it still is.
    probe_at: Time,
}

impl Deadlines {
    pub(super) fn on_progress(&mut self) {
        self.resend_at = None;
    }
}

impl DataSender {
    /// A shut window is probed, once per timeout: with a packet that has no data where the path can ask so, because data that
    /// the peer does not take would be missing on it; or all is sent, and the end is said until it is acknowledged. Returns
    /// the path that does it.
    pub(in crate::multipath) fn ask_or_end<P: Path>(
        &mut self,
        now: Time,
        paths: &mut Paths<P>,
        release: &mut Release,
    ) -> Option<usize> {
        let best = paths.best()?;
        let wait = paths[best].sender().timeout();
        if self.stalled && !self.queue.is_empty() && self.first == self.next {
            return self.probe(now, best, wait, paths);
        }
        self.deadlines.shut = None;
        if self.resends_head(now, wait, paths) {
            return self.place(now, paths).first().copied();
        }
        let all_placed = self.again.is_empty() || self.parameters.reinjection == Reinjection::OnTimeout;
        if release.must_send_fin() && self.queue.is_empty() && all_placed {
            release.fin_sent(self.next_data());
            self.number_next(None);
            self.deadlines.fin_at = Some(now);
        }
        let fin = release.unacknowledged_fin()?;
        if self.deadlines.fin_at.is_none_or(|at| at > now) {
            return None;
        }
        self.deadlines.fin_at = Some(now + wait);
        paths[best].announce_end(fin);
        Some(best)
    }

    fn probe<P: Path>(
        &mut self,
        now: Time,
        best: usize,
        wait: Duration,
        paths: &mut Paths<P>,
    ) -> Option<usize> {
        self.deadlines.resend_at = None; // there is no head
        let shut = self.deadlines.shut.get_or_insert(ShutWindow {
            since: now,
            probe_at: now + wait,
        });
        if shut.probe_at > now {
            return None;
        }
        shut.probe_at = now + wait;
        if !paths[best].asks_window() {
            let (segment, payload) = (self.next, self.take_next(1));
            self.give(now, segment, &payload, &[best], false, paths);
            paths[best].sender_mut().set_window_probe();
        }
        Some(best)
    }

    /// The paths owe nothing, but the pointer stands: a peer that has acknowledged a path's numbers and has not kept what
    /// they carried is reminded once per timeout.
    fn resends_head<P: Path>(&mut self, now: Time, wait: Duration, paths: &Paths<P>) -> bool {
        let idle = |path: &P| path.is_over() || path.carried().next().is_none();
        let head = self.buffer.get(self.first).is_some();
        if !head || !self.again.is_empty() || !paths.iter().all(idle) {
            self.deadlines.resend_at = None;
            return false;
        }
        let due = *self.deadlines.resend_at.get_or_insert(now + wait) <= now;
        if due {
            self.deadlines.resend_at = None;
            self.assignments.forget(self.first);
            self.again.insert(self.first);
        }
        due
    }

    /// The earliest deadline, and why. `works`: a path is up; `ends`: our end is out and not acknowledged.
    pub(in crate::multipath) fn deadline(&self, works: bool, ends: bool) -> Option<(Time, Wakeup)> {
        let Deadlines {
            shut,
            resend_at,
            fin_at,
        } = self.deadlines;
        let all = [
            (shut.map(|shut| shut.probe_at).filter(|_| works), Wakeup::Probe),
            (self.stall_deadline(), Wakeup::Expiry),
            (resend_at.filter(|_| works), Wakeup::Retransmission),
            (fin_at.filter(|_| works && ends), Wakeup::Retransmission),
        ];
        all.into_iter().filter_map(|(at, why)| Some((at?, why))).min()
    }

    /// When a peer that answers and takes nothing any more is given up, as on one path (OP-50).
    fn stall_deadline(&self) -> Option<Time> {
        Some(self.deadlines.shut?.since + self.parameters.stall_timeout?)
    }

    /// The peer has taken nothing for so long that it is given up: how long.
    pub(in crate::multipath) fn stalled_too_long(&self, now: Time) -> Option<Duration> {
        self.stall_deadline().filter(|at| *at <= now)?;
        Some(now.since(self.deadlines.shut?.since))
    }
}
