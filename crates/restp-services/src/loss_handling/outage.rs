//! The probe state (ResTP §3.6, §4.4.3, OP-51): losses are taken for an outage. From the first timeout on nothing
//! new is sent; the last data packet leaves once per timeout, which is not doubled, until anything is answered. The
//! window is kept, so transmission resumes at the rate it had.

/// Is the link taken for down, and is a probe due?
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProbeState {
    active: bool,
    due: bool,
    /// A probe has left: what is answered now is no answer to something older.
    probed: bool,
}

impl ProbeState {
    /// The retransmission timer ran out: the state begins, or goes on with the next probe.
    pub fn on_timeout(&mut self) {
        (self.active, self.due, self.probed) = (true, true, true);
    }

    /// The lower layer says that the link is down: nothing is worth sending, and the timer will ask. Answers that were
    /// on their way prove nothing.
    pub fn on_link_down(&mut self) {
        self.active = true;
    }

    /// The lower layer says that the link is back: the question does not wait for the timer.
    pub fn on_link_up(&mut self) {
        self.due = self.active;
        self.probed |= self.active;
    }

    /// The peer answered. True when that ends an outage.
    pub fn on_answer(&mut self) -> bool {
        self.probed && std::mem::take(self).active
    }

    /// Nothing is out that could tell whether the link is back: the next data asks.
    pub fn give_up(&mut self) {
        *self = ProbeState::default();
    }

    /// The link is known to be down, and no answer can mean the contrary yet.
    pub fn is_unprobed(&self) -> bool {
        self.active && !self.probed
    }

    /// True while only probes may leave.
    pub fn is_active(&self) -> bool {
        self.active
    }

    /// Must a probe leave now? Asked once per probe.
    pub fn take_due(&mut self) -> bool {
        std::mem::take(&mut self.due)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_probe_per_timeout_until_an_answer() {
        let mut state = ProbeState::default();
        assert!(!state.on_answer(), "there was no outage");
        for _ in 0..3 {
            state.on_timeout();
            assert!(state.is_active() && state.take_due() && !state.take_due());
        }
        assert!(state.on_answer());
        assert!(!state.is_active() && !state.take_due());
    }

    #[test]
    fn a_notice_saves_the_wait_for_the_timer_only_during_an_outage() {
        let mut state = ProbeState::default();
        state.on_link_up();
        assert!(!state.take_due());
        state.on_link_down();
        assert!(state.is_active() && !state.take_due(), "a dead link is not asked");
        assert!(
            !state.on_answer() && state.is_unprobed(),
            "an answer from before proves nothing"
        );
        state.on_link_up();
        assert!(state.take_due() && state.is_active());
    }
}
