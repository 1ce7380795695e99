//! BIC as its paper prints it (Xu, Harfoush, Rhee, INFOCOM 2004): half of the distance to the maximum per round trip,
//! then a slow start of its own.

use super::bic::LOW_WINDOW;
use super::window::Window;

/// Smax: at most so many segments per round trip.
const MOST_PER_ROUND: u64 = 32;
/// Smin: one part in so many of a segment; closer to the maximum counts as there.
const NEAR: u64 = 100;
/// 1 / β: what a reduction takes.
const SHARE_LOST: u64 = 8;

/// The search. Windows in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Paper {
    phase: Phase,
    /// Growth owed, in bytes times the window.
    credit: u128,
}

#[derive(Clone, Copy, Debug, Default)]
enum Phase {
    /// No maximum is known: Smax per round trip.
    #[default]
    Blind,
    /// Halfway to the maximum, again and again. `target` is the middle between it and where the search stands.
    Binary { maximum: u64, target: u64 },
    /// Beyond the maximum: `step` per round trip, doubled when `goal` is reached.
    SlowStart { step: u64, goal: u64 },
}

impl Paper {
    pub fn grow(&mut self, window: &mut Window, acked: u64, segment: u64) {
        let most = MOST_PER_ROUND * segment;
        if window.bytes < LOW_WINDOW * segment {
            return self.advance(window, segment, acked);
        }
        match self.phase {
            Phase::Blind => self.advance(window, most, acked),
            Phase::Binary { maximum, target } => {
                let distance = target.saturating_sub(window.bytes);
                if distance < segment / NEAR {
                    window.grow(maximum.saturating_sub(window.bytes));
                } else {
                    self.advance(window, distance.min(most), acked);
                }
                self.phase = if maximum > window.bytes {
                    binary(window.bytes, maximum)
                } else {
                    Phase::SlowStart {
                        step: segment,
                        goal: window.bytes + segment,
                    }
                };
            }
            Phase::SlowStart { step, goal } => {
                self.advance(window, step, acked);
                if window.bytes >= goal {
                    let step = 2 * step;
                    let goal = window.bytes + step;
                    self.phase = if step >= most {
                        Phase::Blind
                    } else {
                        Phase::SlowStart { step, goal }
                    };
                }
            }
        }
    }

    /// `step` bytes per window of bytes acknowledged; no fraction is lost.
    fn advance(&mut self, window: &mut Window, step: u64, acked: u64) {
        self.credit += u128::from(step) * u128::from(acked);
        let bytes = u128::from(window.bytes);
        window.grow(u64::try_from(self.credit / bytes).unwrap_or(u64::MAX));
        self.credit %= bytes;
    }

    pub fn reduced(&mut self, window: u64, segment: u64, fast_convergence: bool) -> u64 {
        self.credit = 0;
        if window < LOW_WINDOW * segment {
            return window / 2;
        }
        let minimum = window - window / SHARE_LOST;
        let shrinks = matches!(self.phase, Phase::Binary { maximum, .. } if maximum > window);
        let maximum = if fast_convergence && shrinks {
            window.midpoint(minimum)
        } else {
            window
        };
        self.phase = binary(minimum, maximum);
        minimum
    }
}

fn binary(minimum: u64, maximum: u64) -> Phase {
    Phase::Binary {
        maximum,
        target: maximum.midpoint(minimum),
    }
}

#[cfg(test)]
mod tests {
    use super::super::window::CommonParams;
    use super::*;

    const SEGMENT: u64 = 1000;

    fn window(segments: u64) -> Window {
        let mut window = Window::new(&CommonParams::default(), SEGMENT);
        window.bytes = segments * SEGMENT;
        window
    }

    /// Maximum and target.
    fn range(search: &Paper) -> (u64, u64) {
        match search.phase {
            Phase::Binary { maximum, target } => (maximum, target),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_worked_numbers() {
        // TC §4.12: a loss at 100, target 93.75.
        let mut search = Paper::default();
        assert_eq!(search.reduced(100_000, SEGMENT, true), 87_500);
        assert_eq!(range(&search), (100_000, 93_750));
        // The next at 90: 90 < 100, so the maximum is the middle of 90 and 78.75.
        let mut steady = search;
        assert_eq!(search.reduced(90_000, SEGMENT, true), 78_750);
        assert_eq!(range(&search).0, 84_375);
        steady.reduced(90_000, SEGMENT, false);
        assert_eq!(range(&steady).0, 90_000);
        assert_eq!(
            search.reduced(13_000, SEGMENT, true),
            6500,
            "below 14 segments as Reno"
        );
    }

    #[test]
    fn one_acknowledgement_adds_the_distance_to_the_target_over_the_window() {
        let mut search = Paper::default();
        search.reduced(100_000, SEGMENT, true);
        let mut window = window(0);
        window.bytes = 87_500;
        search.grow(&mut window, SEGMENT, SEGMENT);
        assert_eq!(window.bytes, 87_571); // 6250 · 1000 / 87 500 = 71.4
        assert_eq!(range(&search).1, 93_785);
    }

    #[test]
    fn far_from_the_target_32_segments_per_round_trip() {
        let mut search = Paper::default();
        search.reduced(2_000_000, SEGMENT, true);
        let mut window = window(1750);
        search.grow(&mut window, 1_750_000, SEGMENT);
        assert_eq!(window.bytes, 1_782_000);
    }

    #[test]
    fn next_to_the_maximum_it_jumps_and_beyond_it_doubles_its_steps() {
        let mut search = Paper::default();
        search.reduced(100_000, SEGMENT, true);
        let mut window = window(0);
        window.bytes = 99_990;
        search.phase = binary(99_990, 100_000);
        search.grow(&mut window, SEGMENT, SEGMENT);
        assert_eq!(window.bytes, 100_000);
        let mut windows = Vec::new();
        for _ in 0..7 {
            let round = window.bytes;
            search.grow(&mut window, round, SEGMENT);
            windows.push(window.bytes / SEGMENT);
        }
        assert_eq!(windows, [101, 103, 107, 115, 131, 163, 195]);
    }

    /// Smin: a hundredth of a segment, ten bytes here.
    #[test]
    fn it_jumps_from_less_than_a_hundredth_of_a_segment() {
        for (from, to) in [(99_980, 99_980), (99_981, 100_000)] {
            let mut search = Paper {
                phase: binary(from, 100_000),
                credit: 0,
            };
            let mut window = window(0);
            window.bytes = from;
            search.grow(&mut window, SEGMENT, SEGMENT);
            assert_eq!(window.bytes, to, "the target is half way: 10 and 9 bytes off");
        }
    }

    #[test]
    fn below_the_low_window_it_is_reno() {
        let mut search = Paper::default();
        let mut window = window(10);
        search.grow(&mut window, 10 * SEGMENT, SEGMENT);
        assert_eq!(window.bytes, 11_000);
    }
}
