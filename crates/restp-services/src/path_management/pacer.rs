//! Spreads segments over time at a given rate, with short bursts so that a driver may wake rarely
//! (RFC 9002 §7.7).

use restp_base::time::{Duration, Time};
use restp_base::units::Rate;

/// Segments that may leave back to back after a pause.
const BURST_SEGMENTS: u64 = 10;
/// Or as much as the rate carries in this time, whichever is more: timers of drivers are about this coarse.
const BURST_TIME: Duration = Duration::from_millis(1);
/// A driver that was to wake for a segment is late by so much, and what would have left meanwhile is made up for: its timer rounds up to a
/// millisecond, and so does the system call that waits for it.
const LATE: Duration = Duration::from_millis(2);
/// On a machine under load it is later, and no more is made up for. Who leaves later than this did not wait for a timer.
const LATEST: Duration = Duration::from_millis(10);

/// A virtual clock of the sending rate.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pacer {
    /// When the line would be free had it the pacing rate.
    free_at: Time,
    burst: Duration,
    /// What leaves before this makes up for a late wake-up.
    makes_up_until: Time,
}

impl Pacer {
    /// The rate is `rate` now: no segment of `segment_bytes` waits longer than it takes at this rate, or a round trip of `rtt`, over
    /// which a window is spread, whatever those before it took at a lower one.
    pub fn catch_up(&mut self, now: Time, segment_bytes: u64, rate: Rate, rtt: Duration) {
        let wait = rate.transmission_time(segment_bytes).max(rtt);
        self.free_at = self.free_at.min(now + self.burst + wait);
    }
    /// A segment waits until [`next_at`](Pacer::next_at).
    pub fn hold(&mut self) {
        self.makes_up_until = self.next_at() + LATEST;
    }
    /// The next segment waits for something else than the pacer.
    pub fn release(&mut self) {
        self.makes_up_until = Time::ZERO;
    }
    /// May a segment leave at `now`? Who may and does not, because another path is preferred, is not late later on.
    pub fn allows(&mut self, now: Time) -> bool {
        let allows = self.free_at <= now + self.burst;
        if allows {
            self.makes_up_until = self.makes_up_until.min(now + BURST_TIME); // a burst takes its time
        }
        allows
    }
    /// When the next segment may leave.
    pub fn next_at(&self) -> Time {
        self.free_at - self.burst
    }
    /// `bytes` left at `now` while the rate was `rate` and segments have `segment_bytes`.
    pub fn on_sent(&mut self, now: Time, bytes: u64, segment_bytes: u64, rate: Rate) {
        self.burst = rate
            .transmission_time(segment_bytes * BURST_SEGMENTS)
            .max(BURST_TIME);
        let is_late = now < self.makes_up_until;
        let late = if is_late { LATE } else { Duration::ZERO };
        self.free_at = self.free_at.max(now - late) + rate.transmission_time(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_burst_then_the_rate() {
        let mut pacer = Pacer::default();
        let (mut now, rate) = (Time::ZERO + Duration::from_secs(1), Rate::from_bps(8_000_000)); // 1 ms per 1000 B
        let mut sent = 0;
        while now < Time::ZERO + Duration::from_secs(2) {
            while pacer.allows(now) {
                pacer.on_sent(now, 1000, 1000, rate);
                sent += 1;
            }
            assert!(pacer.next_at() > now);
            now = pacer.next_at();
        }
        assert!((1000..=1012).contains(&sent), "{sent}");
    }

    /// A millisecond and more of each was lost: half of the rate of a fast path.
    #[test]
    fn what_a_timer_wakes_late_for_is_made_up_for() {
        let (mut pacer, rate) = (Pacer::default(), Rate::from_bps(160_000_000)); // 50 µs per 1000 B
        let (start, end) = (
            Time::ZERO + Duration::from_secs(1),
            Time::ZERO + Duration::from_secs(2),
        );
        let (mut now, mut sent) = (start, 0);
        while now < end {
            while pacer.allows(now) {
                pacer.on_sent(now, 1000, 1000, rate);
                sent += 1;
            }
            pacer.hold();
            now = pacer.next_at() + Duration::from_micros(1990);
        }
        assert!((19_800..=20_080).contains(&sent), "{sent}");
    }

    /// However late the driver is, and whatever a segment waited for since.
    #[test]
    fn no_more_is_made_up_for_than_timers_are_late() {
        let rate = Rate::from_bps(160_000_000); // 50 µs per 1000 B
        let burst = |waits: fn(&mut Pacer), after: Duration| {
            let (mut pacer, start) = (Pacer::default(), Time::ZERO + Duration::from_secs(1));
            pacer.on_sent(start, 1000, 1000, rate);
            waits(&mut pacer);
            let later = start + after;
            let mut sent = 0;
            while pacer.allows(later) {
                pacer.on_sent(later, 1000, 1000, rate);
                sent += 1;
            }
            sent
        };
        let ms = Duration::from_millis;
        assert_eq!(burst(|_| {}, ms(8)), 21, "a millisecond: it had nothing to send");
        assert_eq!(burst(Pacer::hold, ms(8)), 61, "and two that the timer was late");
        assert_eq!(
            burst(Pacer::hold, ms(1_000)),
            21,
            "nobody waited for a timer so long"
        );
        let for_the_window = |pacer: &mut Pacer| {
            pacer.hold();
            pacer.release();
        };
        assert_eq!(burst(for_the_window, ms(8)), 21);
        let for_another_path = |pacer: &mut Pacer| {
            pacer.hold();
            assert!(pacer.allows(Time::ZERO + Duration::from_millis(1_005)));
        };
        assert_eq!(burst(for_another_path, ms(8)), 21);
    }

    /// A burst at a rate that was measured too low would otherwise hold up everything after it.
    #[test]
    fn what_left_at_a_low_rate_holds_up_little_at_a_higher_one() {
        let (mut pacer, now) = (Pacer::default(), Time::ZERO + Duration::from_secs(1));
        let (slow, fast) = (Rate::from_bps(8_000), Rate::from_bps(8_000_000)); // 1 s and 1 ms per 1000 B
        (0..11).for_each(|_| pacer.on_sent(now, 1000, 1000, slow));
        pacer.on_sent(now, 1000, 1000, fast);
        assert!(pacer.next_at() > now + Duration::from_secs(10));
        let late = Duration::from_millis(5);
        pacer.catch_up(now, 1000, slow, late);
        assert_eq!(pacer.next_at(), now + Duration::from_secs(1), "a segment");
        pacer.catch_up(now, 1000, fast, late);
        assert_eq!(pacer.next_at(), now + late, "a round trip");
        pacer.catch_up(now, 1000, fast, Duration::ZERO);
        assert_eq!(pacer.next_at(), now + Duration::from_millis(1), "a segment");
    }
}
