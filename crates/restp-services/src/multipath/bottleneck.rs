//! Which paths wait in one queue? Then its length changes for all of them at once, whoever else fills it (RFC 8382 looks for the
//! same). The model: the round trip of a path is a constant and the time in its queue. Means over slots of two round trips leave out what
//! single packets meet; *steps* from slot to slot leave out the constant, and slow growth, which two queues of neighbours of the same kind
//! have in common by chance. Steps of two paths through one queue are alike, those of two queues have nothing to do with each other.

use restp_base::time::{Duration, Time};

/// Slots are so many round trips of the slowest path: what one path sees at its end another may see at its beginning.
const SLOT_ROUND_TRIPS: u64 = 2;
/// Of so many slots the last ones count most: several sawtooths of a neighbour, and a few seconds at most distances.
const MEMORY_SLOTS: f64 = 32.0;
/// Slots until anything is concluded.
const ENOUGH_SLOTS: f64 = 12.0;
/// Correlation of the steps, squared, from which the queue is one, and below which it is two.
const ONE: f64 = 0.5;
const TWO: f64 = 0.25;

/// What is known of the queues of all paths, by their ordinals.
#[derive(Clone, Debug, Default)]
pub(super) struct Bottlenecks {
    slot_ends: Time,
    /// The slowest round trip of this slot.
    slowest: Duration,
    series: Vec<Series>,
    /// Of each path with those before it: (1, 0), (2, 0), (2, 1), (3, 0), …
    pairs: Vec<Pair>,
}

/// Round trips of one path.
#[derive(Clone, Copy, Debug, Default)]
struct Series {
    /// Samples seen so far.
    seen: u64,
    /// Of this slot.
    sum: Duration,
    count: u64,
    /// The mean of the slot before, and the step to this one in ns.
    mean: Option<Duration>,
    step: Option<f64>,
}

impl Series {
    fn end_slot(&mut self) {
        let mean = (self.count > 0).then(|| self.sum / self.count);
        self.step = mean
            .zip(self.mean)
            .map(|(now, before)| now.as_nanos() as f64 - before.as_nanos() as f64);
        (self.mean, self.sum, self.count) = (mean, Duration::ZERO, 0);
    }
}

/// How the steps of two paths go together.
#[derive(Clone, Copy, Debug, Default)]
struct Pair {
    slots: f64,
    one: f64,
    other: f64,
    both: f64,
    is_one: bool,
}

impl Pair {
    fn on_steps(&mut self, one: f64, other: f64) {
        let kept = 1.0 - 1.0 / MEMORY_SLOTS;
        for (sum, new) in [
            (&mut self.slots, 1.0),
            (&mut self.one, one * one),
            (&mut self.other, other * other),
            (&mut self.both, one * other),
        ] {
            *sum = *sum * kept + new;
        }
        let asked = if self.is_one { TWO } else { ONE };
        self.is_one = self.slots >= ENOUGH_SLOTS
            && self.both > 0.0
            && self.both * self.both > asked * self.one * self.other;
    }
}

impl Bottlenecks {
    /// The path has measured `samples` round trips so far, of which `latest` is the last, and `smoothed` its estimate.
    pub(super) fn on_sample(
        &mut self,
        now: Time,
        path: usize,
        (samples, latest): (u64, Duration),
        smoothed: Duration,
    ) {
        if now >= self.slot_ends {
            self.end_slot(now);
        }
        if self.series.len() <= path {
            self.series.resize(path + 1, Series::default());
            self.pairs.resize(path * (path + 1) / 2, Pair::default());
        }
        let series = &mut self.series[path];
        if series.seen != samples {
            series.seen = samples;
            series.sum += latest;
            series.count += 1;
            self.slowest = self.slowest.max(smoothed);
        }
    }

    fn end_slot(&mut self, now: Time) {
        self.series.iter_mut().for_each(Series::end_slot);
        let mut pairs = self.pairs.iter_mut();
        for (index, one) in self.series.iter().enumerate() {
            for (other, pair) in self.series[..index].iter().zip(&mut pairs) {
                if let Some((one, other)) = one.step.zip(other.step) {
                    pair.on_steps(one, other);
                }
            }
        }
        self.slot_ends = now + std::mem::take(&mut self.slowest) * SLOT_ROUND_TRIPS;
    }

