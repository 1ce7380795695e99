//! Does somebody else fill the queue? Then it stays although this flow takes its own segments out of it (Copa, NSDI 2018,
//! §2.2; Nimbus, NSDI 2022, calls such neighbours elastic).

use restp_base::time::{Duration, Time};

/// Rounds in a row in which the queue was never nearly empty: this flow would have emptied it twice by then.
const BUSY_ROUNDS: u32 = 8;
/// Time between two trials whether the neighbour has left: round trips at first, and at most.
const FIRST_TRIAL: u64 = 30;
const LONGEST_TRIAL: Duration = Duration::from_secs(32);
/// It doubles with each trial that fails, so often at most.
const MOST_DOUBLINGS: u32 = 16;
/// Rounds until a trial has shown what it can, and until one that nothing spoke against has succeeded.
const TRIAL_ROUNDS: u32 = 3;
const PROBATION: u32 = 20;
/// Who takes three tenths of his window away while he is alone shortens round trips by as much; beside somebody else, by a part of it.
const ALONE: (u64, u64) = (31, 40);
/// Losses by congestion so many round trips apart have nothing to do with each other.
const AGAIN_ROUNDS: u64 = 50;
/// Rounds in a row without a queue after which nobody fills it.
pub(super) const CLEAR_ROUNDS: u32 = 10;

/// Damage that finds the queue in its fullest quarter is taken for congestion. Congestion means a neighbour only where it is more than
/// a third of the losses.
const DAMAGE_PER_CONGESTION: u8 = 2;
/// So many losses by damage are assumed beside those that were seen, unless a neighbour was there before: few losses show little.
const ASSUMED_DAMAGE: u8 = 2;
/// Losses that are counted.
const REMEMBERED_LOSSES: u8 = 16;

/// What happened so many periods of a neighbour apart has nothing to do with each other.
const PERIODS: u64 = 2;

/// How fast things happen on a path: a round trip, and the time between two losses of one loss-based flow.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    pub rtt: Duration,
    pub period: Duration,
}

/// What is known of neighbours.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Neighbours {
    /// Rounds in a row in which the queue was never nearly empty, and the largest window in them.
    busy: u32,
    window: u64,
    trial: Option<Trial>,
    trial_at: Time,
    /// When congestion last cost segments although this flow kept the queue short.
    lost_at: Option<Time>,
    /// Losses by congestion and by damage since this flow has been alone, the last of them.
    congested: u8,
    damaged: u8,
    /// Trials in a row that failed.
    failures: u32,
    /// Rounds of competing in a row in which the queue was nearly empty, and whether congestion has cost segments meanwhile.
    clear: u32,
    is_contested: bool,
}

/// This flow, which competed, gives way to see what becomes of the queue.
#[derive(Clone, Copy, Debug)]
struct Trial {
    standing: Duration,
    rounds: u32,
    since: Time,
}

impl Neighbours {
    /// A round with a `window` of so many bytes has ended with this `queue`; no longer than `empty`, it is nearly so. True when somebody
    /// else fills it.
    pub fn on_round(&mut self, now: Time, window: u64, queue: Duration, empty: Duration, pace: Pace) -> bool {
        if queue <= empty {
            (self.busy, self.window) = (0, 0);
            return false;
        }
        self.busy += 1;
        self.window = self.window.max(window);
        let found = self.busy >= BUSY_ROUNDS;
        if found {
            self.on_neighbour(now, pace);
        }
        found
    }

    /// A round of a trial has passed, and round trips take `standing` now; `empty`: with nearly nothing in the queue. True when the
    /// neighbour is still there.
    pub fn on_trial_round(&mut self, now: Time, standing: Duration, empty: Duration, pace: Pace) -> bool {
        let Some(trial) = &mut self.trial else {
            return false;
        };
        trial.rounds += 1;
        let is_met =
            trial.rounds == TRIAL_ROUNDS && standing > empty.max(trial.standing.scaled(ALONE.0, ALONE.1));
        if is_met {
            self.on_neighbour(now, pace);
        } else if trial.rounds >= PROBATION && now.since(trial.since) >= pace.period {
            (self.trial, self.failures) = (None, 0);
        }
        is_met
    }

    /// This flow gives way for a trial, and it is not known yet whether anybody is there.
    pub fn is_on_trial(&self) -> bool {
        self.trial.is_some()
    }

    /// The first rounds of a trial: the window stays as it is.
    pub fn is_deciding(&self) -> bool {
        self.trial.is_some_and(|trial| trial.rounds < TRIAL_ROUNDS)
    }

    /// Somebody is there, on a path with this round trip: the next trial follows later if he was there in the last one, too.
    pub fn on_neighbour(&mut self, now: Time, pace: Pace) {
        self.failures += u32::from(self.trial.is_some());
        let doublings = self.failures.min(MOST_DOUBLINGS);
        let first = (pace.rtt * FIRST_TRIAL).max(pace.period * PERIODS);
        self.trial_at = now + (first * (1 << doublings)).min(LONGEST_TRIAL);
    }

