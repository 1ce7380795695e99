//! What two flows got bin by bin: does one give what the other takes (CMT §4.5.3)?

/// Both series from the first bin on in which both got something, to the last but one: the run's end cuts the last bin.
pub(super) fn shared<'a>(one: &'a [f64], other: &'a [f64]) -> (&'a [f64], &'a [f64]) {
    let end = one.len().min(other.len()).saturating_sub(1);
    let begin = (0..end).find(|bin| one[*bin] > 0.0 && other[*bin] > 0.0);
    let bins = begin.unwrap_or(end)..end;
    (&one[bins.clone()], &other[bins])
}

/// Pearson's coefficient: -1 where one gets exactly what the other loses. `None` for fewer than two bins, or where one of
/// them never changes.
pub(super) fn correlation(one: &[f64], other: &[f64]) -> Option<f64> {
    let count = one.len() as f64;
    let mean = |of: &[f64]| of.iter().sum::<f64>() / count;
    let (at, beside) = (mean(one), mean(other));
    let product = |a: &[f64], a_mean: f64, b: &[f64], b_mean: f64| -> f64 {
        let terms = a.iter().zip(b).map(|(a, b)| (a - a_mean) * (b - b_mean));
        terms.sum()
    };
    let spread = product(one, at, one, at) * product(other, beside, other, beside);
    (one.len() > 1 && spread > 0.0).then(|| product(one, at, other, beside) / spread.sqrt())
}

/// The share of the bins in which the first flow got more than the second.
pub(super) fn ahead(one: &[f64], other: &[f64]) -> Option<f64> {
    let ahead = one.iter().zip(other).filter(|(one, other)| one > other).count();
    (!one.is_empty()).then(|| ahead as f64 / one.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_that_takes_what_the_other_gives_is_correlated_by_minus_one() {
        let (one, other) = ([1.0, 2.0, 4.0, 3.0], [9.0, 8.0, 6.0, 7.0]);
        let of = correlation(&one, &other).expect("both change");
        assert!((of + 1.0).abs() < 1e-12, "{of}");
        let of = correlation(&one, &one).expect("both change");
        assert!((of - 1.0).abs() < 1e-12, "{of}");
        assert_eq!(correlation(&one, &[5.0; 4]), None, "it never changes");
        assert_eq!(correlation(&[1.0], &[2.0]), None);
    }

    #[test]
    fn bins_count_while_both_are_there_but_for_the_last_one() {
        let (one, other) = ([1.0, 5.0, 1.0, 5.0, 0.1], [0.0, 2.0, 2.0, 2.0, 2.0]);
        let (one, other) = shared(&one, &other);
        assert_eq!((one, other), (&[5.0, 1.0, 5.0][..], &[2.0; 3][..]));
        assert_eq!(ahead(one, other), Some(2.0 / 3.0));
        assert_eq!(ahead(&[], &[]), None);
        assert_eq!(shared(&[1.0], &[1.0]), (&[][..], &[][..]));
        assert_eq!(shared(&[0.0; 3], &[1.0; 3]), (&[][..], &[][..]));
    }
}
