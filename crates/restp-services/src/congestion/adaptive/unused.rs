//! What an application has not asked for is not known (RFC 7661 §1): a path that was left unused for a while is asked anew for what it
//! holds, once somebody wants more of it.

use super::neighbours::CLEAR_ROUNDS;
use restp_base::time::{Duration, Time};

/// How the path was used of late.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Unused {
    /// Rounds in a row that the application left unused and in which nothing waited.
    rounds: u32,
    asked_at: Option<Time>,
}

impl Unused {
    /// A round is over.
    pub fn on_round(&mut self, is_unused: bool) {
        self.rounds = if is_unused {
            self.rounds.saturating_add(1)
        } else {
            0
        };
    }

    /// The path is used up. True when it is to be asked anew: who does not want more keeps his pace, and an answer is `remembered` for
    /// so long.
    pub fn is_over(&mut self, now: Time, remembered: Duration) -> bool {
        let was_unused = std::mem::take(&mut self.rounds) >= CLEAR_ROUNDS;
        let is_over = was_unused && self.asked_at.is_none_or(|at| now.since(at) >= remembered);
        if is_over {
            self.asked_at = Some(now);
        }
        is_over
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REMEMBERED: Duration = Duration::from_secs(10);

    fn unused(path: &mut Unused, rounds: u32) {
        (0..rounds).for_each(|_| path.on_round(true));
    }

    #[test]
    fn ten_rounds_in_a_row_are_a_while_that_the_next_use_ends() {
        let mut path = Unused::default();
        let end = Time::ZERO + REMEMBERED;
        unused(&mut path, CLEAR_ROUNDS - 1);
        path.on_round(false);
        unused(&mut path, CLEAR_ROUNDS - 1);
        assert!(!path.is_over(Time::ZERO, REMEMBERED));
        unused(&mut path, CLEAR_ROUNDS);
        assert!(path.is_over(Time::ZERO, REMEMBERED));
        assert!(!path.is_over(end, REMEMBERED), "it was the same while");
    }

    /// Who would ask and was refused has not asked.
    #[test]
    fn an_answer_is_remembered_since_it_was_asked_for() {
        let mut path = Unused::default();
        let begin = Time::ZERO + Duration::from_secs(1);
        let mut asks = |at| {
            unused(&mut path, CLEAR_ROUNDS);
            path.is_over(at, REMEMBERED)
        };
        let just = Duration::from_nanos(1);
        let end = begin + REMEMBERED;
        assert_eq!([begin, end - just, end].map(&mut asks), [true, false, true]);
    }
}