    /// One window of data was damaged while this flow was alone.
    pub fn on_damage_alone(&mut self) {
        self.damaged += 1;
        self.forget();
    }

    fn forget(&mut self) {
        if self.congested + self.damaged > REMEMBERED_LOSSES {
            (self.congested, self.damaged) = (self.congested / 2, self.damaged / 2);
        }
    }

    /// Segments were lost by congestion although this flow keeps the queue short. Once is no neighbour; True when that has happened not
    /// long ago, or during a trial, and light damage is no better reason.
    pub fn on_congestion_alone(&mut self, now: Time, pace: Pace, damage_is_light: bool) -> bool {
        let apart = (pace.rtt * AGAIN_ROUNDS).max(pace.period * PERIODS);
        let again = self.lost_at.is_some_and(|at| now.since(at) < apart);
        self.lost_at = Some(now);
        self.congested += 1;
        self.forget();
        let is_trial = self.trial.is_some();
        let explained = self.damaged + if is_trial { 0 } else { ASSUMED_DAMAGE };
        let is_explained = damage_is_light && self.congested * DAMAGE_PER_CONGESTION <= explained;
        if is_explained || (!is_trial && !again) {
            return false;
        }
        self.on_congestion_competing();
        self.on_neighbour(now, pace);
        true
    }

    /// The same while this flow competes: the neighbour is there.
    pub fn on_congestion_competing(&mut self) {
        (self.clear, self.is_contested) = (0, true);
    }

    /// A round of competing has ended, and the queue was nearly `empty`. True when it is time to see whether anybody is there.
    pub fn is_trial_due(&mut self, now: Time, empty: bool) -> bool {
        self.clear = if empty { self.clear + 1 } else { 0 };
        now >= self.trial_at || (self.clear >= CLEAR_ROUNDS && !self.is_contested)
    }

    /// This flow takes three tenths of its window away, while round trips take `standing`.
    pub fn begin_trial(&mut self, now: Time, standing: Duration) {
        (self.clear, self.is_contested) = (0, false);
        (self.congested, self.damaged) = (0, 0);
        self.trial = Some(Trial {
            standing,
            rounds: 0,
            since: now,
        });
    }

