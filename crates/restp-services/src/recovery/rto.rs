//! Retransmission timer (RFC 6298 §5, OP-58): value, bounds, back-off. Whether a timeout backs off is the
//! decision of loss handling.

use super::RttEstimator;
use restp_base::time::{Duration, Time};

/// Bounds of the timer and attempts of the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RtoParameters {
    /// Smallest value (OP-58: 200 ms; 1 s reproduces published runs).
    pub floor: Duration,
    /// Largest value, back-off included (OP-58), unless a round trip is longer or none was measured.
    pub ceiling: Duration,
    /// Timeouts in a row before the sender gives up (OP-51).
    pub attempts: u32,
    /// Least distance from the smoothed round trip: an answer may wait so long although none of late did, and on a steady
    /// path four deviations come to nothing (RFC 9002 §6.2.1).
    pub margin: Duration,
    /// In force until a round trip was measured (RFC 6298 (2.1)). Default 1 s.
    pub initial: Duration,
    /// It runs out when a clock with this tick is seen to have moved on, as timers of older systems did. Default zero: exactly.
    pub tick: Duration,
}

impl Default for RtoParameters {
    fn default() -> Self {
        RtoParameters {
            floor: Duration::from_millis(200),
            ceiling: Duration::from_secs(60),
            attempts: 15,
            margin: Duration::ZERO,
            initial: Duration::from_secs(1),
            tick: Duration::ZERO,
        }
    }
}

impl RtoParameters {
    /// The same for a peer that keeps acknowledgements for `wait`, however long a round trip is. The set-up tells the
    /// round trip R without the wait, and the first timer is 3 R or the floor (RFC 6298 (2.2)); with 3/2 waits in the
    /// floor, the larger of the two is above R + wait.
    pub fn allowing(self, wait: Duration) -> Self {
        RtoParameters {
            floor: (self.floor + wait.scaled(3, 2)).min(self.ceiling),
            ..self
        }
    }
}

/// The timer of one path.
#[derive(Clone, Debug)]
pub struct RtoTimer {
    parameters: RtoParameters,
    /// In force until the first sample.
    unmeasured: Duration,
    backoff: u32,
    expiries: u32,
    deadline: Option<Time>,
}

impl RtoTimer {
    /// A timer at rest.
    pub fn new(parameters: RtoParameters) -> Self {
        RtoTimer {
            unmeasured: parameters.initial,
            parameters,
            backoff: 0,
            expiries: 0,
            deadline: None,
        }
    }

    /// Other bounds hold from the next start on.
    pub fn adopt(&mut self, parameters: RtoParameters) {
        self.parameters = parameters;
    }

    /// The value in force: SRTT + 4·RTTVAR within the bounds, doubled per back-off; 1 s before the first sample
    /// (RFC 6298 (2.1)), 3 s if the set-up had to be retransmitted.
    pub fn value(&self, rtt: &RttEstimator) -> Duration {
        self.value_of(rtt, true)
    }

    /// The same for a segment that has a timer of its own: `doubled` when it left after the timer was doubled last.
    pub(crate) fn value_of(&self, rtt: &RttEstimator, doubled: bool) -> Duration {
        let base = rtt
            .timeout()
            .unwrap_or(self.unmeasured)
            .max(rtt.smoothed().unwrap_or_default() + self.parameters.margin)
            .max(self.parameters.floor);
        // A ceiling below the round trip would retransmit everything before it can be answered, and what is retransmitted measures
        // none (Karn): so it does not count before the first sample either.
        let ceiling = self
            .parameters
            .ceiling
            .max(rtt.smoothed().unwrap_or(self.unmeasured));
        let backoff = if doubled { self.backoff.min(30) } else { 0 };
        base.scaled(1 << backoff, 1).min(ceiling)
    }

    /// A packet of the set-up was retransmitted, so it gave no sample, and the round trip may be longer than its timer (5.7).
    pub fn on_retransmitted_set_up(&mut self) {
        self.unmeasured = self.unmeasured.max(Duration::from_secs(3));
    }

