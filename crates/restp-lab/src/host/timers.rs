//! Timers as operating systems have them: a runtime rounds up to its tick, and the system call that waits for it rounds up again.

use restp_base::random::Stream;
use restp_base::time::{Duration, Time};

/// The timer of one host.
#[derive(Debug)]
pub struct Timers {
    tick: Duration,
    /// Its ticks are so much later than those of zero.
    phase: u64,
    draw: Stream,
    /// A deadline, and when the host wakes for it.
    set: Option<(Time, Time)>,
}

impl Timers {
    /// So coarse; the rest of the second rounding is drawn.
    pub fn new(tick: Duration, mut draw: Stream) -> Self {
        Timers {
            tick,
            phase: draw.below(tick.as_nanos()),
            draw,
            set: None,
        }
    }

    /// When a host wakes that wants to at `deadline`: after it, and two ticks later at most.
    pub fn wakes(&mut self, deadline: Time) -> Time {
        if let Some((_, wakes)) = self.set.filter(|(set, _)| *set == deadline) {
            return wakes;
        }
        if deadline == Time::MAX {
            return deadline;
        }
        let tick = self.tick.as_nanos();
        let ticks = deadline.as_nanos().saturating_sub(self.phase).div_ceil(tick);
        let rounded = ticks.saturating_mul(tick).saturating_add(self.phase);
        let wakes = Time::from_nanos(rounded) + Duration::from_nanos(self.draw.below(tick));
        self.set = Some((deadline, wakes));
        wakes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_wakes_late_by_up_to_two_ticks_and_stays_with_it() {
        let tick = Duration::from_millis(1);
        let mut timers = Timers::new(tick, Stream::named(1, "timers"));
        let mut latest = Duration::ZERO;
        for n in 1..1_000u64 {
            let deadline = Time::from_nanos(n * 1_234_567);
            let wakes = timers.wakes(deadline);
            assert_eq!(timers.wakes(deadline), wakes);
            assert!(wakes >= deadline && wakes < deadline + tick * 2);
            latest = latest.max(wakes.since(deadline));
        }
        assert!(latest > tick.scaled(9, 5), "{latest:?}");
        assert_eq!(timers.wakes(Time::MAX), Time::MAX);
    }
}
