//! How many segments are lost, by how full the queue was (Biaz and Vaidya 1999 tell causes by the delay beside a loss, too).

/// Classes of fullness; the lower half is what the others are compared with.
const CLASSES: usize = 4;
const LOWER: usize = 2;
/// Counts are halved where there are so many losses among enough deliveries, or so many deliveries.
const REMEMBERED_LOSSES: f64 = 64.0;
const ENOUGH_DELIVERIES: f64 = 4_000.0;
const REMEMBERED_DELIVERIES: f64 = 100_000.0;
/// More than this share is never taken for damage, as in the project's BBR; so many losses say something about it.
const MOST_DAMAGE: f64 = 0.15;
const MANY_LOSSES: f64 = 32.0;
/// A path that loses from an empty queue so many times, and so many times as often as before, is another one: by chance that happens once
/// in a thousand looks. What is lost together counts once: losses that come closer than those of a path that damages as much as any.
const LOOKED_AT: f64 = 8.0;
const TIMES: f64 = 4.0;
/// What is believed before anything is seen: so many losses among so many segments.
const PRIOR: (f64, f64) = (1.0, 200.0);

/// Segments lost and delivered, by how full the queue was.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ratios {
    lost: [f64; CLASSES],
    delivered: [f64; CLASSES],
    /// Segments lost while the queue was filled on purpose: they tell of queues as long as that.
    on_purpose: [f32; CLASSES],
    /// Losses and deliveries of the lower half since a loss, when it was last looked at; and deliveries there since the last loss.
    now: Option<(f64, f64)>,
    since: f64,
}

impl Ratios {
    fn class(fullness: f64) -> usize {
        ((fullness * CLASSES as f64) as usize).min(CLASSES - 1)
    }

    pub fn on_delivered(&mut self, fullness: f64, segments: u64) {
        let (class, segments) = (Self::class(fullness), segments as f64);
        self.delivered[class] += segments;
        if class < LOWER {
            self.since += segments;
            if let Some((_, delivered)) = &mut self.now {
                *delivered += segments;
            }
        }
        self.forget();
    }

    pub fn on_lost(&mut self, fullness: f64) {
        let class = Self::class(fullness);
        self.lost[class] += 1.0;
        if class < LOWER && std::mem::take(&mut self.since) * MOST_DAMAGE >= 1.0 {
            self.look();
        }
        self.forget();
    }

    /// The same while the queue is filled on purpose.
    pub fn on_lost_on_purpose(&mut self, fullness: f64) {
        self.on_purpose[Self::class(fullness)] += 1.0;
    }

    /// What was seen of a path that was another one says nothing.
    fn look(&mut self) {
        let (now, delivered_now) = self
            .now
            .map_or((0.0, 0.0), |(lost, delivered)| (lost + 1.0, delivered));
        self.now = Some((now, delivered_now));
        if now < LOOKED_AT {
            return;
        }
        self.now = Some((0.0, 0.0));
        let lost: f64 = self.lost[..LOWER].iter().sum();
        let delivered: f64 = self.delivered[..LOWER].iter().sum();
        let before = (lost - now).max(0.0) + PRIOR.0;
        if now * (delivered - delivered_now) > before * delivered_now * TIMES {
            *self = Ratios {
                now: self.now,
                ..Ratios::default()
            };
            (self.lost[0], self.delivered[0]) = (now, delivered_now);
        }
    }

    fn forget(&mut self) {
        let sum = |counts: &[f64]| counts.iter().sum::<f64>();
        let (lost, delivered) = (sum(&self.lost), sum(&self.delivered));
        let shows_enough = lost > REMEMBERED_LOSSES && delivered > ENOUGH_DELIVERIES;
        if shows_enough || delivered > REMEMBERED_DELIVERIES {
            for count in self.lost.iter_mut().chain(&mut self.delivered) {
                *count *= 0.5;
            }
            for count in &mut self.on_purpose {
                *count *= 0.5;
            }
        }
    }

