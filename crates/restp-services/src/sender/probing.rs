//! What leaves only to ask a question: is the link back (OP-51), is the peer's window still shut (OP-25, RFC 9293
//! §3.8.6.1)? How large a segment the path carries is asked by its own search ([`PathMtu`](crate::path_management::PathMtu)).

use crate::loss_handling::ProbeState;
use restp_base::time::Time;

/// How often a shut window is probed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowProbes {
    /// Once per timeout, with a whole segment (OP-25).
    Steady,
    /// One byte; the timer backs off (RFC 9293 §3.8.6.1).
    BackingOff,
    /// A whole segment; the timer backs off, and silence counts as for any other (RFC 9260 §6.1, §8.1).
    Counted,
}

/// A path that may be down, and the questions out there.
#[derive(Debug, Default)]
pub(super) struct Outage {
    /// The link is taken for down: only probes leave.
    pub(super) state: ProbeState,
    /// The peer's pointer once it has the segment probed last.
    probed: u64,
    /// How many probes asked with that one.
    asked: u32,
    /// The last one ended with an answer that had nothing new to say, and there has been no progress since.
    ended_in_vain: bool,
}

impl Outage {
    /// The segment below `next` leaves to ask whether the link is back.
    pub(super) fn on_probe(&mut self, next: u64) {
        let before = if self.probed == next { self.asked } else { 0 };
        (self.probed, self.asked) = (next, before + 1);
    }
    /// Each probe is acknowledged, too: a duplicate of the pointer `cumulative` may be no more than that.
    pub(super) fn explains_duplicate(&mut self, cumulative: u64) -> bool {
        let explains = cumulative == self.probed && self.asked > 0;
        self.asked -= u32::from(explains);
        explains
    }
    /// An answer ends it, which is `in_vain` where it has nothing new to say. True when so was that to the one before, and nothing came
    /// in between: perhaps the timer is shorter than the round trip, and what answers has waited behind questions.
    pub(super) fn ends_in_vain_again(&mut self, in_vain: bool) -> bool {
        std::mem::replace(&mut self.ended_in_vain, in_vain) && in_vain
    }
    /// Something new was acknowledged.
    pub(super) fn on_progress(&mut self) {
        self.ended_in_vain = false;
    }
    /// Probes that were out are lost with the rest.
    pub(super) fn forget_probes(&mut self) {
        self.asked = 0;
    }
}

/// Is the peer's window still shut? The question that is out, or due.
#[derive(Debug)]
pub(super) struct Probing {
    window_probes: WindowProbes,
    /// The segment beyond the peer's shut window that is out as a probe.
    window_probe: bool,
    /// When the next one leaves.
    window_probe_at: Option<Time>,
}

impl Probing {
    pub(super) fn new(window_probes: WindowProbes) -> Self {
        Probing {
            window_probes,
            window_probe: false,
            window_probe_at: None,
        }
    }

    /// Credit is missing, and nothing outstanding could bring it: is the next probe due? It is, first, one `timeout` from
    /// now.
    pub(super) fn window_probe_is_due(&mut self, now: Time, at: Time) -> bool {
        let due = *self.window_probe_at.get_or_insert(at) <= now;
        if due {
            (self.window_probe_at, self.window_probe) = (None, true);
        }
        due
    }
    /// Credit is there, or will come with an acknowledgement.
    pub(super) fn needs_no_credit(&mut self) {
        self.window_probe_at = None;
    }
    pub(super) fn waits_for_credit(&self) -> bool {
        self.window_probe_at.is_some()
    }
    pub(super) fn window_probe_at(&self) -> Option<Time> {
        self.window_probe_at
    }
    /// A segment that a scheduler above has placed is such a probe.
    pub(super) fn set_window_probe(&mut self) {
        self.window_probe = true;
    }
    pub(super) fn is_probing_window(&self) -> bool {
        self.window_probe
    }
    /// The probe was answered, or taken.
    pub(super) fn end_window_probe(&mut self) -> bool {
        std::mem::take(&mut self.window_probe)
    }
    /// Does the timer of a window probe back off?
    pub(super) fn backs_off(&self) -> bool {
        self.window_probes != WindowProbes::Steady
    }
    /// Payload bytes of a window probe at most.
    pub(super) fn window_probe_bytes(&self) -> usize {
        match self.window_probes {
            WindowProbes::Steady | WindowProbes::Counted => usize::MAX,
            WindowProbes::BackingOff => 1,
        }
    }

    pub(super) fn stop(&mut self) {
        self.window_probe_at = None;
    }
}
