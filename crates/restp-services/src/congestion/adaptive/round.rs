//! What a round trip has shown. Time in the queue is what is beyond the shortest round trip (Copa, NSDI 2018).

use super::alone::Held;
use restp_base::time::Duration;

#[derive(Clone, Copy, Debug)]
pub(super) struct Round {
    pub held: Held,
    /// Time in the queue: what it is, how long this flow's own segments may wait there, no less than round trips vary by anyway, what
    /// counts as nothing, and what a few flows of this kind leave when each has just taken its own segments out. The last two are no less
    /// than what timers add, and the last no less than what round trips have varied by.
    pub queue: Duration,
    pub target: Duration,
    pub empty: Duration,
    pub shared: Duration,
    /// How much shorter the queue is without this flow's own segments.
    pub freed: Duration,
    pub shortest: Duration,
}
