//! Where nobody else fills the queue: what the path holds is in flight, and a few segments more. Once per round trip: with too
//! long a queue the window falls to what the path holds at the rate just measured; with a short one it grows, faster the longer
//! that has been so (FAST, INFOCOM 2004, for the fall; Copa, NSDI 2018, for the velocity).

use super::round::Round;
use restp_base::time::Duration;

/// Rounds of growth before it doubles from round to round: so long the queue takes to answer.
const STEADY_ROUNDS: u32 = 3;
/// A jump that fills the queue shows it within so many rounds. Then another flow has what the path once held, and none is tried for so many
/// rounds, and for twice as many after each that does.
const TELLING_ROUNDS: u32 = 2;
const SHORTEST_BAR: u32 = 8;
const LONGEST_BAR: u32 = 128;
/// Doublings at most: beyond, growth is bounded by the window.
const MOST_DOUBLINGS: u32 = 16;

/// What the path holds without a queue, in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Held {
    /// At the rate just measured.
    pub now: u64,
    /// At the highest rate of late.
    pub most: u64,
}

/// State of the rule.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Alone {
    /// Rounds in a row with a short queue.
    rising: u32,
    /// The window has just fallen: the next round shows what became of it.
    settling: bool,
    /// Bytes to grow by in this round, and growth owed in bytes times the window.
    step: u64,
    owed: u128,
    jump: Option<Jump>,
    /// Rounds without a jump that are left, and how many they were at first.
    barred: u32,
    bar: u32,
}

/// The window leaps towards what the path has held of late: rounds since then, and the queue before.
#[derive(Clone, Copy, Debug)]
struct Jump {
    rounds: u32,
    queue: Duration,
}

impl Jump {
    /// One round later; None once it has shown what it can.
    fn go_on(self) -> Option<Self> {
        let rounds = self.rounds + 1;
        (rounds <= TELLING_ROUNDS).then_some(Jump { rounds, ..self })
    }
}

impl Alone {
    /// `round` is over; returns the window.
    pub fn on_round(&mut self, window: u64, round: &Round, step: u64) -> u64 {
        let Round {
            held, queue, target, ..
        } = *round;
        self.barred = self.barred.saturating_sub(1);
        let jump = self.jump.take();
        self.jump = jump.and_then(Jump::go_on);
        if jump.is_some() && self.jump.is_none() {
            self.bar /= 2; // the path held it
        }
        if self.settling {
            self.settling = false;
            return window;
        }
        if queue > target {
            if self.jump.is_some_and(|jump| queue > jump.queue + target) {
                self.bar = (2 * self.bar).clamp(SHORTEST_BAR, LONGEST_BAR);
                self.barred = self.bar;
            }
            *self = Alone {
                settling: true,
                barred: self.barred,
                bar: self.bar,
                ..Alone::default()
            };
            return held.now.clamp(window / 2, window);
        }
        if window < held.most && self.barred == 0 {
            self.jump.get_or_insert(Jump { rounds: 0, queue }).rounds = 0;
            self.rising = 0;
            self.step = step.max((held.most - window) / 2);
            return window;
        }
        self.rising = if queue <= target / 4 { self.rising + 1 } else { 0 };
        let doublings = self.rising.saturating_sub(STEADY_ROUNDS).min(MOST_DOUBLINGS);
        self.step = (step << doublings).min(window);
        window
    }