    /// Another path has this ordinal from now on.
    pub(super) fn forget(&mut self, path: usize) {
        let Some(series) = self.series.get_mut(path) else {
            return;
        };
        *series = Series::default();
        for other in 0..self.series.len() {
            if let Some(index) = place(path, other) {
                self.pairs[index] = Pair::default();
            }
        }
    }

    /// Do both wait in one queue?
    pub(super) fn is_one(&self, one: usize, other: usize) -> bool {
        place(one, other)
            .and_then(|index| self.pairs.get(index))
            .is_some_and(|pair| pair.is_one)
    }
}

/// Where the pair of two paths is; none for a path and itself.
fn place(one: usize, other: usize) -> Option<usize> {
    let (low, high) = (one.min(other), one.max(other));
    (low < high).then(|| high * (high - 1) / 2 + low)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: [u64; 3] = [40, 60, 50];

    /// Three paths whose queues have these lengths in ms over time; a sample each 5 ms for some seconds.
    struct Life {
        known: Bottlenecks,
        samples: u64,
        now: Time,
    }

    impl Life {
        fn begin() -> Self {
            Life {
                known: Bottlenecks::default(),
                samples: 0,
                now: Time::ZERO,
            }
        }
        fn run(&mut self, seconds: u64, queues: impl Fn(u64) -> [u64; 3]) {
            for _ in 0..seconds * 200 {
                self.samples += 1;
                self.now += Duration::from_millis(5);
                let millis = self.now.since(Time::ZERO).as_nanos() / 1_000_000;
                for (path, queue) in queues(millis).into_iter().enumerate() {
                    let rtt = Duration::from_millis(RTT[path] + queue);
                    self.known.on_sample(self.now, path, (self.samples, rtt), rtt);
                }
            }
        }
        fn found(&self) -> [bool; 3] {
            [(0, 1), (0, 2), (1, 2)].map(|(one, other)| self.known.is_one(one, other))
        }
    }

    /// A sawtooth of this period and height.
    fn sawtooth(millis: u64, period: u64, height: u64) -> u64 {
        millis % period * height / period
    }

    #[test]
    fn paths_through_one_queue_are_found_and_others_are_not() {
        let mut life = Life::begin();
        life.run(20, |now| {
            let shared = sawtooth(now, 1_700, 50);
            [shared, sawtooth(now + 300, 1_300, 50), shared]
        });
        assert_eq!(life.found(), [false, true, false]);
    }

    #[test]
    fn sawtooths_that_rise_together_and_fall_apart_are_two_queues() {
        let mut life = Life::begin();
        life.run(30, |now| {
            [sawtooth(now, 4_000, 80), sawtooth(now + 1_000, 4_000, 80), 0]
        });
        assert_eq!(life.found(), [false; 3]);
    }

    #[test]
    fn nothing_is_concluded_before_some_seconds_or_from_a_queue_that_stands_still() {
        let mut life = Life::begin();
        life.run(1, |now| [sawtooth(now, 700, 50); 3]);
        assert_eq!(life.found(), [false; 3], "a second");
        let mut still = Life::begin();
        still.run(30, |_| [30; 3]);
        assert_eq!(still.found(), [false; 3]);
    }

    #[test]
    fn a_path_that_moves_to_a_queue_of_its_own_is_noticed() {
        let mut life = Life::begin();
        life.run(10, |now| [sawtooth(now, 1_700, 50); 3]);
        assert_eq!(life.found(), [true; 3]);
        life.run(30, |now| {
            let shared = sawtooth(now, 1_700, 50);
            [sawtooth(now + 300, 1_300, 50), shared, shared]
        });
        assert_eq!(life.found(), [false, false, true]);
    }

    #[test]
    fn another_path_under_the_same_ordinal_begins_anew() {
        let mut life = Life::begin();
        life.run(10, |now| [sawtooth(now, 1_700, 50); 3]);
        life.known.forget(1);
        life.known.forget(7);
        assert_eq!(life.found(), [false, true, false]);
    }

    #[test]
    fn the_same_sample_counts_once() {
        let mut known = Bottlenecks::default();
        for (samples, rtt) in [(1, 50), (1, 50), (2, 80)] {
            let rtt = Duration::from_millis(rtt);
            known.on_sample(Time::ZERO + Duration::from_millis(1), 0, (samples, rtt), rtt);
        }
        assert_eq!(
            (known.series[0].count, known.series[0].sum),
            (1, Duration::from_millis(80))
        );
    }
}
