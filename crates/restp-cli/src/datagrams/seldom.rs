//! What is said now and then, however often it happens.

use std::time::Duration;
use tokio::time::Instant;

/// Between two times.
const TELL: Duration = Duration::from_secs(30);

/// When it was said last.
#[derive(Debug, Default)]
pub struct Seldom(Option<Instant>);

impl Seldom {
    /// Is it to be said now?
    pub fn is_due(&mut self, now: Instant) -> bool {
        let due = self.0.is_none_or(|told| now - told >= TELL);
        if due {
            self.0 = Some(now);
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_happens_all_the_time_is_said_now_and_then() {
        let start = Instant::now();
        let mut seldom = Seldom::default();
        let said = (0..100).filter(|second| seldom.is_due(start + Duration::from_secs(*second)));
        assert_eq!(said.collect::<Vec<_>>(), [0, 30, 60, 90]);
    }
}
