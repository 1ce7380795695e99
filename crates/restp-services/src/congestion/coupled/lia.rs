//! LIA, linked increases: SEMICOUPLED with a chosen so that all paths together get what Reno would get on the best of
//! them, and never a larger step than Reno's on any (RFC 6356 §3).

use super::Paths;

/// Segments per segment acknowledged: min(α / w_total, 1 / w).
pub(super) fn increase(paths: &Paths) -> f64 {
    let total = paths.total_window();
    (alpha(paths) / total).min(1.0 / paths.own().window)
}

/// α = w_total · max(w / rtt²) / (Σ w / rtt)².
fn alpha(paths: &Paths) -> f64 {
    let best = paths.largest(|path| path.window / (path.rtt * path.rtt));
    let rate = paths.total_rate();
    paths.total_window() * best / (rate * rate)
}

#[cfg(test)]
mod tests {
    use super::super::{Paths, Share};
    use super::*;

    fn share(window: f64, rtt: f64) -> Share {
        Share {
            window,
            rtt,
            loss_interval: 0.0,
        }
    }

    #[test]
    fn alpha_compensates_for_round_trip_times() {
        let equal = Paths([share(10.0, 0.1), share(10.0, 0.1)].into_iter().collect());
        assert!(
            (alpha(&equal) - 0.5).abs() < 1e-12,
            "RFC 6356 §4: two equal paths"
        );
        // 20 · (10/0.01) / (100 + 50)²
        let unequal = Paths([share(10.0, 0.1), share(10.0, 0.2)].into_iter().collect());
        assert!((alpha(&unequal) - 20_000.0 / 22_500.0).abs() < 1e-12);
        // On a slow path with a small window the step of Reno is the limit.
        let tiny = Paths([share(50.0, 0.5), share(1.0, 0.01)].into_iter().collect());
        assert!((increase(&tiny) - 1.0 / 50.0).abs() < 1e-12);
    }
}
