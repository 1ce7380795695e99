//! Does damage follow what is sent (Biaz and Vaidya 2005)? A queue that drops early, by its average length, damages at random as far as
//! round trips show. Who takes three tenths of his window away loses next to nothing there for a while; by corruption, as much as before.

/// A test adds up what is likelier (Wald 1945): a fifth of the losses that were expected, or all of them. Then a loss weighs twice what an
/// expected one does. It believes in corruption with the fourth that nothing speaks against, where it is wrong in one of 25 cases and tests
/// again; in the contrary, which costs more, where it would be wrong in one of 1,300 if the share that is damaged was known exactly, and
/// is in one of 70 to 750.
const LOSS_WEIGHS: f64 = 2.0;
const CORRUPTION: f64 = 4.0;
const CONGESTION: f64 = -9.0;
/// Losses until a test: the share that is damaged is known to a quarter. Counts are halved at so many losses, however rare they are: who
/// waits for as many among so many segments waits for a chance, and finds a share that is too large.
const ENOUGH_LOSSES: f64 = 16.0;
const REMEMBERED_LOSSES: f64 = 200.0;
/// Time between two tests, in times of the last: with three tenths of the rate in one of sixty rounds, they cost half a percent.
const BETWEEN: u32 = 60;
/// A neighbour has taken what was left to him after so many rounds: where a test without a loss would take longer, none is made.
const MOST_ROUNDS: f64 = 64.0;
/// Rounds until what left before the test has been told of, and the average of a queue has fallen.
const SETTLING_ROUNDS: u32 = 4;
/// Damage that follows counts as congestion for so many losses, and is tested again.
const FOLLOWING: u32 = 60;

/// What a test has shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shown {
    /// Damage follows what is sent.
    Follows,
    /// It does not: the window before the test, in bytes.
    Stays(u64),
}

#[derive(Clone, Copy, Debug)]
struct Test {
    window: u64,
    rounds: u32,
    evidence: f64,
}

/// What is doubted of damage.
#[derive(Clone, Copy, Debug)]
pub(super) struct Doubt {
    /// Segments lost and delivered outside of tests.
    lost: f64,
    delivered: f64,
    /// Segments delivered since the last loss.
    quiet: f64,
    /// Rounds until the next test.
    rounds: u32,
    /// Losses for which damage is known to follow.
    following: u32,
    test: Option<Test>,
}

impl Default for Doubt {
    fn default() -> Self {
        Doubt {
            lost: 0.0,
            delivered: 0.0,
            quiet: 0.0,
            rounds: BETWEEN,
            following: 0,
            test: None,
        }
    }
}

impl Doubt {
    #[cfg(test)]
    pub fn due() -> Self {
        Doubt {
            lost: ENOUGH_LOSSES,
            delivered: ENOUGH_LOSSES * 99.0,
            rounds: 0,
            ..Doubt::default()
        }
    }

    #[cfg(test)]
    pub fn known_to_follow() -> Self {
        Doubt {
            following: FOLLOWING,
            ..Doubt::default()
        }
    }

    /// Of all segments so many are lost.
    fn share(&self) -> f64 {
        self.lost / (self.lost + self.delivered).max(1.0)
    }

    /// So many segments were delivered.
    pub fn on_delivered(&mut self, segments: f64) {
        let share = self.share();
        match &mut self.test {
            None => self.count_delivered(segments, share),
            Some(test) if test.rounds >= SETTLING_ROUNDS => test.evidence -= segments * share,
            Some(_) => {}
        }
    }

    fn count_delivered(&mut self, segments: f64, share: f64) {
        self.delivered += segments;
        self.quiet += segments;
        // Damage has ended: what was before says nothing of what will be.
        if self.lost >= ENOUGH_LOSSES && self.quiet * share >= -CONGESTION {
            (self.lost, self.delivered) = (0.0, 0.0);
        }
    }

    fn count_lost(&mut self) {
        self.quiet = 0.0;
        self.lost += 1.0;
        if self.lost > REMEMBERED_LOSSES {
            self.delivered *= 0.5;
            self.lost *= 0.5;
        }
    }

    /// One window of data was damaged.
    pub fn on_lost(&mut self) {
        self.following = self.following.saturating_sub(1);
        match &mut self.test {
            None => self.count_lost(),
            Some(test) if test.rounds >= SETTLING_ROUNDS => test.evidence += LOSS_WEIGHS,
            Some(_) => {}
        }
    }

