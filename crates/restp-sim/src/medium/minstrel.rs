//! Minstrel: the rate that carried most so far, and a tenth of the frames to see whether another would (Smithies, Fietkau,
//! "minstrel: MadWifi and Linux kernel rate selection algorithm", 2005; Linux `net/mac80211/rc80211_minstrel.c`).
//!
//! A frame's attempts go down a chain: the best rate, the second best, the surest, the slowest. There each has several
//! attempts; here one, as the standard's own limits count them.

use super::timing::Mode;
use restp_base::random::Stream;
use restp_base::time::{Duration, Time};

/// What is known of the modes between two stations.
#[derive(Clone, Debug)]
pub(super) struct Minstrel {
    modes: &'static [Mode],
    known: Vec<Known>,
    /// Best, second best, surest, slowest.
    chain: [usize; 4],
    /// Of the frame being sent.
    current: [usize; 4],
    frames: u64,
    next_update: Time,
    stream: Stream,
}

/// One mode.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    attempts: u32,
    successes: u32,
    /// Share of the attempts that succeed, averaged over intervals; none before the first one.
    probability: Option<f64>,
}

/// Averages are brought up to date so often.
const INTERVAL: Duration = Duration::from_millis(100);
/// Weight of what was known before.
const WEIGHT: f64 = 0.75;
/// Every so manieth frame tries another mode.
const SAMPLE_EVERY: u64 = 10;
/// Modes are compared by how long a packet of this size takes.
const COMPARED_BYTES: u32 = 1200;
/// A mode below this carries nothing.
const LEAST_PROBABILITY: f64 = 0.1;

impl Minstrel {
    pub(super) fn new(modes: &'static [Mode], stream: Stream) -> Self {
        Minstrel {
            modes,
            known: vec![Known::default(); modes.len()],
            chain: [0; 4],
            current: [0; 4],
            frames: 0,
            next_update: Time::ZERO + INTERVAL,
            stream,
        }
    }

    /// The mode of attempt number `attempt` (from 0) of a frame.
    pub(super) fn choose(&mut self, now: Time, attempt: u32) -> Mode {
        if attempt == 0 {
            self.begin(now);
        }
        self.modes[self.current[(attempt as usize).min(3)]]
    }

    /// What came of a data frame.
    pub(super) fn on_attempt(&mut self, mode: Mode, acknowledged: bool) {
        if let Some(index) = self.modes.iter().position(|known| *known == mode) {
            self.known[index].attempts += 1;
            self.known[index].successes += u32::from(acknowledged);
        }
    }

    fn begin(&mut self, now: Time) {
        if now >= self.next_update {
            self.next_update = now + INTERVAL;
            self.update();
        }
        self.frames += 1;
        self.current = self.chain;
        if self.frames.is_multiple_of(SAMPLE_EVERY) {
            let sample = self.stream.below(self.modes.len() as u64) as usize;
            let [best, _, surest, slowest] = self.chain;
            // A slower one is worth an attempt only where the best one fails.
            self.current = match sample > best {
                true => [sample, best, surest, slowest],
                false => [best, sample, surest, slowest],
            };
        }
    }

    fn update(&mut self) {
        for known in self.known.iter_mut().filter(|known| known.attempts > 0) {
            let now = f64::from(known.successes) / f64::from(known.attempts);
            known.probability = Some(match known.probability {
                Some(before) => WEIGHT * before + (1.0 - WEIGHT) * now,
                None => now,
            });
            (known.attempts, known.successes) = (0, 0);
        }
        let carried = |index: usize| {
            let probability = self.known[index].probability.unwrap_or(0.0);
            let time = self.modes[index].time(COMPARED_BYTES).as_secs_f64();
            if probability < LEAST_PROBABILITY {
                0.0
            } else {
                probability / time
            }
        };
        let best_but = |not: Option<usize>| {
            let others = (0..self.modes.len()).filter(|index| Some(*index) != not);
            others
                .max_by(|&a, &b| carried(a).total_cmp(&carried(b)).then(b.cmp(&a)))
                .unwrap_or(0)
        };
        let best = best_but(None);
        let sure = |index: usize| self.known[index].probability.unwrap_or(0.0);
        let surest = (0..self.modes.len()).max_by(|&a, &b| sure(a).total_cmp(&sure(b)));
        self.chain = [best, best_but(Some(best)), surest.unwrap_or(0), 0];
    }
}

#[cfg(test)]
mod tests {
    use super::super::timing::OFDM;
    use super::*;

    /// Frames of a second, a millisecond apart; modes up to `reach` succeed always, those above with `above`.
    fn second(minstrel: &mut Minstrel, from: u64, reach: usize, above: f64, chance: &mut Stream) -> Vec<u32> {
        let mut first = Vec::new();
        for ms in from..from + 1000 {
            let now = Time::ZERO + Duration::from_millis(ms);
            for attempt in 0..4 {
                let mode = minstrel.choose(now, attempt);
                if attempt == 0 {
                    first.push(mode.kbps);
                }
                let acknowledged = mode.kbps <= OFDM[reach].kbps || chance.chance(above);
                minstrel.on_attempt(mode, acknowledged);
                if acknowledged {
                    break;
                }
            }
        }
        first
    }

    fn share(modes: &[u32], kbps: u32) -> f64 {
        modes.iter().filter(|&&mode| mode == kbps).count() as f64 / modes.len() as f64
    }

    #[test]
    fn the_fastest_mode_that_arrives_is_found_left_and_found_again() {
        let mut chance = Stream::named(1, "chance");
        let mut minstrel = Minstrel::new(&OFDM, Stream::named(1, "minstrel"));
        assert_eq!(minstrel.choose(Time::ZERO, 0), OFDM[0], "nothing is known yet");
        second(&mut minstrel, 0, 7, 0.0, &mut chance);
        assert!(share(&second(&mut minstrel, 1000, 7, 0.0, &mut chance), 54_000) > 0.89);
        second(&mut minstrel, 2000, 2, 0.0, &mut chance);
        let far = second(&mut minstrel, 3000, 2, 0.0, &mut chance);
        assert!(share(&far, 12_000) > 0.89, "{far:?}");
        second(&mut minstrel, 4000, 7, 0.0, &mut chance);
        assert!(share(&second(&mut minstrel, 5000, 7, 0.0, &mut chance), 54_000) > 0.89);
    }

    /// Of 54 Mb/s 60 % carry less than all of 48.
    #[test]
    fn a_slower_mode_that_is_surer_carries_more() {
        let mut chance = Stream::named(1, "chance");
        let mut minstrel = Minstrel::new(&OFDM, Stream::named(1, "minstrel"));
        second(&mut minstrel, 0, 6, 0.6, &mut chance);
        let later = second(&mut minstrel, 1000, 6, 0.6, &mut chance);
        assert!(share(&later, 48_000) > 0.8, "{later:?}");
    }
}
