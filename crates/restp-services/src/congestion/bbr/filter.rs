//! The largest value of the recent past, in two windows of it: the last whole one and the one that runs
//! (draft-ietf-ccwg-bbr §5.5.5; Cardwell and others 2016).

use std::collections::VecDeque;

/// A maximum that forgets. Two numbers instead of a queue: it remembers between one and two windows.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::congestion) struct RecentMax {
    before: u64,
    now: u64,
}

impl RecentMax {
    pub fn update(&mut self, value: u64) {
        self.now = self.now.max(value);
    }
    pub fn get(&self) -> u64 {
        self.before.max(self.now)
    }
    /// Begins a window. One without a value is none: what is known stays known.
    pub fn advance(&mut self) {
        if self.now > 0 {
            (self.before, self.now) = (self.now, 0);
        }
    }
}

/// The largest value of the last so many rounds.
#[derive(Clone, Debug)]
pub(in crate::congestion) struct WindowedMax {
    rounds: u64,
    /// Values by round, each larger than those after it.
    values: VecDeque<(u64, u64)>,
}

impl WindowedMax {
    pub fn new(rounds: u64) -> Self {
        WindowedMax {
            rounds,
            values: VecDeque::new(),
        }
    }
    pub fn update(&mut self, round: u64, value: u64) {
        while self.values.back().is_some_and(|(_, last)| *last <= value) {
            self.values.pop_back();
        }
        self.values.push_back((round, value));
        while self
            .values
            .front()
            .is_some_and(|(first, _)| first + self.rounds <= round)
        {
            self.values.pop_front();
        }
    }
    pub fn get(&self) -> u64 {
        self.values.front().map_or(0, |(_, value)| *value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_lives_for_the_window_after_its_own() {
        let mut max = RecentMax::default();
        max.update(9);
        max.advance();
        max.update(5);
        assert_eq!(max.get(), 9);
        max.advance();
        assert_eq!(max.get(), 5);
        max.advance();
        assert_eq!(max.get(), 5, "nothing was seen since");
    }

    #[test]
    fn a_value_lives_for_its_rounds() {
        let mut max = WindowedMax::new(3);
        let after: Vec<_> = [5, 9, 4, 4, 3, 2]
            .into_iter()
            .enumerate()
            .map(|(round, value)| {
                max.update(round as u64, value);
                max.get()
            })
            .collect();
        assert_eq!(after, [5, 9, 9, 9, 4, 4]);
        assert!(max.values.len() <= 3);
    }
}
