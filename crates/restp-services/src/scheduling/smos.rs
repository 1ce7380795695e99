//! SMOS, as SMT §2.1 sketches it: each new segment draws its path, with the chance that the path's share of all known rates
//! is, and waits for it where its window is full.

use restp_base::random::Stream;

/// The scheduler.
#[derive(Clone, Debug)]
pub struct Smos {
    /// Rates of the paths, by their ordinals.
    rates: Vec<u64>,
    chance: Stream,
    /// What the next segment has drawn.
    drawn: Option<usize>,
}

impl Smos {
    /// Over paths of these `rates`, in any unit; further ones count as the last of them.
    pub fn new(rates: Vec<u64>, chance: Stream) -> Self {
        Smos {
            rates,
            chance,
            drawn: None,
        }
    }

    /// The path of the next new segment, of `count`. Paths that are not used draw nothing; `None` when none is.
    pub fn path(&mut self, count: usize, is_used: impl Fn(usize) -> bool) -> Option<usize> {
        self.drawn = self
            .drawn
            .filter(|path| is_used(*path))
            .or_else(|| self.draw(count, &is_used));
        self.drawn
    }

    /// It has left: the next one draws anew.
    pub fn on_sent(&mut self) {
        self.drawn = None;
    }

    fn draw(&mut self, count: usize, is_used: impl Fn(usize) -> bool) -> Option<usize> {
        let rate = |path: &usize| {
            self.rates
                .get(*path)
                .or(self.rates.last())
                .map_or(1, |rate| (*rate).max(1))
        };
        let used = (0..count).filter(|path| is_used(*path));
        let total: u64 = used.clone().map(|path| rate(&path)).sum();
        let mut ticket = (total > 0).then(|| self.chance.below(total))?;
        used.clone().find(|path| {
            let share = rate(path);
            let is_it = ticket < share;
            ticket = ticket.saturating_sub(share);
            is_it
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn smos(rates: &[u64]) -> Smos {
        Smos::new(rates.to_vec(), Stream::named(1, "smos"))
    }

    #[test]
    fn paths_are_drawn_by_their_rates() {
        let mut smos = smos(&[200_000, 1_000_000]);
        let mut drawn = [0; 2];
        for _ in 0..12_000 {
            drawn[smos.path(2, |_| true).expect("both are used")] += 1;
            smos.on_sent();
        }
        assert!((1850..2150).contains(&drawn[0]), "{drawn:?}: a sixth");
    }

    #[test]
    fn a_segment_waits_for_the_path_it_has_drawn_while_that_is_used() {
        let mut smos = smos(&[1, 1]);
        let drawn = smos.path(2, |_| true).expect("both are used");
        assert!((0..100).all(|_| smos.path(2, |_| true) == Some(drawn)));
        assert_eq!(smos.path(2, |path| path != drawn), Some(1 - drawn));
        assert_eq!(smos.path(2, |_| false), None);
        assert_eq!(smos.path(0, |_| true), None);
    }

    #[test]
    fn further_paths_count_as_the_last_named_one() {
        let mut smos = smos(&[1, 3]);
        let mut drawn = [0u64; 3];
        for _ in 0..7000 {
            drawn[smos.path(3, |_| true).expect("all are used")] += 1;
            smos.on_sent();
        }
        assert!(drawn[1].abs_diff(drawn[2]) < 300 && drawn[0] < 1200, "{drawn:?}");
    }
}
