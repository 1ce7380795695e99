//! COUPLED: both steps by the sum of all windows, so that only the least congested paths carry anything (Kelly, Voice
//! 2005; Han and others 2006; as printed in Wischik and others, NSDI 2011 §2.2). It flaps between equal paths and keeps
//! too little on congested ones to see them recover (§2.4); LIA was made for that.

use super::Paths;

/// Segments per segment acknowledged: 1 / w_total.
pub(super) fn increase(paths: &Paths) -> f64 {
    1.0 / paths.total_window()
}

/// The own window loses half of the sum.
pub(super) fn kept(paths: &Paths) -> f64 {
    (1.0 - paths.total_window() / (2.0 * paths.own().window)).max(0.0)
}
