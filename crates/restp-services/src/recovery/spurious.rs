//! Was a timeout needless (RFC 5682, RFC 3522)? The first acknowledgement of new data tells: when what it acknowledges left
//! before the timeout, the segments had only been late. By the clock that the peer echoes, or because the answer comes sooner
//! after the retransmission than any did.

use super::Evidence;
use restp_base::time::{Duration, Time};

/// Step of the echoed clock (RFC 7323 §5.4).
const TICK: Duration = Duration::from_millis(1);

/// A timeout on which no acknowledgement has told yet.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TimeoutUnderTest {
    /// When the first segment left again.
    retransmitted_at: Option<Time>,
    /// The controller has heard of it.
    pub(super) cuts_window: bool,
}

impl TimeoutUnderTest {
    pub(super) fn on_retransmitted(&mut self, now: Time) {
        self.retransmitted_at.get_or_insert(now);
    }

    /// `evidence` is the first that acknowledges new data.
    pub(super) fn was_needless(self, evidence: &Evidence<'_>) -> bool {
        let Some(at) = self.retransmitted_at else {
            return true;
        };
        let age = evidence.now.since(at);
        let echoed = evidence.feedback.rtt.is_some_and(|rtt| rtt > age + TICK);
        echoed || evidence.rtt.minimum().is_some_and(|shortest| age < shortest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ack::AckReport;
    use crate::recovery::{Feedback, RttEstimator};

    fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    /// The retransmission left at 1000 ms; the shortest round trip is 100 ms.
    fn was_needless(now: u64, echoed: Option<u64>) -> bool {
        let mut timeout = TimeoutUnderTest::default();
        timeout.on_retransmitted(Time::ZERO + ms(1000));
        timeout.on_retransmitted(Time::ZERO + ms(1050)); // the next of them
        let mut rtt = RttEstimator::default();
        rtt.sample(ms(100));
        timeout.was_needless(&Evidence {
            now: Time::ZERO + ms(now),
            report: &AckReport::pointer(1),
            feedback: &Feedback {
                advanced: 1,
                rtt: echoed.map(ms),
                ..Feedback::default()
            },
            rtt: &rtt,
        })
    }

    #[test]
    fn an_answer_sooner_than_any_is_one_to_the_first_transmission() {
        assert!(was_needless(1099, None));
        assert!(!was_needless(1100, None));
    }

    #[test]
    fn the_echoed_clock_tells_at_any_distance() {
        assert!(was_needless(1200, Some(202)), "it left 2 ms before");
        assert!(!was_needless(1200, Some(201)), "the clock counts milliseconds");
    }

    #[test]
    fn what_is_acknowledged_before_it_leaves_again_was_late() {
        let rtt = RttEstimator::default();
        let evidence = Evidence {
            now: Time::ZERO + ms(5),
            report: &AckReport::pointer(1),
            feedback: &Feedback::default(),
            rtt: &rtt,
        };
        assert!(TimeoutUnderTest::default().was_needless(&evidence));
    }
}