    /// Of what is `acked`, the window grows by this.
    pub fn growth(&mut self, acked: u64, window: u64) -> u64 {
        self.owed += u128::from(self.step) * u128::from(acked.min(window));
        let grown = self.owed / u128::from(window.max(1));
        self.owed %= u128::from(window.max(1));
        grown as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TARGET: Duration = Duration::from_millis(8);
    const STEP: u64 = 2_000;

    fn round(alone: &mut Alone, window: u64, most: u64, queue: u64) -> u64 {
        alone.on_round(window, &ended(most, queue), STEP)
    }

    fn ended(most: u64, queue: u64) -> Round {
        Round {
            held: Held { now: 80_000, most },
            queue: Duration::from_millis(queue),
            target: TARGET,
            empty: TARGET,
            shared: TARGET,
            freed: TARGET,
            shortest: TARGET,
        }
    }

    /// What a round adds in which the whole window is acknowledged.
    fn growth(alone: &mut Alone, window: u64) -> u64 {
        (0..window / 1_000).map(|_| alone.growth(1_000, window)).sum()
    }

    #[test]
    fn too_long_a_queue_is_taken_out_once_and_then_shown() {
        let mut alone = Alone::default();
        assert_eq!(round(&mut alone, 100_000, 0, 9), 80_000);
        assert_eq!(
            round(&mut alone, 80_000, 0, 9),
            80_000,
            "it has not been seen to drain yet"
        );
        assert_eq!(growth(&mut alone, 80_000), 0);
        assert_eq!(round(&mut alone, 400_000, 0, 9), 200_000, "half at most");
    }

    #[test]
    fn a_queue_that_stays_short_lets_growth_double_after_three_rounds() {
        let mut alone = Alone::default();
        let grown: Vec<_> = (0..6)
            .map(|_| {
                round(&mut alone, 100_000, 0, 2);
                growth(&mut alone, 100_000)
            })
            .collect();
        assert_eq!(grown, [2_000, 2_000, 2_000, 4_000, 8_000, 16_000]);
        round(&mut alone, 100_000, 0, 3);
        assert_eq!(growth(&mut alone, 100_000), STEP, "a queue has begun");
    }

    #[test]
    fn what_the_path_is_known_to_hold_is_halfway_reached_in_a_round() {
        let mut alone = Alone::default();
        round(&mut alone, 40_000, 100_000, 0);
        assert_eq!(growth(&mut alone, 40_000), 30_000);
    }

    /// Another flow has come: who goes back to what the path held without it leaves it nothing.
    #[test]
    fn a_jump_that_fills_the_queue_is_not_repeated_for_a_while() {
        let mut alone = Alone::default();
        for bar in [8, 16, 32] {
            round(&mut alone, 80_000, 160_000, 1);
            assert_eq!(growth(&mut alone, 80_000), 40_000, "half of the way");
            round(&mut alone, 120_000, 160_000, 10);
            let quiet = (0..100).take_while(|_| {
                round(&mut alone, 80_000, 160_000, 3);
                growth(&mut alone, 80_000) <= STEP
            });
            assert_eq!(quiet.count(), bar - 1);
            round(&mut alone, 80_000, 160_000, 9); // less than the jump would have made
            round(&mut alone, 80_000, 160_000, 9);
        }
    }

    #[test]
    fn a_queue_that_comes_later_or_is_no_longer_than_before_bars_nothing() {
        for (rounds, queue) in [(2, 10), (0, 9)] {
            let mut alone = Alone::default();
            round(&mut alone, 80_000, 160_000, 1);
            (0..rounds).for_each(|_| _ = round(&mut alone, 160_000, 160_000, 1));
            round(&mut alone, 80_000, 160_000, queue);
            round(&mut alone, 80_000, 160_000, 3);
            round(&mut alone, 80_000, 160_000, 3);
            assert_eq!(growth(&mut alone, 80_000), 40_000, "{rounds} {queue}");
        }
    }

    #[test]
    fn growth_is_bounded_by_the_window() {
        let mut alone = Alone::default();
        for _ in 0..100 {
            round(&mut alone, 10_000, 0, 0);
        }
        assert_eq!(growth(&mut alone, 10_000), 10_000);
    }

    #[test]
    fn small_acknowledgements_add_up_to_the_same_growth() {
        let mut alone = Alone::default();
        round(&mut alone, 100_000, 0, 2);
        let grown: u64 = (0..300).map(|_| alone.growth(333, 100_000)).sum();
        assert_eq!(grown, 1_998);
    }
}
