//! Do rarer acknowledgements carry more? Where the way back is thin they wait in its queue, and a sender sees no more of that than of a
//! queue on the way there. So once in a while it asks for half as many, during some rounds: where the rate grows by half, the way back was
//! full of them (RFC 5690 halves them where they are lost). Later it asks for twice as many again, in case the way back is wider now.

use restp_base::time::{Duration, Time};

/// Rounds of a trial: a window that grows by two segments a round, and faster after three, has doubled by then.
const TRIAL_ROUNDS: u32 = 10;
/// Rounds before a trial tell what the rate was, the last of a trial what it is: one may have missed a burst.
const BEFORE_ROUNDS: usize = 4;
const AFTER_ROUNDS: usize = 2;
/// By so much the rate of a path hardly grows when acknowledgements do not matter, nor falls.
const GROWN: (u64, u64) = (3, 2);
const FALLEN: (u64, u64) = (3, 4);
/// A rate that grows by more than an eighth in the rounds before does so for another reason.
const STEADY: (u64, u64) = (9, 8);
/// Rounds between two trials, at first and at most: twice as many after each that has shown nothing new.
const FIRST_WAIT: u32 = 16;
const LONGEST_WAIT: u32 = 1024;
/// So much longer than a round trip it is a pause.
const PAUSE: u64 = 4;

/// What the flow is doing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flow {
    /// It has begun, fills its window, and wants no more acknowledgements than that needs.
    pub steady: bool,
    /// There is room for fewer.
    pub may_thin: bool,
}

/// Which way a trial goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    Rarer,
    Oftener,
}

/// What was tried, and what comes next.
#[derive(Debug)]
pub(super) struct AckTrial {
    doublings: u8,
    /// While one goes on: which, and the rate before it.
    trial: Option<(Asked, u64)>,
    /// Rounds of the trial, or since the last one; how many to wait for, and which comes next.
    rounds: u32,
    wait: u32,
    next: Asked,
    /// The last trial has shown that rarer ones carry more: the next one follows soon.
    climbs: bool,
    /// When the round began, and segments delivered in it.
    began: Time,
    delivered: u64,
    /// Segments delivered in a second, in the last rounds, the newest last.
    rates: [u64; BEFORE_ROUNDS],
}

impl Default for AckTrial {
    fn default() -> Self {
        AckTrial {
            doublings: 0,
            trial: None,
            rounds: 0,
            wait: FIRST_WAIT,
            next: Asked::Rarer,
            climbs: false,
            began: Time::ZERO,
            delivered: 0,
            rates: [0; BEFORE_ROUNDS],
        }
    }
}

impl AckTrial {
    /// How often the segments for an acknowledgement are doubled.
    pub fn doublings(&self) -> u8 {
        self.doublings
    }

    /// `delivered` segments are acknowledged, and a round trip takes `rtt`. Nothing is learned while the flow is not steady, and of a pause.
    pub fn on_report(&mut self, now: Time, delivered: u64, rtt: Duration, flow: Flow) {
        let lasted = now.since(self.began);
        if !flow.steady || lasted > rtt * PAUSE {
            self.give_up();
            (self.began, self.delivered, self.rounds) = (now, 0, 0);
            return;
        }
        self.delivered += delivered;
        if lasted >= rtt && !lasted.is_zero() {
            let rate = u128::from(self.delivered) * 1_000_000_000 / u128::from(lasted.as_nanos());
            (self.began, self.delivered) = (now, 0);
            self.on_round(u64::try_from(rate).unwrap_or(u64::MAX), flow.may_thin);
        }
    }

    fn on_round(&mut self, rate: u64, may_thin: bool) {
        self.rates.rotate_left(1);
        self.rates[BEFORE_ROUNDS - 1] = rate;
        self.rounds += 1;
        let Some((asked, before)) = self.trial else {
            let wait = if self.climbs {
                BEFORE_ROUNDS as u32
            } else {
                self.wait
            };
            if self.rounds >= wait && self.is_steady() {
                self.begin(may_thin);
            }
            return;
        };
        match asked {
            // It may be chance: the rate has to fall again when they come as often as before.
            Asked::Rarer if self.last_are(|rate| rate >= times(before, GROWN)) => {
                (self.climbs, self.next) = (true, Asked::Oftener);
                self.end();
            }
            Asked::Oftener if self.last_are(|rate| rate < times(before, FALLEN)) => {
                self.doublings += 1;
                self.next = Asked::Rarer;
                self.wait = if self.climbs {
                    FIRST_WAIT
                } else {
                    self.longer_wait()
                };
                self.end();
            }
            _ if self.rounds >= TRIAL_ROUNDS => {
                self.doublings -= u8::from(asked == Asked::Rarer);
                let thinned = asked == Asked::Rarer && self.doublings > 0;
                self.next = if thinned { Asked::Oftener } else { Asked::Rarer };
                (self.climbs, self.wait) = (false, self.longer_wait());
                self.end();
            }
            _ => {}
        }
    }

