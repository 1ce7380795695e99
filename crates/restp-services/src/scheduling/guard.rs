//! Guard: never worse than the best path. Spreads by [`Blest`], and measures whether that pays.
//!
//! While the shared window stays open, spreading takes nothing from the best path: the fastest is served first, the others
//! get what is left. Only when the window is shut while data waits may the best path alone be better. Then it is tried
//! alone; the better of the two is kept for a while, and the other is tried again, less often each time the verdict is
//! the same. The rule is the project's; what it guards against is in Ferlin and others 2016 §II.

use super::{Blest, Candidate, Placement, Queue, Schedule};
use restp_base::time::{Duration, Time};
use restp_base::units::Rate;

/// Spread, or the best path alone.
#[derive(Clone, Copy, Debug)]
pub struct Guard {
    inner: Blest,
    epoch: Option<Epoch>,
    /// The rate of the way that is kept, while the running epoch tries the other.
    trial: Option<Rate>,
    /// Epochs a verdict stands before the other way is tried, and how many of them are left.
    stands: u32,
    left: u32,
}

impl Default for Guard {
    fn default() -> Self {
        Guard {
            inner: Blest::default(),
            epoch: None,
            trial: None,
            stands: FIRST_STAND,
            left: 0,
        }
    }
}

/// A stretch of time in which one way is measured.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    /// The path that is tried alone.
    only: Option<usize>,
    /// Data of the way before is still on the paths until then.
    from: Time,
    until: Time,
    acknowledged_bytes: u64,
    stalls: u64,
    measures: bool,
}

/// An epoch lasts so many round trips of the slowest path, a quarter of a second at least, and the first of them is not
/// measured.
const ROUND_TRIPS: u64 = 6;
const LEAST_EPOCH: Duration = Duration::from_millis(250);
/// The best path alone has to be better by a twentieth: measurements are no more exact than that.
const MARGIN_PERCENT: u64 = 105;
/// The same verdict again doubles the wait, from 8 epochs up to 128.
const FIRST_STAND: u32 = 8;
const LONGEST_STAND: u32 = 128;

impl Schedule for Guard {
    fn choose(&mut self, paths: &[Candidate], queue: &Queue) -> Placement {
        let only = self.review(paths, queue);
        match only.and_then(|only| paths.iter().find(|path| path.path == only)) {
            Some(only) if only.has_room => Placement::from_slice(&[only.path]),
            Some(_) => Placement::new(),
            None => self.inner.choose(paths, queue),
        }
    }
}

impl Guard {
    /// The path to be used alone, if one is.
    fn review(&mut self, paths: &[Candidate], queue: &Queue) -> Option<usize> {
        if paths.len() < 2 {
            self.epoch = None;
            return None;
        }
        let Some(epoch) = &mut self.epoch else {
            self.begin(None, paths, queue);
            return None;
        };
        if !epoch.measures && epoch.from <= queue.now {
            epoch.measures = true;
            (epoch.acknowledged_bytes, epoch.stalls) = (queue.acknowledged_bytes, queue.stalls);
            epoch.from = queue.now;
        }
        if epoch.until <= queue.now && epoch.measures {
            let epoch = *epoch;
            let next = self.judge(&epoch, paths, queue);
            self.begin(next, paths, queue);
        }
        self.epoch.and_then(|epoch| epoch.only)
    }

    fn begin(&mut self, only: Option<usize>, paths: &[Candidate], queue: &Queue) {
        let same = self.epoch.is_some_and(|before| before.only == only);
        let slowest = paths
            .iter()
            .map(|path| path.smoothed_rtt)
            .max()
            .unwrap_or_default();
        let settles = if same { Duration::ZERO } else { slowest };
        self.epoch = Some(Epoch {
            only,
            from: queue.now + settles,
            until: queue.now + settles + (slowest * ROUND_TRIPS).max(LEAST_EPOCH),
            acknowledged_bytes: queue.acknowledged_bytes,
            stalls: queue.stalls,
            measures: false,
        });
    }

