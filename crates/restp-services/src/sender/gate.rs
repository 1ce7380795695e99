//! What holds segments back on one path besides its congestion window: the caution after a timeout (RFC 5681 §3.1), pacing
//! (RFC 9002 §7.7); and what lets one leave in spite of the window.

use restp_base::time::Time;

/// The gate of one path.
#[derive(Debug, Default)]
pub(super) struct Gate {
    /// A timeout is being repaired: one segment at a time until something is acknowledged.
    one_at_a_time: bool,
    /// The next retransmission leaves whatever the window says.
    retransmits_at_once: bool,
    /// So does the next new segment: it was on a path that has failed.
    sends_at_once: bool,
    /// A pacing wait is what holds the next segment back.
    paced_until: Option<Time>,
    /// Before the last report something other than the congestion window held the sender back.
    unused: bool,
    /// A scheduler above has data that it would place here, were there room.
    has_backlog: bool,
    /// Such a scheduler leaves it out although it has room.
    passed_over: bool,
    /// Bytes in flight up to which segments may leave before the next report.
    burst_edge: Option<u64>,
}

impl Gate {
    pub(super) fn on_timeout(&mut self) {
        self.one_at_a_time = true;
    }
    /// Something was acknowledged, or nothing of it is waited for.
    pub(super) fn on_progress(&mut self) {
        self.one_at_a_time = false;
    }
    /// A timeout is being repaired, and nothing has come back yet.
    pub(super) fn is_cautious(&self) -> bool {
        self.one_at_a_time
    }

    pub(super) fn retransmit_at_once(&mut self, at_once: bool) {
        self.retransmits_at_once = at_once;
    }
    pub(super) fn takes_retransmission_at_once(&mut self) -> bool {
        std::mem::take(&mut self.retransmits_at_once)
    }
    pub(super) fn send_at_once(&mut self, at_once: bool) {
        self.sends_at_once = at_once;
    }
    pub(super) fn sends_at_once(&self) -> bool {
        self.sends_at_once
    }

    pub(super) fn set_burst_edge(&mut self, edge: u64) {
        self.burst_edge = Some(edge);
    }
    /// What of the `window` may be filled before the next report.
    pub(super) fn within_burst(&self, window: u64) -> u64 {
        self.burst_edge.map_or(window, |edge| window.min(edge))
    }

    pub(super) fn pace_until(&mut self, at: Time) {
        self.paced_until = Some(at);
    }
    pub(super) fn stop_pacing(&mut self) {
        self.paced_until = None;
    }
    pub(super) fn paced_until(&self) -> Option<Time> {
        self.paced_until
    }

    pub(super) fn set_unused(&mut self, unused: bool) {
        self.unused = unused;
    }
    pub(super) fn is_unused(&self) -> bool {
        self.unused
    }
    pub(super) fn set_backlog(&mut self, has_backlog: bool) {
        self.has_backlog = has_backlog;
    }
    pub(super) fn set_passed_over(&mut self, passed_over: bool) {
        self.passed_over = passed_over;
    }
    pub(super) fn is_passed_over(&self) -> bool {
        self.passed_over
    }
    pub(super) fn has_backlog(&self) -> bool {
        self.has_backlog
    }
}
