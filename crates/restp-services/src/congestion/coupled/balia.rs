//! BALIA, balanced linked adaptation: a family of laws with a proof of existence and stability, and in it the balance of
//! friendliness, responsiveness and small swings (Peng, Walid, Hwang, Low 2016; draft-walid-mptcp-congestion-control-04
//! §3). α is how much slower this path is than the fastest: 1 for the fastest.

use super::{Paths, Share};

/// Segments per segment acknowledged: (x / rtt) / (Σ x)² · (1 + α)/2 · (4 + α)/5.
pub(super) fn increase(paths: &Paths) -> f64 {
    let (own, rate, alpha) = (paths.own(), paths.total_rate(), alpha(paths));
    own.rate() / own.rtt / (rate * rate) * (1.0 + alpha) / 2.0 * (4.0 + alpha) / 5.0
}

/// A loss takes w/2 · min(α, 1.5).
pub(super) fn kept(paths: &Paths) -> f64 {
    1.0 - alpha(paths).min(1.5) / 2.0
}

fn alpha(paths: &Paths) -> f64 {
    paths.largest(Share::rate) / paths.own().rate()
}
