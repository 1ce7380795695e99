//! The largest value of the recent past, in two windows of it: the last whole one and the one that runs
//! (draft-ietf-ccwg-bbr §5.5.5; Cardwell and others 2016).

/// A maximum that forgets. Two numbers instead of a queue: it remembers between one and two windows.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RecentMax {
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
}
