//! How long the queue of a path was when segments left, over the last round trips (ResTP §3.6; Cen, Cosman, Voelker 2003).

use crate::recent::Recent;
use restp_base::time::{Duration, Time};
use std::collections::VecDeque;

/// Slots that a round trip is divided into, and how many of them are remembered: eight round trips.
const SLOTS_PER_ROUND_TRIP: u64 = 8;
const SLOTS: usize = 64;
/// The queue of a moment is that of its slot and the slots beside it.
const SPAN: usize = 3;
/// With fewer slots nothing is compared.
const ENOUGH: usize = 8 + SPAN;
/// How long the longest queue is remembered, at least.
const LONGEST_LIFE: Duration = Duration::from_secs(60);
/// A queue below this share of the longest, or of the round trip, is none.
const EMPTY_DIVISOR: u64 = 8;
const NOISE_DIVISOR: u64 = 512;
/// A queue of this share of a round trip is one (RFC 9406 §4.2).
const BEGUN_DIVISOR: u64 = 8;

#[derive(Clone, Copy, Debug)]
struct Slot {
    since: Time,
    longest: Duration,
}

/// Queues of the last round trips, by when segments left.
#[derive(Clone, Debug, Default)]
pub(super) struct History {
    slots: VecDeque<Slot>,
    longest: Recent<Duration>,
    smoothed: Duration,
}

impl History {
    /// A segment that left at `sent_at` met this `queue`. When that begins a slot, returns a moment of the last one whose neighbours are
    /// complete.
    pub fn on_sample(&mut self, sent_at: Time, queue: Duration, smoothed: Duration) -> Option<Time> {
        self.smoothed = smoothed;
        match self.slots.back_mut() {
            Some(slot) if sent_at.since(slot.since) < smoothed / SLOTS_PER_ROUND_TRIP => {
                slot.longest = slot.longest.max(queue);
                return None;
            }
            _ => {}
        }
        let settled = self
            .slots
            .len()
            .checked_sub(2)
            .map(|index| self.slots[index].since);
        if let Some(settled) = settled {
            self.longest
                .on_sample(sent_at, self.queue_at(settled), LONGEST_LIFE);
        }
        if self.slots.len() == SLOTS {
            self.slots.pop_front();
        }
        self.slots.push_back(Slot {
            since: sent_at,
            longest: queue,
        });
        settled
    }

    /// A queue that counts has been seen.
    pub fn has_begun_a_queue(&self) -> bool {
        let longest = self.slots.iter().map(|slot| slot.longest).max();
        longest.is_some_and(|longest| longest > self.smoothed / BEGUN_DIVISOR)
    }

    /// Was the queue at that moment short against the longest of late, whatever it was in these round trips?
    pub fn is_short(&self, sent_at: Time) -> bool {
        self.queue_at(sent_at) < self.longest.get().unwrap_or_default() / 2
    }

    /// The queue that a segment met that left at `sent_at`.
    fn queue_at(&self, sent_at: Time) -> Duration {
        let after = self.slots.partition_point(|slot| slot.since <= sent_at);
        let end = (after + 1).clamp(SPAN.min(self.slots.len()), self.slots.len());
        self.sustained(end.saturating_sub(SPAN), end)
    }

    /// The longest queue that two neighbouring slots have seen: a single round trip may have waited elsewhere.
    fn sustained(&self, begin: usize, end: usize) -> Duration {
        let slots = self.slots.range(begin..end);
        let pairs = slots.clone().zip(slots.skip(1));
        let both = pairs.map(|(one, next)| one.longest.min(next.longest));
        both.max().unwrap_or_default()
    }

    /// How full the queue was at that moment against these round trips: the share of them with a shorter one, 0 to 1. Where it was
    /// as long, what counts is how long that is against the longest ever. None while little is known.
    pub fn fullness(&self, sent_at: Time) -> Option<f64> {
        if self.slots.len() < ENOUGH {
            return None;
        }
        let queue = self.queue_at(sent_at);
        let longest = self.longest.get().unwrap_or_default().max(queue);
        if queue <= (longest / EMPTY_DIVISOR).max(self.smoothed / NOISE_DIVISOR) {
            return Some(0.0);
        }
        let height = queue.as_nanos() as f64 / longest.as_nanos().max(1) as f64;
        let moments = self.slots.len() + 1 - SPAN;
        let shorter: f64 = (0..moments)
            .map(|begin| match self.sustained(begin, begin + SPAN).cmp(&queue) {
                std::cmp::Ordering::Less => 1.0,
                std::cmp::Ordering::Equal => height,
                std::cmp::Ordering::Greater => 0.0,
            })
            .sum();
        Some(shorter / moments as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRIP: Duration = Duration::from_millis(80);

    fn at(millis: u64) -> Time {
        Time::ZERO + Duration::from_millis(millis)
    }

    /// A sample every 10 ms, which is a slot, of queues in milliseconds.
    fn history(queues: impl IntoIterator<Item = u64>) -> History {
        let mut history = History::default();
        for (number, queue) in (0u64..).zip(queues) {
            history.on_sample(at(number * 10), Duration::from_millis(queue), TRIP);
        }
        history
    }

    /// A queue that fills for a second and drains at once, twice.
    fn sawtooth() -> History {
        history((0..60).map(|slot| slot % 30))
    }

    #[test]
    fn the_queue_that_a_segment_met_is_judged_however_late_its_loss_is_found() {
        let history = sawtooth();
        let full = history.fullness(at(290)).unwrap();
        assert!(full > 0.9, "{full}");
        assert_eq!(history.fullness(at(310)), Some(0.0));
        let half = history.fullness(at(450)).unwrap();
        assert!((0.4..0.6).contains(&half), "{half}");
    }

    #[test]
    fn one_long_round_trip_is_no_queue() {
        let mut queues = [1; 40];
        queues[20] = 400;
        let history = history(queues);
        assert_eq!(history.longest.get(), Some(Duration::from_millis(1)));
        assert_eq!(history.fullness(at(200)), history.fullness(at(300)));
    }

    #[test]
    fn a_queue_that_is_always_as_full_is_full() {
        let full = history([50; 40]).fullness(at(200)).unwrap();
        assert!(full > 0.99, "{full}");
    }

    #[test]
    fn what_is_an_eighth_of_the_longest_is_empty() {
        let queues = (0..40).map(|slot| if (10..20).contains(&slot) { 80 } else { 10 });
        assert_eq!(history(queues).fullness(at(300)), Some(0.0));
    }

    #[test]
    fn little_is_nothing() {
        assert_eq!(history([5; ENOUGH - 1]).fullness(at(50)), None);
        assert!(history([5; ENOUGH]).fullness(at(50)).is_some());
        assert!(!history([10]).has_begun_a_queue());
        assert!(history([11]).has_begun_a_queue());
    }

    #[test]
    fn a_moment_before_or_after_everything_known_is_the_first_or_the_last() {
        let history = history((0..64).map(|slot| slot + 20));
        assert!(history.fullness(at(0)).unwrap() < 0.1);
        assert!(history.fullness(at(10_000)).unwrap() > 0.9);
    }

    #[test]
    fn memory_is_bounded_and_the_longest_queue_is_forgotten() {
        let mut history = history((0..1_000).map(|_| 100));
        assert_eq!(history.slots.len(), SLOTS);
        for slot in 0..13_000 {
            history.on_sample(at(10_000 + slot * 10), Duration::from_millis(3), TRIP);
        }
        assert_eq!(history.longest.get(), Some(Duration::from_millis(3)));
    }
}
