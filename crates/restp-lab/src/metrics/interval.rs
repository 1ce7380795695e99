//! Mean, 95 % interval of Student's t, median, number of values: what is said about a point with several runs.

use serde::Serialize;

/// One metric over the runs of one point.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Interval {
    /// Arithmetic mean.
    pub mean: f64,
    /// Lower end of the 95 % interval of the mean; absent with one value.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// Middle value: where timeouts dominate, the mean says little.
    pub median: f64,
    /// Values.
    pub n: usize,
}

impl Interval {
    /// Of these values, in any order; `None` without values.
    pub fn of(values: &[f64]) -> Option<Interval> {
        let n = values.len();
        if n == 0 {
            return None;
        }
        // Sorted first, so that the sum does not depend on the order in which the runs came.
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        // Of equal values a sum divided by their number may be another one.
        let is_constant = sorted[0] == sorted[n - 1];
        let mean = if is_constant {
            sorted[0]
        } else {
            sorted.iter().sum::<f64>() / n as f64
        };
        let median = (sorted[(n - 1) / 2] + sorted[n / 2]) / 2.0;
        let half = (n > 1).then(|| {
            let squares: f64 = sorted.iter().map(|value| (value - mean) * (value - mean)).sum();
            student_t(n - 1) * (squares / (n - 1) as f64 / n as f64).sqrt()
        });
        Some(Interval {
            mean,
            low: half.map(|half| mean - half),
            high: half.map(|half| mean + half),
            median,
            n,
        })
    }

    /// Half the width of the interval.
    pub fn half_width(&self) -> Option<f64> {
        Some(self.high? - self.mean)
    }

    /// The same of a multiple of the metric.
    pub fn scaled(&self, factor: f64) -> Interval {
        let ends = [self.low, self.high].map(|end| end.map(|end| end * factor));
        let [low, high] = if factor < 0.0 { [ends[1], ends[0]] } else { ends };
        Interval {
            mean: self.mean * factor,
            low,
            high,
            median: self.median * factor,
            n: self.n,
        }
    }

    /// By how much the difference to another mean may be off: half of its own 95 % interval, where the two are
    /// independent. Nothing where each has one run only.
    pub fn chance(&self, other: &Interval) -> f64 {
        let [a, b] = [self, other].map(|one| one.half_width().unwrap_or(0.0));
        (a * a + b * b).sqrt()
    }
}

/// The 0.975 quantile of Student's distribution: tabled for few degrees of freedom, else Cornish and Fisher's
/// series around the normal quantile, which is within 1e-5 from 30 on.
fn student_t(degrees: usize) -> f64 {
    const TABLE: [f64; 29] = [
        12.706205, 4.302653, 3.182446, 2.776445, 2.570582, 2.446912, 2.364624, 2.306004, 2.262157, 2.228139,
        2.200985, 2.178813, 2.160369, 2.144787, 2.131450, 2.119905, 2.109816, 2.100922, 2.093024, 2.085963,
        2.079614, 2.073873, 2.068658, 2.063899, 2.059539, 2.055529, 2.051831, 2.048407, 2.045230,
    ];
    if let Some(&quantile) = TABLE.get(degrees - 1) {
        return quantile;
    }
    const Z: f64 = 1.959_963_985;
    let (nu, z3, z5) = (degrees as f64, Z * Z * Z, Z * Z * Z * Z * Z);
    let z7 = z5 * Z * Z;
    Z + (z3 + Z) / (4.0 * nu)
        + (5.0 * z5 + 16.0 * z3 + 3.0 * Z) / (96.0 * nu * nu)
        + (3.0 * z7 + 19.0 * z5 + 17.0 * z3 - 15.0 * Z) / (384.0 * nu * nu * nu)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_are_all_the_same_vary_by_nothing() {
        let same = Interval::of(&[26.251_833_548_202_747; 3]).unwrap();
        assert_eq!((same.mean, same.half_width()), (same.median, Some(0.0)));
    }

    #[test]
    fn a_textbook_sample() {
        // Mean 5, standard deviation 2.138 (n - 1), t(7) = 2.3646: half width 2.3646 · 2.138 / √8 = 1.787.
        let interval = Interval::of(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]).unwrap();
        assert_eq!((interval.mean, interval.median, interval.n), (5.0, 4.5, 8));
        assert!(
            (interval.half_width().unwrap() - 1.787).abs() < 1e-3,
            "{interval:?}"
        );
    }

    #[test]
    fn the_chance_of_a_difference_adds_both_squared() {
        let [a, b] = [3.0, 4.0].map(|half| Interval {
            mean: 10.0,
            low: Some(10.0 - half),
            high: Some(10.0 + half),
            median: 10.0,
            n: 5,
        });
        assert_eq!(a.chance(&b), 5.0);
        assert_eq!(a.chance(&Interval::of(&[1.0]).unwrap()), 3.0);
    }

    #[test]
    fn one_value_has_no_interval_and_none_has_nothing() {
        let one = Interval::of(&[3.0]).unwrap();
        assert_eq!((one.mean, one.low, one.high, one.median), (3.0, None, None, 3.0));
        assert_eq!(Interval::of(&[]), None);
    }

    #[test]
    fn quantiles_of_the_series_agree_with_published_tables() {
        for (degrees, expected) in [(30, 2.042272), (40, 2.021075), (60, 2.000298), (120, 1.979930)] {
            assert!(
                (student_t(degrees) - expected).abs() < 1e-5,
                "{degrees}: {}",
                student_t(degrees)
            );
        }
        assert!((student_t(29) - student_t(30)) > 0.0);
    }
}