    /// What the next epoch does.
    fn judge(&mut self, epoch: &Epoch, paths: &[Candidate], queue: &Queue) -> Option<usize> {
        if epoch.only.is_none() && queue.stalls == epoch.stalls {
            // Nothing was held up, so there is nothing to gain.
            (self.trial, self.stands, self.left) = (None, FIRST_STAND, 0);
            return None;
        }
        let bytes = queue.acknowledged_bytes.saturating_sub(epoch.acknowledged_bytes);
        let rate = Rate::of(bytes, queue.now.since(epoch.from));
        let carries = |path: &&Candidate| Rate::of(path.carries_bytes, path.smoothed_rtt);
        let best = paths.iter().max_by_key(carries).map(|path| path.path);
        let Some(kept) = self.trial.take() else {
            if self.left > 0 {
                self.left -= 1;
                return epoch.only;
            }
            self.trial = Some(rate);
            return if epoch.only.is_some() { None } else { best };
        };
        let (alone, spread) = if epoch.only.is_some() {
            (rate, kept)
        } else {
            (kept, rate)
        };
        let alone_is_better = alone.as_bps() > spread.as_bps() / 100 * MARGIN_PERCENT;
        let changes = alone_is_better == epoch.only.is_some();
        self.stands = if changes {
            FIRST_STAND
        } else {
            (self.stands * 2).min(LONGEST_STAND)
        };
        self.left = self.stands;
        if alone_is_better {
            epoch.only.or(best)
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{BULK, candidate};
    use super::*;

    /// Asks every 5 ms for `epochs` quarters of a second; the share of segments that went to the path 0 alone, where
    /// `rate(alone)` bytes are acknowledged per second and spreading shuts the window or does not.
    fn run(
        guard: &mut Guard,
        queue: &mut Queue,
        epochs: u32,
        rate: impl Fn(bool) -> u64,
        stalls: bool,
    ) -> f64 {
        let paths = [candidate(0, 20, false), candidate(1, 40, true)];
        let mut alone = 0;
        for _ in 0..epochs * 50 {
            let is_alone = guard.choose(&paths, queue).is_empty();
            alone += u32::from(is_alone);
            queue.now += Duration::from_millis(5);
            queue.acknowledged_bytes += rate(is_alone) / 200;
            queue.stalls += u64::from(stalls && !is_alone);
        }
        f64::from(alone) / f64::from(epochs * 50)
    }

    #[test]
    fn with_an_open_window_nothing_is_tried() {
        let mut queue = BULK;
        let share = run(&mut Guard::default(), &mut queue, 100, |_| 1_000_000, false);
        assert_eq!(share, 0.0);
    }

    #[test]
    fn the_best_path_is_kept_while_it_is_better_and_the_other_way_is_tried_less_and_less() {
        let (mut guard, mut queue) = (Guard::default(), BULK);
        let better_alone = |alone| if alone { 2_000_000 } else { 1_000_000 };
        let first = run(&mut guard, &mut queue, 20, better_alone, true);
        let later = run(&mut guard, &mut queue, 200, better_alone, true);
        assert!(first > 0.7 && later > 0.93 && later < 1.0, "{first} then {later}");
        let better_spread = |alone| if alone { 1_000_000 } else { 2_000_000 };
        run(&mut guard, &mut queue, 150, better_spread, true); // until it is tried again
        let spread = run(&mut guard, &mut queue, 100, better_spread, true);
        assert!(spread > 0.0 && spread < 0.1, "{spread}");
    }

    #[test]
    fn a_difference_within_the_margin_spreads() {
        let (mut guard, mut queue) = (Guard::default(), BULK);
        let rate = |alone| if alone { 1_040_000 } else { 1_000_000 };
        let share = run(&mut guard, &mut queue, 200, rate, true);
        assert!(share < 0.15, "{share}");
        let (mut guard, mut queue) = (Guard::default(), BULK);
        let rate = |alone| if alone { 1_060_000 } else { 1_000_000 };
        let share = run(&mut guard, &mut queue, 200, rate, true);
        assert!(share > 0.85, "more than a twentieth better: {share}");
    }
}