    /// Damage follows what is sent: it is congestion.
    pub fn follows(&self) -> bool {
        self.following > 0
    }

    /// Is it time for a test with a window of so many segments?
    pub fn is_due(&self, window: u64) -> bool {
        let is_time = self.lost >= ENOUGH_LOSSES && self.rounds == 0 && self.test.is_none();
        is_time && window as f64 * self.share() * MOST_ROUNDS >= -CONGESTION
    }

    /// The window becomes smaller than `window`.
    pub fn begin(&mut self, window: u64) {
        self.test = Some(Test {
            window,
            rounds: 0,
            evidence: 0.0,
        });
    }

    /// What is sent has changed for another reason: counts begin anew.
    pub fn forget(&mut self) {
        *self = Doubt {
            following: self.following,
            ..Doubt::default()
        };
    }

    pub fn is_testing(&self) -> bool {
        self.test.is_some()
    }

    /// A round is over in which nobody else was known to be there.
    pub fn on_round(&mut self) -> Option<Shown> {
        self.rounds = self.rounds.saturating_sub(1);
        let test = self.test.as_mut()?;
        test.rounds = test.rounds.saturating_add(1);
        let (shown, rounds, following) = if test.evidence >= CORRUPTION {
            (Shown::Stays(test.window), test.rounds.saturating_mul(BETWEEN), 0)
        } else if test.evidence <= CONGESTION {
            (Shown::Follows, BETWEEN, FOLLOWING)
        } else {
            return None;
        };
        *self = Doubt {
            rounds,
            following,
            ..Doubt::default()
        };
        Some(shown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use restp_base::random::Stream;

    const WINDOW: u64 = 100;

    /// Time for a first test.
    fn due() -> Doubt {
        let doubt = Doubt::due();
        assert!(doubt.is_due(WINDOW));
        doubt
    }

    /// A test in which a loss comes after so many rounds of a hundred segments; how many rounds it takes, and what it shows.
    fn test(doubt: &mut Doubt, between: u32) -> (u32, Shown) {
        doubt.begin(7_000);
        for round in 1..1_000 {
            doubt.on_delivered(WINDOW as f64);
            if round % between == 0 {
                doubt.on_lost();
            }
            if let Some(shown) = doubt.on_round() {
                return (round, shown);
            }
        }
        panic!("no end");
    }

    #[test]
    fn as_much_damage_as_before_is_corruption_and_a_fifth_of_it_congestion() {
        let settled = SETTLING_ROUNDS;
        assert_eq!(test(&mut due(), 1), (settled + 4, Shown::Stays(7_000)));
        assert_eq!(test(&mut due(), 2_000), (settled + 9, Shown::Follows));
        assert_eq!(test(&mut due(), 5).1, Shown::Follows);
    }

    #[test]
    fn what_left_before_the_test_says_nothing() {
        let mut doubt = due();
        doubt.begin(7_000);
        for _ in 0..SETTLING_ROUNDS {
            (0..10).for_each(|_| doubt.on_lost());
            doubt.on_delivered(10_000.0);
            assert_eq!(doubt.on_round(), None);
        }
        assert_eq!(doubt.on_round(), None);
        assert!(doubt.is_testing());
    }

    #[test]
    fn sixteen_losses_and_sixty_rounds_come_first() {
        let mut doubt = Doubt::default();
        (1..16).for_each(|_| doubt.on_lost());
        doubt.on_delivered(1_584.0);
        (0..BETWEEN).for_each(|_| assert_eq!(doubt.on_round(), None));
        assert!(!doubt.is_due(WINDOW));
        doubt.on_lost();
        assert!(doubt.is_due(WINDOW));
        doubt.forget();
        assert!(!doubt.is_due(WINDOW));
    }

    #[test]
    fn a_test_that_would_take_too_long_is_not_made() {
        assert!(due().is_due(15), "nine losses are expected in 60 rounds");
        assert!(!due().is_due(14), "in 65");
    }

    #[test]
    fn the_next_test_waits_sixty_times_as_long_as_the_last_took() {
        let mut doubt = due();
        let (took, _) = test(&mut doubt, 1);
        doubt.on_delivered(1_584.0);
        (0..16).for_each(|_| doubt.on_lost());
        for _ in 0..took * BETWEEN {
            assert!(!doubt.is_due(WINDOW));
            doubt.on_round();
        }
        assert!(doubt.is_due(WINDOW));
    }

    #[test]
    fn a_test_that_was_given_up_is_not_made_again_at_once() {
        let mut doubt = due();
        doubt.begin(7_000);
        doubt.forget();
        assert!(!doubt.is_testing() && !doubt.is_due(WINDOW));
    }

    #[test]
    fn the_share_is_of_late() {
        let mut doubt = due();
        (0..400).for_each(|_| doubt.on_delivered(1_000.0));
        assert!(doubt.share() < 1e-5);
        assert!(!doubt.is_due(u64::MAX), "nothing was lost of late");
        for round in 0..2_000 {
            doubt.on_delivered(if round < 1_000 { 1_000.0 } else { 100.0 });
            doubt.on_lost();
        }
        assert!((0.009..0.011).contains(&doubt.share()), "{doubt:?}");
        assert!(doubt.lost <= REMEMBERED_LOSSES);
    }

    #[test]
    fn counts_begin_anew_where_nine_losses_were_due_and_none_came() {
        let mut doubt = due();
        (0..19).for_each(|_| doubt.on_delivered(100.0));
        assert_eq!(doubt.lost, 16.0, "of sixteen in 3,400, 8.9 in the last 1,900");
        (0..3).for_each(|_| doubt.on_delivered(100.0));
        assert_eq!((doubt.lost, doubt.delivered), (0.0, 200.0));
    }

    /// Sixteen losses were never counted where they are rarer than one of 1,250, but by chance, and then half of the tests were wrong.
    #[test]
    fn rare_damage_is_tested_too() {
        for between in [2_000, 10_000, 100_000] {
            let mut doubt = Doubt::default();
            for _ in 0..16 {
                assert!(!doubt.is_due(between));
                (0..4).for_each(|_| doubt.on_delivered(between as f64 / 4.0));
                (0..4).for_each(|_| assert_eq!(doubt.on_round(), None));
                doubt.on_lost();
            }
            assert!(doubt.is_due(between));
            assert!(!doubt.is_due(between / 10), "one loss in ten rounds");
        }
    }

    /// Of tests of a path that loses one segment of so many by chance, and in the test `stays` times as often.
    fn wrong(between: u64, window: u64, stays: f64) -> f64 {
        const TESTS: u32 = 3_000;
        let mut chance = Stream::named(1, "doubt");
        let mut wrong = 0;
        for _ in 0..TESTS {
            let mut doubt = Doubt::default();
            let shown = loop {
                let (is_testing, mut lost) = (doubt.is_testing(), 1.0 / between as f64);
                let mut segments = window;
                if is_testing {
                    (lost, segments) = (lost * stays, window / 10 * 7);
                } else if doubt.is_due(window / 10 * 7) {
                    doubt.begin(window);
                }
                for _ in 0..segments {
                    match chance.chance(lost) {
                        true => doubt.on_lost(),
                        false => doubt.on_delivered(1.0),
                    }
                }
                if let Some(shown) = doubt.on_round() {
                    break shown;
                }
            };
            wrong += u32::from((shown == Shown::Follows) == (stays == 1.0));
        }
        f64::from(wrong) / f64::from(TESTS)
    }

    #[test]
    fn tests_are_wrong_as_seldom_as_is_said() {
        for (between, window) in [(20, 10), (100, 50), (400, 100)] {
            let (corruption, congestion) = (wrong(between, window, 1.0), wrong(between, window, 0.2));
            assert!(corruption < 1.0 / 70.0, "one of {between}: {corruption}");
            assert!(congestion < 1.0 / 25.0, "one of {between}: {congestion}");
        }
    }

    #[test]
    fn a_test_without_end_does_not_overflow() {
        let mut doubt = due();
        doubt.begin(7_000);
        if let Some(test) = &mut doubt.test {
            (test.rounds, test.evidence) = (u32::MAX, CORRUPTION);
        }
        assert_eq!(doubt.on_round(), Some(Shown::Stays(7_000)));
        assert_eq!(doubt.rounds, u32::MAX);
    }

    #[test]
    fn damage_that_follows_is_congestion_for_sixty_losses() {
        let mut doubt = due();
        assert!(!doubt.follows());
        test(&mut doubt, 2_000);
        (0..FOLLOWING).for_each(|_| {
            doubt.forget();
            assert!(doubt.follows());
            doubt.on_lost();
        });
        assert!(!doubt.follows());
    }
}
