//! Jain's index (DEC-TR-301, 1984): (Σx)² / (n · Σx²), 1 when all get the same, 1/n when one gets everything.

/// The index; `None` for fewer than two shares, or when nobody gets anything.
pub fn jain(shares: &[f64]) -> Option<f64> {
    let sum: f64 = shares.iter().sum();
    let squares: f64 = shares.iter().map(|share| share * share).sum();
    (shares.len() > 1 && squares > 0.0).then(|| sum * sum / (shares.len() as f64 * squares))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_shares_are_fair_and_one_winner_is_not() {
        assert_eq!(jain(&[3.0, 3.0, 3.0]), Some(1.0));
        assert_eq!(jain(&[5.0, 0.0, 0.0, 0.0]), Some(0.25));
        assert_eq!(jain(&[1.0, 2.0]), Some(0.9));
        assert_eq!((jain(&[1.0]), jain(&[0.0, 0.0])), (None, None));
    }
}
