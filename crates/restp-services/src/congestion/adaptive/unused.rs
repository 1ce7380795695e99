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
