//! The contention window and the countdown of one station, computed when it matters: no event per slot.

use super::timing::Timing;
use restp_base::random::Stream;
use restp_base::time::{Duration, Time};

/// One station's backoff.
#[derive(Clone, Debug)]
pub(super) struct Backoff {
    window: u32,
    slots: u32,
    /// None was drawn: the medium was idle when there was something to send.
    undrawn: bool,
    /// When the slots left begin to count.
    from: Time,
    stream: Stream,
}

impl Backoff {
    pub(super) fn new(window: u32, stream: Stream) -> Self {
        Backoff {
            window,
            slots: 0,
            undrawn: false,
            from: Time::ZERO,
            stream,
        }
    }

    /// Draws a new count of slots, uniform from 0 to the window.
    pub(super) fn draw(&mut self) {
        self.slots = self.stream.below(u64::from(self.window) + 1) as u32;
        self.undrawn = false;
    }

    /// After an exchange that is over, for good or ill.
    pub(super) fn reset(&mut self, timing: &Timing) {
        self.window = timing.cw_min;
        self.draw();
    }

    /// After one that failed and is tried again.
    pub(super) fn widen(&mut self, timing: &Timing) {
        self.window = (2 * self.window + 1).min(timing.cw_max);
        self.draw();
    }

    /// When the last slot is over, if nothing comes between.
    pub(super) fn over(&self, slot: Duration) -> Time {
        self.from + slot * u64::from(self.slots)
    }

    /// The medium is busy from `at`: slots that were over by then are.
    pub(super) fn freeze(&mut self, at: Time, slot: Duration) {
        if at > self.from {
            let passed = at.since(self.from).as_nanos() / slot.as_nanos();
            self.slots = self.slots.saturating_sub(passed.min(u64::from(u32::MAX)) as u32);
        }
    }

    /// Slots count again from `from`.
    pub(super) fn resume(&mut self, from: Time) {
        self.from = from;
    }

    /// They do not before `now`.
    pub(super) fn not_before(&mut self, now: Time) {
        self.from = self.from.max(now);
    }

    /// The slots left are over, and something comes to be sent without any.
    pub(super) fn spend(&mut self) {
        (self.slots, self.undrawn) = (0, true);
    }

    /// What was to be sent without a backoff needs one, as the medium has become busy.
    pub(super) fn interrupt(&mut self) {
        if self.undrawn {
            self.draw();
        }
    }

    /// No slot is left.
    pub(super) fn is_spent(&self) -> bool {
        self.slots == 0
    }
}

#[cfg(test)]
mod tests {
    use super::super::timing::DSSS;
    use super::*;

    fn b() -> Timing {
        Timing::dsss(DSSS[1])
    }

    fn us(us: u64) -> Time {
        Time::ZERO + Duration::from_micros(us)
    }

    #[test]
    fn only_whole_slots_count() {
        let mut backoff = Backoff::new(b().cw_min, Stream::named(1, "backoff"));
        backoff.slots = 7;
        backoff.resume(us(100));
        assert_eq!(backoff.over(b().slot), us(240));
        backoff.freeze(us(159), b().slot);
        backoff.resume(us(1000));
        assert_eq!(backoff.over(b().slot), us(1100));
        backoff.freeze(us(990), b().slot);
        assert_eq!(backoff.over(b().slot), us(1100), "nothing counts while it waits");
        backoff.freeze(us(2000), b().slot);
        assert!(backoff.is_spent());
    }

    #[test]
    fn the_window_doubles_up_to_its_largest_and_draws_reach_both_ends() {
        let mut backoff = Backoff::new(b().cw_min, Stream::named(1, "backoff"));
        let mut windows = Vec::new();
        for _ in 0..7 {
            windows.push(backoff.window);
            backoff.widen(&b());
        }
        assert_eq!(windows, [31, 63, 127, 255, 511, 1023, 1023]);
        backoff.reset(&b());
        let mut seen = [false; 32];
        for _ in 0..1000 {
            backoff.draw();
            seen[backoff.slots as usize] = true;
        }
        assert_eq!(seen, [true; 32]);
    }
}