    fn longer_wait(&self) -> u32 {
        (2 * self.wait).min(LONGEST_WAIT)
    }

    /// Are the last rounds, all of them of the trial, so?
    fn last_are(&self, is_so: impl Fn(u64) -> bool) -> bool {
        let last = &self.rates[BEFORE_ROUNDS - AFTER_ROUNDS..];
        self.rounds > AFTER_ROUNDS as u32 && last.iter().all(|rate| is_so(*rate))
    }

    fn is_steady(&self) -> bool {
        let [first, second, third, last] = self.rates;
        let (older, newer) = (first.saturating_add(second), third.saturating_add(last));
        older > 0 && newer <= times(older, STEADY)
    }

    fn begin(&mut self, may_thin: bool) {
        let before = self
            .rates
            .iter()
            .fold(0, |sum: u64, rate| sum.saturating_add(*rate))
            / BEFORE_ROUNDS as u64;
        self.next = match self.next {
            Asked::Rarer if !may_thin => Asked::Oftener,
            next => next,
        };
        match self.next {
            Asked::Rarer => self.doublings += 1,
            Asked::Oftener if self.doublings > 0 => self.doublings -= 1,
            Asked::Oftener => {
                self.next = Asked::Rarer; // later, when there is room for it
                return;
            }
        }
        (self.trial, self.rounds) = (Some((self.next, before)), 0);
    }

    fn end(&mut self) {
        (self.trial, self.rounds) = (None, 0);
    }

    /// Something else changes the rate: the trial shows nothing.
    fn give_up(&mut self) {
        match self.trial {
            Some((Asked::Rarer, _)) => self.doublings -= 1,
            Some((Asked::Oftener, _)) => self.doublings += 1,
            None => {}
        }
        self.end();
    }
}

