//! EWTCP: every path is a weighted flow of its own; all of them together are one (Honda and others, PFLDNeT 2009; Wischik
//! and others, NSDI 2011 §2.1). It does not move away from congestion.

use super::Paths;

/// Segments per segment acknowledged: a / w. At the same losses a window is proportional to √a, so with a = 1/n² the n
/// windows sum up to one of Reno.
pub(super) fn increase(paths: &Paths) -> f64 {
    let count = paths.count();
    1.0 / (count * count * paths.own().window)
}
