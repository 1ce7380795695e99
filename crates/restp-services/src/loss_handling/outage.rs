//! The probe state (ResTP §3.6, §4.4.3, OP-51): losses are taken for an outage. From the first timeout on nothing
//! new is sent; the last data packet leaves once per timeout, which is not doubled, until anything is answered. The
//! window is kept, so transmission resumes at the rate it had. Where one outage after another ends with nothing new to say, the
//! timer may be shorter than the round trip, and is doubled until there is progress.
//!
//! Perhaps the timer ran out too early, and nothing is lost. The order of what is acknowledged tells (as in RFC 5682
//! §2.1): an answer to what left before the probes is followed by one more probe. If what left before goes on being
//! acknowledged, it is on its way; after an outage the next answer has nothing new to say.

use restp_base::time::{Duration, Time};

/// Silence beyond this is an outage whatever the first answer says: a set-up would not wait longer for a path (OP-32).
const LONGEST_ROUND_TRIP: Duration = Duration::from_secs(3);

/// Is the link taken for down, and is a probe due?
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProbeState {
    active: bool,
    due: bool,
    /// When the first probe left.
    probed_at: Option<Time>,
    /// What left before the probes was acknowledged since.
    earlier: bool,
}

/// What the peer acknowledges while the link is taken for down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acknowledged {
    /// Nothing new.
    Nothing,
    /// What left before the probes, and not the probed packet.
    Earlier,
    /// The probed packet.
    Probe,
}

/// What the silence was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Silence {
    /// The link was down: what is not known to have arrived is lost.
    Outage,
    /// The timer ran out too early: nothing is known to be lost.
    Spurious,
}

impl ProbeState {
    /// The retransmission timer ran out: the state begins, or goes on with the next probe.
    pub fn on_timeout(&mut self, now: Time) {
        (self.active, self.due) = (true, true);
        self.probed_at.get_or_insert(now);
    }

    /// The lower layer says that the link is down: nothing is worth sending, and the timer will ask. Answers that were
    /// on their way prove nothing.
    pub fn on_link_down(&mut self) {
        self.active = true;
    }

    /// The lower layer says that the link is back: the question does not wait for the timer.
    pub fn on_link_up(&mut self, now: Time) {
        self.due = self.active;
        if self.active {
            self.probed_at.get_or_insert(now);
        }
    }

    /// The peer answered, over a path whose round trip was never shorter than `shortest`. Says what the silence was
    /// when that ends it. What comes sooner than a probe can be answered, and has no news, is no answer.
    pub fn on_answer(
        &mut self,
        now: Time,
        acknowledged: Acknowledged,
        shortest: Option<Duration>,
    ) -> Option<Silence> {
        let waited = now.since(self.probed_at?);
        let silence = match acknowledged {
            // So long is no round trip: what is acknowledged now had arrived, and its acknowledgements were lost.
            _ if waited >= LONGEST_ROUND_TRIP => Silence::Outage,
            Acknowledged::Earlier if !self.earlier => {
                (self.earlier, self.due) = (true, true);
                return None;
            }
            Acknowledged::Earlier => Silence::Spurious,
            Acknowledged::Nothing if waited < shortest.unwrap_or_default() => return None,
            Acknowledged::Probe | Acknowledged::Nothing => Silence::Outage,
        };
        *self = ProbeState::default();
        Some(silence)
    }

    /// Nothing is out that could tell whether the link is back: the next data asks.
    pub fn give_up(&mut self) {
        *self = ProbeState::default();
    }

    /// The link is known to be down, and no answer can mean the contrary yet.
    pub fn is_unprobed(&self) -> bool {
        self.active && self.probed_at.is_none()
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
        let answer = |state: &mut ProbeState| state.on_answer(at(600), Acknowledged::Nothing, Some(ms(100)));
        assert_eq!(answer(&mut state), None, "there was no outage");
        for timeout in 1..4 {
            state.on_timeout(at(timeout * 200));
            assert!(state.is_active() && state.take_due() && !state.take_due());
        }
        assert_eq!(answer(&mut state), Some(Silence::Outage));
        assert!(!state.is_active() && !state.take_due());
    }

    #[test]
    fn silence_longer_than_any_round_trip_is_an_outage_at_the_first_answer() {
        let mut state = ProbeState::default();
        state.on_timeout(at(50));
        let answer = state.on_answer(at(3_050), Acknowledged::Earlier, Some(ms(300)));
        assert_eq!(answer, Some(Silence::Outage));
    }

    #[test]
    fn what_goes_on_arriving_was_not_lost() {
        use Acknowledged::{Earlier, Nothing, Probe};
        let verdict = |answers: &[(u64, Acknowledged)]| {
            let mut state = ProbeState::default();
            state.on_timeout(at(50));
            assert!(state.take_due());
            let mut verdict = None;
            for (at_ms, acknowledged) in answers {
                assert_eq!(verdict, None);
                verdict = state.on_answer(at(*at_ms), *acknowledged, Some(ms(300)));
                assert_eq!(
                    state.take_due(),
                    *acknowledged == Earlier && verdict.is_none(),
                    "one more probe"
                );
            }
            verdict
        };
        assert_eq!(verdict(&[(60, Earlier), (61, Earlier)]), Some(Silence::Spurious));
        assert_eq!(verdict(&[(900, Earlier), (1300, Nothing)]), Some(Silence::Outage));
        assert_eq!(verdict(&[(60, Earlier), (61, Probe)]), Some(Silence::Outage));
        assert_eq!(verdict(&[(349, Nothing)]), None, "sooner than any round trip");
        assert_eq!(verdict(&[(350, Nothing)]), Some(Silence::Outage));
    }

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    fn at(millis: u64) -> Time {
        Time::ZERO + ms(millis)
    }

    #[test]
    fn a_notice_saves_the_wait_for_the_timer_only_during_an_outage() {
        let mut state = ProbeState::default();
        state.on_link_up(at(1));
        assert!(!state.take_due());
        state.on_link_down();
        assert!(state.is_active() && !state.take_due(), "a dead link is not asked");
        assert!(
            state.on_answer(at(2), Acknowledged::Earlier, None).is_none() && state.is_unprobed(),
            "an answer from before proves nothing"
        );
        state.on_link_up(at(3));
        assert!(state.take_due() && state.is_active());
    }
}