    /// The probability that a loss at this fullness was corruption, of a queue as long as the longest or of one that `is_short`.
    pub fn by_corruption(&self, fullness: f64, is_short: bool) -> f64 {
        let (lost, delivered): (f64, f64) = (self.lost.iter().sum(), self.delivered.iter().sum());
        if lost > MANY_LOSSES && lost > (lost + delivered) * MOST_DAMAGE {
            return 0.0; // few paths damage so much, and who sends less helps in any case
        }
        let ratio = |lost: f64, delivered: f64| (lost + PRIOR.0) / (lost + delivered + PRIOR.1);
        let class = Self::class(fullness);
        let lower = ratio(
            self.lost[..LOWER].iter().sum(),
            self.delivered[..LOWER].iter().sum(),
        );
        let on_purpose = if is_short || class < LOWER {
            0.0
        } else {
            self.on_purpose[class].into()
        };
        (lower / ratio(self.lost[class] + on_purpose, self.delivered[class])).min(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EMPTY: f64 = 0.1;
    const FULL: f64 = 0.9;

    fn after(delivered: [u64; 2], lost: [u64; 2]) -> Ratios {
        let mut ratios = Ratios::default();
        for (fullness, delivered, lost) in [(EMPTY, delivered[0], lost[0]), (FULL, delivered[1], lost[1])] {
            for _ in 0..lost {
                ratios.on_delivered(fullness, delivered / lost);
                ratios.on_lost(fullness);
            }
            ratios.on_delivered(fullness, delivered - delivered / lost.max(1) * lost);
        }
        ratios
    }

    #[test]
    fn losses_of_a_full_queue_alone_are_congestion() {
        let ratios = after([10_000, 1_000], [0, 20]);
        assert!(ratios.by_corruption(FULL, false) < 0.01);
        assert!(
            ratios.by_corruption(EMPTY, false) > 0.99,
            "an empty queue has room for everything"
        );
    }

    #[test]
    fn what_a_queue_lost_that_was_filled_on_purpose_tells_of_no_shorter_one() {
        let mut ratios = after([2_000, 400], [0, 0]);
        for _ in 0..20 {
            ratios.on_lost_on_purpose(FULL);
            ratios.on_lost_on_purpose(EMPTY);
        }
        assert!(ratios.by_corruption(FULL, false) < 0.05);
        assert!(ratios.by_corruption(FULL, true) > 0.2);
        assert!(ratios.by_corruption(EMPTY, false) > 0.99);
        ratios.on_delivered(FULL, 100_000);
        assert!((9.0..11.0).contains(&ratios.on_purpose[3]), "halved as all else");
    }

    #[test]
    fn losses_in_the_same_share_everywhere_are_corruption() {
        let ratios = after([2_000, 2_000], [20, 20]);
        assert!(ratios.by_corruption(FULL, false) > 0.9);
    }

    #[test]
    fn half_of_what_a_full_queue_loses_is_corruption_where_an_empty_one_loses_half_as_much() {
        let ratios = after([4_000, 2_000], [20, 20]);
        let share = ratios.by_corruption(FULL, false);
        assert!((0.45..0.6).contains(&share), "{share}");
    }

    /// A clean path, on which congestion has cost segments of a full queue, begins to damage.
    #[test]
    fn when_a_path_begins_to_damage_what_was_before_is_forgotten() {
        for (damaged_of, believed) in [(10, true), (40, true), (300, true), (320, false), (500, false)] {
            let mut ratios = after([20_000, 2_000], [10, 40]);
            for loss in 0..20 {
                assert!(
                    loss > 5 || ratios.by_corruption(FULL, false) < 0.25,
                    "little is known"
                );
                ratios.on_delivered(EMPTY, damaged_of);
                ratios.on_lost(EMPTY);
            }
            let corruption = ratios.by_corruption(FULL, false);
            let expected = if believed { 0.5..1.1 } else { 0.0..0.25 };
            assert!(
                expected.contains(&corruption),
                "one of {damaged_of}: {corruption}"
            );
        }
    }

    #[test]
    fn what_showed_that_a_path_is_another_one_counts() {
        let mut ratios = after([20_000, 2_000], [10, 40]);
        for _ in 0..10 {
            ratios.on_delivered(EMPTY, 40);
            ratios.on_lost(EMPTY);
        }
        assert!((9.0..15.0).contains(&ratios.lost[0]), "{ratios:?}");
    }

    /// Bursts in which some segments arrive made another path of every ninth of their looks.
    #[test]
    fn what_is_lost_together_is_no_other_path() {
        for between in [0, 1, 6] {
            let mut ratios = after([20_000, 2_000], [10, 40]);
            for _ in 0..8 {
                ratios.on_delivered(EMPTY, 400);
                for _ in 0..4 {
                    ratios.on_delivered(EMPTY, between);
                    ratios.on_lost(EMPTY);
                }
            }
            assert!(ratios.by_corruption(FULL, false) < 0.25, "{between}");
        }
    }

    #[test]
    fn what_a_full_queue_loses_is_no_other_path() {
        let mut ratios = after([20_000, 2_000], [10, 40]);
        for _ in 0..20 {
            ratios.on_delivered(EMPTY, 10);
            ratios.on_lost(FULL);
        }
        assert!(ratios.by_corruption(FULL, false) < 0.25);
    }

    #[test]
    fn more_than_fifteen_of_a_hundred_are_no_damage() {
        let by_corruption = |delivered, lost| after([delivered, 0], [lost, 0]).by_corruption(EMPTY, false);
        assert_eq!(by_corruption(186, 33), 0.0);
        assert_eq!(by_corruption(187, 33), 1.0, "fifteen of a hundred");
        assert_eq!(by_corruption(100, 32), 1.0, "may be chance");
    }

    #[test]
    fn what_was_long_ago_is_forgotten() {
        let mut ratios = after([1_000, 1_000], [50, 10]);
        for _ in 0..60 {
            ratios.on_lost(FULL);
            ratios.on_delivered(EMPTY, 2_000);
            ratios.on_delivered(FULL, 100);
        }
        assert!(ratios.by_corruption(FULL, false) < 0.1);
        assert!(ratios.lost.iter().sum::<f64>() <= REMEMBERED_LOSSES + 1.0);
        ratios.on_delivered(EMPTY, 200_000);
        assert!(ratios.delivered.iter().sum::<f64>() <= 2.0 * REMEMBERED_DELIVERIES);
    }
}