    /// The neighbour is there, and no trial is on from now on. None where one was; else the largest window in bytes of the rounds in
    /// which the queue was never nearly empty.
    pub fn on_found(&mut self) -> Option<u64> {
        let largest = std::mem::take(&mut self.window);
        self.busy = 0;
        self.trial.take().is_none().then_some(largest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(100);
    const EMPTY: Duration = Duration::from_millis(5);
    /// A neighbour that loses every two seconds.
    const PACE: Pace = Pace {
        rtt: RTT,
        period: Duration::from_secs(2),
    };

    fn at(millis: u64) -> Time {
        Time::ZERO + Duration::from_millis(millis)
    }
    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    /// Rounds with this queue until a neighbour is found, of `rounds` at most.
    fn found_after(neighbours: &mut Neighbours, rounds: u32, queue: u64) -> Option<u32> {
        (1..=rounds)
            .find(|round| neighbours.on_round(at(0), 1_000 * u64::from(*round), ms(queue), EMPTY, PACE))
    }

    #[test]
    fn a_queue_that_is_never_nearly_empty_is_somebody_elses() {
        let mut neighbours = Neighbours::default();
        assert_eq!(found_after(&mut neighbours, 20, 6), Some(BUSY_ROUNDS));
        assert_eq!(neighbours.on_found(), Some(8_000), "the largest of these rounds");
        assert_eq!(neighbours.on_found(), Some(0));
        assert_eq!(found_after(&mut neighbours, 7, 6), None);
        assert_eq!(found_after(&mut neighbours, 1, 5), None);
        assert_eq!(found_after(&mut neighbours, 7, 6), None, "counted anew");
    }

    /// What a trial finds where round trips took 200 ms before it and `standing` after.
    fn trial(neighbours: &mut Neighbours, standing: u64) -> bool {
        neighbours.begin_trial(at(0), ms(200));
        let rounds = (0..TRIAL_ROUNDS).map(|_| {
            assert!(neighbours.is_deciding());
            neighbours.on_trial_round(at(0), ms(standing), RTT + EMPTY, PACE)
        });
        let rounds: Vec<_> = rounds.collect();
        assert!(!neighbours.is_deciding());
        rounds == [false, false, true]
    }

    #[test]
    fn round_trips_that_follow_the_window_mean_that_nobody_is_there() {
        let mut neighbours = Neighbours::default();
        assert!(!trial(&mut neighbours, 155), "three tenths of 200 ms less");
        assert!(!(0..PROBATION).any(|_| neighbours.on_trial_round(at(1_999), ms(155), RTT, PACE)));
        assert!(neighbours.trial.is_some(), "he may lose only now");
        assert!(!neighbours.on_trial_round(at(2_000), ms(155), RTT, PACE));
        assert_eq!(neighbours.on_found(), Some(0), "the trial is over");
        assert!(trial(&mut neighbours, 156));
        assert_eq!(
            neighbours.on_found(),
            None,
            "this flow goes on as before the trial"
        );
    }

    #[test]
    fn trials_become_rarer_with_each_that_fails() {
        let mut neighbours = Neighbours::default();
        assert!(neighbours.is_trial_due(at(0), false));
        let mut fails = |wait, is_met: &dyn Fn(&mut Neighbours) -> bool| {
            neighbours.begin_trial(at(0), ms(100));
            assert!(is_met(&mut neighbours));
            neighbours.on_found();
            assert!(!neighbours.is_trial_due(at(wait - 1), false), "before {wait}");
            assert!(neighbours.is_trial_due(at(wait), false), "at {wait}");
        };
        let standing =
            |n: &mut Neighbours| (0..TRIAL_ROUNDS).any(|_| n.on_trial_round(at(0), RTT, EMPTY, PACE));
        fails(8_000, &standing);
        fails(16_000, &|n| found_after(n, BUSY_ROUNDS, 6).is_some());
        fails(32_000, &|n| n.on_congestion_alone(at(0), PACE, true));
        fails(32_000, &standing);
        fails(32_000, &standing);
    }

    #[test]
    fn ten_rounds_without_queue_and_loss_end_the_competition() {
        let mut neighbours = Neighbours::default();
        found_after(&mut neighbours, 8, 6);
        let due_after = |neighbours: &mut Neighbours| (1..20).find(|_| neighbours.is_trial_due(at(1), true));
        assert_eq!(due_after(&mut neighbours), Some(10));
        neighbours.on_congestion_competing();
        assert_eq!(
            due_after(&mut neighbours),
            None,
            "its losses show that somebody is there"
        );
    }

    #[test]
    fn one_loss_by_congestion_is_no_neighbour_and_a_second_soon_after_is() {
        let mut neighbours = Neighbours::default();
        assert!(!neighbours.on_congestion_alone(at(0), PACE, true));
        assert!(!neighbours.on_congestion_alone(at(5_000), PACE, true));
        assert!(neighbours.on_congestion_alone(at(9_999), PACE, true));
        neighbours.begin_trial(at(0), ms(100));
        assert!(
            neighbours.on_congestion_alone(at(100_000), PACE, true),
            "a trial allows none"
        );
    }

    /// One of four losses by damage finds the fullest quarter of the moments, and is taken for congestion.
    #[test]
    fn what_damage_explains_is_no_neighbour() {
        let mut neighbours = Neighbours::default();
        for loss in 0..400 {
            match loss % 4 {
                3 => assert!(!neighbours.on_congestion_alone(at(loss), PACE, true), "{loss}"),
                _ => neighbours.on_damage_alone(),
            }
        }
        let more = (0..12).position(|_| neighbours.on_congestion_alone(at(400), PACE, true));
        assert!(more.is_some_and(|more| more < 8), "{more:?}");
        let mut heavy = neighbours;
        heavy.on_damage_alone();
        (0..16).for_each(|_| heavy.on_damage_alone());
        assert!(
            heavy.on_congestion_alone(at(401), PACE, false),
            "much of it may be the queue's"
        );
        neighbours.begin_trial(at(400), ms(100));
        neighbours.on_damage_alone();
        neighbours.on_damage_alone();
        assert!(
            !neighbours.on_congestion_alone(at(401), PACE, true),
            "in a trial, too"
        );
        assert!(neighbours.on_congestion_alone(at(402), PACE, true));
    }

    #[test]
    fn what_a_neighbour_does_seldom_is_waited_for() {
        let slow = Pace {
            rtt: RTT,
            period: Duration::from_secs(9),
        };
        let mut neighbours = Neighbours::default();
        assert!(!neighbours.on_congestion_alone(at(0), slow, true));
        assert!(
            neighbours.on_congestion_alone(at(17_999), slow, true),
            "two of his periods"
        );
        assert!(!neighbours.is_trial_due(at(35_998), false));
        assert!(neighbours.is_trial_due(at(35_999), false));
    }

    #[test]
    fn a_trial_that_succeeds_makes_the_next_wait_short_again() {
        let mut neighbours = Neighbours {
            failures: 3,
            ..Neighbours::default()
        };
        neighbours.begin_trial(at(0), ms(200));
        (0..PROBATION).for_each(|_| assert!(!neighbours.on_trial_round(at(2_000), ms(155), RTT, PACE)));
        found_after(&mut neighbours, BUSY_ROUNDS, 6);
        assert!(!neighbours.is_trial_due(at(3_999), false));
        assert!(neighbours.is_trial_due(at(4_000), false));
    }
}