fn times(rate: u64, (by, of): (u64, u64)) -> u64 {
    u64::try_from(u128::from(rate) * u128::from(by) / u128::from(of)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(20);
    const STEADY_FLOW: Flow = Flow {
        steady: true,
        may_thin: true,
    };

    /// What was asked for in each of so many rounds, where `carried` is the segments a round carries with this many doublings.
    fn asked(trial: &mut AckTrial, from: u64, rounds: u64, carried: impl Fn(u8) -> u64) -> Vec<u8> {
        let round = |round| {
            for quarter in 1..=4 {
                let now = Time::ZERO + RTT * (from + round - 1) + RTT / 4 * quarter;
                trial.on_report(now, carried(trial.doublings()) / 4, RTT, STEADY_FLOW);
            }
            trial.doublings()
        };
        (1..=rounds).map(round).collect()
    }

    #[test]
    fn rarer_ones_are_kept_where_they_carry_more() {
        let mut trial = AckTrial::default();
        let asked = asked(&mut trial, 0, 200, |doublings| 100 << doublings.min(2));
        let tried = asked.iter().position(|doublings| *doublings > 0);
        assert_eq!(tried, Some(FIRST_WAIT as usize - 1));
        assert!(asked[60..80].iter().all(|doublings| *doublings >= 2), "{asked:?}");
        let twice = asked[60..].iter().filter(|doublings| **doublings == 2).count();
        assert!(twice > 100, "all that the path carries: {asked:?}");
    }

    #[test]
    fn a_path_that_carries_as_much_is_asked_for_rarer_ones_ever_more_seldom() {
        for carried in [|_| 100, |doublings: u8| 100 - 10 * u64::from(doublings)] {
            let mut trial = AckTrial::default();
            let asked = asked(&mut trial, 0, 4000, carried);
            assert!(asked.iter().all(|doublings| *doublings <= 1));
            let rare = |range: std::ops::Range<usize>| asked[range].iter().filter(|it| **it > 0).count();
            assert_eq!(rare(0..26), TRIAL_ROUNDS as usize);
            assert_eq!(
                rare(0..4000),
                8 * TRIAL_ROUNDS as usize,
                "32, 64 … 1,024, 1,024 rounds apart"
            );
        }
    }

    #[test]
    fn a_rate_that_grows_for_another_reason_is_no_reason() {
        let mut trial = AckTrial::default();
        asked(&mut trial, 0, u64::from(FIRST_WAIT), |_| 100);
        assert_eq!(trial.doublings(), 1);
        let grown = asked(&mut trial, u64::from(FIRST_WAIT), 100, |_| 200);
        let kept = grown.iter().filter(|doublings| **doublings > 0).count();
        assert!(kept <= 2 * TRIAL_ROUNDS as usize, "{grown:?}");
        assert_eq!(grown.last(), Some(&0));
    }

    #[test]
    fn a_way_back_that_becomes_wider_is_asked_for_more_again() {
        let mut trial = AckTrial::default();
        asked(&mut trial, 0, 200, |doublings| 100 << doublings.min(2));
        assert!(trial.doublings() >= 2);
        let wide = asked(&mut trial, 200, 4000, |_| 400);
        assert_eq!(wide.last(), Some(&0));
    }

    #[test]
    fn nothing_is_tried_while_the_rate_grows_or_a_flow_is_not_steady() {
        let mut trial = AckTrial::default();
        for round in 1..200 {
            let steady = round % 16 != 0;
            trial.on_report(
                Time::ZERO + RTT * round,
                100,
                RTT,
                Flow {
                    steady,
                    ..STEADY_FLOW
                },
            );
            assert_eq!(trial.doublings(), 0);
        }
        let mut trial = AckTrial::default();
        for round in 1..40 {
            let grown = (1.1_f64.powi(round) * 100.0) as u64;
            trial.on_report(Time::ZERO + RTT * round as u64, grown, RTT, STEADY_FLOW);
            assert_eq!(trial.doublings(), 0);
        }
        asked(&mut trial, 39, 8, |_| 5000);
        assert_eq!(trial.doublings(), 1);
        let steady = false;
        trial.on_report(
            Time::ZERO + RTT * 48,
            2000,
            RTT,
            Flow {
                steady,
                ..STEADY_FLOW
            },
        );
        assert_eq!(trial.doublings(), 0, "given up");
    }

    /// Rounds of a trial that end with this rate, after a pause of so many round trips.
    fn paused(pause: u64) -> u8 {
        let mut trial = AckTrial::default();
        asked(&mut trial, 0, u64::from(FIRST_WAIT), |_| 100);
        assert_eq!(trial.doublings(), 1);
        asked(&mut trial, u64::from(FIRST_WAIT) + pause, 1, |_| 100);
        trial.doublings()
    }

    #[test]
    fn a_pause_is_no_round() {
        assert_eq!(paused(PAUSE - 1), 1);
        assert_eq!(paused(PAUSE + 1), 0, "given up");
    }

    #[test]
    fn what_would_change_nothing_is_not_tried() {
        let mut trial = AckTrial::default();
        let full = Flow {
            may_thin: false,
            ..STEADY_FLOW
        };
        for round in 1..100 {
            trial.on_report(Time::ZERO + RTT * round, 100, RTT, full);
            assert_eq!(trial.doublings(), 0);
        }
        asked(&mut trial, 100, 200, |doublings| 100 << doublings.min(2));
        let thinned = trial.doublings();
        assert!(thinned >= 2);
        let mut least = thinned;
        for round in 301..2000 {
            trial.on_report(Time::ZERO + RTT * round, 400, RTT, full);
            least = least.min(trial.doublings());
        }
        assert_eq!(least, 0, "more often is tried all the same");
    }

    #[test]
    fn rates_of_a_segment_a_second_are_compared() {
        assert_eq!(
            (times(1, GROWN), times(3, GROWN), times(u64::MAX, GROWN)),
            (1, 4, u64::MAX)
        );
        let mut trial = AckTrial::default();
        let rtt = Duration::from_secs(1);
        for round in 1..=u64::from(FIRST_WAIT) {
            trial.on_report(Time::ZERO + rtt * round, 3, rtt, STEADY_FLOW);
        }
        assert_eq!(trial.doublings(), 1);
    }
}