    /// Something was sent: start unless running (5.1).
    pub fn start(&mut self, now: Time, rtt: &RttEstimator) {
        if self.deadline.is_none() {
            self.restart(now, rtt);
        }
    }
    /// New data was acknowledged and more is outstanding: start afresh (5.3).
    pub fn restart(&mut self, now: Time, rtt: &RttEstimator) {
        self.deadline = Some(self.next_tick(now + self.value(rtt)));
    }
    /// The first tick of the clock that is not before `at`.
    fn next_tick(&self, at: Time) -> Time {
        let tick = self.parameters.tick.as_nanos();
        if tick == 0 {
            return at;
        }
        let ticks = at.since(Time::ZERO).as_nanos().div_ceil(tick);
        Time::ZERO + self.parameters.tick * ticks
    }
    /// It is that of a segment which left at `since` (ITP §IV).
    pub(crate) fn watch(&mut self, since: Time, rtt: &RttEstimator, doubled: bool) {
        self.deadline = Some(since + self.value_of(rtt, doubled));
    }
    /// It goes on as it ran before it was stopped.
    pub(crate) fn run_out_at(&mut self, at: Time) {
        self.deadline = Some(self.deadline.map_or(at, |deadline| deadline.min(at)));
    }
    /// Nothing is outstanding (5.2).
    pub fn stop(&mut self) {
        self.deadline = None;
    }
    /// New data was acknowledged: the path works, back-off and attempts are forgotten.
    pub fn on_progress(&mut self) {
        self.backoff = 0;
        self.expiries = 0;
    }
    /// It may be shorter than the round trip, which what left again does not measure: it is doubled until there is progress (5.5).
    pub fn back_off(&mut self) {
        self.backoff = (self.backoff + 1).min(30);
    }
    /// Is it doubled?
    pub fn is_backed_off(&self) -> bool {
        self.backoff > 0
    }
    /// When the timer runs out.
    pub fn deadline(&self) -> Option<Time> {
        self.deadline
    }
    /// Has it run out?
    pub fn has_expired(&self, now: Time) -> bool {
        self.deadline.is_some_and(|deadline| deadline <= now)
    }
    /// Timeouts since the last progress.
    pub fn expiries(&self) -> u32 {
        self.expiries
    }
    /// It has run out: back off (5.5) if `back_off`, count the attempt if `count`, and start again (5.6).
    /// False when the attempts are used up.
    pub fn expire(&mut self, now: Time, rtt: &RttEstimator, back_off: bool, count: bool) -> bool {
        self.expiries += 1;
        if count && self.expiries > self.parameters.attempts {
            self.deadline = None;
            return false;
        }
        if back_off {
            self.back_off();
        }
        self.restart(now, rtt);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_of_the_peer_is_no_timeout_whatever_the_round_trip() {
        for rtt_ms in [1, 10, 100, 499, 500, 501, 1000, 5000] {
            let (rtt, wait) = (Duration::from_millis(rtt_ms), Duration::from_secs(1));
            let timer = RtoTimer::new(RtoParameters::default().allowing(wait));
            let mut estimator = RttEstimator::default();
            estimator.sample(rtt);
            assert!(timer.value(&estimator) > rtt + wait, "{rtt_ms} ms");
        }
        let narrow = RtoParameters {
            ceiling: Duration::from_millis(300),
            ..Default::default()
        };
        assert_eq!(narrow.allowing(Duration::from_secs(1)).floor, narrow.ceiling);
    }

    #[test]
    fn on_a_steady_path_the_timer_leaves_the_peer_its_wait() {
        let mut rtt = RttEstimator::default();
        (0..200).for_each(|_| rtt.sample(Duration::from_millis(201)));
        let timer = |margin| {
            let parameters = RtoParameters {
                margin,
                ..Default::default()
            };
            RtoTimer::new(parameters).value(&rtt).as_millis()
        };
        assert_eq!(timer(Duration::ZERO), 201);
        assert_eq!(timer(Duration::from_millis(10)), 211);
    }

    #[test]
    fn a_ceiling_below_the_round_trip_gives_way_to_it() {
        let mut rtt = RttEstimator::default();
        let timer = RtoTimer::new(RtoParameters {
            floor: Duration::from_millis(1),
            ceiling: Duration::from_millis(50),
            ..Default::default()
        });
        assert_eq!(timer.value(&rtt), Duration::from_secs(1), "RFC 6298 (2.1)");
        rtt.sample(Duration::from_millis(300));
        assert_eq!(timer.value(&rtt), Duration::from_millis(300));
    }

    #[test]
    fn a_retransmitted_set_up_leaves_three_seconds_until_the_first_sample() {
        let (mut rtt, mut timer) = (RttEstimator::default(), RtoTimer::new(RtoParameters::default()));
        timer.on_retransmitted_set_up();
        assert_eq!(timer.value(&rtt), Duration::from_secs(3));
        rtt.sample(Duration::from_millis(100));
        assert_eq!(timer.value(&rtt), Duration::from_millis(300));
    }

    #[test]
    fn bounds_back_off_and_attempts() {
        let mut rtt = RttEstimator::default();
        let mut timer = RtoTimer::new(RtoParameters {
            attempts: 9,
            ..Default::default()
        });
        assert_eq!(timer.value(&rtt), Duration::from_secs(1));
        rtt.sample(Duration::from_millis(10));
        assert_eq!(timer.value(&rtt), Duration::from_millis(200), "the floor");
        timer.start(Time::ZERO, &rtt);
        for _ in 0..9 {
            let at = timer.deadline().unwrap();
            assert!(!timer.has_expired(at - Duration::from_nanos(1)) && timer.has_expired(at));
            assert!(timer.expire(at, &rtt, true, true));
        }
        assert_eq!(timer.value(&rtt), Duration::from_secs(60), "the ceiling");
        assert!(!timer.expire(timer.deadline().unwrap(), &rtt, true, true));
        assert_eq!(timer.deadline(), None);
    }

    /// CMT §8, OP-14.
    #[test]
    fn a_coarse_clock_lets_the_timer_run_out_with_its_next_tick() {
        let mut rtt = RttEstimator::default();
        rtt.sample(Duration::from_millis(100));
        let at = |tick_ms, sent_ms| {
            let mut timer = RtoTimer::new(RtoParameters {
                floor: Duration::from_secs(1),
                tick: Duration::from_millis(tick_ms),
                ..Default::default()
            });
            timer.start(Time::ZERO + Duration::from_millis(sent_ms), &rtt);
            timer.deadline().unwrap().since(Time::ZERO).as_millis()
        };
        assert_eq!(
            [0, 1, 499, 500].map(|sent| at(500, sent)),
            [1000, 1500, 1500, 1500]
        );
        assert_eq!(at(0, 1), 1001);
    }

    #[test]
    fn without_back_off_the_value_stays_and_progress_resets_it() {
        let mut rtt = RttEstimator::default();
        rtt.sample(Duration::from_millis(300));
        let mut timer = RtoTimer::new(RtoParameters::default());
        timer.start(Time::ZERO, &rtt);
        assert!((0..100).all(|_| timer.expire(Time::ZERO, &rtt, false, false)));
        assert_eq!(timer.value(&rtt), Duration::from_millis(900));
        timer.expire(Time::ZERO, &rtt, true, true);
        timer.on_progress();
        assert_eq!(
            (timer.value(&rtt), timer.expiries()),
            (Duration::from_millis(900), 0)
        );
    }
}
