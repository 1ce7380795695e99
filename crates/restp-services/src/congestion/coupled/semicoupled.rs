//! SEMICOUPLED: increase by the sum of all windows, decrease by the own one (Wischik and others, NSDI 2011 §2.4). A
//! congested path keeps a small window, enough to see it recover. With a = 1 it is LIA before round-trip times were
//! compensated.

use super::Paths;

/// Segments per segment acknowledged: a / w_total, with a = 1.
pub(super) fn increase(paths: &Paths) -> f64 {
    1.0 / paths.total_window()
}
