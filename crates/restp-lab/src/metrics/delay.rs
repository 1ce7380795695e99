//! Latencies of messages, in milliseconds.

use restp_base::time::Duration;

/// Arithmetic mean; `None` without values.
pub fn mean_ms(latencies: &[Duration]) -> Option<f64> {
    let total: u128 = latencies
        .iter()
        .map(|latency| u128::from(latency.as_nanos()))
        .sum();
    (!latencies.is_empty()).then(|| total as f64 / latencies.len() as f64 / 1e6)
}

/// The smallest value that `percent` % of all values do not exceed (nearest rank); `None` without values.
pub fn percentile_ms(latencies: &[Duration], percent: u32) -> Option<f64> {
    let rank = (latencies.len() * percent as usize).div_ceil(100).max(1);
    let mut values = latencies.to_vec();
    if rank > values.len() {
        return None;
    }
    let (_, value, _) = values.select_nth_unstable(rank - 1);
    Some(value.as_nanos() as f64 / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mean_and_nearest_rank() {
        let latencies: Vec<Duration> = (1..=200).rev().map(Duration::from_millis).collect();
        assert_eq!(mean_ms(&latencies), Some(100.5));
        assert_eq!(percentile_ms(&latencies, 99), Some(198.0));
        assert_eq!(percentile_ms(&latencies[..1], 99), Some(200.0));
        assert_eq!((mean_ms(&[]), percentile_ms(&[], 99)), (None, None));
    }
}
